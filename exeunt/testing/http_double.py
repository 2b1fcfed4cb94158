"""A stand-in for an HTTP server: plays prepared bytes, on real sockets, also those that no good server sends."""

import ssl
import struct
from collections import deque
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from socket import SO_LINGER, SOL_SOCKET
from typing import Any, Literal

import attrs
import msgspec
import trio

_MAX_HEAD = 64 * 1024


@attrs.frozen
class HttpRequest:
    """A request as the double saw it."""

    method: str
    target: str
    headers: dict[str, str]
    """Names in lower case."""
    body: bytes
    connection: int
    """Which connection it came on, counted from 1."""

    @property
    def json(self) -> Any:
        """The body, decoded."""
        return msgspec.json.decode(self.body)


@attrs.frozen(kw_only=True)
class HttpReply:
    """One prepared answer."""

    body: bytes | Sequence[bytes | float] = b""
    """The bytes of the body. In a sequence, each item is a packet and each number a pause in seconds, in which a
    connection that the other side closes is noticed (without TLS only)."""
    status: int = 200
    content_type: str = "application/json"
    """Left out where empty."""
    headers: Sequence[tuple[str, str]] = ()
    framing: Literal["length", "chunked", "close", "raw"] = "length"
    """How the end of the body is told; `raw`: the body is the whole answer, its head included."""
    end: Literal["keep", "close", "reset"] = "keep"
    """What becomes of the connection afterwards. With framing `close` it is always closed."""
    last_chunk: bool = True
    """Whether a chunked body is ended."""

    @property
    def packets(self) -> Sequence[bytes | float]:
        """The body as a sequence."""
        return [self.body] if isinstance(self.body, bytes) else self.body


def event_stream(*events: Any, done: bool = True) -> HttpReply:
    """Return a streamed reply: one server-sent event for each value (JSON), and the end marker."""
    body = [b"data: " + msgspec.json.encode(event) + b"\n\n" for event in events]
    if done:
        body.append(b"data: [DONE]\n\n")
    return HttpReply(body=body, content_type="text/event-stream", framing="chunked")


Script = HttpReply | Callable[[HttpRequest], HttpReply]


class HttpDouble:
    """An HTTP/1.1 server whose answers are prepared. Make it with `open_http_double`.

    Each request takes the next of `replies`, or `otherwise` when there is none left. With `tunnels`, CONNECT is
    answered with a tunnel to the target, and no reply is used up.
    """

    def __init__(self, replies: Sequence[Script], *, tunnels: bool) -> None:
        self.replies: deque[Script] = deque(replies)
        self.otherwise: Script = HttpReply(status=500, body=b'{"error":{"message":"no reply was prepared"}}')
        self.requests: list[HttpRequest] = []
        """All requests, in order of arrival; CONNECT too."""
        self.connections = 0
        """Connections that were accepted."""
        self.port = 0
        self._tunnels = tunnels
        self._open: set[trio.SocketStream] = set()

    @property
    def open_connections(self) -> int:
        """Connections whose other side has not been seen to close them."""
        return len(self._open)

    async def drop_connections(self) -> None:
        """Close all open connections, as a server does with idle ones."""
        for stream in list(self._open):
            await stream.aclose()

    async def send(self, data: bytes) -> None:
        """Send bytes that no request asked for on each open connection; without TLS only."""
        for stream in list(self._open):
            await stream.send_all(data)

    async def serve_connection(self, tcp: trio.SocketStream, ssl_context: ssl.SSLContext | None) -> None:
        """Answer the requests of one connection until one of the sides ends it."""
        self.connections += 1
        number = self.connections
        self._open.add(tcp)
        stream: trio.abc.Stream = tcp
        try:
            if ssl_context is not None:
                tls = trio.SSLStream(tcp, ssl_context, server_side=True, https_compatible=True)
                await tls.do_handshake()
                stream = tls
            buffer = bytearray()
            while (request := await _read_request(stream, buffer, number)) is not None:
                self.requests.append(request)
                if request.method == "CONNECT" and self._tunnels:
                    await _tunnel(stream, request.target)
                    return
                script = self.replies.popleft() if self.replies else self.otherwise
                reply = script if isinstance(script, HttpReply) else script(request)
                await _play(stream, reply, buffer)
                if reply.end == "reset":
                    tcp.socket.setsockopt(SOL_SOCKET, SO_LINGER, struct.pack("ii", 1, 0))
                if reply.end != "keep" or reply.framing == "close":
                    return
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass
        finally:
            self._open.discard(tcp)
            tcp.socket.close()


