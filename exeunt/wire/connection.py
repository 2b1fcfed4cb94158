"""One client: an actor with a task that reads, one that writes, and one for each request that has to wait.

Reading never waits for a session, and no session ever waits for writing. When a connection ends, for whatever reason,
what it had asked is cancelled, and the sessions that it was attached to are told.
"""

import logging
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

import msgspec
import outcome
import trio

from exeunt.actors.errors import ClientGone, ClientRefused, ExeuntError
from exeunt.actors.turn.live import Waiter
from exeunt.wire import rpc
from exeunt.wire.files.store import Provider
from exeunt.wire.framing import FrameError, FrameReader, TooLong
from exeunt.wire.outbox import Outbox
from exeunt.wire.rpc import RpcError
from exeunt.wire.serving import leaving
from exeunt.wire.statistics import ANSWERED, CANCELLED, REFUSED

if TYPE_CHECKING:
    from exeunt.wire.server import WireServer
    from exeunt.wire.serving.served import Served

logger = logging.getLogger("exeunt.wire")

READ_AT_ONCE = 64 * 1024
"""Bytes of one system call: as much as a socket usually holds."""

LAST_WORDS = 1.0
"""Seconds in which what is written already may still reach a client that sends nothing more."""

MOST_WRONG_TOKENS = 10
"""Wrong tokens of one connection: a person mistypes; a program that guesses connects anew."""

PASSED_OVER = 32
"""So many times the limit a message may be too long, and is refused alone: a document that is too large for it. What
says that it is longer is no message."""

CANCEL = "$/cancelRequest"
"""Notification by which a client gives up a request that waits."""

REQUEST_CANCELLED = -32800


class _Detail(msgspec.Struct):
    """What a client says of its error."""

    message: str = ""


class Then:
    """A result, and what is done once it is on its way."""

    __slots__ = ("after", "result")

    def __init__(self, result: Any, after: Callable[[], object]) -> None:
        self.result = result
        self.after = after


