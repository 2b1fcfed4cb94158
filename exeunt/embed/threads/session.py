"""The handle of a session, for any thread."""

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
from exeunt.embed.documented import like
from exeunt.embed.threads.crossing import at_once, call
from exeunt.embed.threads.history import History
from exeunt.embed.threads.runtime import Runtime
from exeunt.embed.threads.streams import EventStream


@like(trio_api.Session)
class Session:
    """In a host for threads: all methods block, may be called from any thread, and are not awaited.

    What is said of a cancellation holds for Ctrl-C in the main thread, and in a handler for the end of its call.
    Beside what is said there, every call raises `SessionClosed` when its host has ended, `HostForked` in a fork,
    `WouldBlockHost` in the host's own thread, and `HostLoopClosed` when that has failed.
    """

    __slots__ = ("_runtime", "_trio")

    def __init__(self, session: trio_api.Session, runtime: Runtime) -> None:
        self._trio = session
        self._runtime = runtime

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
        return History(self._trio.history, self._runtime)

    @property
    def trio_session(self) -> trio_api.Session:
        """The same session for trio coroutines: of `async def` handlers, and of `SessionHost.run_trio`."""
        return self._trio

    def __repr__(self) -> str:
        return repr(self._trio)

    @like(trio_api.Session.send)
    def send(
        self,
        prompt: str,
        mode: Mode = "enqueue",
        *,
        attachments: Iterable[Media] = (),
        first: bool = False,
        note: Mapping[str, Any] | None = None,
    ) -> str:
        return call(
            self._runtime, self._trio.send, prompt, mode, attachments=attachments, first=first, note=note
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
        return at_once(
            self._runtime, self._trio.send_now, prompt, mode, attachments=attachments, first=first, note=note
        )

    @like(trio_api.Session.pending_messages)
    def pending_messages(self) -> tuple[Pending, ...]:
        return at_once(self._runtime, self._trio.pending_messages)

    @like(trio_api.Session.withdraw)
    def withdraw(self, message_id: str) -> bool:
        return at_once(self._runtime, self._trio.withdraw, message_id)

    @like(trio_api.Session.send_and_wait)
    def send_and_wait(
        self,
        prompt: str,
        timeout: float | None = 60.0,
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
        return call(self._runtime, ask, abort_on_cancel=abort_on_cancel)

    @like(trio_api.Session.abort)
    def abort(
        self, queued: Literal["drop", "keep"] = "drop", *, reason: str = "user_initiated"
    ) -> AbortReceipt:
        return call(self._runtime, self._trio.abort, queued, reason=reason)

    @like(trio_api.Session.disconnect)
    def disconnect(self, *, reason: str = "disconnect") -> None:
        call(self._runtime, self._trio.disconnect, reason=reason)

    @like(trio_api.Session.pending_requests)
    def pending_requests(self) -> tuple[PendingRequest, ...]:
        return at_once(self._runtime, self._trio.pending_requests)

    @like(trio_api.Session.answer)
    def answer(self, request_id: str, answer: Any) -> None:
        call(self._runtime, self._trio.answer, request_id, answer)

    @like(trio_api.Session.limit_credits)
    def limit_credits(self, limit: float | None) -> None:
        call(self._runtime, self._trio.limit_credits, limit)

    @like(trio_api.Session.ask_user)
    def ask_user(
        self,
        question: str,
        choices: Iterable[str] | None = None,
        *,
        allow_freeform: bool = True,
        timeout: float | None = None,
    ) -> UserInputResponse:
        ask = self._trio.ask_user
        return call(self._runtime, ask, question, choices, allow_freeform=allow_freeform, timeout=timeout)

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
        at_once(
            self._runtime,
            self._trio.record_handoff,
            action,
            trigger=trigger,
            session_id=session_id,
            message_id=message_id,
            detail=detail,
        )

    @like(trio_api.Session.call_tool)
    def call_tool(self, name: str, arguments: Any = None) -> ToolOutcome:
        return call(self._runtime, self._trio.call_tool, name, arguments)

    @like(trio_api.Session.on)
    def on(self, callback: Callable[[Event], object]) -> Callable[[], None]:
        """*callback* is called in the host's thread: it must not block, and not call the host."""
        runtime = self._runtime
        end = at_once(runtime, self._trio.on, callback)

        def unsubscribe() -> None:
            if runtime.is_own_thread:
                end()
            elif runtime.is_here and not runtime.ended:
                at_once(runtime, end)

        return unsubscribe

    @like(trio_api.Session.events)
    def events(
        self, from_seq: int | None = None, *, after: str | None = None, buffer: int = DEFAULT_BUFFER
    ) -> EventStream:
        stream = at_once(self._runtime, self._trio.events, from_seq, after=after, buffer=buffer)
        return EventStream(stream, self._runtime)

    @like(trio_api.Session.get_events)
    def get_events(self, from_seq: int = 1) -> Sequence[Event]:
        return call(self._runtime, self._trio.get_events, from_seq)

    @like(trio_api.Session.statistics)
    def statistics(self) -> SessionStatistics:
        return at_once(self._runtime, self._trio.statistics)
