"""After a crash: an actor built anew from its log, or given up.

A handler that raises has written nothing, so the log is whole. What lived beside the log (tasks, waiters, a
staged clear) ends here: handlers are cancelled and fenced, open calls are `interrupted`, the turn's waiters are
told. Queue and subscribers stay. The entry that raised is tried again after the back-off.
"""

import logging
from typing import Any

import outcome

from exeunt.actors.activities.call_end import INTERRUPTED_TEXT
from exeunt.actors.errors import SessionFailed, TurnInterrupted
from exeunt.actors.events import (
    AssistantTurnEnd,
    DeadLetter,
    MessageAccepted,
    MessageDropped,
    Origin,
    PermissionCompleted,
    SessionIdle,
    SessionRestarted,
    ToolExecutionComplete,
    TurnEnd,
)
from exeunt.actors.events import (
    SessionFailed as SessionFailedEvent,
)
from exeunt.actors.outcomes import Outcome, TurnEndReason
from exeunt.actors.state import SessionState
from exeunt.actors.turn import aborts, clears, host_calls, parking, turns
from exeunt.actors.turn.actor import Entry, SessionActor, fault
from exeunt.actors.turn.live import Turn, Waiter

logger = logging.getLogger("exeunt.actors")


class Wreck:
    """What was alive in the actor when it crashed."""

    __slots__ = ("cause", "clear", "host_batch", "lost", "stopping", "turn")

    def __init__(self, actor: SessionActor, cause: Exception, lost: list[Waiter]) -> None:
        self.cause = cause
        self.turn = actor.turn
        self.host_batch = actor.host_batch
        self.clear: clears.StagedClear | None = actor.clear
        self.lost: list[Waiter] = []
        """Whom the handler that raised would have woken: what it had to say is void, and they wait for it."""
        self.stopping = actor.status == "stopping"
        for waiter in lost:
            if isinstance(waiter, clears.StagedClear):
                self.clear = waiter
            else:
                self.lost.append(waiter)

    def inherit(self, before: "Wreck") -> None:
        """Take over what *before* has left, which nobody was told yet."""
        self.turn = self.turn or before.turn
        self.host_batch = self.host_batch or before.host_batch
        self.clear = self.clear or before.clear
        self.lost.extend(before.lost)
        self.stopping = self.stopping or before.stopping


def crashed(actor: SessionActor, entry: Entry | None, cause: Exception, before: Wreck | None = None) -> None:
    """A handler raised: ask the supervision whether and when the actor may start again.

    *before* is what an earlier crash left, whose restart is what failed.
    """
    logger.error("session %s: handler %s raised", actor.id, _name(entry), exc_info=cause)
    # Those that the entry brings along it will wake when it is tried again.
    lost = [waiter for waiter in actor.discard() if entry is None or waiter not in entry[1]]
    wreck = Wreck(actor, cause, lost)
    if before is not None:
        wreck.inherit(before)
    _fence_all(actor)
    actor.turn = None
    actor.host_batch = None
    actor.aftermath = None
    actor.clear = None
    actor.epoch += 1
    actor.status = "restarting"
    again = entry is not None and entry[0] is not fault
    if entry is not None and again:
        actor.put_back(entry)
    delay = actor.host.supervision.crashed(actor, cause)
    if delay is None:
        _give_up(actor, wreck, again)
    else:
        actor.host.timers.start(delay, _Restart(actor, wreck))


class _Restart:
    """The restart of one actor, when its back-off is over."""

    __slots__ = ("actor", "wreck")

    def __init__(self, actor: SessionActor, wreck: Wreck) -> None:
        self.actor = actor
        self.wreck = wreck

    def expire(self) -> None:
        """Build the actor anew and go on. For the timers."""
        actor = self.actor
        if actor.status != "restarting":
            return
        try:
            _rebuild(actor)
            actor.status = "stopping" if self.wreck.stopping else "live"
            _recovered(actor, self.wreck)
            actor.apply()
        except Exception as error:  # noqa: BLE001 - the restart itself may fail, and counts as a crash
            crashed(actor, None, error, self.wreck)
            return
        actor.drain()


def _fence_all(actor: SessionActor) -> None:
    """Cancel what runs, and decide that nothing of it counts any more."""
    turn = actor.turn
    activities: list[Any] = [actor.aftermath, None if turn is None else turn.activity]
    if actor.batch is not None:
        activities.extend(call for call in actor.batch.calls if call.started)
    for activity in activities:
        if activity is not None and not activity.done:
            activity.cause = activity.cause or "interrupted"
            activity.finish()
            if activity.scope is not None:
                actor.host.fenced.add(activity)
                activity.scope.cancel()
    if turn is not None:
        parking.leave_slot(actor, turn)


def _rebuild(actor: SessionActor) -> None:
    """Make the state from the log again, under a new identity for ids."""
    events = actor.log.read()
    actor.state = SessionState.replay(events)
    parent = events[-1].id if events else None
    actor.origin = Origin.fresh(parent, actor.state.seq + 1)


