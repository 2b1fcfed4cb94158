"""Models whose provider wants a token that the client gets anew for each request."""

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from typing import cast

from exeunt.actors.errors import ClientGone, ClientRefused
from exeunt.actors.models import (
    ModelClient,
    ModelDelta,
    ModelError,
    ModelErrorKind,
    ModelRequest,
    ModelResponse,
)


class WithToken:
    """A model that asks for a token before each request."""

    def __init__(
        self,
        model: str,
        provider: str,
        ask: Callable[[str], Awaitable[str]],
        make: Callable[[str], ModelClient],
    ) -> None:
        """*provider* is its type; *ask* gives a token for a session, *make* the model that sends it."""
        self.model = model
        self.provider = provider
        self._ask = ask
        self._make = make

    async def _client(self, request: ModelRequest) -> ModelClient:
        try:
            return self._make(await self._ask(request.session_id))
        except (ClientGone, ClientRefused) as error:
            raise ModelError(
                ModelErrorKind.AUTHENTICATION, f"the client gave no token for the provider: {error}"
            ) from error

    async def complete(self, request: ModelRequest, /) -> ModelResponse:
        """Answer *request*. Raises `ModelError`."""
        return await (await self._client(request)).complete(request)

    async def stream(self, request: ModelRequest, /) -> AsyncIterator[ModelDelta | ModelResponse]:
        """Answer *request* in pieces. Raises `ModelError`."""
        stream = (await self._client(request)).stream(request)
        async with aclosing(cast("AsyncGenerator[ModelDelta | ModelResponse]", stream)) as pieces:
            async for piece in pieces:
                yield piece  # noqa: ASYNC119 - its reader closes it: `actors/activities/model_call.py`
