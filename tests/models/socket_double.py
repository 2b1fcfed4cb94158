"""A stand-in for a server of web sockets: answers each message with prepared events, on real sockets."""

import json
from collections import deque
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import attrs
import trio
import wsproto
from wsproto import events

from tests.models.responses_support import USAGE, message, told

CLOSE = "close"
"""In the place of an event: a farewell."""
DROP = "drop"
"""In the place of an event: the connection is cut."""
PING = "ping"
HANG = "hang"

Reply = Sequence[dict[str, Any] | bytes | str]


def answer(text: str, response_id: str = "resp_1") -> Reply:
    """The events of a response with a text."""
    return told(message(text), id=response_id, usage=USAGE)


@attrs.define
class SocketDouble:
    """The server. Each message takes the next of `replies`."""

    port: int = 0
    status: int = 101
    """Another than 101 refuses the handshake."""
    replies: deque[Reply] = attrs.field(factory=deque[Reply])
    messages: list[dict[str, Any]] = attrs.field(factory=list[dict[str, Any]])
    handshakes: list[tuple[str, dict[str, str]]] = attrs.field(factory=list[tuple[str, dict[str, str]]])
    """Target and headers of each."""
    pongs: int = 0
    open: int = 0
    """Connections that neither side has ended."""
    streams: list[trio.SocketStream] = attrs.field(factory=list[trio.SocketStream])
    gone: trio.Event = attrs.field(factory=trio.Event)

    async def all_gone(self) -> None:
        """Wait until no connection is open."""
        while self.open:
            self.gone = trio.Event()
            await self.gone.wait()

    async def serve(self, stream: trio.SocketStream) -> None:
        """Serve one connection."""
        ws = wsproto.WSConnection(wsproto.ConnectionType.SERVER)
        self.open += 1
        self.streams.append(stream)
        try:
            while data := await stream.receive_some():
                ws.receive_data(bytes(data))
                for event in ws.events():
                    if not await self._met(stream, ws, event):
                        return
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass
        finally:
            self.open -= 1
            self.gone.set()
            await stream.aclose()

    async def _met(self, stream: trio.SocketStream, ws: wsproto.WSConnection, event: events.Event) -> bool:
        if isinstance(event, events.Request):
            headers = {name.decode(): value.decode() for name, value in event.extra_headers}
            self.handshakes.append((event.target, headers))
            if self.status == 101:
                await stream.send_all(ws.send(events.AcceptConnection()))
                return True
            refused = events.RejectConnection(
                status_code=self.status, headers=[(b"content-type", b"application/json")], has_body=True
            )
            told_why = events.RejectData(data=b'{"error":{"message":"no sockets here"}}')
            await stream.send_all(ws.send(refused) + ws.send(told_why))
            return False
        if isinstance(event, events.Pong):
            self.pongs += 1
        if isinstance(event, events.CloseConnection):
            return False
        if isinstance(event, events.TextMessage):
            self.messages.append(json.loads(event.data))
            for each in self.replies.popleft():
                if each == DROP:
                    return False
                if each == HANG:
                    await trio.sleep_forever()
                await stream.send_all(ws.send(_framed(each)))
        return True


def _framed(each: dict[str, Any] | bytes | str) -> events.Event:
    if each == CLOSE:
        return events.CloseConnection(code=1011, reason="the engine died")
    if each == PING:
        return events.Ping(payload=b"?")
    if isinstance(each, bytes):
        return events.BytesMessage(data=each)
    return events.TextMessage(data=json.dumps(each))


@asynccontextmanager
async def open_socket_double(*replies: Reply, status: int = 101) -> AsyncGenerator[SocketDouble]:
    """Serve on a free port of 127.0.0.1 while the context is open; then cut all connections."""
    double = SocketDouble(status=status, replies=deque(replies))
    async with trio.open_nursery() as nursery:
        listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
        double.port = listeners[0].socket.getsockname()[1]
        await nursery.start(trio.serve_listeners, double.serve, listeners)
        try:
            yield double
        finally:
            nursery.cancel_scope.cancel()