class Connection:
    """One client of a server."""

    def __init__(self, server: "WireServer", stream: trio.abc.Stream, name: str) -> None:
        self.server = server
        self.hub = server.hub
        self.name = name
        self.tenant: str | None = None if server.tokens else ""
        """Whose client it is; `None` until it has shown its token."""
        self.attached: dict[str, Served] = {}
        """The sessions that it is attached to."""
        self.carries_requests = False
        """Whether it sends the requests to models of its sessions."""
        self.session_files: Provider | None = None
        """What it has said of the files that it keeps for its sessions, if it does."""
        self.closed_because = ""
        self._stream = stream
        self._hurry = _quick_acknowledgement(stream)
        self._outbox = Outbox(server.options.outbox)
        self._nursery: trio.Nursery | None = None
        self._writing = False
        self._progress = trio.Event()
        """Set when something was written, or a request answered."""
        self._waiting: dict[bytes, trio.CancelScope] = {}
        self._asked: dict[int, Waiter] = {}
        self._questions = 0
        self._wrong_tokens = 0

    @property
    def owner(self) -> str:
        """The tenant of a client that may call methods."""
        assert self.tenant is not None
        return self.tenant

    @property
    def events_dropped(self) -> int:
        """Events that the client did without."""
        return self._outbox.dropped

    def login(self, tenant: str) -> None:
        """Let the client in. One that shows the token of another tenant leaves the sessions of the one before."""
        if self.tenant is not None and self.tenant != tenant:
            for served in list(self.attached.values()):
                leaving.forsake(self.hub, served, self)
            self.attached.clear()
        self.tenant = tenant

    def tell(self, method: str, params: Any) -> None:
        """Send a notification, some time later."""
        self.post(rpc.notification(method, params))

    # --- Life ----------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Serve the client until it leaves, breaks a rule, or the server ends."""
        try:
            async with trio.open_nursery() as nursery:
                self._nursery = nursery
                nursery.start_soon(self._write, name="exeunt wire writer")
                if self.tenant is None:
                    nursery.start_soon(self._watch_login, name="exeunt wire login")
                await self._read()
                with trio.move_on_after(LAST_WORDS):
                    await self.flushed()
                nursery.cancel_scope.cancel()
        finally:
            self._nursery = None
            self._end_questions()
            for served in list(self.attached.values()):
                leaving.forsake(self.hub, served, self)
            self.attached.clear()
            self.hub.break_off(self)
            self.server.ended(self)
            with trio.CancelScope(shield=True, deadline=trio.current_time() + LAST_WORDS):
                await trio.aclose_forcefully(self._stream)

    def close(self, reason: str) -> None:
        """End the connection, and say why in the log."""
        if not self.closed_because:
            self.closed_because = reason
            logger.warning("%s is closed: %s", self.name, reason)
        if self._nursery is not None:
            self._nursery.cancel_scope.cancel()

    async def _watch_login(self) -> None:
        await trio.sleep(self.server.options.login_timeout)
        if self.tenant is None:
            self.close("no_token")

    async def room(self) -> None:
        """Wait while more than its share waits for the client. For what makes long answers."""
        while self._outbox.is_full:
            self._progress = trio.Event()
            await self._progress.wait()

    async def flushed(self) -> None:
        """Wait until every request is answered, and all that was posted is written."""
        while self._outbox.size or self._writing or self._waiting:
            self._progress = trio.Event()
            await self._progress.wait()

    # --- Writing -------------------------------------------------------------------------------------------

    def post(self, body: bytes, *, droppable: bool = False) -> None:
        """Send a body, some time later. Never waits, never raises."""
        self._outbox.put(body, droppable=droppable)
        if self._outbox.overflowed:
            self.close("slow_client")

    async def _write(self) -> None:
        outbox, stream, seconds = self._outbox, self._stream, self.server.options.write_timeout
        scope = trio.CancelScope()
        try:
            while True:
                await outbox.wait()
                while data := outbox.take():
                    self._writing = True
                    with trio.CancelScope(deadline=trio.current_time() + seconds) as scope:
                        await stream.send_all(data)
                    self._writing = False
                    self._progress.set()
                    if scope.cancelled_caught:
                        self.close("stalled")
                        return
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            if self._nursery is not None:
                self._nursery.cancel_scope.cancel()

    # --- Reading -------------------------------------------------------------------------------------------

    async def _read(self) -> None:
        options = self.server.options
        reader = FrameReader(options.longest_frame, options.longest_frame * PASSED_OVER)
        stream = self._stream
        while True:
            # Who does not read its answers is asked nothing more: writing to it has a time-out.
            await self.room()
            try:
                if reader.is_inside:
                    data = await self._rest(stream)
                else:
                    # Between two messages a client may be silent for as long as it likes.
                    data = await stream.receive_some(READ_AT_ONCE)
                self._hurry()
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                return
            if not data:
                return
            try:
                bodies = reader.feed(data)
                while reader.too_long:
                    self._pass_over(reader.too_long.pop(0))
            except FrameError as error:
                # There is no telling where the next frame begins.
                self.post(rpc.refusal(b"", RpcError(rpc.PARSE_ERROR, str(error))))
                self.closed_because = "bad_frame"
                logger.warning("%s is closed: %s", self.name, error)
                return
            for body in bodies:
                self._take(body)

    async def _rest(self, stream: trio.abc.Stream) -> bytes | bytearray:
        """Receive more of a message that has begun; nothing when the client is silent for too long."""
        with trio.move_on_after(self.server.options.frame_timeout):
            return await stream.receive_some(READ_AT_ONCE)
        self.close("silent_in_a_frame")
        return b""

    def _pass_over(self, message: TooLong) -> None:
        """Refuse a message that is too long, and nothing else: its client has other sessions. Raises `FrameError`."""
        head = rpc.head(message.beginning)
        text = (
            f"a frame of {message.length} bytes is longer than {self.server.options.longest_frame}, the limit"
        )
        if self.tenant is None:
            raise FrameError(text)
        logger.warning("%s has sent what is passed over: %s", self.name, text)
        waiter = self._waiter(head.key) if head.is_answer else None
        if waiter is not None:
            waiter.resolve(outcome.Error(ClientRefused(f"the client's answer is refused: {text}")))
        elif not head.is_answer:
            told = f"Request {head.method} failed with message: {text}" if head.method else text
            self._refuse(head.method, head.key, RpcError(rpc.INVALID_REQUEST, told))
            method = self.server.methods.get(head.method)
            if method is not None and method.passed_over is not None:
                method.passed_over(self, message.beginning, text)

    def _take(self, body: bytes) -> None:
        try:
            message = rpc.read(body)
        except RpcError as error:
            self.post(rpc.refusal(b"", error))
            return
        key = bytes(message.id)
        if message.method is None:
            self._answered(message, key)
        elif not key:
            self._notified(message)
        else:
            self._requested(message.method, key, message.params)

    # --- Requests of the client ------------------------------------------------------------------------------

    def _requested(self, name: str, key: bytes, params: msgspec.Raw) -> None:
        try:
            method = self.server.methods.get(name)
            if self.tenant is None and (method is None or not method.before_login):
                raise RpcError(rpc.AUTHENTICATION_REQUIRED, "AUTHENTICATION_REQUIRED")
            if method is None:
                raise RpcError(rpc.METHOD_NOT_FOUND, f"Unhandled method {name:.200}")
            result = method.handler(self, method.read(name, params))
            if isinstance(result, Coroutine):
                waiting: Coroutine[Any, Any, Any] = cast("Any", result)
                self._start(name, key, waiting)
            else:
                self._reply(name, key, result)
        except Exception as error:  # noqa: BLE001 - whatever it is, the client is answered
            self._refuse(name, key, error)

    def _reply(self, name: str, key: bytes, result: Any) -> None:
        if isinstance(result, Then):
            self.post(rpc.answer(key, result.result))
            result.after()
        else:
            self.post(rpc.answer(key, result))
        self.server.count(name, ANSWERED)

    def _refuse(self, name: str, key: bytes, error: Exception) -> None:
        self.post(rpc.refusal(key, _as_rpc(name, error)))
        self.server.count(name, REFUSED)

    def _start(self, name: str, key: bytes, result: Coroutine[Any, Any, Any]) -> None:
        if key in self._waiting or len(self._waiting) >= self.server.options.requests_at_once:
            result.close()
            if key in self._waiting:
                raise RpcError(rpc.INVALID_REQUEST, "a request with this id is not answered yet")
            raise RpcError(
                rpc.TOO_MANY_REQUESTS, f"{len(self._waiting)} requests wait already: answer comes before more"
            )
        assert self._nursery is not None
        scope = self._waiting[key] = trio.CancelScope()
        self._nursery.start_soon(self._finish, name, key, result, scope, name="exeunt wire request")

    async def _finish(
        self, name: str, key: bytes, result: Coroutine[Any, Any, Any], scope: trio.CancelScope
    ) -> None:
        try:
            with scope:
                self._reply(name, key, await result)
            if scope.cancelled_caught:
                self.post(rpc.refusal(key, RpcError(REQUEST_CANCELLED, "Request cancelled")))
                self.server.count(name, CANCELLED)
        except Exception as error:  # noqa: BLE001 - as above
            self._refuse(name, key, error)
        finally:
            del self._waiting[key]
            self._progress.set()

    def _notified(self, message: rpc.Envelope) -> None:
        """Take what nobody waits for: nothing but the end of a wait."""
        if message.method == CANCEL:
            try:
                about = msgspec.json.decode(message.params, type=dict[str, msgspec.Raw])
            except (msgspec.DecodeError, RecursionError):
                return
            scope = self._waiting.get(bytes(about.get("id", rpc.NOTHING)))
            if scope is not None:
                scope.cancel()

    def wrong_token(self) -> None:
        """Count a token that is none; close the connection of who guesses."""
        self._wrong_tokens += 1
        if self._wrong_tokens >= MOST_WRONG_TOKENS:
            self.close("wrong_tokens")

    # --- Requests to the client ------------------------------------------------------------------------------

    async def ask(self, method: str, params: Any, seconds: float | None = None) -> Any:
        """Send a request and return the decoded answer.

        Raises `ClientGone` when the connection ends or no answer comes in time, `ClientRefused` for an error. The
        time is *seconds*, or the server's. Cancelled: the client may do it all the same.
        """
        if self._nursery is None:
            raise ClientGone(f"{self.name} has disconnected, and cannot be asked for {method}")
        self._questions += 1
        number = self._questions
        waiter = self._asked[number] = Waiter()
        bound = self.server.options.answer_timeout if seconds is None else seconds
        self.post(rpc.request(number, method, params))
        try:
            with trio.move_on_after(bound):
                return await waiter.wait()
            raise ClientGone(f"{self.name} did not answer {method} within {bound:g} s")
        finally:
            del self._asked[number]

    def _waiter(self, key: bytes) -> Waiter | None:
        return self._asked.get(int(key)) if key.isdigit() and len(key) < 16 else None

    def _answered(self, message: rpc.Envelope, key: bytes) -> None:
        """Hand an answer to who waits for it; one that nobody waits for is dropped."""
        waiter = self._waiter(key)
        if waiter is None:
            return
        error = bytes(message.error)
        try:
            if error and error != rpc.NULL:
                detail = msgspec.json.decode(error, type=_Detail)
                text = detail.message or error[:200].decode("utf-8", "replace")
                waiter.resolve(outcome.Error(ClientRefused(f"the client answered: {text}")))
            else:
                waiter.resolve(outcome.Value(msgspec.json.decode(bytes(message.result) or rpc.NULL)))
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as problem:
            waiter.resolve(outcome.Error(ClientRefused(f"the client's answer cannot be read: {problem}")))

    def _end_questions(self) -> None:
        for waiter in self._asked.values():
            waiter.resolve(outcome.Error(ClientGone(f"{self.name} has disconnected")))


