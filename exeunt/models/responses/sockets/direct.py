"""A web socket of our own: wsproto on a trio stream."""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

import trio

from exeunt.actors.errors import InvalidConfiguration
from exeunt.actors.models import ModelError, ModelErrorKind
from exeunt.models.door.failures import MAX_ERROR_BYTES, failure
from exeunt.models.http import HttpClient
from exeunt.models.http.connection import is_readable
from exeunt.models.http.decoding import too_large

if TYPE_CHECKING:
    import wsproto
    import wsproto.events

# Seconds for what is there to be read already; half a record of TLS is no message.
_READ_SECONDS = 0.02

_NORMAL = 1000
"""The code of a closing that nobody minds."""


async def open_direct(
    http: HttpClient,
    target: bytes,
    headers: Sequence[tuple[bytes, bytes]],
    *,
    deadline: float,
    max_bytes: int,
) -> "DirectSocket":
    """Open a web socket to *target* of the server of *http*, through its proxy and with its TLS.

    Raises `ModelError`, with the status where the server refuses, and `InvalidConfiguration` where the extra is not
    installed.
    """
    try:
        import wsproto
        import wsproto.events
    except ImportError:
        raise InvalidConfiguration(
            'web sockets need the package wsproto: pip install "exeunt[websockets]"'
        ) from None
    handshake = wsproto.events.Request(
        host=http.authority,
        target=target.decode("ascii"),
        extra_headers=list(headers),
    )
    with trio.CancelScope(deadline=deadline):
        stream, tcp = await http.dial()
        socket = DirectSocket(stream, tcp, max_bytes)
        try:
            await socket.shake_hands(handshake)
        except BaseException:
            socket.close()
            raise
        return socket
    raise ModelError(ModelErrorKind.TIMEOUT, "no time left for the handshake of a web socket", retry=True)


class DirectSocket:
    """See `Socket`."""

    def __init__(self, stream: trio.abc.Stream, tcp: trio.SocketStream, max_bytes: int) -> None:
        import wsproto

        self._ws = wsproto.WSConnection(wsproto.ConnectionType.CLIENT)
        self._stream = stream
        self._tcp = tcp
        self._max = max_bytes
        self._pieces: list[bytes] = []
        self._size = 0
        self._messages: list[bytes] = []
        self._ended = False

    async def shake_hands(self, request: "wsproto.events.Request") -> None:
        """Ask for the protocol. Raises `ModelError` where the server refuses."""
        from wsproto import events

        await self._write(self._ws.send(request))
        status, fields, body = 0, dict[str, str](), b""
        while not self._ended:
            for event in await self._read():
                if isinstance(event, events.AcceptConnection):
                    return
                if isinstance(event, events.RejectConnection):
                    status = event.status_code
                    fields = {
                        name.decode("latin-1"): value.decode("latin-1") for name, value in event.headers
                    }
                    if not event.has_body:
                        raise failure(status, fields, b"")
                elif isinstance(event, events.RejectData):
                    body += event.data
                    if event.body_finished or len(body) > MAX_ERROR_BYTES:
                        raise failure(status, fields, body)
        if status:
            raise failure(status, fields, body)
        raise ModelError(
            ModelErrorKind.CONNECTION_LOST, "the handshake of a web socket broke off", retry=True
        )

    async def send(self, message: bytes) -> None:
        """Send one text message. Raises `ModelError`."""
        from wsproto import events

        if self._ended:
            raise _lost()
        await self._write(self._ws.send(events.TextMessage(message.decode())))

    async def receive(self) -> bytes:
        """Return the next message, `b""` when the other side has closed. Raises `ModelError`."""
        while not self._messages:
            if self._ended:
                await trio.lowlevel.checkpoint()
                return b""
            await self._take(await self._read())
        await trio.lowlevel.checkpoint_if_cancelled()
        return self._messages.pop(0)

    async def rest(self) -> bool:
        """Whether the next request can be sent: nothing came that no request asked for but signs of life."""
        try:
            while not self._ended and not self._messages and is_readable(self._tcp.socket):
                events = None
                with trio.move_on_after(_READ_SECONDS):
                    events = await self._read()
                if events is None:
                    break
                await self._take(events)
        except ModelError:
            return False
        await trio.lowlevel.checkpoint_if_cancelled()
        return not self._ended and not self._messages

    def close(self) -> None:
        """Close it at once: the server sees the end of the connection, which is all that it needs."""
        self._ended = True
        self._tcp.socket.close()

    def abandon(self) -> None:
        """Free its file."""
        os.close(self._tcp.socket.detach())

    # --- Bytes ---------------------------------------------------------------------------------------------------

    async def _take(self, events: "list[wsproto.events.Event]") -> None:
        from wsproto import events as kinds

        for event in events:
            if isinstance(event, kinds.TextMessage | kinds.BytesMessage):
                data = event.data.encode() if isinstance(event.data, str) else bytes(event.data)
                self._size += len(data)
                if self._size > self._max:
                    raise too_large(self._max)
                self._pieces.append(data)
                if event.message_finished:
                    self._messages.append(b"".join(self._pieces))
                    self._pieces.clear()
                    self._size = 0
            elif isinstance(event, kinds.Ping):
                await self._write(self._ws.send(event.response()))
            elif isinstance(event, kinds.CloseConnection):
                self._ended = True
                if event.code != _NORMAL and not self._messages:
                    raise ModelError(
                        ModelErrorKind.CONNECTION_LOST,
                        f"the server closed the web socket: {event.code} {event.reason or ''}".rstrip(),
                        retry=True,
                    )

    async def _read(self) -> "list[wsproto.events.Event]":
        from wsproto.utilities import LocalProtocolError, RemoteProtocolError

        try:
            data = bytes(await self._stream.receive_some())
        except trio.BrokenResourceError as error:
            raise _lost() from error
        if not data:
            self._ended = True
            return []
        try:
            self._ws.receive_data(data)
            return list(self._ws.events())
        except (RemoteProtocolError, LocalProtocolError) as error:
            raise ModelError(
                ModelErrorKind.MALFORMED_RESPONSE, f"the answer is no web socket: {error}", retry=True
            ) from error

    async def _write(self, data: bytes) -> None:
        try:
            await self._stream.send_all(data)
        except trio.BrokenResourceError as error:
            raise _lost() from error


def _lost() -> ModelError:
    return ModelError(ModelErrorKind.CONNECTION_LOST, "the web socket was lost", retry=True)
