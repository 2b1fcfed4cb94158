"""What a running turn is, beyond what the log says: who waits for it, what runs for it.

Lost in a crash, and not needed afterwards.
"""

from __future__ import annotations

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
    from exeunt.actors.media import Media
    from exeunt.actors.turn.actor import SessionActor
    from exeunt.actors.turn.host_calls import HostCall


TAKEN: outcome.Outcome[Any] = outcome.Value(None)
"""Stands for a value that its task has got."""


class Waiter:
    """One task that waits for one value. Cheaper than a `trio.Event`, which serves any number."""

    __slots__ = ("_result", "_task", "caller")

    def __init__(self, caller: Caller | None = None) -> None:
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
        result, self._result = self._result, TAKEN
        try:
            return result.unwrap()
        finally:
            del result

    def resolve(self, result: outcome.Outcome[Any]) -> None:
        """Hand over the value or the error; the first counts."""
        if self._result is not None:
            return
        if self._task is None:
            self._result = result
        else:
            # An error that is raised holds its frames, and they this object: to keep it would make a cycle.
            self._result = TAKEN
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

    terminal: Call | None = None
    """The first terminal call, in call order, that succeeded."""
    terminal_text: str = ""
    text: str = ""
    """The last result that was written."""
    media: tuple[Media, ...] = ()
    """What that brings beside its text."""
    host_call: HostCall | None = None
    """What the host asked for, where it is a call of the host."""
    abort_waiters: list[tuple[Waiter, int]] | None = None
    """Who wants to know when a call of the host is aborted, and how many waiting messages their abort found; a
    turn's stand with the turn."""

    def __init__(self, calls: list[Call]) -> None:
        self.calls = calls
        self.open = len(calls)
        """Calls without an outcome."""


class Turn:
    """A turn that has been begun or waits for its slot."""

    slot_granted: ClassVar[Callable[..., None]]
    """The actor's handler for a slot that had to be waited for; set by `turns`."""

    phase: str = "waiting"
    """`waiting` (for a slot), `prompt_hooks`, `model`, `tools` or `question` (to people)."""
    delivery: str = "queued"
    """How its first message came: `idle`, `queued` or `seed`."""
    pending: Pending | None = None
    """The message that it began with, until that is in the context."""
    seed: str | None = None
    """The seed that it began with, until that is in the context."""
    took_message: bool = False
    answer: str = ""
    """The last text of the model."""
    steps: int = 0
    failed_batches: int = 0
    tokens: int = 0
    stops_blocked: int = 0
    """How often in a row a hook has kept the agent from ending."""
    plain_calls: int = 0
    """Calls that were no clears."""
    batch: Batch | None = None
    activity: Activity | None = None
    """What it waits for, in the phases of hooks and model."""
    cause: str | None = None
    """`aborted` or `stopped`, once it is to end."""
    abort_waiters: list[tuple[Waiter, int]] | None = None
    """Who aborts it, and how many waiting messages each abort found."""
    has_slot: bool = False
    slot_wanted: bool = False
    resumes_with: Any = None
    """What goes on when a slot is granted that it had given back."""

    def __init__(self, actor: SessionActor, turn_id: str, started: float) -> None:
        self.actor = actor
        self.tenant = actor.options.tenant
        self.turn_id = turn_id
        self.started = started
        self.message_ids: list[str] = []
        """Messages that it took in."""
        self.records: list[TurnRecord] = []
        """Turns before it in the same chain of clears."""
        self.cancelled_calls: list[str] = []

    def granted(self) -> None:
        """A slot for running turns became free."""
        self.actor.put(Turn.slot_granted, self)