def _quick_acknowledgement(stream: trio.abc.Stream) -> Callable[[], object]:
    """Return what has the kernel acknowledge at once what a client has sent.

    The clients write a frame's header and its body apart. Their kernel holds the body back until the header is
    acknowledged, and ours puts that off for 40 ms. The option lasts only until the next packet, so it is set anew.
    """
    option = getattr(trio.socket, "TCP_QUICKACK", None)
    if (
        option is None
        or not isinstance(stream, trio.SocketStream)
        or stream.socket.family not in (trio.socket.AF_INET, trio.socket.AF_INET6)
    ):
        return _nothing
    socket = stream.socket

    def hurry() -> None:
        with suppress(OSError):  # the other side may be gone
            socket.setsockopt(trio.socket.IPPROTO_TCP, option, 1)

    hurry()
    return hurry


def _nothing() -> None:
    """Do nothing: not every stream has a kernel that waits."""


def _as_rpc(name: str, error: Exception) -> RpcError:
    """Return what a client is told of *error*."""
    if isinstance(error, RpcError):
        if error.code != rpc.FAILED:
            return error
        return RpcError(rpc.FAILED, f"Request {name} failed with message: {error}", error.data)
    if isinstance(error, ExeuntError):
        data = {"type": type(error).__name__}
        return RpcError(rpc.FAILED, f"Request {name} failed with message: {error}", data)
    logger.error("a request %s failed", name, exc_info=error)
    return RpcError(
        rpc.FAILED, f"Request {name} failed with message: internal error ({type(error).__name__})"
    )
