"""From events to numbers."""

import pytest

from exeunt.actors.errors import InvalidConfiguration
from exeunt.actors.events import AssistantMessage, Event, SessionIdle
from exeunt.metrics import Metrics
from exeunt.metrics.recorder import (
    BATCH_BOUNDS,
    COMMIT_BOUNDS,
    MESSAGES_BOUNDS,
    MODEL_BOUNDS,
    TOOL_BOUNDS,
    TURN_BOUNDS,
)
from tests.metrics import event_makers as make


@pytest.fixture
def metrics() -> Metrics:
    return Metrics(strict=True)


def test_a_committed_clear_counts_with_the_messages_that_it_removed(metrics: Metrics) -> None:
    metrics.observe("s1", [make.cleared(4), make.cleared(9)])
    assert metrics.value("exeunt_context_clears_total", outcome="committed") == 2
    assert metrics.value("exeunt_context_messages_cleared_count") == 2
    assert metrics.value("exeunt_context_messages_cleared_sum") == 13
    assert metrics.value("exeunt_context_messages_cleared_bucket", le="2.0") == 0
    assert metrics.value("exeunt_context_messages_cleared_bucket", le="5.0") == 1
    assert metrics.value("exeunt_context_messages_cleared_bucket", le="10.0") == 2


@pytest.mark.parametrize("cause", ["no_tool_call", "empty_prompt", "remote", "already_staged", "loop"])
def test_a_refused_clear_counts_under_its_cause(metrics: Metrics, cause: str) -> None:
    metrics.observe("s1", [make.clear_refused(cause)])
    assert metrics.value("exeunt_context_clears_total", outcome=cause) == 1
    assert metrics.value("exeunt_context_clears_total", outcome="committed") == 0
    assert metrics.value("exeunt_context_messages_cleared_count") == 0


def test_a_clear_that_was_rolled_back_is_no_committed_one(metrics: Metrics) -> None:
    metrics.observe("s1", [make.clear_rolled_back()])
    assert metrics.value("exeunt_context_clears_total", outcome="rolled_back") == 1
    assert metrics.value("exeunt_context_clears_total", outcome="committed") == 0


@pytest.mark.parametrize(
    "reason",
    ["completed", "terminal_tool", "context_cleared", "aborted", "limit", "error", "interrupted"],
)
def test_the_end_of_a_turn_counts_under_its_reason_and_with_its_duration(
    metrics: Metrics, reason: str
) -> None:
    metrics.observe("s1", [make.turn_end(reason, 1.5)])
    assert metrics.value("exeunt_turn_terminations_total", reason=reason) == 1
    assert metrics.value("exeunt_turn_duration_seconds_sum", reason=reason) == 1.5
    assert metrics.value("exeunt_turn_duration_seconds_bucket", reason=reason, le="1.0") == 0
    assert metrics.value("exeunt_turn_duration_seconds_bucket", reason=reason, le="2.5") == 1


def test_a_model_call_counts_by_provider_and_status_and_with_its_tokens(metrics: Metrics) -> None:
    metrics.observe("s1", [make.model_failure(error_type="rate_limited", duration=3.0), make.usage()])
    name = "exeunt_model_call_duration_seconds"
    assert metrics.value(f"{name}_count", provider="openai", status="ok") == 1
    assert metrics.value(f"{name}_sum", provider="openai", status="ok") == 0.7
    assert metrics.value(f"{name}_sum", provider="openai", status="rate_limited") == 3.0
    assert metrics.value("exeunt_tokens_total", direction="input") == 120
    assert metrics.value("exeunt_tokens_total", direction="output") == 30


def test_tokens_never_count_backwards_whatever_a_provider_says(metrics: Metrics) -> None:
    metrics.observe("s1", [make.usage(input_tokens=10, output_tokens=10)])
    metrics.observe("s1", [make.usage(input_tokens=-4, output_tokens=0)])
    assert metrics.value("exeunt_tokens_total", direction="input") == 10
    assert metrics.value("exeunt_tokens_total", direction="output") == 10


@pytest.mark.parametrize(
    "outcome",
    ["success", "failure", "invalid", "denied", "rejected", "timeout", "cancelled", "interrupted"],
)
def test_a_tool_call_counts_by_tool_outcome_and_terminal(metrics: Metrics, outcome: str) -> None:
    metrics.register_tools(["search", "submit"])
    metrics.observe("s1", [make.tool_complete("search", outcome), make.tool_complete("search", outcome)])
    metrics.observe("s1", [make.tool_complete("submit", outcome, 0.3, terminal=True)])
    calls, seconds = "exeunt_tool_calls_total", "exeunt_tool_duration_seconds"
    assert metrics.value(calls, tool="search", outcome=outcome, terminal="false") == 2
    assert metrics.value(calls, tool="search", outcome=outcome, terminal="true") == 0
    assert metrics.value(calls, tool="submit", outcome=outcome, terminal="true") == 1
    assert metrics.value(f"{seconds}_count", outcome=outcome) == 3
    assert metrics.value(f"{seconds}_sum", outcome=outcome) == pytest.approx(0.7)


def test_credits_count_in_credits_and_never_backwards(metrics: Metrics) -> None:
    metrics.observe("s1", [make.paid(1_500_000_000), make.paid(250_000_000), make.paid(-1)])
    assert metrics.value("exeunt_credits_total") == 1.75


