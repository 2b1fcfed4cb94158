"""One request and its answer."""

import math
import ssl
from collections.abc import Sequence
from types import TracebackType

import h11
import trio

from exeunt.actors.models import ModelError, ModelErrorKind
from exeunt.models.http.connection import Connection, StaleConnection
from exeunt.models.http.decoding import Decoder, too_large
from exeunt.models.http.pool import ConnectionPool, PoolLimits, PoolStatistics
from exeunt.models.http.timeouts import Timeouts
from exeunt.models.http.urls import Origin, Proxy

Headers = Sequence[tuple[bytes, bytes]]


class HttpClient:
    """Sends requests to one origin over a `ConnectionPool`.

    Any number of tasks of one trio run may use it at once. A cancelled call costs its own connection, and
    nothing of the others.
    """

    def __init__(
        self,
        origin: Origin,
        *,
        proxy: Proxy | None = None,
        ssl_context: ssl.SSLContext | None = None,
        limits: PoolLimits | None = None,
        timeouts: Timeouts | None = None,
    ) -> None:
        self.timeouts = timeouts or Timeouts()
        self._origin = origin
        self._pool = ConnectionPool(
            origin,
            proxy=proxy,
            ssl_context=ssl_context,
            limits=limits or PoolLimits(),
            timeouts=self.timeouts,
        )
        # Through a proxy, plain http wants the whole URL as its target; https has a tunnel and does not.
        forwarded = proxy is not None and origin.scheme == "http"
        self._prefix = f"http://{origin.authority}".encode() if forwarded else b""
        self._own_headers = [(b"Host", origin.authority.encode())]
        if forwarded and proxy is not None and proxy.authorization is not None:
            self._own_headers.append((b"Proxy-Authorization", proxy.authorization))

    async def post(
        self, target: bytes, headers: Headers, body: bytes, *, deadline: float, max_bytes: int
    ) -> "Response":
        """Send *body* and return the answer once its head is here, whatever its status.

        *deadline*, in the clock of trio, bounds everything up to then, and *max_bytes* the decoded body. A
        request on a kept connection that ends before the first byte of an answer is sent once more on a new
        one. Raises `ModelError`; redirects are not followed. The caller closes the response.
        """
        request = h11.Request(
            method=b"POST",
            target=self._prefix + target,
            headers=[*self._own_headers, *headers, (b"Content-Length", b"%d" % len(body))],
        )
        return await self._send(request, body, deadline, max_bytes)

    async def get(self, target: bytes, headers: Headers, *, deadline: float, max_bytes: int) -> "Response":
        """Ask for *target* and return the answer once its head is here. As `post`, without a body."""
        request = h11.Request(
            method=b"GET", target=self._prefix + target, headers=[*self._own_headers, *headers]
        )
        return await self._send(request, b"", deadline, max_bytes)

    async def _send(self, request: h11.Request, body: bytes, deadline: float, max_bytes: int) -> "Response":
        try:
            return await self._attempt(request, body, deadline, max_bytes, fresh=False)
        except StaleConnection:
            self._pool.stale += 1
        return await self._attempt(request, body, deadline, max_bytes, fresh=True)

    async def _attempt(
        self, request: h11.Request, body: bytes, deadline: float, max_bytes: int, *, fresh: bool
    ) -> "Response":
        with trio.CancelScope(deadline=deadline):
            connection = await self._pool.acquire(fresh=fresh)
            kept = connection.exchanges > 0
            try:
                await connection.send(request, body)
                head = await connection.response()
                return Response(self._pool, connection, head, max_bytes)
            except StaleConnection as error:
                self._pool.discard(connection)
                if kept:
                    raise
                raise ModelError(
                    ModelErrorKind.CONNECTION_LOST,
                    f"{self._origin.address} closed the connection without an answer",
                    retry=True,
                ) from error
            except BaseException:
                self._pool.discard(connection)
                raise
        raise _out_of_time("the head of an answer")

    @property
    def authority(self) -> str:
        """The server, as a request names it: `host`, or `host:port`."""
        return self._origin.authority

    async def dial(self) -> tuple[trio.abc.Stream, trio.SocketStream]:
        """Open a connection that no pool keeps, for what is not HTTP for long; return it, and the socket below it.

        Through the same proxy, with the same TLS, within the same time. Raises `ModelError`.
        """
        return await self._pool.dial(tunnel=True)

    def close(self) -> None:
        """Close the idle connections; calls under way end normally, new ones are refused."""
        self._pool.close()

    @property
    def is_closed(self) -> bool:
        """Whether `close` was called."""
        return self._pool.is_closed

    def statistics(self) -> PoolStatistics:
        """Return the numbers of the pool."""
        return self._pool.statistics()


class Response:
    """An answer whose body is read piece by piece.

    `close` never waits and may be called twice. It keeps the connection for the next call if the body was read
    to its end, or `complete` was called; else it closes the connection.
    """

    __slots__ = (
        "_connection",
        "_decoder",
        "_done",
        "_left",
        "_max_bytes",
        "_open",
        "_pool",
        "headers",
        "status",
    )

    def __init__(
        self, pool: ConnectionPool, connection: Connection, head: h11.Response, max_bytes: int
    ) -> None:
        self.status = head.status_code
        self.headers: dict[str, str] = {}
        """Names in lower case. Of a header that came twice, the last."""
        for name, value in head.headers:
            self.headers[name.decode("latin-1")] = value.decode("latin-1")
        coding = self.headers.get("content-encoding", "").strip().lower()
        self._decoder = None if coding in ("", "identity") else Decoder(coding, max_bytes)
        self._pool = pool
        self._connection = connection
        self._max_bytes = max_bytes
        self._left = max_bytes
        self._done = False
        self._open = True

    async def receive(self, *, deadline: float = math.inf) -> bytes:
        """Return the next piece of the decoded body, `b""` at its end.

        Raises `ModelError`, also when *deadline* (in the clock of trio) passes. Cancelled, close the response.
        """
        while not self._done:
            data: bytes | None = None
            with trio.CancelScope(deadline=deadline):
                data = await self._connection.receive()
            if data is None:
                raise _out_of_time("the next piece of the answer")
            if not data:
                self._done = True
                if self._decoder is not None:
                    self._decoder.end()
                break
            self._left -= len(data)
            if self._left < 0:
                raise too_large(self._max_bytes)
            if self._decoder is not None:
                data = self._decoder.decode(data)
            if data:
                return data
        return b""

    async def read(self, *, deadline: float) -> bytes:
        """Return the whole rest of the body. Raises `ModelError`."""
        pieces: list[bytes] = []
        while piece := await self.receive(deadline=deadline):
            pieces.append(piece)
        return b"".join(pieces)

    def complete(self) -> None:
        """Say that nothing of interest follows, though the end of the body has not been seen."""
        self._done = True

    def close(self) -> None:
        """Give the connection back."""
        if not self._open:
            return
        self._open = False
        if self._done:
            self._pool.release(self._connection)
        else:
            self._pool.discard(self._connection)

    def __enter__(self) -> "Response":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def _out_of_time(what: str) -> ModelError:
    return ModelError(ModelErrorKind.TIMEOUT, f"no time left for {what}", retry=True)
