"""What a turn asks people before it goes on: more credits, or another model. Names are those of the Copilot SDK."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Literal, cast, get_args

import attrs

from exeunt.actors.errors import InvalidAnswer, InvalidConfiguration
from exeunt.actors.prices import checked_credits

LimitAction = Literal["add", "set", "unset", "cancel"]
SwitchResponse = Literal["yes", "yes_always", "no"]

LIMIT_ACTIONS: tuple[str, ...] = get_args(LimitAction)
SWITCH_RESPONSES: tuple[str, ...] = get_args(SwitchResponse)


@attrs.frozen
class SessionLimitsExhaustedRequest:
    """The session has spent its credits; the turn waits before its next call of the model."""

    used_ai_credits: float
    max_ai_credits: float
    request_id: str = attrs.field(default="", eq=False)
    """The id under which it can be answered from anywhere: `session.answer(request_id, ...)`."""


@attrs.frozen
class LimitDecision:
    """What is to become of the limit, and with it of the turn.

    `add`: *ai_credits* more; `set`: *ai_credits* in all; `unset`: no limit; `cancel`: the turn ends.
    """

    action: LimitAction
    ai_credits: float | None = None


@attrs.frozen
class AutoModeSwitchRequest:
    """The provider of the model is at a limit; the turn could go on with another one."""

    model: str
    auto_model: str
    error_code: str = ""
    """The provider's own code, where it has said one."""
    retry_after_seconds: float | None = None
    """Until the limit is over, as far as the provider says."""
    request_id: str = attrs.field(default="", eq=False)
    """The id under which it can be answered from anywhere: `session.answer(request_id, ...)`."""


TurnRequest = SessionLimitsExhaustedRequest | AutoModeSwitchRequest

TurnRequestHandler = Callable[[Any, Any], Any | Awaitable[Any]]
"""Called `handler(request, invocation)`; its answer may be `LeavePending()`."""


_CREDITS: dict[str, tuple[str, ...]] = {
    "add": ("ai_credits", "additional_ai_credits", "additionalAiCredits"),
    "set": ("ai_credits", "max_ai_credits", "maxAiCredits"),
}
"""Under which names an answer tells how many, in Python's and in the protocol's spelling."""


def to_limit_decision(answer: Any) -> LimitDecision:
    """Return *answer* as a decision: one already, an action without credits, or a mapping with `action`.

    Raises `InvalidAnswer`.
    """
    if isinstance(answer, LimitDecision):
        action, amount = cast("Any", answer.action), cast("Any", answer.ai_credits)
    elif isinstance(answer, Mapping):
        fields = cast("Mapping[str, Any]", answer)
        action = fields.get("action")
        names = _CREDITS.get(action, ()) if isinstance(action, str) else ()
        amount = next((fields[name] for name in names if fields.get(name) is not None), None)
    else:
        action, amount = answer, None
    if action not in LIMIT_ACTIONS:
        raise InvalidAnswer(
            f"{answer!r:.80} does not say what becomes of the limit: one of {', '.join(LIMIT_ACTIONS)} does"
        )
    if action not in ("add", "set"):
        return LimitDecision(cast("LimitAction", action))
    if amount is None:
        raise InvalidAnswer(f"{action!r} needs a number of credits")
    try:
        return LimitDecision(cast("LimitAction", action), checked_credits("ai_credits", amount))
    except InvalidConfiguration as error:
        raise InvalidAnswer(str(error)) from error


def to_switch_response(answer: Any) -> SwitchResponse:
    """Return *answer* as one: a text, `True`, `False`, or a mapping with `response`. Raises `InvalidAnswer`."""
    if isinstance(answer, Mapping):
        answer = cast("Mapping[str, Any]", answer).get("response")
    if isinstance(answer, bool):
        return "yes" if answer else "no"
    if answer not in SWITCH_RESPONSES:
        raise InvalidAnswer(
            f"{answer!r:.80} does not say whether to switch: one of {', '.join(SWITCH_RESPONSES)} does"
        )
    return cast("SwitchResponse", answer)
