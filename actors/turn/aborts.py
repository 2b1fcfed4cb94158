"""Ending a turn, or the session, from outside. Handlers of the actor."""

import outcome

from exeunt.actors.errors import SessionClosed, TurnAborted
from exeunt.actors.events import Abort, SessionIdle, SessionShutdown
from exeunt.actors.outcomes import TurnEndReason
from exeunt.actors.session.replies import AbortReceipt
from exeunt.actors.turn import batches, clears, endings, errands, host_calls, suspension, turns
from exeunt.actors.turn.actor import SessionActor
from exeunt.actors.turn.live import Turn, Waiter

HOST_ENDS = "host"
"""The reason of a stop because the host ends."""

DELETED = "deleted"
"""The reason of a stop after which the log is forgotten."""

TAKEN_OVER = "taken_over"
"""Why a session has left memory that another host has taken up, or deleted."""

LOG_ENDED = "journal"
"""Why a session has left memory whose log takes nothing more."""

RESERVED = frozenset({HOST_ENDS, DELETED, TAKEN_OVER, LOG_ENDED})
"""Reasons that mean something, so that nobody else may give them."""


def abort(actor: SessionActor, keep_queue: bool, reason: str, waiter: Waiter | None) -> None:
    """End the running turn and drop, or keep, what waits. Answered when the turn has ended."""
    turn = actor.turn
    if turn is not None and turn.cause is None:
        actor.emit(Abort, reason, turn.turn_id)
    elif turn is None and actor.host_batch is not None and actor.host_batch.calls[0].cause is None:
        actor.emit(Abort, reason, None)
    if actor.aftermath is not None:
        actor.aftermath.aborted = True
    affected = _waiting(actor, turn)
    errand_ended = errands.give_up(actor)
    if not keep_queue:
        error = TurnAborted("the message was dropped by an abort", session_id=actor.id)
        for message_id in affected:
            turns.drop(actor, message_id, "aborted", error)
        host_calls.fail_waiting(actor, TurnAborted("the call was dropped by an abort", session_id=actor.id))
    at_work = turn or actor.host_batch
    if at_work is not None:
        if waiter is not None:
            at_work.abort_waiters = [*(at_work.abort_waiters or ()), (waiter, len(affected))]
    elif waiter is not None:
        actor.wake(waiter, outcome.Value(AbortReceipt(None, (), len(affected))))
    if affected and not keep_queue and actor.free:
        # They waited for somebody to go on with them; now nothing is left to do.
        actor.active = True
        turns.begin_next(actor)
    elif errand_ended:
        turns.begin_next(actor)
    _end(actor, "aborted")


def forsake(actor: SessionActor, message_id: str) -> None:
    """Do nothing more for a message whose caller has gone: take it back, or end the turn that has taken it in."""
    turn = actor.turn
    in_hand = turn is not None and turn.pending is not None and turn.pending.message_id == message_id
    if turn is not None and (in_hand or message_id in turn.message_ids):
        abort(actor, True, "caller_cancelled", None)
    else:
        turns.withdraw(actor, message_id, [])


def _waiting(actor: SessionActor, turn: Turn | None) -> list[str]:
    in_hand = turn.pending.message_id if turn is not None and turn.pending is not None else None
    return [item.message_id for item in actor.state.pending() if item.message_id != in_hand]


def answer(actor: SessionActor, turn: Turn) -> None:
    """Tell who asked for the abort what it did."""
    for waiter, queued in turn.abort_waiters or ():
        actor.wake(waiter, outcome.Value(AbortReceipt(turn.turn_id, tuple(turn.cancelled_calls), queued)))


def stop(actor: SessionActor, reason: str, waiter: Waiter | None) -> None:
    """Leave memory in order: the turn is aborted, the queue stays in the log."""
    if actor.status in ("closed", "failed"):
        if waiter is not None:
            actor.wake(waiter, outcome.Value(None))
        return
    if waiter is not None:
        actor.stop_waiters = [*(actor.stop_waiters or ()), waiter]
    if reason == DELETED or not actor.stop_reason:
        actor.stop_reason = reason
    if actor.status == "stopping":
        return
    actor.status = "stopping"
    if actor.aftermath is not None:
        actor.aftermath.cancel("stopped")
    elif actor.turn is None and actor.host_batch is None:
        finish_stop(actor)
    elif reason == HOST_ENDS and suspension.only_waits_for_people(actor):
        suspension.leave_open(actor)
        finish_stop(actor)
    else:
        _end(actor, "stopped")


def finish_stop(actor: SessionActor) -> None:
    """Nothing runs any more: say so and go."""
    error = SessionClosed("the session was disconnected", session_id=actor.id)
    if actor.stop_reason == DELETED:
        # The log goes, and with it the queue: nobody will take these up.
        for item in actor.state.pending():
            turns.drop(actor, item.message_id, "deleted", error)
    for message_id in list(actor.waiters):
        actor.reply(message_id, outcome.Error(error))
    host_calls.fail_waiting(actor, error)
    if actor.active and not actor.state.waiting:
        actor.emit(SessionIdle, actor.last_reason == TurnEndReason.ABORTED)
    actor.active = False
    actor.emit(SessionShutdown, actor.stop_reason)
    actor.status = "closed"
    for waiter in actor.stop_waiters or ():
        actor.wake(waiter, outcome.Value(None))
    # Behind this handler: only when its events are in the log may the session be taken up again.
    actor.put(_left)


def _left(actor: SessionActor) -> None:
    if actor.status == "closed":
        actor.host.supervision.ended(actor)


def _end(actor: SessionActor, cause: str) -> None:
    """Cancel whatever is at work; the first cause of a turn stands, but a stop outweighs an abort."""
    turn = actor.turn
    if turn is not None:
        if turn.cause is None or cause == "stopped":
            turn.cause = cause
        clears.roll_back_for(actor, cause)
        if turn.activity is not None:
            turn.activity.cancel(cause)
        elif turn.batch is not None:
            batches.cancel_open(actor, turn.batch, cause)
            batches.advance(actor, turn.batch.calls[0])
        else:
            # It waits for a slot: to begin, or to go on after it had given its own back; then maybe inside of a step.
            if actor.state.step is not None:
                turns.end_step(actor, turn)
            endings.end_turn(actor, turn, TurnEndReason.ABORTED)
    elif actor.host_batch is not None:
        clears.roll_back_for(actor, cause)
        batch = actor.host_batch
        if batch is not None:
            batches.cancel_open(actor, batch, cause)
            batches.advance(actor, batch.calls[0])
