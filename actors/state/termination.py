"""When a turn ends. Pure: the same facts give the same answer."""

from collections.abc import Iterable
from typing import Any

import attrs

from exeunt.actors.errors import InvalidConfiguration
from exeunt.actors.outcomes import REFUSALS, Outcome, TurnEndReason
from exeunt.actors.prices import checked_credits


def _positive(instance: object, attribute: "attrs.Attribute[Any]", value: object) -> None:
    if value is None and attribute.default is None:
        return
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise InvalidConfiguration(
            f"limit {attribute.name!r} must be a whole number of at least 1, not {value!r:.80}"
        )


def _credits(instance: object, attribute: "attrs.Attribute[Any]", value: object) -> None:
    checked_credits(f"limit {attribute.name!r}", value)


@attrs.frozen
class Limits:
    """The budgets: of one turn, and in credits of the whole session."""

    steps: int = attrs.field(default=200, validator=_positive)
    """Requests to the model. 200 is far above honest work and still ends a loop within minutes."""
    failed_batches: int = attrs.field(default=10, validator=_positive)
    """Batches in a row in which no call succeeded. Batches of nothing but denials and rejections do not count."""
    tokens: int | None = attrs.field(default=None, validator=_positive)
    """Input and output tokens together, as far as the model tells; `None` is no limit."""
    credits: float | None = attrs.field(default=None, validator=_credits)
    """What all calls of the session may cost since it began, as far as is counted by `prices`; `None` is no limit, but
    for one that a resumed session has in its log. No call is made beyond it; one that is made may go past it."""


def count_failed(in_a_row: int, outcomes: Iterable[Outcome]) -> int:
    """Return how many batches in a row have failed, after one with these *outcomes*."""
    failed = False
    for outcome in outcomes:
        if outcome is Outcome.SUCCESS:
            return 0
        failed = failed or outcome not in REFUSALS
    return in_a_row + failed


def budget_spent(limits: Limits, *, steps: int, failed_batches: int, tokens: int) -> bool:
    """Say whether the turn may make no further request."""
    return (
        steps >= limits.steps
        or failed_batches >= limits.failed_batches
        or (limits.tokens is not None and tokens >= limits.tokens)
    )


def after_batch(
    *, stopping: bool, clear_committed: bool, terminal_success: bool, budget_is_spent: bool
) -> TurnEndReason | None:
    """Return why the turn ends after a batch, or `None` when the model is to be called again.

    The order of the rules is the promise: an abort beats a clear, a clear beats a terminal tool, and a
    terminal tool beats the budget, which is asked only before a further request. Only the outcomes of this
    batch count, never the history.
    """
    if stopping:
        return TurnEndReason.ABORTED
    if clear_committed:
        return TurnEndReason.TERMINAL_TOOL if terminal_success else TurnEndReason.CONTEXT_CLEARED
    if terminal_success:
        return TurnEndReason.TERMINAL_TOOL
    if budget_is_spent:
        return TurnEndReason.LIMIT
    return None