@asynccontextmanager
async def open_http_double(
    *replies: Script, ssl_context: ssl.SSLContext | None = None, tunnels: bool = False
) -> AsyncGenerator[HttpDouble]:
    """Serve on a free port of 127.0.0.1 while the context is open; then cut all connections."""
    double = HttpDouble(replies, tunnels=tunnels)

    async def handler(stream: trio.SocketStream) -> None:
        await double.serve_connection(stream, ssl_context)

    async with trio.open_nursery() as nursery:
        listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
        double.port = listeners[0].socket.getsockname()[1]
        await nursery.start(trio.serve_listeners, handler, listeners)
        try:
            yield double
        finally:
            nursery.cancel_scope.cancel()


async def _read_request(stream: trio.abc.Stream, buffer: bytearray, connection: int) -> HttpRequest | None:
    while (end := buffer.find(b"\r\n\r\n")) < 0:
        data = await stream.receive_some()
        if not data or len(buffer) > _MAX_HEAD:
            return None
        buffer += data
    first, *lines = buffer[:end].decode("latin-1").split("\r\n")
    del buffer[: end + 4]
    method, target, _ = first.split(" ", 2)
    pairs = (line.partition(":") for line in lines)
    headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
    size = int(headers.get("content-length", "0"))
    while len(buffer) < size:
        data = await stream.receive_some()
        if not data:
            return None
        buffer += data
    body = bytes(buffer[:size])
    del buffer[:size]
    return HttpRequest(method, target, headers, body, connection)


async def _play(stream: trio.abc.Stream, reply: HttpReply, buffer: bytearray) -> None:
    chunked = reply.framing == "chunked"
    if reply.framing != "raw":
        headers = [("Content-Type", reply.content_type)] if reply.content_type else []
        headers += reply.headers
        if chunked:
            headers.append(("Transfer-Encoding", "chunked"))
        elif reply.framing == "length":
            size = sum(len(packet) for packet in reply.packets if isinstance(packet, bytes))
            headers.append(("Content-Length", str(size)))
        head = "".join(f"{name}: {value}\r\n" for name, value in headers)
        await stream.send_all(f"HTTP/1.1 {reply.status} Played\r\n{head}\r\n".encode("latin-1"))
    for packet in reply.packets:
        if not isinstance(packet, bytes):
            await _pause(stream, packet, buffer)
        elif packet:
            await stream.send_all(b"%x\r\n%b\r\n" % (len(packet), packet) if chunked else packet)
    if chunked and reply.last_chunk:
        await stream.send_all(b"0\r\n\r\n")


async def _pause(stream: trio.abc.Stream, seconds: float, buffer: bytearray) -> None:
    """Sleep, unless the other side leaves: then the connection is over, as for a server that has more to send."""
    if not isinstance(stream, trio.SocketStream):
        await trio.sleep(seconds)
        return
    with trio.move_on_after(seconds):
        while data := await stream.receive_some():
            buffer += data
        raise trio.BrokenResourceError("the other side has closed the connection")


async def _tunnel(stream: trio.abc.Stream, target: str) -> None:
    host, _, port = target.rpartition(":")
    async with (
        await trio.open_tcp_stream(host.strip("[]"), int(port)) as onward,
        trio.open_nursery() as nursery,
    ):
        await stream.send_all(b"HTTP/1.1 200 Connected\r\n\r\n")

        async def pump(source: trio.abc.Stream, sink: trio.abc.Stream) -> None:
            try:
                while data := await source.receive_some():
                    await sink.send_all(data)
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                pass
            nursery.cancel_scope.cancel()

        nursery.start_soon(pump, stream, onward)
        nursery.start_soon(pump, onward, stream)
