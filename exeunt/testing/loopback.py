"""A transport that goes nowhere: serves the sessions of a host of this process as if they lived in another."""

import json
from collections import deque
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import attrs
import trio

from exeunt.actors.callers import CALLER
from exeunt.actors.errors import TransportLost
from exeunt.actors.session import EventStream
from exeunt.actors.session.answering import answer_request
from exeunt.actors.session.frames import error_frame, event_frame
from exeunt.supervisor.host import HostCore


@attrs.define(eq=False)
class LoopbackTransport:
    """A `SessionTransport` to *host*, in this process. All values go through JSON, in both directions.

    A real host stands behind it, so what it answers is right by construction. It can be slow and it can break: that
    is what it is for. Requests and streams under way when it is disconnected raise `TransportLost`.
    """

    host: HostCore
    delay: float = 0.0
    """Seconds that each request, each answer and each event takes."""
    requests: list[tuple[str, dict[str, Any]]] = attrs.field(
        factory=list[tuple[str, dict[str, Any]]], init=False
    )
    """Method and params of each request that was made, oldest first."""
    _connected: bool = attrs.field(default=True, init=False)
    _open: set[trio.CancelScope] = attrs.field(factory=set[trio.CancelScope], init=False, repr=False)
    _planned: deque[Any] = attrs.field(factory=deque[Any], init=False, repr=False)
    _answers_to_lose: int = attrs.field(default=0, init=False)

    def disconnect(self) -> None:
        """Break the line, for all that is under way and all that follows."""
        self._connected = False
        for scope in self._open:
            scope.cancel()

    def reconnect(self) -> None:
        """Mend the line. What was lost stays lost."""
        self._connected = True

    def fail_next(self, error: Exception) -> None:
        """Raise *error* in the place of the next request, which does not arrive. May be called several times."""
        self._planned.append(error)

    def answer_next(self, answer: object) -> None:
        """Answer the next request with *answer* as it is; it does not arrive. May be called several times."""
        self._planned.append(answer)

    def lose_next_answer(self) -> None:
        """Let the next request arrive and be served, and break before its answer is there."""
        self._answers_to_lose += 1

    async def request(self, method: str, params: Mapping[str, Any], /) -> Mapping[str, Any]:
        """Serve a request. See `SessionTransport.request`."""
        self.requests.append((method, dict(params)))
        async with self.line():
            await trio.sleep(self.delay)
            if self._planned:
                planned: Mapping[str, Any] | Exception = self._planned.popleft()
                if isinstance(planned, Exception):
                    raise planned
                return planned
            answer = await self._serve(method, _through_json(params))
            if self._answers_to_lose:
                self._answers_to_lose -= 1
                raise TransportLost("the line broke before the answer was there")
            await trio.sleep(self.delay)
            return answer
        raise TransportLost("the line is broken")

    async def subscribe(self, params: Mapping[str, Any], /) -> "LoopbackStream":
        """Begin a stream of events. See `SessionTransport.subscribe`."""
        self.requests.append(("subscribe", dict(params)))
        async with self.line():
            await trio.sleep(self.delay)
            try:
                session = self.host.get_session(params["session_id"])
                return LoopbackStream(self, session.events(params["from_seq"], after=params["after"]), None)
            except Exception as error:  # noqa: BLE001 - travels to whoever asked
                return LoopbackStream(self, None, _through_json({"error": error_frame(error)}))
        raise TransportLost("the line is broken")

    async def _serve(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        # The other process knows nothing of a handler that asks from here.
        token = CALLER.set(None)
        try:
            session = self.host.get_session(params["session_id"])
            return _through_json(await answer_request(session, method, params))
        except Exception as error:  # noqa: BLE001 - travels to whoever asked
            return _through_json({"error": error_frame(error)})
        finally:
            CALLER.reset(token)

    @asynccontextmanager
    async def line(self) -> AsyncGenerator[None]:
        """Carry something in the block, which is left early and without an error when the line breaks."""
        with trio.CancelScope() as scope:  # noqa: ASYNC100 - the block that it carries has them
            if not self._connected:
                scope.cancel()
            self._open.add(scope)
            try:
                yield
            finally:
                self._open.discard(scope)


@attrs.define(eq=False)
class LoopbackStream:
    """The events of one subscription; a `FrameStream`."""

    _transport: LoopbackTransport
    _events: EventStream | None
    _refusal: Mapping[str, Any] | None

    async def receive(self) -> Mapping[str, Any] | None:
        """Return the next frame. See `FrameStream.receive`."""
        async with self._transport.line():
            await trio.sleep(self._transport.delay)
            if self._events is None:
                return self._refusal
            event = await anext(self._events, None)
            return None if event is None else _through_json(event_frame(event))
        raise TransportLost("the line is broken")

    async def aclose(self) -> None:
        """End the subscription."""
        if self._events is not None:
            await self._events.aclose()


def _through_json(value: Mapping[str, Any]) -> dict[str, Any]:
    plain: dict[str, Any] = json.loads(json.dumps(value, allow_nan=False))
    return plain
