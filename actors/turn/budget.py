"""The credits of a session: counted after each call of its model, asked for before the next. Handlers of the actor.

A call is made only if credits are left, so the last one may go past the limit. What it costs is in the same slice of
the log as its answer: a session that is taken up again goes on counting.
"""

import msgspec
import outcome

from exeunt.actors.errors import CreditsExhausted, InvalidAnswer
from exeunt.actors.events import (
    SessionError,
    SessionLimitsChanged,
    SessionLimitsExhaustedCompleted,
    SessionLimitsExhaustedRequested,
    UsageCheckpoint,
)
from exeunt.actors.models import ModelRequest, ModelResponse, Usage
from exeunt.actors.options import SessionOptions
from exeunt.actors.outcomes import TurnEndReason
from exeunt.actors.prices import MOST_NANO, NANO, plausible, shown, to_nano
from exeunt.actors.sizes import CHARACTERS_A_TOKEN, guessed_tokens
from exeunt.actors.state.account import Account
from exeunt.actors.turn import endings, turn_questions, turns
from exeunt.actors.turn.actor import SessionActor
from exeunt.actors.turn.live import Turn, Waiter
from exeunt.actors.turn_requests import LimitDecision

QUOTA_CODE = "session_quota_exceeded"


def charge(
    actor: SessionActor, options: SessionOptions, request: ModelRequest, answer: ModelResponse
) -> None:
    """Log what a call has cost, if its model has a price. *options* are those with which it was made."""
    price = options.price
    if price is None:
        return
    usage = plausible(answer.usage or Usage())
    # Each request has words, and each answer. Some servers count one of them only.
    estimated = price.counts_tokens and not (usage.input_tokens and usage.output_tokens)
    if estimated:
        cited = getattr(options.model, "reads_sources", False) is True
        usage = _completed(usage, request, answer, cited)
    spent = actor.state.account.spent
    cost = min(price.cost(usage), max(0, MOST_NANO - spent))
    actor.emit(
        UsageCheckpoint,
        options.model_name,
        cost,
        spent + cost,
        usage.input_tokens,
        usage.output_tokens,
        usage.cache_read_tokens,
        usage.cache_write_tokens,
        estimated,
    )


def _completed(usage: Usage, request: ModelRequest, answer: ModelResponse, cited: bool) -> Usage:
    """Guess what of a call the provider did not count: a limit must not be without effect for that."""
    tools = len(msgspec.json.encode(request.tools)) // CHARACTERS_A_TOKEN if request.tools else 0
    said = len(answer.content) + len(answer.reasoning)
    said += sum(len(call.name) + len(call.arguments_json) for call in answer.tool_calls)
    return msgspec.structs.replace(
        usage,
        input_tokens=usage.input_tokens or max(1, guessed_tokens(request.messages, cited=cited) + tools),
        output_tokens=usage.output_tokens or max(1, said // CHARACTERS_A_TOKEN),
    )


# --- Before a call -------------------------------------------------------------------------------------------


def refusal(actor: SessionActor, turn_id: str | None = None) -> CreditsExhausted | None:
    """Return why the model may not be called, or `None`."""
    account = actor.state.account
    limit = account.limit
    if limit is None:
        return None
    used, most = account.spent_credits, limit / NANO
    if actor.options.price is None:
        text = (
            f"session {actor.id} may spend {most:g} credits, and {actor.options.model_name!r:.80} has no price, so "
            "that nobody could count them: give it one, or take the limit away"
        )
    elif account.exhausted:
        text = f"session {actor.id} has spent {shown(account.spent)} of its {most:g} credits: give it more"
    else:
        return None
    return CreditsExhausted(text, session_id=actor.id, turn_id=turn_id, used=used, limit=most)


def stops(actor: SessionActor, turn: Turn) -> bool:
    """Say whether the turn makes no request now: it ends, or asks people first."""
    error = refusal(actor, turn.turn_id)
    if error is None:
        return False
    if actor.options.price is None or actor.options.on_session_limits_exhausted is None:
        _end(actor, turn, error)
    else:
        event = SessionLimitsExhaustedRequested
        turn_questions.ask(actor, turn, event, error.used, error.limit)
    return True


def _end(actor: SessionActor, turn: Turn, error: CreditsExhausted) -> None:
    code = "" if actor.options.price is None else QUOTA_CODE
    actor.emit(SessionError, "quota", str(error), None, turn.turn_id, code)
    endings.end_turn(actor, turn, TurnEndReason.LIMIT, error)


def refuse_idle(actor: SessionActor, decision: LimitDecision) -> None:
    """Refuse an answer that leaves the credits spent. Raises `InvalidAnswer`."""
    account = actor.state.account
    if decision.action in ("add", "set") and account.limited(_new_limit(account, decision)).exhausted:
        raise InvalidAnswer(
            f"with {decision.action} {decision.ai_credits:g} the session's credits are still spent: it has used "
            f"{account.spent_credits:g}"
        )


def _new_limit(account: Account, decision: LimitDecision) -> int | None:
    if decision.action == "unset":
        return None
    given = to_nano(decision.ai_credits or 0.0)
    return given if decision.action == "set" else (account.limit or 0) + given


def decided(
    actor: SessionActor,
    turn: Turn,
    asked: SessionLimitsExhaustedRequested,
    kind: str,
    decision: LimitDecision | None,
) -> None:
    """Go on with the turn, or end it, as somebody has decided; without an answer it ends."""
    if decision is None or decision.action == "cancel":
        close(actor, asked, kind)
        error = refusal(actor, turn.turn_id)
        if error is None:
            # Another limit has come with the options of another process.
            turns.go_on(actor, turn)
        else:
            _end(actor, turn, error)
        return
    event = SessionLimitsExhaustedCompleted
    actor.emit(event, asked.request_id, asked.turn_id, kind, decision.action, decision.ai_credits)
    limit = _new_limit(actor.state.account, decision)
    actor.emit(SessionLimitsChanged, None if limit is None else limit / NANO)
    turns.go_on(actor, turn)


def close(actor: SessionActor, asked: SessionLimitsExhaustedRequested, kind: str) -> None:
    """Log that nobody gives more credits."""
    actor.emit(SessionLimitsExhaustedCompleted, asked.request_id, asked.turn_id, kind)


# --- The limit -----------------------------------------------------------------------------------------------


def set_limit(actor: SessionActor, most: float | None, waiter: Waiter | None = None) -> None:
    """Let the session spend *most* in all, from its next call on; a turn that has asked for more goes on."""
    account = actor.state.account
    limit = None if most is None else to_nano(most)
    question = turn_questions.open_question(actor)
    if (
        question is not None
        and isinstance(question.asked, SessionLimitsExhaustedRequested)
        and not account.limited(limit).exhausted
    ):
        decision = LimitDecision("unset") if most is None else LimitDecision("set", most)
        turn_questions.resolve(actor, question, decision)
    elif limit != account.limit:
        actor.emit(SessionLimitsChanged, most)
    if waiter is not None:
        actor.wake(waiter, outcome.Value(actor.state.seq))
