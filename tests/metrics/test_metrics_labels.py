"""Labels: closed sets, capped names, and no ids."""

from collections.abc import Callable
from typing import Any, cast

import pytest

from exeunt.actors.errors import InvalidConfiguration, InvariantViolation
from exeunt.actors.events import Event
from exeunt.actors.models import ModelErrorKind
from exeunt.metrics import Metrics
from exeunt.metrics.labels import PROVIDER_CAP
from tests.metrics import event_makers as make

OUTSIDE: list[tuple[str, Event, dict[str, str]]] = [
    ("exeunt_context_clears_total", make.clear_refused("mood"), {"outcome": "other"}),
    ("exeunt_turn_terminations_total", make.turn_end("bored"), {"reason": "other"}),
    ("exeunt_turn_duration_seconds_count", make.turn_end("bored"), {"reason": "other"}),
    ("exeunt_tool_duration_seconds_count", make.tool_complete(outcome="lost"), {"outcome": "other"}),
    (
        "exeunt_tool_calls_total",
        make.tool_complete(outcome="lost"),
        {"tool": "search", "outcome": "other", "terminal": "false"},
    ),
    (
        "exeunt_model_call_duration_seconds_count",
        make.model_failure(error_type="gremlins"),
        {"provider": "openai", "status": "other"},
    ),
    ("exeunt_dead_letters_total", make.dead_letter("mood"), {"reason": "other"}),
    ("exeunt_actor_failures_total", make.lost("mood"), {"reason": "other"}),
    ("exeunt_messages_dropped_total", make.dropped("mood"), {"cause": "other"}),
    ("exeunt_context_clear_triggers_total", make.cleared(trigger="mood:blue"), {"trigger": "other"}),
    ("exeunt_handoffs_total", make.handoff("lost"), {"action": "other", "trigger": "tokens"}),
    ("exeunt_handoffs_total", make.handoff(trigger="mood"), {"action": "reminded", "trigger": "other"}),
    ("exeunt_permission_requests_total", make.permission_ended("mood"), {"end": "other"}),
    ("exeunt_user_input_requests_total", make.question_ended("mood"), {"end": "other"}),
    ("exeunt_credit_requests_total", make.credits_decided("mood"), {"end": "other"}),
    ("exeunt_model_switch_requests_total", make.switch_decided(response="mood"), {"end": "other"}),
]


@pytest.mark.parametrize(("name", "event", "labels"), OUTSIDE, ids=lambda value: str(value)[:40])
def test_a_value_outside_its_set_counts_as_other(name: str, event: Event, labels: dict[str, str]) -> None:
    metrics = Metrics()
    metrics.register_tools(["search"])
    assert 'other"' not in metrics.exposition().decode()
    metrics.observe("s1", [event])
    assert metrics.value(name, **labels) == 1


@pytest.mark.parametrize(("name", "event", "labels"), OUTSIDE, ids=lambda value: str(value)[:40])
def test_a_value_outside_its_set_is_refused_where_metrics_are_strict(
    name: str, event: Event, labels: dict[str, str]
) -> None:
    metrics = Metrics(strict=True)
    before = metrics.exposition()
    with pytest.raises(InvariantViolation, match="is none of"):
        metrics.observe("s1", [event])
    assert metrics.exposition() == before
    assert metrics.value(name, **labels) == 0


@pytest.mark.parametrize("kind", list(ModelErrorKind))
def test_each_kind_of_model_error_is_a_status(kind: ModelErrorKind) -> None:
    metrics = Metrics(strict=True)
    metrics.observe("s1", [make.model_failure(error_type=kind)])
    name = "exeunt_model_call_duration_seconds_count"
    assert metrics.value(name, provider="openai", status=kind.value) == 1


def series_of(metrics: Metrics, name: str, label: str) -> set[str]:
    return {
        sample.labels[label]
        for family in metrics.registry.collect()
        for sample in family.samples
        if sample.name == name
    }


