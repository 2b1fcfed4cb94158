"""What the place of a client's models says of them, where a client sends the requests: which API each speaks."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import aclosing
from itertools import islice
from typing import Any, cast

import trio

from exeunt.actors.models import ModelClient, ModelDelta, ModelError, ModelRequest, ModelResponse
from exeunt.models.door.headers import bearer, wire_headers
from exeunt.models.door.jsontext import is_dict, is_list, loads
from exeunt.models.http.urls import parse_endpoint
from exeunt.wire.serving.carrying import Carrier

Catalogue = dict[str, frozenset[str]]
"""The endpoints of each model, by its id: `/chat/completions`, `/responses`, `ws:/responses`, `/v1/messages`. None,
where it names none."""

SECONDS = 30.0
"""For the catalogue: a message waits for it."""

MOST_MODELS = 10_000
"""Of one catalogue that are kept."""

MOST_BYTES = 4 * 1024 * 1024
"""The longest have some hundred models, of some KiB each."""


def api_of(endpoints: frozenset[str], *, sockets: bool) -> dict[str, Any]:
    """Return what a provider's configuration says of the API of a model with these endpoints.

    Chat completions, where nothing is known of it; *sockets* says whether web sockets may be used.
    """
    if sockets and "ws:/responses" in endpoints:
        return {"wire_api": "responses", "transport": "websockets"}
    if "/responses" in endpoints and "/chat/completions" not in endpoints:
        return {"wire_api": "responses"}
    if "/v1/messages" in endpoints and "/chat/completions" not in endpoints:
        return {"type": "anthropic"}
    return {}


async def fetched(carrier: Carrier, base_url: str, provider: Mapping[str, Any]) -> Catalogue:
    """Return what `GET {base_url}/models` says, by way of the client. Raises `ModelError`."""
    _, target = parse_endpoint(base_url, "/models")
    headers, _ = wire_headers(bearer(provider.get("api_key")), provider.get("headers") or {})
    deadline = trio.current_time() + SECONDS
    body = b""
    with await carrier.get(
        target.encode("ascii"), headers, deadline=deadline, max_bytes=MOST_BYTES
    ) as exchange:
        while data := await exchange.receive(deadline=deadline):
            body += data
        exchange.complete()
    return read(body) if 200 <= exchange.status < 300 else {}


def read(body: bytes) -> Catalogue:
    """Return what the body of a catalogue says; nothing where it is none."""
    try:
        answer: Any = loads(body.decode("utf-8", "replace"))
    except ValueError:
        return {}
    entries = answer.get("data") if is_dict(answer) else None
    found: Catalogue = {}
    for entry in islice(entries if is_list(entries) else (), MOST_MODELS):
        if is_dict(entry) and isinstance(entry.get("id"), str):
            endpoints = entry.get("supported_endpoints")
            named = endpoints if is_list(endpoints) else ()
            found[entry["id"]] = frozenset(each for each in named if isinstance(each, str))
    return found


class Catalogued:
    """A model whose API the catalogue says, which is asked for before its first request."""

    provider = "openai"

    def __init__(
        self,
        model: str,
        find: Callable[[], Any],
        make: Callable[[frozenset[str]], ModelClient],
    ) -> None:
        """*find* returns a `Catalogue`, or raises `ModelError`; *make* is given the endpoints of *model*."""
        self.model = model
        self._find = find
        self._make = make
        self._client: ModelClient | None = None

    async def _found(self) -> ModelClient:
        if self._client is None:
            try:
                catalogue: Catalogue = await self._find()
            except ModelError:
                # A client that knows nothing of a catalogue: the request will tell whether it knows of models.
                catalogue = {}
            self._client = self._make(catalogue.get(self.model, frozenset()))
        return self._client

    async def complete(self, request: ModelRequest, /) -> ModelResponse:
        """Answer *request*. Raises `ModelError`."""
        return await (await self._found()).complete(request)

    async def stream(self, request: ModelRequest, /) -> AsyncIterator[ModelDelta | ModelResponse]:
        """Answer *request* in pieces. Raises `ModelError`."""
        stream = (await self._found()).stream(request)
        async with aclosing(cast("AsyncGenerator[ModelDelta | ModelResponse]", stream)) as pieces:
            async for piece in pieces:
                yield piece  # noqa: ASYNC119 - its reader closes it: `actors/activities/model_call.py`
