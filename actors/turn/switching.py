"""Going on with another model when the provider of the session's own is at a limit. Handlers of the actor."""

from typing import Literal

import attrs

from exeunt.actors.events import (
    AutoModeSwitchCompleted,
    AutoModeSwitchRequested,
    SessionModelChange,
)
from exeunt.actors.models import ModelError, ModelErrorKind
from exeunt.actors.text import encodable
from exeunt.actors.turn import rate_limits, turn_questions, turns
from exeunt.actors.turn.actor import SessionActor
from exeunt.actors.turn.live import Turn
from exeunt.actors.turn_requests import SwitchResponse

CAUSE = "rate_limit_auto_switch"
"""`cause` of the change of models."""


def offered(actor: SessionActor, turn: Turn, error: ModelError) -> bool:
    """Offer the other model in the place of *error*, with which the turn would end; say whether that was done."""
    if not rate_limits.may_switch(actor.options, actor.state, error):
        return False
    if rate_limits.unasked(actor.state):
        _switch(actor, turn)
        return True
    turn_questions.ask(
        actor,
        turn,
        AutoModeSwitchRequested,
        rate_limits.auto_name(actor.options),
        str(error.kind),
        encodable(str(error)),
        encodable(error.code),
        error.status,
        error.limited_for,
    )
    return True


def decided(
    actor: SessionActor,
    turn: Turn,
    asked: AutoModeSwitchRequested,
    kind: str,
    response: SwitchResponse | None,
) -> None:
    """Go on with the other model, or end the turn with the error of its own."""
    answer: Literal["yes", "yes_always", "no"] = response or "no"
    actor.emit(AutoModeSwitchCompleted, asked.request_id, asked.turn_id, kind, answer)
    options = actor.options
    # Meanwhile the session may have got other options, or a limit.
    if answer != "no" and options.auto_model is not None and rate_limits.countable(options, actor.state):
        _switch(actor, turn)
        return
    # The error itself may have been another process's.
    error = ModelError(
        ModelErrorKind(asked.error_type),
        asked.message,
        status=asked.status_code,
        code=asked.error_code,
        limited_for=asked.retry_after_seconds,
    )
    turns.fail(actor, turn, error)


def _switch(actor: SessionActor, turn: Turn) -> None:
    """Let the session have the other model, and make the same request of that."""
    before = actor.options
    assert before.auto_model is not None
    # Only once: where that one is at a limit too, there is no further.
    actor.options = attrs.evolve(before, model=before.auto_model, auto_model=None)
    actor.emit(SessionModelChange, actor.options.model_name, before.model_name, "", CAUSE)
    turns.go_on(actor, turn, turns.call_model)


def close(actor: SessionActor, asked: AutoModeSwitchRequested, kind: str) -> None:
    """Log that nobody says whether to switch."""
    actor.emit(AutoModeSwitchCompleted, asked.request_id, asked.turn_id, kind)