def test_tool_names_that_a_model_made_up_make_no_series() -> None:
    metrics = Metrics()
    metrics.register_tools(["search"])
    for number in range(10_000):
        metrics.observe("s1", [make.tool_complete(f"made_up_{number}", "failure")])
    metrics.observe("s1", [make.tool_complete("search")])
    assert series_of(metrics, "exeunt_tool_calls_total", "tool") == {"search", "other"}
    assert (
        metrics.value("exeunt_tool_calls_total", tool="other", outcome="failure", terminal="false") == 10_000
    )


def test_registered_tool_names_have_series_until_the_cap() -> None:
    metrics = Metrics(tool_name_cap=3)
    for number in range(10):
        metrics.register_tools([f"tool_{number}", "tool_0"])
    metrics.observe("s1", [make.tool_complete(f"tool_{number}") for number in range(10)])
    assert series_of(metrics, "exeunt_tool_calls_total", "tool") == {"tool_0", "tool_1", "tool_2", "other"}
    assert metrics.value("exeunt_tool_calls_total", tool="other", outcome="success", terminal="false") == 7


def test_the_cap_of_tool_names_is_200_by_default_and_may_be_none_at_all() -> None:
    names = [f"tool_{number}" for number in range(10_000)]
    for metrics, series in ((Metrics(), 201), (Metrics(tool_name_cap=0), 1)):
        metrics.register_tools(names)
        metrics.observe("s1", [make.tool_complete(name) for name in names])
        assert len(series_of(metrics, "exeunt_tool_calls_total", "tool")) == series


@pytest.mark.parametrize("cap", [-1, True, 2.5, "200", None])
def test_a_cap_that_is_no_number_of_names_is_refused(cap: object) -> None:
    make_metrics: Callable[..., Metrics] = cast(Any, Metrics)
    with pytest.raises(InvalidConfiguration, match="tool_name_cap"):
        make_metrics(tool_name_cap=cap)


def test_providers_have_series_until_the_cap() -> None:
    metrics = Metrics()
    metrics.observe("s1", [make.usage(f"provider_{number}") for number in range(PROVIDER_CAP + 5)])
    metrics.observe("s1", [make.usage("provider_0")])
    name = "exeunt_model_call_duration_seconds_count"
    assert len(series_of(metrics, name, "provider")) == PROVIDER_CAP + 1
    assert metrics.value(name, provider="provider_0", status="ok") == 2
    assert metrics.value(name, provider="other", status="ok") == 5


def test_names_that_cannot_be_encoded_do_not_break_a_scrape() -> None:
    metrics = Metrics()
    metrics.register_tools(["half\ud83d"])
    metrics.observe("s\ud83d", [make.tool_complete("half\ud83d"), make.usage("half\ud83d"), make.turn_end()])
    metrics.observe("s\ud83d", [make.usage("half\ud83d")])
    assert metrics.value("exeunt_tool_calls_total", tool="other", outcome="success", terminal="false") == 1
    name = "exeunt_model_call_duration_seconds_count"
    assert metrics.value(name, provider="half\ufffd", status="ok") == 2
    assert metrics.exposition()
    assert metrics.render("application/openmetrics-text; version=1.0.0")[0]


def test_ids_of_sessions_make_no_series() -> None:
    metrics = Metrics(strict=True)
    metrics.register_tools(["search"])
    everything: list[Event] = [
        make.turn_end(),
        make.tool_complete(),
        make.usage(),
        make.model_failure(),
        make.cleared(),
        make.clear_rolled_back(),
        make.clear_refused("loop"),
        make.dead_letter("crash"),
        make.dropped("aborted"),
        make.restarted(),
        make.failed(),
        make.lost(),
        make.stale(),
        make.media_removed(1),
        make.handoff(),
        make.permission_ended(),
        make.question_ended(),
        make.paid(),
        make.credits_decided(),
        make.switch_decided(),
    ]
    assert {type(event) for event in everything} == set(metrics.counted_events)

    def series() -> int:
        return sum(len(family.samples) for family in metrics.registry.collect())

    metrics.observe("session-0", everything)
    of_one = series()
    for number in range(1, 200):
        metrics.observe(f"session-{number}", everything)
    assert series() == of_one
    assert "session-" not in metrics.exposition().decode()
