"""Clearing the context: a transaction with the tool call that owns it. Handlers of the actor.

Staged when it is asked for; held back until the rest of the batch has its outcomes; committed in one handler
run with the owner's success, the end of the turn and the boundary; rolled back when no owner succeeds. Between
the staging and the commit nothing about the context changes, so there is nothing to undo.
"""

from collections.abc import Collection
from typing import Any

import outcome

from exeunt.actors.activities.call_end import CallEnd, rolled_back_end
from exeunt.actors.activities.tool_call import Call
from exeunt.actors.callers import CALLER
from exeunt.actors.errors import (
    ClearAlreadyStaged,
    ClearLoop,
    ClearRefused,
    ClearRolledBack,
    EmptySeedPrompt,
    NoToolCallInFlight,
)
from exeunt.actors.events import ClearRefusedEvent, ClearRolledBackEvent, ContextCleared
from exeunt.actors.options import Siblings
from exeunt.actors.outcomes import Outcome, TurnEndReason
from exeunt.actors.turn import batches, endings, turns
from exeunt.actors.turn.actor import SessionActor
from exeunt.actors.turn.live import Turn, Waiter


class StagedClear(Waiter):
    """A clear between its staging and its end. It is told of its end as a waiter is, and passes that on."""

    __slots__ = ("call_id", "messages_cleared", "owners", "prompt", "siblings", "trigger", "waiters")

    def __init__(
        self, prompt: str, owners: list[Call], messages_cleared: int, siblings: Siblings, trigger: str
    ) -> None:
        super().__init__()
        self.prompt = prompt
        self.call_id = owners[0].call.id
        """Id of the first owner."""
        self.owners = owners
        """The calls of which one must succeed."""
        self.messages_cleared = messages_cleared
        self.siblings = siblings
        self.trigger = trigger
        self.waiters: list[Waiter] = []

    @property
    def error(self) -> Exception | None:
        """Why it was rolled back, once it was."""
        return self._result.error if isinstance(self._result, outcome.Error) else None  # type: ignore[return-value]

    def resolve(self, result: "outcome.Outcome[Any]") -> None:
        """Take note of the end and tell who waits for it."""
        if self.resolved:
            return
        super().resolve(result)
        for waiter in self.waiters:
            # One each: an outcome can be unwrapped once.
            waiter.resolve(outcome.Value(None) if self.error is None else outcome.Error(self.error))
        self.waiters.clear()


def refusal(actor: SessionActor, prompt: Any, calls: Collection[str] | None = None) -> ClearRefused | None:
    """Return why a clear with *prompt* cannot be staged now, or `None`. The order of the checks is a promise.

    With *calls*, ids of tool calls, only these may own it.
    """
    if not isinstance(prompt, str) or not prompt.strip():
        what = "blank" if isinstance(prompt, str) else f"no text but {type(prompt).__name__}"
        text = f"the seed prompt is {what}: it becomes the first user message of the new context"
        return EmptySeedPrompt(text, session_id=actor.id)
    caller = CALLER.get()
    own = caller is not None and caller.actor is actor and caller.call is not None
    if not _in_flight(actor, calls) or (own and caller is not None and caller.settled):
        text = (
            "the context can be cleared only while a tool call of the session is in flight, from that call or from "
            "outside: clear it inside a tool, or run a tool that does with session.call_tool()"
        )
        return NoToolCallInFlight(text, session_id=actor.id)
    if actor.clear is not None:
        text = "a clear is staged in this batch already: a context has one successor"
        return ClearAlreadyStaged(text, session_id=actor.id)
    if _is_loop(actor):
        text = (
            f"the last {actor.state.clears_in_a_row} turns took in no message and did nothing but clear the context; "
            "do some work or send a message before the next clear"
        )
        return ClearLoop(text, session_id=actor.id)
    return None


def refuse(actor: SessionActor, cause: str) -> None:
    """Say that a clear was refused."""
    caller = CALLER.get()
    if caller is not None and caller.actor is actor and caller.call is not None:
        caller.call.clear_refused = True
    actor.emit(ClearRefusedEvent, cause)


