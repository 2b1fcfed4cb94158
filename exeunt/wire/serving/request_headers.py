"""Headers that a client wants in the requests to the model that answer one message."""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing
from typing import cast
from uuid import uuid4

import msgspec

from exeunt.actors.events import Event, MessageAccepted, MessageDropped, TurnEnd, UserMessage
from exeunt.actors.models import ModelClient, ModelDelta, ModelRequest, ModelResponse
from exeunt.models.door.headers import checked_headers

NOTED = "headersOf"
"""Under which the note of a message names its headers. The log has the name only: they may be secrets."""


class RequestHeaders:
    """The headers of one session's messages, from their acceptance to the end of the turn that took them in."""

    def __init__(self) -> None:
        self._given: dict[str, dict[str, str]] = {}
        self._messages: dict[str, dict[str, str]] = {}
        self._turns: dict[str, dict[str, str]] = {}

    def give(self, headers: Mapping[str, str]) -> dict[str, str]:
        """Take headers; return what the note of their message is to hold. Raises `InvalidConfiguration`."""
        checked = checked_headers(headers)
        key = uuid4().hex
        self._given[key] = checked
        return {NOTED: key}

    def withdraw(self, note: Mapping[str, str]) -> None:
        """Forget headers whose message was not accepted."""
        self._given.pop(note[NOTED], None)

    def see(self, event: Event) -> None:
        """Follow the messages and the turns."""
        kind = type(event)
        if kind is MessageAccepted:
            accepted = cast("MessageAccepted", event)
            headers = self._given.pop((accepted.note or {}).get(NOTED, ""), None)
            if headers is not None:
                self._messages[accepted.message_id] = headers
        elif kind is UserMessage:
            user = cast("UserMessage", event)
            headers = self._messages.pop(user.message_id or "", None)
            if headers is not None:
                self._turns.setdefault(user.turn_id, {}).update(headers)
        elif kind is MessageDropped:
            self._messages.pop(cast("MessageDropped", event).message_id, None)
        elif kind is TurnEnd:
            self._turns.pop(cast("TurnEnd", event).turn_id, None)

    def of(self, turn_id: str) -> tuple[tuple[str, str], ...]:
        """Return the headers for the requests of a turn."""
        return tuple(self._turns.get(turn_id, {}).items())


class WithHeaders:
    """A model whose requests have the headers of the messages that they answer."""

    def __init__(self, client: ModelClient, headers: RequestHeaders) -> None:
        self.model = getattr(client, "model", "")
        self.provider = getattr(client, "provider", "")
        self._client = client
        self._headers = headers

    def _with(self, request: ModelRequest) -> ModelRequest:
        headers = self._headers.of(request.turn_id)
        return msgspec.structs.replace(request, headers=headers) if headers else request

    async def complete(self, request: ModelRequest, /) -> ModelResponse:
        """Answer *request*. Raises `ModelError`."""
        return await self._client.complete(self._with(request))

    async def stream(self, request: ModelRequest, /) -> AsyncIterator[ModelDelta | ModelResponse]:
        """Answer *request* in pieces. Raises `ModelError`."""
        stream = self._client.stream(self._with(request))
        async with aclosing(cast("AsyncGenerator[ModelDelta | ModelResponse]", stream)) as pieces:
            async for piece in pieces:
                yield piece  # noqa: ASYNC119 - its reader closes it: `actors/activities/model_call.py`
