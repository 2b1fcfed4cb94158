"""What a running turn is, beyond what the log says: who waits for it, what runs for it.

Lost in a crash, and not needed afterwards.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec
import outcome
import trio

from exeunt.actors.state.session_state import Pending

if TYPE_CHECKING:
    from exeunt.actors.activities.activity import Activity
    from exeunt.actors.activities.tool_call import Call
    from exeunt.actors.callers import Caller
    from exeunt.actors.turn.actor import SessionActor


class Waiter:
    """One task that waits for one value. Cheaper than a `trio.Event`, which serves any number."""

    __slots__ = ("_result", "_task", "caller")

    def __init__(self, caller: "Caller | None" = None) -> None:
        self.caller = caller
        """The handler that the task belongs to, where it is one."""
        self._task: trio.lowlevel.Task | None = None
        self._result: outcome.Outcome[Any] | None = None

    @property
    def resolved(self) -> bool:
        """Whether it has its value."""
        return self._result is not None

    async def wait(self) -> Any:
        """Wait for the value. A cancellation leaves the waiter as it was."""
        if self._result is None:
            self._task = trio.lowlevel.current_task()
            return await trio.lowlevel.wait_task_rescheduled(self._leave)
        await trio.lowlevel.checkpoint()
        return self._result.unwrap()

    def resolve(self, result: "outcome.Outcome[Any]") -> None:
        """Hand over the value or the error; the first counts."""
        if self._result is not None:
            return
        self._result = result
        if self._task is not None:
            trio.lowlevel.reschedule(self._task, result)
            self._task = None

    def _leave(self, _: Any) -> trio.lowlevel.Abort:
        self._task = None
        return trio.lowlevel.Abort.SUCCEEDED


class TurnRecord(msgspec.Struct, frozen=True, gc=False):
    """One turn of a reply."""

    turn_id: str
    generation: int
    reason: str
    content: str


class Batch:
    """The calls of one answer while they run; or the single call of a host, between turns."""

    __slots__ = ("calls", "open", "terminal", "terminal_text", "text", "waiter")

    def __init__(self, calls: "list[Call]") -> None:
        self.calls = calls
        self.open = len(calls)
        """Calls without an outcome."""
        self.terminal: Call | None = None
        """The first terminal call, in call order, that succeeded."""
        self.terminal_text = ""
        self.text = ""
        """The last result that was written."""
        self.waiter: Waiter | None = None
        """The task of the host that waits for its call."""


class Turn:
    """A turn that has been begun or waits for its slot."""

    slot_granted: "ClassVar[Callable[..., None]]"
    """The actor's handler for a slot that had to be waited for; set by `turns`."""

    __slots__ = (
        "abort_waiters",
        "aborted_queue",
        "activity",
        "actor",
        "answer",
        "batch",
        "cancelled_calls",
        "cause",
        "delivery",
        "failed_batches",
        "has_slot",
        "message_ids",
        "pending",
        "phase",
        "plain_calls",
        "records",
        "resumes_with",
        "seed",
        "slot_wanted",
        "started",
        "steps",
        "tenant",
        "tokens",
        "took_message",
        "turn_id",
    )

    def __init__(self, actor: "SessionActor", turn_id: str, started: float) -> None:
        self.actor = actor
        self.tenant = actor.options.tenant
        self.turn_id = turn_id
        self.started = started
        self.phase = "waiting"
        """`waiting` (for a slot), `prompt_hooks`, `model` or `tools`."""
        self.delivery = "queued"
        """How its first message came: `idle`, `queued` or `seed`."""
        self.pending: Pending | None = None
        """The message that it began with, until that is in the context."""
        self.seed: str | None = None
        """The seed that it began with, until that is in the context."""
        self.message_ids: list[str] = []
        """Messages that it took in."""
        self.took_message = False
        self.records: list[TurnRecord] = []
        """Turns before it in the same chain of clears."""
        self.answer = ""
        """The last text of the model."""
        self.steps = 0
        self.failed_batches = 0
        self.tokens = 0
        self.plain_calls = 0
        """Calls that were no clears."""
        self.batch: Batch | None = None
        self.activity: Activity | None = None
        """What it waits for, in the phases of hooks and model."""
        self.cause: str | None = None
        """`aborted` or `stopped`, once it is to end."""
        self.cancelled_calls: list[str] = []
        self.abort_waiters: list[Waiter] | None = None
        self.aborted_queue = 0
        """Waiting messages that aborts of this turn found."""
        self.has_slot = False
        self.slot_wanted = False
        self.resumes_with: Any = None
        """What goes on when a slot is granted that it had given back."""

    def granted(self) -> None:
        """A slot for running turns became free."""
        self.actor.put(Turn.slot_granted, self)