def stage(
    actor: SessionActor,
    prompt: str,
    siblings: Siblings,
    trigger: str,
    result: list[StagedClear],
    calls: Collection[str] | None = None,
) -> None:
    """Stage a clear that was not refused; *result* takes it."""
    clear = StagedClear(prompt, _owners(actor, calls), actor.context.conversation_length, siblings, trigger)
    for call in clear.owners:
        call.was_owner = True
    actor.clear = clear
    result.append(clear)


def owns(actor: SessionActor, call: Call) -> bool:
    """Say whether the staged clear stands or falls with *call*."""
    return actor.clear is not None and call in actor.clear.owners


def hold(actor: SessionActor, call: Call, end: CallEnd) -> None:
    """Keep an owner's success back until the others have their outcomes."""
    call.held = end
    clear: StagedClear = actor.clear
    batch = actor.batch
    if clear.siblings == "cancel" and batch is not None:
        batches.cancel_open(actor, batch, "siblings", spare=clear.owners)


def owner_failed(actor: SessionActor, call: Call, ended: Outcome) -> None:
    """Roll the clear back when its last owner did not succeed."""
    clear: StagedClear | None = actor.clear
    if clear is not None and call in clear.owners:
        clear.owners.remove(call)
        if not clear.owners:
            roll_back(actor, ended.value, call)


def roll_back(actor: SessionActor, cause: str, call: Call) -> None:
    """Forget the staged clear: the context is as it was."""
    clear: StagedClear = actor.clear
    actor.clear = None
    _rolled_back(actor, clear, cause, call.call.id)


def roll_back_for(actor: SessionActor, cause: str) -> None:
    """Roll back because the turn is ending; owners whose success was held end `cancelled`."""
    clear: StagedClear | None = actor.clear
    if clear is None:
        return
    roll_back(actor, cause, clear.owners[0])
    for call in clear.owners:
        if call.held is not None:
            call.held = None
            batches.record(actor, call, rolled_back_end(cause))


def interrupted(actor: SessionActor, clear: StagedClear) -> None:
    """A crash has ended a clear that was not committed."""
    _rolled_back(actor, clear, Outcome.INTERRUPTED.value, clear.call_id)


def _rolled_back(actor: SessionActor, clear: StagedClear, cause: str, call_id: str) -> None:
    actor.emit(ClearRolledBackEvent, cause, call_id)
    actor.wake(
        clear, outcome.Error(ClearRolledBack(f"the clear was rolled back: {cause}", session_id=actor.id))
    )


def commit(actor: SessionActor, turn: Turn | None, reason: TurnEndReason, content: str | None) -> None:
    """Make the clear happen: the turn ends, the boundary is logged, the seeded turn begins."""
    clear: StagedClear = actor.clear
    actor.clear = None
    only_clears = turn is not None and not turn.took_message and turn.plain_calls == 0
    if turn is not None:
        endings.close_turn(actor, turn, reason, cleared=True, content=content)
    generation = actor.context.generation + 1
    actor.emit(ContextCleared, clear.messages_cleared, clear.prompt, generation, only_clears, clear.trigger)
    actor.wake(clear, outcome.Value(None))
    turns.begin_seeded(actor, clear.prompt, turn)


def _in_flight(actor: SessionActor, calls: Collection[str] | None) -> bool:
    batch = actor.batch
    if batch is None or (actor.turn is not None and actor.turn.cause is not None):
        return False
    # A call of the host has no turn that would say that it is being ended.
    return any(
        call.outcome is None
        and call.cause not in ("aborted", "stopped")
        and (calls is None or (call.call.id in calls and not call.returned))
        for call in batch.calls
    )


def _owners(actor: SessionActor, calls: Collection[str] | None) -> list[Call]:
    """Return the calls with which the clear stands or falls.

    The caller's own call, where the caller is one. Else whoever asks must mean one of the calls that still run:
    the only one, or of several the terminal ones, or all.
    """
    caller = CALLER.get()
    if caller is not None and caller.actor is actor and caller.call is not None:
        return [caller.call]
    batch = actor.batch
    assert batch is not None
    running = [call for call in batch.calls if not call.returned and (calls is None or call.call.id in calls)]
    if len(running) > 1:
        running = [call for call in running if call.terminal] or running
    return running


def _is_loop(actor: SessionActor) -> bool:
    turn = actor.turn
    if turn is None or turn.took_message or turn.plain_calls:
        return False
    return actor.state.clears_in_a_row >= actor.options.max_consecutive_clears
