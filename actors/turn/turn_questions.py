"""What a turn asks people before it goes on. Handlers of the actor.

As with what calls ask (`requests`): a question is in the log from its `requested` on, can be answered by whoever knows
its id, and outlives the task that asked; the first answer counts. A turn asks one thing at a time. Meanwhile it has no
slot.
"""

from typing import TYPE_CHECKING, Any

import outcome

from exeunt.actors.activities.turn_question import TurnQuestion, Unanswered, checked
from exeunt.actors.errors import InvalidAnswer
from exeunt.actors.events import Event, SessionLimitsExhaustedRequested, SessionWarning
from exeunt.actors.outcomes import TurnEndReason
from exeunt.actors.state.session_state import TurnRequested
from exeunt.actors.text import encodable
from exeunt.actors.turn import budget, endings, parking, requests, switching, turns
from exeunt.actors.turn.actor import SessionActor
from exeunt.actors.turn.live import Turn, Waiter

if TYPE_CHECKING:
    from exeunt.actors.activities.activity import Activity


def ask(actor: SessionActor, turn: Turn, event: type[Event], *payload: Any) -> None:
    """Log a question and ask it; the turn goes on, or ends, with its answer."""
    seconds = actor.options.waits.approval
    deadline = actor.host.clock.wall() + seconds
    begin(actor, turn, actor.emit(event, actor.new_id(), turn.turn_id, *payload, deadline))


def begin(actor: SessionActor, turn: Turn, asked: TurnRequested) -> None:
    """Ask what is in the log already, with what is left of its time."""
    left = actor.options.waits.approval
    if asked.deadline is not None:
        # One whose time is over gets a moment to say so.
        left = max(0.001, asked.deadline - actor.host.clock.wall())
    turn.phase = "question"
    turn.activity = question = TurnQuestion(turn, asked, left)
    parking.leave_slot(actor, turn)
    actor.start(question)


def is_moot(actor: SessionActor) -> bool:
    """Say whether the log has a question that needs no answer any more: the session may spend more by now."""
    return isinstance(actor.state.question, SessionLimitsExhaustedRequested) and budget.refusal(actor) is None


def open_question(actor: SessionActor) -> TurnQuestion | None:
    """Return what the running turn asks, unless it is being ended."""
    turn = actor.turn
    activity: Activity | None = None if turn is None else turn.activity
    if isinstance(activity, TurnQuestion) and not activity.done and activity.cause is None:
        return activity if actor.status == "live" else None
    return None


def answer(actor: SessionActor, request_id: str, given: Any, waiter: Waiter) -> None:
    """Take an answer from outside, to the turn's question or to one of a call.

    *waiter* gets the number of its event, or why it is refused.
    """
    question = open_question(actor)
    if question is None or question.asked.request_id != request_id:
        requests.answer(actor, request_id, given, waiter)
        return
    try:
        decision = checked(question.asked, given)
        _refuse_idle(actor, question.asked, decision)
    except InvalidAnswer as error:
        actor.wake(waiter, outcome.Error(error))
    else:
        resolve(actor, question, decision)
        actor.wake(waiter, outcome.Value(actor.state.seq))


def resolve(actor: SessionActor, question: TurnQuestion, decision: Any) -> None:
    """Take an answer in the place of the handler, whose task is left behind: it has a cancellation to end by."""
    question.cause = "answered"
    question.finish()
    if question.scope is not None:
        actor.host.fenced.add(question)
        question.scope.cancel()
    question.turn.activity = None
    question.turn.phase = "waiting"
    _decide(actor, question.turn, question.asked, "answered", decision)


def settled(actor: SessionActor, activity: TurnQuestion, result: Any) -> None:
    """The handler has answered, or nobody will."""
    if activity.done:
        return
    activity.finish()
    turn, asked = activity.turn, activity.asked
    turn.activity = None
    if turn.cause is not None:
        close(actor, "cancelled")
        if actor.state.step is not None:
            turns.end_step(actor, turn)
        endings.end_turn(actor, turn, TurnEndReason.ABORTED)
        return
    turn.phase = "waiting"
    kind = "timeout" if activity.cause == "timeout" else "answered"
    if isinstance(result, Unanswered):
        kind = "unavailable" if kind == "answered" else kind
        actor.emit(SessionWarning, "turn_question", encodable(result.why))
        result = None
    else:
        try:
            _refuse_idle(actor, asked, result)
        except InvalidAnswer as error:
            actor.emit(SessionWarning, "turn_question", str(error))
            kind, result = "unavailable", None
    _decide(actor, turn, asked, kind, result)


def _refuse_idle(actor: SessionActor, asked: TurnRequested, decision: Any) -> None:
    """Refuse what would have the same question asked again at once. Raises `InvalidAnswer`."""
    if isinstance(asked, SessionLimitsExhaustedRequested):
        budget.refuse_idle(actor, decision)


def _decide(actor: SessionActor, turn: Turn, asked: TurnRequested, kind: str, decision: Any) -> None:
    if isinstance(asked, SessionLimitsExhaustedRequested):
        budget.decided(actor, turn, asked, kind, decision)
    else:
        switching.decided(actor, turn, asked, kind, decision)


def close(actor: SessionActor, kind: str) -> None:
    """End what is open in the log without an answer."""
    asked = actor.state.question
    if asked is None:
        return
    if isinstance(asked, SessionLimitsExhaustedRequested):
        budget.close(actor, asked, kind)
    else:
        switching.close(actor, asked, kind)


TurnQuestion.settle = settled
