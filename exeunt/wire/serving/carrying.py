"""Requests to models by way of a client, which has the network, the credentials, or the last word on them."""

import math
from collections import deque
from collections.abc import Mapping, Sequence
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self
from uuid import uuid4

import trio

from exeunt.actors.errors import ClientGone, ClientRefused, ExeuntError
from exeunt.actors.models import ModelError, ModelErrorKind
from exeunt.models.door.failures import MAX_ERROR_BYTES, failure
from exeunt.models.http import Timeouts
from exeunt.models.http.urls import Origin
from exeunt.wire.serving.client import Peer

if TYPE_CHECKING:
    from exeunt.wire.serving.hub import Hub

DAY = 86_400.0
"""Seconds: what bounds a request is the session's own waits."""


SWITCHING = 101
"""The status with which a web socket begins."""


class Exchange:
    """One request, and its answer as it comes. Also what the model's door reads: as a response of its HTTP client."""

    def __init__(
        self, carrier: "Carrier", request_id: str, max_bytes: int, *, of_messages: bool = False
    ) -> None:
        """*max_bytes* bound the whole answer; *of_messages*, those of a web socket, what of it was not read yet."""
        self.request_id = request_id
        self.of_messages = of_messages
        self.status = 0
        self.headers: dict[str, str] = {}
        self._carrier = carrier
        self._left = max_bytes
        self._pieces: deque[bytes] = deque()
        self._done = False
        self._error: ModelError | None = None
        self._news = trio.Event()

    # --- What the client sends -------------------------------------------------------------------------------

    def start(self, status: int, headers: Mapping[str, Sequence[str]]) -> None:
        """Take the head of the answer."""
        self.status = status
        # What the client has decoded is not encoded any more.
        skipped = ("content-encoding", "content-length")
        self.headers = {
            name.lower(): values[-1]
            for name, values in headers.items()
            if values and name.lower() not in skipped
        }
        self._news.set()

    def add(self, data: bytes, end: bool, error: str | None) -> None:
        """Take a piece of the body, its end, or why it breaks off."""
        self._left -= len(data)
        if self._left < 0:
            error = "the answer is longer than it may be"
        elif data:
            self._pieces.append(data)
        if error is not None:
            self._error = ModelError(
                ModelErrorKind.CONNECTION_LOST, f"the client's request handler failed: {error}", retry=False
            )
        self._done = self._done or end or error is not None
        self._news.set()

    # --- What the model's door reads -------------------------------------------------------------------------

    async def wait_head(self, deadline: float) -> None:
        """Wait for the head. Raises `ModelError`."""
        await self._wait(lambda: bool(self.status or self._done), deadline)
        if self._error is not None and not self._pieces:
            raise self._error

    async def receive(self, *, deadline: float) -> bytes:
        """Return the next piece of the body, `b""` at its end. Raises `ModelError`."""
        await self._wait(lambda: bool(self._pieces or self._done), deadline)
        if self._pieces:
            piece = self._pieces.popleft()
            if self.of_messages:
                self._left += len(piece)
            return piece
        if self._error is not None:
            raise self._error
        return b""

    async def _wait(self, ready: Any, deadline: float) -> None:
        with trio.CancelScope(deadline=deadline):  # noqa: ASYNC912 - what is there already needs no waiting
            while not ready():
                self._news = trio.Event()
                await self._news.wait()
            return
        raise ModelError(ModelErrorKind.TIMEOUT, "no time left for the client's answer", retry=True)

    def complete(self) -> None:
        """Nothing of interest follows."""
        self._done = True

    def close(self) -> None:
        """The answer is not needed any more."""
        self._carrier.close(self)

    @property
    def is_done(self) -> bool:
        """Whether the answer has come to its end."""
        return self._done

    @property
    def has_unread(self) -> bool:
        """Whether something of it was not read."""
        return bool(self._pieces)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


class CarriedSocket:
    """A web socket that a client has opened; see `exeunt.models.responses.sockets.Socket`."""

    def __init__(self, carrier: "Carrier", exchange: Exchange) -> None:
        self.exchange = exchange
        self.resting = False
        """Whether it is between two requests."""
        self._carrier = carrier

    async def send(self, message: bytes) -> None:
        """Send one message. Raises `ModelError`."""
        self.resting = False
        if self.exchange.is_done:
            raise ModelError(
                ModelErrorKind.CONNECTION_LOST, "the client has closed the web socket", retry=True
            )
        await self._carrier.say(self.exchange, message.decode())

    async def receive(self) -> bytes:
        """Return the next message, `b""` when the client has closed it. Raises `ModelError`."""
        return await self.exchange.receive(deadline=math.inf)

    async def rest(self) -> bool:
        """Whether the next request can be sent."""
        await trio.lowlevel.checkpoint_if_cancelled()
        self.resting = not self.exchange.is_done and not self.exchange.has_unread
        return self.resting

    def close(self) -> None:
        """Close it: in order between two requests, and else at once."""
        self._carrier.forget(self)
        if self.resting:
            self._carrier.hang_up(self)
        else:
            self._carrier.close(self.exchange)
        self.exchange.complete()

    def abandon(self) -> None:
        """It holds nothing of the system: the hub closes it with its session."""