def _recovered(actor: SessionActor, wreck: Wreck) -> None:
    """Close what the log shows as open, tell the waiters, and go on with the queue."""
    actor.emit(SessionRestarted, actor.epoch, f"{type(wreck.cause).__name__}: {wreck.cause}")
    close_open_work(actor, wreck.turn)
    if wreck.clear is not None:
        clears.interrupted(actor, wreck.clear)
    text = "the session's actor was restarted in the middle of the turn"
    _tell(actor, wreck, TurnInterrupted(text, session_id=actor.id))
    seed = actor.context.unanswered_seed
    if seed is not None and wreck.turn is not None and wreck.turn.seed is not None and not wreck.stopping:
        # Committed is committed: the seed waited for its hooks or its slot, and its turn runs now. The log decides:
        # what crashed may have been the commit.
        turns.begin_seeded(actor, seed, None)
    else:
        turns.after_turn(actor)


def close_open_work(actor: SessionActor, turn: Turn | None) -> None:
    """Give every open call, step and turn of the log its end: `interrupted`."""
    state = actor.state
    if turn is not None and turn.batch is not None:
        for call in turn.batch.calls:
            if call.asking is not None:
                actor.emit(PermissionCompleted, call.asking, call.call.id, "cancelled")
    now = actor.host.clock.wall()
    for start in list((state.open_calls or {}).values()):
        actor.emit(
            ToolExecutionComplete,
            start.tool_call_id,
            start.tool_name,
            Outcome.INTERRUPTED,
            INTERRUPTED_TEXT,
            start.turn_id,
            max(0.0, now - start.time),
            start.terminal,
            "the session's actor or process ended; what the tool did is unknown",
        )
    step = state.step
    if step is not None:
        actor.emit(AssistantTurnEnd, step.turn_id, step.step)
    if state.turn_id is not None:
        steps = 0 if step is None else step.step + 1
        duration = 0.0 if turn is None else actor.host.clock.now() - turn.started
        generation = state.context.generation
        reason = TurnEndReason.INTERRUPTED
        actor.emit(TurnEnd, state.turn_id, reason, generation, steps, duration)
        actor.last_reason = reason


def _tell(actor: SessionActor, wreck: Wreck, error: Exception) -> None:
    """Wake whoever waited for the work that is gone."""
    turn = wreck.turn
    if turn is not None:
        for message_id in turn.message_ids:
            waiter = actor.waiters.pop(message_id, None)
            if waiter is not None:
                actor.wake(waiter, outcome.Error(error))
        if turn.abort_waiters:
            aborts.answer(actor, turn)
    if wreck.host_batch is not None and wreck.host_batch.waiter is not None:
        actor.wake(wreck.host_batch.waiter, outcome.Error(error))
    if wreck.clear is not None:
        # Only where it could not be logged: the first that a waiter is told counts.
        actor.wake(wreck.clear, outcome.Error(error))
    for waiter in wreck.lost:
        actor.wake(waiter, outcome.Error(error))


def _give_up(actor: SessionActor, wreck: Wreck, again: bool) -> None:
    """The session is `failed`: every message ends, every waiter is told, no other session notices.

    With *again*, the first entry of the mailbox is the one that raised.
    """
    text = f"the session crashed too often and takes no more messages: {type(wreck.cause).__name__}: {wreck.cause}"
    error = SessionFailed(text, session_id=actor.id)
    entries = actor.take_inbox()
    try:
        _rebuild(actor)
        close_open_work(actor, wreck.turn)
        if wreck.clear is not None:
            clears.interrupted(actor, wreck.clear)
        for position, entry in enumerate(entries):
            _dead_letter(actor, entry, "crash" if again and position == 0 else "session_failed")
        for item in actor.state.pending():
            turns.drop(actor, item.message_id, "session_failed", error)
        actor.emit(SessionFailedEvent, f"{type(wreck.cause).__name__}: {wreck.cause}")
        if actor.active:
            actor.emit(SessionIdle)
        actor.active = False
        actor.status = "failed"
        actor.apply()
    except Exception:
        # The log itself may be what fails. The waiters are told all the same.
        logger.exception("session %s: its failure could not be logged", actor.id)
        wreck.lost.extend(actor.discard())
        actor.status = "failed"
    _tell(actor, wreck, error)
    _wake_all(actor, entries, error)
    actor.apply()
    actor.host.supervision.ended(actor)


def _dead_letter(actor: SessionActor, entry: Entry, cause: str) -> None:
    handler, arguments = entry
    actor.emit(DeadLetter, _name(entry), cause)
    if handler is turns.accept:
        message_id, prompt, mode, _ = arguments
        actor.active = True
        actor.emit(MessageAccepted, message_id, mode, prompt)
        actor.emit(MessageDropped, message_id, "dead_letter" if cause == "crash" else "session_failed")


def _wake_all(actor: SessionActor, entries: list[Entry], error: Exception) -> None:
    for waiter in actor.waiters.values():
        actor.wake(waiter, outcome.Error(error))
    actor.waiters = {}
    host_calls.fail_waiting(actor, error)
    for waiter in actor.stop_waiters or ():
        actor.wake(waiter, outcome.Value(None))
    for _, arguments in entries:
        for argument in arguments:
            if isinstance(argument, Waiter):
                actor.wake(argument, outcome.Error(error))
            elif isinstance(argument, host_calls.HostCall):
                actor.wake(argument.waiter, outcome.Error(error))


def _name(entry: Entry | None) -> str:
    if entry is None:
        return "restart"
    handler, arguments = entry
    return str(arguments[0]) if handler is fault else handler.__name__.strip("_")
