"""Whether a model is shown images: what clients say of it, for the requests to it."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import cast

import msgspec

from exeunt.actors.models import MediaSupport, ModelClient, ModelDelta, ModelRequest, ModelResponse
from exeunt.wire.messages.capabilities import ModelCapabilities
from exeunt.wire.messages.sessions import SessionConfig


def support_of(config: SessionConfig, model: str) -> MediaSupport | None:
    """Return what clients say that the session's model takes; `None` where nobody says anything.

    What is said of the session wins over what is said of a registered model, and that over its provider.
    """
    told = [config.modelCapabilities]
    told += [one.capabilities for one in config.models or () if model in (one.id, f"{one.provider}/{one.id}")]
    told.append(None if config.provider is None else config.provider.modelCapabilities)
    return next((support for one in told if (support := _support(one)) is not None), None)


def _support(capabilities: ModelCapabilities | None) -> MediaSupport | None:
    if capabilities is None:
        return None
    vision = None if capabilities.supports is None else capabilities.supports.vision
    limits = None if capabilities.limits is None else capabilities.limits.vision
    if vision is None and limits is None:
        return None
    if vision is False:
        # Pages of a document are shown as images too.
        return MediaSupport(images=False, documents=False)
    if limits is None:
        return MediaSupport()
    types = limits.supported_media_types
    return MediaSupport(
        image_types=None if types is None else frozenset(kind.lower() for kind in types),
        most_images=limits.max_prompt_images,
        largest_image=limits.max_prompt_image_size,
    )


class WithSupport:
    """A model whose requests say what it takes."""

    def __init__(self, client: ModelClient, support: MediaSupport) -> None:
        self.model = getattr(client, "model", "")
        self.provider = getattr(client, "provider", "")
        self._client = client
        self._support = support

    def _with(self, request: ModelRequest) -> ModelRequest:
        return msgspec.structs.replace(request, media=self._support)

    async def complete(self, request: ModelRequest, /) -> ModelResponse:
        """Answer *request*. Raises `ModelError`."""
        return await self._client.complete(self._with(request))

    async def stream(self, request: ModelRequest, /) -> AsyncIterator[ModelDelta | ModelResponse]:
        """Answer *request* in pieces. Raises `ModelError`."""
        stream = self._client.stream(self._with(request))
        async with aclosing(cast("AsyncGenerator[ModelDelta | ModelResponse]", stream)) as pieces:
            async for piece in pieces:
                yield piece  # noqa: ASYNC119 - its reader closes it: `actors/activities/model_call.py`
