"""What a handler is told about the call that it serves."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, TypeVarTuple

import attrs
import trio

from exeunt.actors.errors import NotInWorkerThread
from exeunt.actors.tools.arguments import ANY_OBJECT, mended

if TYPE_CHECKING:
    from exeunt.actors.session import Session
    from exeunt.actors.user_input import UserInputResponse

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class CallState(Protocol):
    """What an invocation needs of the call behind it, which changes while the handler runs."""

    @property
    def cancelled(self) -> bool: ...

    async def ask_user(
        self, question: str, choices: Any, allow_freeform: bool, seconds: float | None
    ) -> UserInputResponse: ...

    @property
    def idempotency_key(self) -> str: ...


@attrs.define(eq=False)
class CallInvocation:
    """One call of a tool. Every kind of host has a subclass, which adds a session that can be used in it."""

    session_id: str
    tool_call_id: str
    """The id that the model gave the call, unique within the context."""

    tool_name: str
    """The name under which the tool is registered."""

    arguments_json: str
    """The arguments as the model wrote them, or as a hook changed them."""

    _call: CallState = attrs.field(alias="call", repr=False)
    _arguments: dict[str, Any] | None = attrs.field(default=None, init=False, repr=False)

    def told(self) -> tuple[str, str, str, str, CallState]:
        """What an invocation of the same call is made of, for a host of another kind."""
        return self.session_id, self.tool_call_id, self.tool_name, self.arguments_json, self._call

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments as plain JSON values, decoded when first read. The handler may change them."""
        if self._arguments is None:
            self._arguments = ANY_OBJECT.decode(mended(self.arguments_json))
        return self._arguments

    @property
    def idempotency_key(self) -> str:
        """The same for every run of this call, also after a crash. Give it to services that can deduplicate."""
        return self._call.idempotency_key

    @property
    def cancelled(self) -> bool:
        """Whether the call was cancelled or timed out. For synchronous handlers, which have to ask."""
        return self._call.cancelled


@attrs.define(eq=False)
class ToolInvocation(CallInvocation):
    """One call of a tool, as its handler sees it. Annotate a parameter with this class to be given it."""

    session: Session = attrs.field(kw_only=True)
    """The session that the call belongs to. It serves the handler while its turn waits for the handler."""

    async def ask_user(
        self,
        question: str,
        choices: Iterable[str] | None = None,
        *,
        allow_freeform: bool = True,
        timeout: float | None = None,  # noqa: ASYNC109 - the request's own time, which is logged and outlives this task
    ) -> UserInputResponse:
        """Ask the user something and wait for the answer; `.text` of it is what a model is told.

        The session's `on_user_input_request` is asked. Where that is `leave_pending`, or while it thinks,
        `session.answer()` may answer from anywhere; the first answer counts. *timeout* is in seconds, `None` for
        `Waits.user_input`. Meanwhile the handler's own time-out does not run, and the call leaves its slots to others.

        Raises `InvalidConfiguration` for a question that nobody could be asked, `UserInputUnavailable` (no handler, or
        one that failed), `UserInputTimeout`, `NotInToolCall` when the call has its outcome. Cancelled: the request
        ends with `cancelled`.
        """
        return await self._call.ask_user(question, choices, allow_freeform, timeout)

    def run(self, async_fn: Callable[[*Ts], Awaitable[T]], *args: *Ts) -> T:
        """Run *async_fn* on the host's loop and return what it returns; for synchronous handlers.

        Blocks the worker thread until then. Raises what *async_fn* raises, `trio.Cancelled` when the call was
        cancelled before, `trio.RunFinishedError` when the host has ended, and `NotInWorkerThread` anywhere
        else than in the worker thread of a synchronous handler: on the host's loop it would wait for itself.
        """
        if trio.lowlevel.in_trio_run():
            raise NotInWorkerThread(
                f"tool {self.tool_name!r}: invocation.run() was called on the host's own thread and would "
                "wait for itself; an async handler awaits the function instead",
                session_id=self.session_id,
            )
        try:
            trio.from_thread.check_cancelled()
        except RuntimeError as error:
            raise NotInWorkerThread(
                f"tool {self.tool_name!r}: invocation.run() was called in a thread that Exeunt did not "
                "start; call it in the thread in which the handler was called",
                session_id=self.session_id,
            ) from error
        return trio.from_thread.run(async_fn, *args)
