"""The handle of a session of another process, for any thread."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Literal, NoReturn, Self

import exeunt.actors.session as trio_api
from exeunt.actors.events import Event
from exeunt.actors.media import Media
from exeunt.actors.session import AbortReceipt, PendingRequest, Reply, SessionStatistics, ToolOutcome
from exeunt.actors.session.session import Mode
from exeunt.actors.state.session_state import Pending
from exeunt.embed.documented import like
from exeunt.embed.threads.crossing import at_once, call
from exeunt.embed.threads.runtime import Runtime
from exeunt.embed.threads.streams import StreamInThreads


@like(trio_api.RemoteSession)
class RemoteSession:
    """In a host for threads."""

    __slots__ = ("_runtime", "_trio")

    def __init__(self, session: trio_api.RemoteSession, runtime: Runtime) -> None:
        self._trio = session
        self._runtime = runtime

    @property
    def session_id(self) -> str:
        """The session's id."""
        return self._trio.session_id

    @property
    def history(self) -> "RemoteHistory":
        """What a remote session has of a context: the refusal to clear it."""
        return RemoteHistory(self._trio.history, self._runtime)

    def __repr__(self) -> str:
        return repr(self._trio)

    @like(trio_api.RemoteSession.send)
    def send(
        self,
        prompt: str,
        mode: Mode = "enqueue",
        *,
        attachments: Iterable[Media] = (),
        first: bool = False,
        note: Mapping[str, Any] | None = None,
    ) -> str:
        ask = partial(self._trio.send, prompt, mode, attachments=attachments, first=first, note=note)
        return call(self._runtime, ask)

    @like(trio_api.RemoteSession.send_and_wait)
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

    @like(trio_api.RemoteSession.pending_messages)
    def pending_messages(self) -> tuple[Pending, ...]:
        return call(self._runtime, self._trio.pending_messages)

    @like(trio_api.RemoteSession.withdraw)
    def withdraw(self, message_id: str) -> bool:
        return call(self._runtime, self._trio.withdraw, message_id)

    @like(trio_api.RemoteSession.abort)
    def abort(
        self, queued: Literal["drop", "keep"] = "drop", *, reason: str = "user_initiated"
    ) -> AbortReceipt:
        return call(self._runtime, self._trio.abort, queued, reason=reason)

    @like(trio_api.RemoteSession.disconnect)
    def disconnect(self, *, reason: str = "disconnect") -> None:
        call(self._runtime, self._trio.disconnect, reason=reason)

    @like(trio_api.RemoteSession.pending_requests)
    def pending_requests(self) -> tuple[PendingRequest, ...]:
        return call(self._runtime, self._trio.pending_requests)

    @like(trio_api.RemoteSession.answer)
    def answer(self, request_id: str, answer: Any) -> None:
        call(self._runtime, self._trio.answer, request_id, answer)

    @like(trio_api.RemoteSession.limit_credits)
    def limit_credits(self, limit: float | None) -> None:
        call(self._runtime, self._trio.limit_credits, limit)

    @like(trio_api.RemoteSession.call_tool)
    def call_tool(self, name: str, arguments: Any = None) -> ToolOutcome:
        return call(self._runtime, self._trio.call_tool, name, arguments)

    @like(trio_api.RemoteSession.get_events)
    def get_events(self, from_seq: int = 1) -> Sequence[Event]:
        return call(self._runtime, self._trio.get_events, from_seq)

    @like(trio_api.RemoteSession.statistics)
    def statistics(self) -> SessionStatistics:
        return call(self._runtime, self._trio.statistics)

    @like(trio_api.RemoteSession.events)
    def events(self, from_seq: int | None = None, *, after: str | None = None) -> "RemoteEventStream":
        return RemoteEventStream(
            at_once(self._runtime, self._trio.events, from_seq, after=after), self._runtime
        )


@like(trio_api.RemoteHistory)
class RemoteHistory:
    """In a host for threads."""

    __slots__ = ("_runtime", "_trio")

    def __init__(self, history: trio_api.RemoteHistory, runtime: Runtime) -> None:
        self._trio = history
        self._runtime = runtime

    @like(trio_api.RemoteHistory.clear_context)
    def clear_context(
        self, prompt: object = None, *, siblings: object = None, trigger: object = None
    ) -> NoReturn:
        call(self._runtime, self._trio.clear_context, prompt, siblings=siblings, trigger=trigger)
        raise AssertionError("a remote session was cleared")


@like(trio_api.RemoteEventStream)
class RemoteEventStream(StreamInThreads):
    """In a host for threads: an iterator for one thread, and a context manager (`with`) that ends it."""

    __slots__ = ("_remote",)

    def __init__(self, stream: trio_api.RemoteEventStream, runtime: Runtime) -> None:
        super().__init__(stream, runtime)
        self._remote = stream

    @property
    def next_seq(self) -> int | None:
        """Number of the next logged event; `None` until one was seen or named."""
        return self._got[0].seq if self._got else self._remote.next_seq

    def __enter__(self) -> Self:
        call(self._runtime, self._remote.__aenter__)
        return self
