"""The handle of a session of another process, for asyncio tasks."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Literal, NoReturn

import exeunt.actors.session as trio_api
from exeunt.actors.events import Event
from exeunt.actors.media import Media
from exeunt.actors.session import (
    AbortReceipt,
    FrameStream,
    PendingRequest,
    Reply,
    SessionStatistics,
    SessionTransport,
    ToolOutcome,
)
from exeunt.actors.session.session import Mode
from exeunt.actors.state.session_state import Pending
from exeunt.embed.asyncio.crossing import call, on_asyncio
from exeunt.embed.asyncio.guest import Guest
from exeunt.embed.asyncio.streams import StreamOnAsyncio
from exeunt.embed.documented import like


@like(trio_api.RemoteSession)
class RemoteSession:
    """In a host on asyncio."""

    __slots__ = ("_guest", "_trio")

    def __init__(self, session: trio_api.RemoteSession, guest: Guest) -> None:
        self._trio = session
        self._guest = guest

    @property
    def session_id(self) -> str:
        """The session's id."""
        return self._trio.session_id

    @property
    def history(self) -> "RemoteHistory":
        """What a remote session has of a context: the refusal to clear it."""
        return RemoteHistory(self._trio.history, self._guest)

    def __repr__(self) -> str:
        return repr(self._trio)

    @like(trio_api.RemoteSession.send)
    async def send(
        self,
        prompt: str,
        mode: Mode = "enqueue",
        *,
        attachments: Iterable[Media] = (),
        first: bool = False,
        note: Mapping[str, Any] | None = None,
    ) -> str:
        ask = partial(self._trio.send, prompt, mode, attachments=attachments, first=first, note=note)
        return await call(self._guest, ask)

    @like(trio_api.RemoteSession.send_and_wait)
    async def send_and_wait(
        self,
        prompt: str,
        timeout: float | None = 60.0,  # noqa: ASYNC109 - the name in the trio API
        *,
        mode: Mode = "enqueue",
        abort_on_cancel: bool = False,
        attachments: Iterable[Media] = (),
        first: bool = False,
        note: Mapping[str, Any] | None = None,
    ) -> Reply:
        ask = partial(
            self._trio.send_and_wait,
            prompt,
            timeout,
            mode=mode,
            attachments=attachments,
            first=first,
            note=note,
        )
        return await call(self._guest, ask, abort_on_cancel=abort_on_cancel)

    @like(trio_api.RemoteSession.pending_messages)
    async def pending_messages(self) -> tuple[Pending, ...]:
        return await call(self._guest, self._trio.pending_messages)

    @like(trio_api.RemoteSession.withdraw)
    async def withdraw(self, message_id: str) -> bool:
        return await call(self._guest, self._trio.withdraw, message_id)

    @like(trio_api.RemoteSession.abort)
    async def abort(
        self, queued: Literal["drop", "keep"] = "drop", *, reason: str = "user_initiated"
    ) -> AbortReceipt:
        return await call(self._guest, self._trio.abort, queued, reason=reason)

    @like(trio_api.RemoteSession.disconnect)
    async def disconnect(self, *, reason: str = "disconnect") -> None:
        await call(self._guest, self._trio.disconnect, reason=reason)

    @like(trio_api.RemoteSession.pending_requests)
    async def pending_requests(self) -> tuple[PendingRequest, ...]:
        return await call(self._guest, self._trio.pending_requests)

    @like(trio_api.RemoteSession.answer)
    async def answer(self, request_id: str, answer: Any) -> None:
        await call(self._guest, self._trio.answer, request_id, answer)

    @like(trio_api.RemoteSession.limit_credits)
    async def limit_credits(self, limit: float | None) -> None:
        await call(self._guest, self._trio.limit_credits, limit)

    @like(trio_api.RemoteSession.call_tool)
    async def call_tool(self, name: str, arguments: Any = None) -> ToolOutcome:
        return await call(self._guest, self._trio.call_tool, name, arguments)

    @like(trio_api.RemoteSession.get_events)
    async def get_events(self, from_seq: int = 1) -> Sequence[Event]:
        return await call(self._guest, self._trio.get_events, from_seq)

    @like(trio_api.RemoteSession.statistics)
    async def statistics(self) -> SessionStatistics:
        return await call(self._guest, self._trio.statistics)

    @like(trio_api.RemoteSession.events)
    def events(self, from_seq: int | None = None, *, after: str | None = None) -> "RemoteEventStream":
        self._guest.check_thread()
        return RemoteEventStream(self._trio.events(from_seq, after=after), self._guest)


@like(trio_api.RemoteHistory)
class RemoteHistory:
    """In a host on asyncio."""

    __slots__ = ("_guest", "_trio")

    def __init__(self, history: trio_api.RemoteHistory, guest: Guest) -> None:
        self._trio = history
        self._guest = guest

    @like(trio_api.RemoteHistory.clear_context)
    async def clear_context(
        self, prompt: object = None, *, siblings: object = None, trigger: object = None
    ) -> NoReturn:
        await call(self._guest, self._trio.clear_context, prompt, siblings=siblings, trigger=trigger)
        raise AssertionError("a remote session was cleared")


@like(trio_api.RemoteEventStream)
class RemoteEventStream(StreamOnAsyncio):
    """In a host on asyncio."""

    __slots__ = ("_remote",)

    def __init__(self, stream: trio_api.RemoteEventStream, guest: Guest) -> None:
        super().__init__(stream, guest)
        self._remote = stream

    @property
    def next_seq(self) -> int | None:
        """Number of the next logged event; `None` until one was seen or named."""
        return self._got[0].seq if self._got else self._remote.next_seq

    async def __aenter__(self) -> "RemoteEventStream":
        await call(self._guest, self._remote.__aenter__)
        return self


def asyncio_transport(transport: SessionTransport) -> SessionTransport:
    """Return a transport whose coroutines are of asyncio as one that `attach_remote` can use."""
    return _TransportOnAsyncio(transport)


class _TransportOnAsyncio:
    def __init__(self, transport: SessionTransport) -> None:
        self._asyncio = transport

    async def request(self, method: str, params: Mapping[str, Any], /) -> Mapping[str, Any]:
        return await on_asyncio(self._asyncio.request(method, params))

    async def subscribe(self, params: Mapping[str, Any], /) -> FrameStream:
        return _FramesOnAsyncio(await on_asyncio(self._asyncio.subscribe(params)))


class _FramesOnAsyncio:
    def __init__(self, frames: FrameStream) -> None:
        self._asyncio = frames

    async def receive(self) -> Mapping[str, Any] | None:
        return await on_asyncio(self._asyncio.receive())

    async def aclose(self) -> None:
        await on_asyncio(self._asyncio.aclose())
