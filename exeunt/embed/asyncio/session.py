"""The handle of a session, for asyncio tasks."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Literal

import exeunt.actors.session as trio_api
from exeunt.actors.events import Event
from exeunt.actors.media import Media
from exeunt.actors.outcomes import HandoffAction, HandoffTrigger
from exeunt.actors.session import AbortReceipt, PendingRequest, Reply, SessionStatistics, ToolOutcome
from exeunt.actors.session.session import DEFAULT_BUFFER, Mode
from exeunt.actors.state.session_state import Pending
from exeunt.actors.user_input import UserInputResponse
from exeunt.embed.asyncio.crossing import call
from exeunt.embed.asyncio.guest import Guest
from exeunt.embed.asyncio.history import History
from exeunt.embed.asyncio.streams import EventStream
from exeunt.embed.documented import like


@like(trio_api.Session)
class Session:
    """In a host on asyncio. Where the trio API speaks of a task's cancellation, an asyncio task's is meant.

    Beside what is said there, every call raises `SessionClosed` when its host has ended, and `HostLoopClosed`,
    `WrongEventLoop` or `HostForked` where it can no longer, or cannot, be reached.
    """

    __slots__ = ("_guest", "_trio")

    def __init__(self, session: trio_api.Session, guest: Guest) -> None:
        self._trio = session
        self._guest = guest

    @property
    def session_id(self) -> str:
        """The session's id."""
        return self._trio.session_id

    @property
    def tenant(self) -> str:
        """The tenant that the session counts for."""
        return self._trio.tenant

    @property
    def history(self) -> History:
        """The context: reading it, clearing it."""
        return History(self._trio.history, self._guest)

    @property
    def trio_session(self) -> trio_api.Session:
        """The same session for trio coroutines: of handlers that run on trio, and of `SessionHost.run_trio`."""
        return self._trio

    def __repr__(self) -> str:
        return repr(self._trio)

    @like(trio_api.Session.send)
    async def send(
        self,
        prompt: str,
        mode: Mode = "enqueue",
        *,
        attachments: Iterable[Media] = (),
        first: bool = False,
        note: Mapping[str, Any] | None = None,
    ) -> str:
        return await call(
            self._guest, self._trio.send, prompt, mode, attachments=attachments, first=first, note=note
        )

    @like(trio_api.Session.send_now)
    def send_now(
        self,
        prompt: str,
        mode: Mode = "enqueue",
        *,
        attachments: Iterable[Media] = (),
        first: bool = False,
        note: Mapping[str, Any] | None = None,
    ) -> str | None:
        self._guest.check_thread()
        return self._trio.send_now(prompt, mode, attachments=attachments, first=first, note=note)

    @like(trio_api.Session.pending_messages)
    def pending_messages(self) -> tuple[Pending, ...]:
        self._guest.check_thread()
        return self._trio.pending_messages()

    @like(trio_api.Session.withdraw)
    def withdraw(self, message_id: str) -> bool:
        self._guest.check_thread()
        return self._trio.withdraw(message_id)

    @like(trio_api.Session.send_and_wait)
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

    @like(trio_api.Session.abort)
    async def abort(
        self, queued: Literal["drop", "keep"] = "drop", *, reason: str = "user_initiated"
    ) -> AbortReceipt:
        return await call(self._guest, self._trio.abort, queued, reason=reason)

    @like(trio_api.Session.disconnect)
    async def disconnect(self, *, reason: str = "disconnect") -> None:
        await call(self._guest, self._trio.disconnect, reason=reason)

    @like(trio_api.Session.pending_requests)
    def pending_requests(self) -> tuple[PendingRequest, ...]:
        self._guest.check_thread()
        return self._trio.pending_requests()

    @like(trio_api.Session.answer)
    async def answer(self, request_id: str, answer: Any) -> None:
        await call(self._guest, self._trio.answer, request_id, answer)

    @like(trio_api.Session.limit_credits)
    async def limit_credits(self, limit: float | None) -> None:
        await call(self._guest, self._trio.limit_credits, limit)

    @like(trio_api.Session.ask_user)
    async def ask_user(
        self,
        question: str,
        choices: Iterable[str] | None = None,
        *,
        allow_freeform: bool = True,
        timeout: float | None = None,  # noqa: ASYNC109 - the name in the trio API
    ) -> UserInputResponse:
        ask = self._trio.ask_user
        return await call(self._guest, ask, question, choices, allow_freeform=allow_freeform, timeout=timeout)

    @like(trio_api.Session.record_handoff)
    def record_handoff(
        self,
        action: HandoffAction,
        *,
        trigger: HandoffTrigger = "tool",
        session_id: str | None = None,
        message_id: str | None = None,
        detail: str | None = None,
    ) -> None:
        self._guest.check_thread()
        self._trio.record_handoff(
            action, trigger=trigger, session_id=session_id, message_id=message_id, detail=detail
        )

    @like(trio_api.Session.call_tool)
    async def call_tool(self, name: str, arguments: Any = None) -> ToolOutcome:
        return await call(self._guest, self._trio.call_tool, name, arguments)

    @like(trio_api.Session.on)
    def on(self, callback: Callable[[Event], object]) -> Callable[[], None]:
        self._guest.check_thread()
        return self._trio.on(callback)

    @like(trio_api.Session.events)
    def events(
        self, from_seq: int | None = None, *, after: str | None = None, buffer: int = DEFAULT_BUFFER
    ) -> EventStream:
        self._guest.check_thread()
        return EventStream(self._trio.events(from_seq, after=after, buffer=buffer), self._guest)

    @like(trio_api.Session.get_events)
    async def get_events(self, from_seq: int = 1) -> Sequence[Event]:
        return await call(self._guest, self._trio.get_events, from_seq)

    @like(trio_api.Session.statistics)
    def statistics(self) -> SessionStatistics:
        self._guest.check_thread()
        return self._trio.statistics()