class Carrier:
    """The requests of one session, or of none, that go by way of one client. Stands in the place of an `HttpClient`."""

    timeouts = Timeouts(first_byte=DAY, gap=DAY, total=DAY, stream_total=DAY)
    is_closed = False

    def __init__(self, hub: "Hub", peer: Peer, session_id: str, origin: Origin) -> None:
        self._hub = hub
        self._peer = peer
        self._session_id = session_id
        self._address = f"{origin.scheme}://{origin.authority}"

    async def post(
        self,
        target: bytes,
        headers: Sequence[tuple[bytes, bytes]],
        body: bytes,
        *,
        deadline: float,
        max_bytes: int,
    ) -> Exchange:
        """Let the client send a request; return the answer once its head is here. Raises `ModelError`."""
        return await self._send("POST", target, headers, body, deadline, max_bytes)

    async def get(
        self, target: bytes, headers: Sequence[tuple[bytes, bytes]], *, deadline: float, max_bytes: int
    ) -> Exchange:
        """Let the client ask for something; return the answer once its head is here. Raises `ModelError`."""
        return await self._send("GET", target, headers, b"", deadline, max_bytes)

    async def open_socket(
        self, target: bytes, headers: Sequence[tuple[bytes, bytes]], *, deadline: float, max_bytes: int
    ) -> CarriedSocket:
        """Let the client open a web socket; return it once it is open. Raises `ModelError`."""
        exchange = await self._begin("GET", target, headers, max_bytes, of_messages=True)
        try:
            await exchange.wait_head(deadline)
            if exchange.status != SWITCHING:
                raise failure(exchange.status, exchange.headers, await _rest_of(exchange, deadline))
        except BaseException:
            self.close(exchange)
            raise
        socket = CarriedSocket(self, exchange)
        self._hub.sockets.setdefault(self._session_id, []).append(socket)
        return socket

    async def say(self, exchange: Exchange, data: str, **more: Any) -> None:
        """Send a piece of a request's body. Raises `ModelError`."""
        try:
            await self._peer.ask("llmInference.httpRequestChunk", self._chunk(exchange, data, **more))
        except (ClientGone, ClientRefused) as error:
            raise ModelError(ModelErrorKind.CONNECTION_LOST, str(error)) from error

    async def _send(
        self,
        method: str,
        target: bytes,
        headers: Sequence[tuple[bytes, bytes]],
        body: bytes,
        deadline: float,
        max_bytes: int,
    ) -> Exchange:
        exchange = await self._begin(method, target, headers, max_bytes)
        try:
            await self.say(exchange, body.decode(), end=True)
            await exchange.wait_head(deadline)
        except BaseException:
            self.close(exchange)
            raise
        return exchange

    async def _begin(
        self,
        method: str,
        target: bytes,
        headers: Sequence[tuple[bytes, bytes]],
        max_bytes: int,
        *,
        of_messages: bool = False,
    ) -> Exchange:
        exchange = Exchange(self, str(uuid4()), max_bytes, of_messages=of_messages)
        self._hub.exchanges[exchange.request_id] = (self._peer, exchange)
        address = self._address.replace("http", "ws", 1) if of_messages else self._address
        params: dict[str, Any] = {
            "requestId": exchange.request_id,
            "method": method,
            "url": address + target.decode("ascii"),
            "headers": {name.decode("latin-1"): [value.decode("latin-1")] for name, value in headers},
            "transport": "websocket" if of_messages else "http",
        }
        if self._session_id:
            # A session is one agent, which answers its clients.
            about = {"agentId": self._session_id, "interactionType": "conversation-agent"}
            params |= {"sessionId": self._session_id, **about}
        try:
            await self._peer.ask("llmInference.httpRequestStart", params)
        except (ClientGone, ClientRefused) as error:
            self.close(exchange)
            raise ModelError(ModelErrorKind.CONNECTION_LOST, str(error)) from error
        except BaseException:
            self.close(exchange)
            raise
        return exchange

    @staticmethod
    def _chunk(exchange: Exchange, data: str, **more: Any) -> dict[str, Any]:
        return {"requestId": exchange.request_id, "data": data, **more}

    def close(self, exchange: Exchange) -> None:
        """Forget a request; the client is told of one that it is still at work on. Never waits."""
        known = self._hub.exchanges.pop(exchange.request_id, None)
        if known is not None and not exchange.is_done:
            cancel = self._chunk(exchange, "", cancel=True, cancelReason="the turn was aborted")
            self._hub.host.spawn(partial(_tell, self._peer, cancel))

    def hang_up(self, socket: CarriedSocket) -> None:
        """End a web socket in order; the client closes its own. Never waits."""
        known = self._hub.exchanges.pop(socket.exchange.request_id, None)
        if known is not None and not socket.exchange.is_done:
            self._hub.host.spawn(partial(_tell, self._peer, self._chunk(socket.exchange, "", end=True)))

    def forget(self, socket: CarriedSocket) -> None:
        """It is closed."""
        sockets = self._hub.sockets.get(self._session_id, [])
        if socket in sockets:
            sockets.remove(socket)
        if not sockets:
            self._hub.sockets.pop(self._session_id, None)


async def _rest_of(exchange: Exchange, deadline: float) -> bytes:
    body = b""
    while len(body) < MAX_ERROR_BYTES and (data := await exchange.receive(deadline=deadline)):
        body += data
    return body


async def _tell(peer: Peer, params: dict[str, Any]) -> None:
    try:
        await peer.ask("llmInference.httpRequestChunk", params)
    except ExeuntError:
        return  # It is gone, and so is its request.
