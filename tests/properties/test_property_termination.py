"""The rules for the end of a turn, as tables."""

import itertools
import re
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given

from exeunt import InvalidConfiguration, Limits, Outcome, TurnEndReason
from exeunt.actors.state.termination import after_batch, budget_spent, count_failed

TABLE: dict[tuple[str, ...], TurnEndReason | None] = {
    # What holds after a batch, and why the turn ends then.
    (): None,
    ("spent",): TurnEndReason.LIMIT,
    ("terminal",): TurnEndReason.TERMINAL_TOOL,
    ("terminal", "spent"): TurnEndReason.TERMINAL_TOOL,
    ("cleared",): TurnEndReason.CONTEXT_CLEARED,
    ("cleared", "spent"): TurnEndReason.CONTEXT_CLEARED,
    ("cleared", "terminal"): TurnEndReason.TERMINAL_TOOL,
    ("cleared", "terminal", "spent"): TurnEndReason.TERMINAL_TOOL,
    ("stopping",): TurnEndReason.ABORTED,
    ("stopping", "spent"): TurnEndReason.ABORTED,
    ("stopping", "terminal"): TurnEndReason.ABORTED,
    ("stopping", "terminal", "spent"): TurnEndReason.ABORTED,
    ("stopping", "cleared"): TurnEndReason.ABORTED,
    ("stopping", "cleared", "spent"): TurnEndReason.ABORTED,
    ("stopping", "cleared", "terminal"): TurnEndReason.ABORTED,
    ("stopping", "cleared", "terminal", "spent"): TurnEndReason.ABORTED,
}
FACTS = ("stopping", "cleared", "terminal", "spent")


def test_the_table_has_every_case() -> None:
    cases = [case for size in range(5) for case in itertools.combinations(FACTS, size)]
    assert sorted(TABLE) == sorted(cases)


@pytest.mark.parametrize(
    ("facts", "reason"), [pytest.param(*case, id=" ".join(case[0]) or "nothing") for case in TABLE.items()]
)
def test_an_abort_beats_a_clear_beats_a_terminal_tool_beats_the_budget(
    facts: tuple[str, ...], reason: TurnEndReason | None
) -> None:
    ended = after_batch(
        stopping="stopping" in facts,
        clear_committed="cleared" in facts,
        terminal_success="terminal" in facts,
        budget_is_spent="spent" in facts,
    )
    assert ended is reason


REFUSED = [Outcome.DENIED, Outcome.REJECTED]
FAILED = [
    Outcome.FAILURE,
    Outcome.INVALID,
    Outcome.TIMEOUT,
    Outcome.CANCELLED,
    Outcome.INTERRUPTED,
]
BATCHES = st.lists(st.sampled_from([Outcome.SUCCESS, *REFUSED, *FAILED]), min_size=1, max_size=6)


@given(st.lists(BATCHES, max_size=20))
def test_failed_batches_are_counted_since_the_last_success_and_refusals_do_not_count(
    batches: list[list[Outcome]],
) -> None:
    counted = 0
    for batch in batches:
        counted = count_failed(counted, batch)
    since = [
        list(group)
        for succeeded, group in itertools.groupby(batches, lambda batch: Outcome.SUCCESS in batch)
        if not succeeded
    ]
    last = since[-1] if batches and Outcome.SUCCESS not in batches[-1] else []
    assert counted == sum(any(outcome in FAILED for outcome in batch) for batch in last)


LIMIT = st.integers(1, 5)


@given(LIMIT, LIMIT, st.none() | LIMIT, st.tuples(st.integers(0, 6), st.integers(0, 6), st.integers(0, 6)))
def test_a_budget_is_spent_when_one_of_its_limits_is_reached(
    steps: int, failed_batches: int, tokens: int | None, used: tuple[int, int, int]
) -> None:
    spent = budget_spent(
        Limits(steps, failed_batches, tokens), steps=used[0], failed_batches=used[1], tokens=used[2]
    )
    reached = [used[0] >= steps, used[1] >= failed_batches, tokens is not None and used[2] >= tokens]
    assert spent == any(reached)


@pytest.mark.parametrize("limit", ["steps", "failed_batches", "tokens"])
@pytest.mark.parametrize("value", [0, -1, 1.5, "3", True])
def test_a_limit_is_a_whole_number_of_at_least_one(limit: str, value: Any) -> None:
    text = f"limit '{limit}' must be a whole number of at least 1, not {value!r}"
    with pytest.raises(InvalidConfiguration, match=re.escape(text)):
        Limits(**{limit: value})


@pytest.mark.parametrize("limit", ["steps", "failed_batches"])
def test_only_tokens_may_be_without_a_limit(limit: str) -> None:
    assert Limits(tokens=None).tokens is None
    with pytest.raises(InvalidConfiguration, match="not None"):
        Limits(**{limit: None})  # type: ignore[arg-type]