@pytest.mark.parametrize(
    ("kind", "action", "end"),
    [
        ("answered", "add", "add"),
        ("answered", "cancel", "cancel"),
        ("timeout", "cancel", "timeout"),
        ("unavailable", "cancel", "unavailable"),
    ],
)
def test_a_request_for_credits_counts_by_what_was_decided_or_by_why_nothing_was(
    metrics: Metrics, kind: str, action: str, end: str
) -> None:
    metrics.observe("s1", [make.credits_decided(kind, action)])
    assert metrics.value("exeunt_credit_requests_total", end=end) == 1
    other = "add" if end != "add" else "set"
    assert metrics.value("exeunt_credit_requests_total", end=other) == 0


def test_a_request_for_another_model_counts_by_its_answer_or_by_why_there_was_none(metrics: Metrics) -> None:
    metrics.observe("s1", [make.switch_decided(response="yes_always"), make.switch_decided("cancelled")])
    assert metrics.value("exeunt_model_switch_requests_total", end="yes_always") == 1
    assert metrics.value("exeunt_model_switch_requests_total", end="cancelled") == 1
    assert metrics.value("exeunt_model_switch_requests_total", end="no") == 0


def test_restarts_failures_and_dead_letters_count_by_reason(metrics: Metrics) -> None:
    metrics.observe("s1", [make.restarted(), make.restarted(), make.failed(), make.lost()])
    metrics.observe(
        "s1", [make.dead_letter(cause) for cause in ("crash", "session_failed", "closed", "closed")]
    )
    assert metrics.value("exeunt_actor_restarts_total", reason="crash") == 2
    assert metrics.value("exeunt_actor_failures_total", reason="crash") == 1
    assert metrics.value("exeunt_actor_failures_total", reason="taken_over") == 1
    assert metrics.value("exeunt_dead_letters_total", reason="crash") == 1
    assert metrics.value("exeunt_dead_letters_total", reason="session_failed") == 1
    assert metrics.value("exeunt_dead_letters_total", reason="closed") == 2


@pytest.mark.parametrize("cause", ["aborted", "blocked", "dead_letter", "session_failed", "deleted"])
def test_a_dropped_message_counts_under_its_cause(metrics: Metrics, cause: str) -> None:
    metrics.observe("s1", [make.dropped(cause)])
    assert metrics.value("exeunt_messages_dropped_total", cause=cause) == 1


def test_a_stale_result_counts(metrics: Metrics) -> None:
    metrics.observe("s1", [make.stale(), make.stale()])
    assert metrics.value("exeunt_stale_results_total") == 2


def test_media_that_leave_a_context_count(metrics: Metrics) -> None:
    metrics.observe("s1", [make.media_removed(3), make.media_removed(1)])
    assert metrics.value("exeunt_media_removed_total") == 4


def test_a_commit_counts_with_its_time_and_its_events(metrics: Metrics) -> None:
    metrics.observe_commit(0.004, 90)
    metrics.observe_commit(0.3, 1)
    assert metrics.value("exeunt_journal_commit_seconds_sum") == pytest.approx(0.304)
    assert metrics.value("exeunt_journal_commit_seconds_bucket", le="0.005") == 1
    assert metrics.value("exeunt_journal_batch_events_sum") == 91
    assert metrics.value("exeunt_journal_batch_events_bucket", le="1.0") == 1
    assert metrics.value("exeunt_journal_batch_events_bucket", le="100.0") == 2


def test_an_event_that_is_not_counted_changes_nothing(metrics: Metrics) -> None:
    before = metrics.exposition()
    metrics.observe("s1", [AssistantMessage(make.ORIGIN, 1, make.TIME, "hi", "t1", "a1")])
    metrics.observe("s1", [SessionIdle(make.ORIGIN, 1, make.TIME, 1)])
    metrics.observe("s1", [])
    assert metrics.exposition() == before


@pytest.mark.parametrize(
    "bounds", [MESSAGES_BOUNDS, TURN_BOUNDS, MODEL_BOUNDS, TOOL_BOUNDS, COMMIT_BOUNDS, BATCH_BOUNDS]
)
def test_each_histogram_has_at_most_twelve_buckets_in_rising_order(bounds: tuple[float, ...]) -> None:
    assert len(bounds) + 1 <= 12
    assert sorted(set(bounds)) == list(bounds)


def test_a_value_that_equals_a_bound_counts_at_that_bound(metrics: Metrics) -> None:
    metrics.observe("s1", [make.turn_end("completed", 2.5)])
    assert metrics.value("exeunt_turn_duration_seconds_bucket", reason="completed", le="2.5") == 1


def test_a_value_above_all_bounds_counts_in_the_last_bucket_only(metrics: Metrics) -> None:
    metrics.observe("s1", [make.turn_end("completed", 1e6)])
    assert metrics.value("exeunt_turn_duration_seconds_bucket", reason="completed", le="3600.0") == 0
    assert metrics.value("exeunt_turn_duration_seconds_bucket", reason="completed", le="+Inf") == 1


def test_two_hosts_of_one_process_do_not_add_up() -> None:
    first, second = Metrics(), Metrics()
    first.observe("s1", [make.turn_end()])
    assert first.value("exeunt_turn_terminations_total", reason="completed") == 1
    assert second.value("exeunt_turn_terminations_total", reason="completed") == 0


def test_two_hosts_cannot_share_a_registry() -> None:
    metrics = Metrics()
    before = metrics.exposition()
    with pytest.raises(InvalidConfiguration, match="registry of its own"):
        Metrics(metrics.registry)
    assert metrics.exposition() == before


def test_the_value_of_a_metric_that_does_not_exist_is_an_error_not_zero(metrics: Metrics) -> None:
    with pytest.raises(InvalidConfiguration, match="exeunt_turns_total"):
        metrics.value("exeunt_turns_total")


def test_each_counted_class_is_an_event(metrics: Metrics) -> None:
    assert len(metrics.counted_events) == 20
    assert all(issubclass(kind, Event) for kind in metrics.counted_events)
