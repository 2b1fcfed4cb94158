"""How a turn ends, what its hooks say to that, and who is told. Handlers of the actor."""

import copy
from typing import Any

import outcome

from exeunt.actors.activities.prompts import EndHook
from exeunt.actors.errors import TurnAborted, TurnError, TurnFailed
from exeunt.actors.events import MessageAccepted, SessionWarning, TurnEnd
from exeunt.actors.models import ModelError
from exeunt.actors.outcomes import TurnEndReason
from exeunt.actors.session.replies import Reply
from exeunt.actors.turn import aborts, parking, turns
from exeunt.actors.turn.actor import SessionActor
from exeunt.actors.turn.live import Turn, TurnRecord

ENDS_BY_ITSELF = frozenset({TurnEndReason.COMPLETED, TurnEndReason.TERMINAL_TOOL})

MOST_BLOCKED_STOPS = 16
"""Times in a row that a hook may keep an agent from ending: more are no remedy, but a loop. As for clears."""


def close_turn(
    actor: SessionActor,
    turn: Turn,
    reason: TurnEndReason,
    *,
    cleared: bool = False,
    content: str | None = None,
) -> None:
    """Log the end of a turn and note it for the reply."""
    duration = actor.host.clock.now() - turn.started
    generation = actor.context.generation
    actor.emit(TurnEnd, turn.turn_id, reason, generation, turn.steps, duration, cleared)
    actor.last_reason = reason
    record = TurnRecord(turn.turn_id, generation, reason.value, turn.answer if content is None else content)
    turn.records.append(record)


def end_turn(
    actor: SessionActor,
    turn: Turn,
    reason: TurnEndReason,
    error: ModelError | TurnError | None = None,
    content: str | None = None,
) -> None:
    """End a turn without a successor: its slot is free, its waiters get their reply or their error.

    That is *error* where it is one of a turn.
    """
    if turn.pending is not None and turn.cause != "stopped":
        text = "the turn was aborted before the message was in the context"
        turns.drop(actor, turn.pending.message_id, "aborted", TurnAborted(text, session_id=actor.id))
    close_turn(actor, turn, reason, content=content)
    actor.turn = None
    parking.leave_slot(actor, turn)
    hooks = actor.options.hooks
    stops = hooks.on_agent_stop is not None and _may_be_kept_from_ending(actor, turn, reason)
    if not stops:
        _answer_waiters(actor, turn, reason, error)
    if turn.abort_waiters:
        aborts.answer(actor, turn)
    if (stops or hooks.on_session_end is not None) and actor.status == "live":
        kind = "complete" if error is None else "error"
        if reason is TurnEndReason.ABORTED:
            kind = "abort"
        message = turn.records[-1].content or None
        said = None if error is None else str(error)
        actor.aftermath = EndHook(turn, kind, message, said, stops=stops)
        actor.start(actor.aftermath)
        return
    after_turn(actor)


def _may_be_kept_from_ending(actor: SessionActor, turn: Turn, reason: TurnEndReason) -> bool:
    if reason not in ENDS_BY_ITSELF or actor.status != "live":
        return False
    if turn.stops_blocked < MOST_BLOCKED_STOPS:
        return True
    text = f"a hook has kept the agent from ending {MOST_BLOCKED_STOPS} times in a row; it is not asked again"
    actor.emit(SessionWarning, "stop_blocked", text)
    return False


def after_turn(actor: SessionActor) -> None:
    """Go on with what waits, or leave."""
    if actor.status == "stopping":
        aborts.finish_stop(actor)
    else:
        turns.begin_next(actor)


def end_hook_returned(actor: SessionActor, activity: EndHook, result: str | None) -> None:
    """The hooks after a turn are done."""
    if activity.done:
        return
    activity.finish()
    actor.aftermath = None
    turn = activity.turn
    if activity.stops:
        if result is not None and actor.status == "live" and not activity.aborted:
            _go_on_instead(actor, turn, result)
            return
        _answer_waiters(actor, turn, TurnEndReason(turn.records[-1].reason), None)
    after_turn(actor)


def _go_on_instead(actor: SessionActor, before: Turn, prompt: str) -> None:
    """Begin a turn with what a hook wants done before the agent ends, in the place of the one that has ended."""
    actor.emit(MessageAccepted, actor.new_id(), "enqueue", prompt, False, True)
    assert actor.state.queue is not None
    turn = Turn(actor, actor.new_id(), actor.host.clock.now())
    turn.pending = actor.state.queue[0]
    turn.records = before.records
    turn.message_ids = before.message_ids
    turn.stops_blocked = before.stops_blocked + 1
    turns.ask_for_slot(actor, turn)


def _answer_waiters(
    actor: SessionActor, turn: Turn, reason: TurnEndReason, error: ModelError | TurnError | None
) -> None:
    if not actor.waiters:
        return
    for message_id in turn.message_ids:
        if message_id in actor.waiters:
            # One each: an outcome can be unwrapped once.
            actor.reply(message_id, _result(actor, turn, reason, error))


def _result(
    actor: SessionActor, turn: Turn, reason: TurnEndReason, error: ModelError | TurnError | None
) -> "outcome.Outcome[Any]":
    if isinstance(error, TurnError):
        return outcome.Error(copy.copy(error))
    if reason is TurnEndReason.ABORTED:
        text = (
            f"turn {turn.turn_id} was aborted" if turn.cause != "stopped" else "the session was disconnected"
        )
        return outcome.Error(TurnAborted(text, session_id=actor.id, turn_id=turn.turn_id))
    if reason is TurnEndReason.ERROR:
        failed = TurnFailed(f"the model gave no answer: {error}", session_id=actor.id, turn_id=turn.turn_id)
        failed.__cause__ = error
        return outcome.Error(failed)
    last = turn.records[-1]
    return outcome.Value(Reply(last.content, last.reason, tuple(turn.records)))


EndHook.settle = end_hook_returned
