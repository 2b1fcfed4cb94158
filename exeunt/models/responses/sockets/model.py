"""The client of one model behind the Responses API over web sockets."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from functools import cached_property
from typing import Any

import attrs
import trio

from exeunt.actors.models import ModelDelta, ModelError, ModelErrorKind, ModelRequest, ModelResponse
from exeunt.models.door.answers import STILL_AT_WORK, malformed
from exeunt.models.door.headers import with_headers
from exeunt.models.door.jsontext import is_dict, loads
from exeunt.models.door.model import ModelStatistics
from exeunt.models.door.reasoning import without_reasoning
from exeunt.models.responses.answers import ResponseReader
from exeunt.models.responses.failures import failed
from exeunt.models.responses.model import ResponsesModel, refuses_reasoning
from exeunt.models.responses.requests import Encoded
from exeunt.models.responses.sockets.line import Line, SocketOpener, whole
from exeunt.models.responses.sockets.lines import Lines

# Of a plain request, and wrong in the handshake of a web socket.
_NOT_SENT = frozenset({b"accept", b"accept-encoding", b"content-type"})

FORGOTTEN = "previous_response_not_found"
"""The code with which a server says that it does not remember the last answer."""


class ResponsesSocketModel(ResponsesModel):
    """A model behind the Responses API over web sockets; a `ModelClient`.

    As `ResponsesModel`, which says what it is made with. The requests of a session go over one connection, which is
    kept between them for four minutes; a request that goes on from the last answer on its connection holds only what
    is new. A cancelled call closes its connection. `statistics().pool` counts the web sockets.
    """

    async def complete(self, request: ModelRequest, /) -> ModelResponse:
        """Answer *request* in one piece. Raises `ModelError`. Cancelled, the call's connection is closed."""
        end = trio.current_time() + self.http.timeouts.total
        async with aclosing(
            self._pieces(request, first=end, gap=self.http.timeouts.total, end=end)
        ) as pieces:
            async for piece in pieces:
                if isinstance(piece, ModelResponse):
                    return piece
        raise AssertionError("an answer ends with a response or an error")

    def stream(self, request: ModelRequest, /) -> AsyncIterator[ModelDelta | ModelResponse]:
        """Answer *request* in pieces: any number of `ModelDelta`, then one `ModelResponse`.

        Raises `ModelError`, also in the middle. Closed before its end, or cancelled, its connection is closed.
        """
        limits = self.http.timeouts
        start = trio.current_time()
        end = start + limits.stream_total
        return self._pieces(request, first=min(start + limits.first_byte, end), gap=limits.gap, end=end)

    async def aclose(self) -> None:
        """Close the idle connections. Calls under way end normally, and close theirs. May be called twice."""
        self.lines.close()
        await super().aclose()

    def statistics(self) -> ModelStatistics:
        """Return the client's numbers."""
        return attrs.evolve(super().statistics(), pool=self.lines.statistics())

    @cached_property
    def lines(self) -> Lines:
        """The connections."""
        return Lines()

    # --- Parts of a call -----------------------------------------------------------------------------------------

    async def _pieces(
        self, request: ModelRequest, *, first: float, gap: float, end: float
    ) -> AsyncGenerator[ModelDelta | ModelResponse]:
        with self._call():
            line, event, parts = await self._begin(request, first)
            reader = ResponseReader({tool.name for tool in request.tools}, keeper=self._keeper)
            kept = False
            try:
                while True:
                    delta = reader.take(event)
                    if reader.is_done:
                        break
                    piece = STILL_AT_WORK if delta is None else delta
                    yield piece  # noqa: ASYNC119 - its reader closes it: `actors/activities/model_call.py`
                    event = await self._event(line, min(trio.current_time() + gap, end))
                if delta is not None:
                    yield delta  # noqa: ASYNC119 - as above
                answer = reader.result()
                line.remember(reader.response_id, parts, self._encoder.encode_answer(answer))
                kept = True
            finally:
                if not kept:
                    self.lines.drop(line)
            await self.lines.give_back(line)
        yield answer

    async def _begin(self, request: ModelRequest, deadline: float) -> tuple[Line, Any, Encoded]:
        """Send *request*; return the connection, the first event of the answer, and what was asked."""
        request = self._refused.left_out(request)
        parts = self._encoder.encode_parts(request)
        line = await self.lines.take(request.session_id)
        if line is not None:
            found = await self._asked(line, request, parts, deadline, again=True)
            if found is not None:
                return line, *found
            self.lines.stale += 1
        line = await self._open(request, deadline)
        found = await self._asked(line, request, parts, deadline, again=False)
        if found is None:
            raise _lost("the web socket was closed without an answer")
        return line, *found

    async def _asked(
        self, line: Line, request: ModelRequest, parts: Encoded, deadline: float, *, again: bool
    ) -> tuple[Any, Encoded] | None:
        """Return the first event that is no refusal, and what was asked; `None` where the connection was dead."""
        asked = False
        bare: ModelRequest | None = None
        try:
            message = line.continuing(parts)
            while True:
                continued = message is not None
                event = await self._exchange(line, message or whole(parts), deadline, again=again)
                if event is None:
                    return None
                error = _error_in(event)
                if error is None:
                    asked = True
                    if bare is not None:
                        self._refused.note(request)
                    return event, parts
                line.last = None
                if continued and FORGOTTEN in str(event):
                    message = None
                elif bare is None and refuses_reasoning(error) and (bare := without_reasoning(request)):
                    parts, message = self._encoder.encode_parts(bare), None
                else:
                    raise error
        finally:
            if not asked:
                self.lines.drop(line)

    async def _exchange(self, line: Line, message: bytes, deadline: float, *, again: bool) -> Any:
        """Send a message and return the first event of its answer; `None` where a kept connection was dead."""
        try:
            with trio.CancelScope(deadline=deadline):
                await line.socket.send(message)
                received = await line.socket.receive()
                return _decoded(received) if received else None
        except ModelError as error:
            if again and error.kind is ModelErrorKind.CONNECTION_LOST:
                return None
            raise
        raise _out_of_time()

    async def _event(self, line: Line, deadline: float) -> Any:
        with trio.CancelScope(deadline=deadline):
            received = await line.socket.receive()
            if not received:
                raise _lost("the web socket was closed inside the answer")
            return _decoded(received)
        raise _out_of_time()

    async def _open(self, request: ModelRequest, deadline: float) -> Line:
        if self.http.is_closed:
            raise _lost("this model client was closed")
        headers = [pair for pair in self._headers[False] if pair[0] not in _NOT_SENT]
        if request.headers:
            headers = with_headers(headers, request.headers)
        http: object = self.http
        if isinstance(http, SocketOpener):
            socket = await http.open_socket(
                self._target, headers, deadline=deadline, max_bytes=self._max_bytes
            )
        else:
            from exeunt.models.responses.sockets.direct import open_direct

            socket = await open_direct(
                self.http, self._target, headers, deadline=deadline, max_bytes=self._max_bytes
            )
        self.lines.opened()
        return Line(socket, request.session_id, trio.current_time())


def _decoded(message: bytes) -> Any:
    try:
        return loads(message.decode("utf-8", "replace"))
    except ValueError as error:
        raise malformed("a message of the web socket is not JSON", retry=True) from error


def _error_in(event: Any) -> ModelError | None:
    if is_dict(event) and event.get("type") == "error":
        return failed(event.get("error") or event, event.get("status"))
    return None


def _lost(message: str) -> ModelError:
    return ModelError(ModelErrorKind.CONNECTION_LOST, message, retry=True)


def _out_of_time() -> ModelError:
    return ModelError(ModelErrorKind.TIMEOUT, "no time left for the next event of the answer", retry=True)
