"""One keep-alive connection: h11 driven by a trio stream."""

import select
import sys
from contextlib import suppress

import h11
import trio

from exeunt.actors.models import ModelError, ModelErrorKind

# Room for the header block of an answer. Servers and gateways cut off between 8 and 64 KiB.
_MAX_HEADER_BYTES = 64 * 1024

_AFTER_BODY = (h11.DONE, h11.MUST_CLOSE, h11.CLOSED)


class StaleConnection(Exception):
    """The connection ended before the first byte of an answer: the request was very likely not read."""


class Connection:
    """Speaks HTTP/1.1 with one server, one exchange after the other.

    Whoever holds it is its only user. `close` never waits, so it works in any `finally`, also when cancelled.
    """

    __slots__ = ("_ended", "_heard", "_http", "_socket", "_stream", "exchanges", "idle_since")

    def __init__(self, stream: trio.abc.Stream, tcp: trio.SocketStream) -> None:
        self._stream = stream
        self._socket = tcp.socket
        self._http = h11.Connection(h11.CLIENT, max_incomplete_event_size=_MAX_HEADER_BYTES)
        self._heard = False
        self._ended = False
        self.exchanges = 0
        """Requests that were begun on it."""
        self.idle_since = 0.0
        """When it was given back, in the clock of trio."""

    async def send(self, request: h11.Request, body: bytes) -> None:
        """Send one request. Cancelled, the connection is of no more use.

        Returns also when the server hung up on a new connection: it may have answered first (413, 400).
        """
        self._heard = False
        again = self.exchanges > 0
        self.exchanges += 1
        http = self._http
        head = http.send(request) or b""
        http.send(h11.Data(data=body))
        http.send(h11.EndOfMessage())
        try:
            await self._stream.send_all(head + body)
        except trio.BrokenResourceError as error:
            if again:
                raise StaleConnection from error

    async def response(self) -> h11.Response:
        """Return the head of the answer. Raises `StaleConnection` or `ModelError`."""
        while True:
            event = await self._next()
            if isinstance(event, h11.Response):
                return event
            if not isinstance(event, h11.InformationalResponse):
                raise ModelError(ModelErrorKind.MALFORMED_RESPONSE, "an answer without a head", retry=True)

    async def receive(self) -> bytes:
        """Return the next piece of the body, `b""` at its end. Raises `ModelError`.

        Chunks that came together are one piece: each piece costs its reader a time-out and a round of parsing.
        """
        if self._http.their_state in _AFTER_BODY:
            return b""
        event = await self._next()
        if not isinstance(event, h11.Data):
            return b""
        pieces = [bytes(event.data)]
        # An error waits: what came before counts, and the next call meets it again.
        with suppress(ModelError):
            while isinstance(more := self._buffered(), h11.Data):
                pieces.append(bytes(more.data))
        return b"".join(pieces)

    async def _next(self) -> h11.Event:
        event = self._buffered()
        while event is None:
            await self._read()
            event = self._buffered()
        return event

    def _buffered(self) -> h11.Event | None:
        try:
            event = self._http.next_event()
        except h11.RemoteProtocolError as error:
            if self._ended:
                raise ModelError(
                    ModelErrorKind.CONNECTION_LOST, "the connection ended inside the answer", retry=True
                ) from error
            raise ModelError(
                ModelErrorKind.MALFORMED_RESPONSE, f"the answer is not HTTP: {error}", retry=True
            ) from error
        if event is h11.NEED_DATA:
            return None
        # The markers of h11 are classes, its events are not.
        if isinstance(event, type | h11.ConnectionClosed):
            raise ModelError(ModelErrorKind.CONNECTION_LOST, "the connection ended too early", retry=True)
        return event

    async def _read(self) -> None:
        cause: trio.BrokenResourceError | None = None
        try:
            data = bytes(await self._stream.receive_some())
        except trio.BrokenResourceError as error:
            data, cause = b"", error
        if data:
            self._heard = True
            self._http.receive_data(data)
            return
        self._ended = True
        if not self._heard:
            raise StaleConnection from cause
        if cause is not None:
            # A reset is never the legal end of a body, also where only the end of the connection ends one.
            raise ModelError(
                ModelErrorKind.CONNECTION_LOST, "the connection was reset inside the answer", retry=True
            ) from cause
        self._http.receive_data(b"")

    # --- Between two exchanges ---

    def is_drained(self) -> bool:
        """Whether the body has been read to its end; reads what is buffered, without waiting.

        A connection that cannot be used again is never drained.
        """
        http = self._http
        if http.our_state is not h11.DONE:
            return False
        try:
            while http.their_state is h11.SEND_BODY:
                if http.next_event() is h11.NEED_DATA:
                    return False
        except h11.RemoteProtocolError:
            return False
        if http.their_state is not h11.DONE:
            return False
        http.start_next_cycle()
        return True

    def can_drain(self) -> bool:
        """Whether the end of the body may still come, and the connection be used again after it."""
        return (
            self._http.our_state is h11.DONE and self._http.their_state is h11.SEND_BODY and not self._ended
        )

    def is_readable(self) -> bool:
        """Whether there is something to read: on a drained connection that is its end, or nonsense."""
        return is_readable(self._socket)

    async def drain(self) -> bool:
        """Read a connection that `can_drain` to the end of the body; return whether it can be used again."""
        try:
            while not self.is_drained():
                if not self.can_drain():
                    return False
                await self._read()
        except (StaleConnection, ModelError):
            return False
        return True

    # --- End ---

    def close(self) -> None:
        """Close it at once, without a TLS farewell: no answer is outstanding that could be cut."""
        self._socket.close()

    def detach(self) -> int:
        """Give the file descriptor up to the caller. For finalizers, which may run outside of trio."""
        return self._socket.detach()


def is_readable(socket: trio.socket.SocketType) -> bool:
    """Whether there is something to read, or the end of the connection, without waiting."""
    if sys.platform == "win32":
        return bool(select.select([socket.fileno()], [], [], 0)[0])
    # Not `select.select`, which knows no file descriptors above 1,023.
    poll = select.poll()
    poll.register(socket.fileno(), select.POLLIN)
    return bool(poll.poll(0))
