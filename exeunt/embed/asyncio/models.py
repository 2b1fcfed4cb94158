"""A model whose client is written for asyncio."""

from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any

import trio

from exeunt.actors.activities.activity import GRACE
from exeunt.actors.models import ModelClient, ModelDelta, ModelRequest, ModelResponse
from exeunt.embed.asyncio.crossing import on_asyncio


def asyncio_model(client: ModelClient) -> ModelClient:
    """Return a model whose `complete` and `stream` are of asyncio as one that a session can use.

    The models of `exeunt.models` and `ScriptedModel` are of trio, and run in a host on asyncio as they are. Give a
    session one object for all: `asyncio_model` keeps the names under which *client* is counted.
    """
    return _ModelOnAsyncio(client)


class _ModelOnAsyncio:
    def __init__(self, client: ModelClient) -> None:
        self._asyncio = client
        self.model: Any = getattr(client, "model", type(client).__name__)
        self.provider: Any = getattr(client, "provider", type(client).__name__)

    async def complete(self, request: ModelRequest, /) -> ModelResponse:
        return await on_asyncio(self._asyncio.complete(request))

    async def stream(self, request: ModelRequest, /) -> AsyncGenerator[ModelDelta | ModelResponse]:
        pieces: AsyncIterator[ModelDelta | ModelResponse] = self._asyncio.stream(request)
        try:
            while True:
                try:
                    piece = await on_asyncio(anext(pieces))
                except StopAsyncIteration:
                    return
                yield piece
        finally:
            close = getattr(pieces, "aclose", None)
            if close is not None:
                with trio.move_on_after(GRACE, shield=True):  # a cancelled session closes its connection too
                    await on_asyncio(close())
