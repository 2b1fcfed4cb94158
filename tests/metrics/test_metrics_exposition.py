"""What a scrape reads: formats, exemplars, and the host's statistics."""

import logging
import threading
from collections.abc import Iterable

import pytest
import trio
from prometheus_client.metrics_core import Metric
from prometheus_client.samples import Exemplar, Sample, Timestamp

from exeunt.actors.errors import InvalidConfiguration, InvariantViolation
from exeunt.metrics import Metrics, sources
from tests.metrics import event_makers as make
from tests.metrics.event_makers import Statistics
from tests.metrics.expositions import parse_openmetrics, parse_text

OPENMETRICS = "application/openmetrics-text; version=1.0.0"

# The table that the documentation promises: family, type, labels.
TABLE = {
    ("exeunt_context_clears", "counter", ("outcome",)),
    ("exeunt_context_clear_triggers", "counter", ("trigger",)),
    ("exeunt_handoffs", "counter", ("action", "trigger")),
    ("exeunt_permission_requests", "counter", ("end",)),
    ("exeunt_user_input_requests", "counter", ("end",)),
    ("exeunt_credits", "counter", ()),
    ("exeunt_credit_requests", "counter", ("end",)),
    ("exeunt_model_switch_requests", "counter", ("end",)),
    ("exeunt_pending_requests", "gauge", ()),
    ("exeunt_context_messages_cleared", "histogram", ()),
    ("exeunt_turn_terminations", "counter", ("reason",)),
    ("exeunt_turn_duration_seconds", "histogram", ("reason",)),
    ("exeunt_model_call_duration_seconds", "histogram", ("provider", "status")),
    ("exeunt_tool_duration_seconds", "histogram", ("outcome",)),
    ("exeunt_tool_calls", "counter", ("tool", "outcome", "terminal")),
    ("exeunt_tool_calls_in_flight", "gauge", ()),
    ("exeunt_sessions", "gauge", ("state",)),
    ("exeunt_mailbox_depth", "gauge", ()),
    ("exeunt_mailbox_refused", "counter", ()),
    ("exeunt_actor_restarts", "counter", ("reason",)),
    ("exeunt_actor_failures", "counter", ("reason",)),
    ("exeunt_dead_letters", "counter", ("reason",)),
    ("exeunt_stale_results", "counter", ()),
    ("exeunt_media_removed", "counter", ()),
    ("exeunt_messages_dropped", "counter", ("cause",)),
    ("exeunt_subscriber_lag", "counter", ()),
    ("exeunt_admission", "counter", ("decision",)),
    ("exeunt_tokens", "counter", ("direction",)),
    ("exeunt_journal_commit_seconds", "histogram", ()),
    ("exeunt_journal_batch_events", "histogram", ()),
}


@pytest.fixture
def metrics() -> Metrics:
    metrics = Metrics(strict=True)
    metrics.register_tools(["search"])
    metrics.observe(
        "s1", [make.turn_end(), make.tool_complete(), make.usage(), make.cleared(), make.handoff()]
    )
    metrics.attach(Statistics)
    return metrics


def shape(family: Metric) -> tuple[str, str, tuple[str, ...]]:
    labels = {tuple(name for name in sample.labels if name != "le") for sample in family.samples}
    assert len(labels) == 1
    return family.name, family.type, labels.pop()


def openmetrics(metrics: Metrics) -> dict[str, Metric]:
    return {family.name: family for family in parse_openmetrics(metrics.render(OPENMETRICS)[0])}


def sample_of(family: Metric, **labels: str) -> Sample:
    found = [sample for sample in family.samples if sample.labels == labels]
    assert len(found) == 1
    return found[0]


def test_the_metrics_are_those_of_the_table_and_no_others(metrics: Metrics) -> None:
    assert {shape(family) for family in metrics.registry.collect()} == TABLE


def test_each_metric_says_what_it_counts(metrics: Metrics) -> None:
    assert all(family.documentation.endswith(".") for family in metrics.registry.collect())


def test_both_text_formats_carry_the_same_numbers(metrics: Metrics) -> None:
    def numbers(families: Iterable[Metric]) -> set[tuple[str, frozenset[tuple[str, str]], float]]:
        return {
            (sample.name, frozenset(sample.labels.items()), sample.value)
            for family in families
            for sample in family.samples
        }

    plain = numbers(parse_text(metrics.exposition()))
    assert plain == numbers(openmetrics(metrics).values())
    assert ("exeunt_turn_terminations_total", frozenset({("reason", "completed")}), 1.0) in plain


def test_all_values_of_a_closed_set_are_there_before_they_are_counted() -> None:
    families = {family.name: family for family in Metrics().registry.collect()}
    reasons = [sample.labels["reason"] for sample in families["exeunt_turn_terminations"].samples]
    assert reasons == [
        "completed",
        "terminal_tool",
        "context_cleared",
        "aborted",
        "limit",
        "error",
        "interrupted",
    ]
    outcomes = [sample.labels["outcome"] for sample in families["exeunt_context_clears"].samples]
    assert outcomes == [
        "committed",
        "rolled_back",
        "no_tool_call",
        "empty_prompt",
        "remote",
        "already_staged",
        "loop",
    ]


def test_an_exemplar_names_the_last_session_of_each_clear_and_termination(metrics: Metrics) -> None:
    metrics.observe("s2", [make.turn_end("aborted", time=20.25), make.cleared(time=21.0)])
    metrics.observe("s3", [make.turn_end("aborted", time=30.5)])
    families = openmetrics(metrics)
    ends, clears = families["exeunt_turn_terminations"], families["exeunt_context_clears"]
    assert sample_of(ends, reason="aborted").exemplar == Exemplar(
        {"session_id": "s3"}, 1.0, Timestamp(30, 500_000_000)
    )
    assert sample_of(ends, reason="completed").exemplar == Exemplar(
        {"session_id": "s1"}, 1.0, Timestamp(1_700_000_000, 500_000_000)
    )
    assert sample_of(ends, reason="limit").exemplar is None
    assert sample_of(clears, outcome="committed").exemplar == Exemplar(
        {"session_id": "s2"}, 1.0, Timestamp(21, 0)
    )


@pytest.mark.parametrize(("length", "shown"), [(118, True), (119, False)])
def test_a_session_id_too_long_for_an_exemplar_is_left_out(
    metrics: Metrics, length: int, shown: bool
) -> None:
    metrics.observe("x" * length, [make.turn_end("limit")])
    exemplar = sample_of(openmetrics(metrics)["exeunt_turn_terminations"], reason="limit").exemplar
    assert (exemplar is not None) == shown


@pytest.mark.parametrize(
    ("accept", "content_type"),
    [
        ("", "text/plain; version=0.0.4; charset=utf-8"),
        ("text/html", "text/plain; version=0.0.4; charset=utf-8"),
        ("application/openmetrics-text; version=letters", "text/plain; version=0.0.4; charset=utf-8"),
        (
            "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5",
            "application/openmetrics-text; version=1.0.0; charset=utf-8; escaping=underscores",
        ),
    ],
)
def test_the_format_is_what_the_client_accepts(metrics: Metrics, accept: str, content_type: str) -> None:
    assert metrics.render(accept)[1] == content_type


def test_a_scrape_may_ask_for_some_samples_only(metrics: Metrics) -> None:
    body, _ = metrics.render(names=["exeunt_mailbox_depth", "nonsense"])
    assert [family.name for family in parse_text(body)] == ["exeunt_mailbox_depth"]


def test_gauges_are_read_when_somebody_asks(metrics: Metrics) -> None:
    assert metrics.value("exeunt_sessions", state="live") == 3
    assert metrics.value("exeunt_sessions", state="failed") == 1
    assert metrics.value("exeunt_sessions", state="stopping") == 0
    assert metrics.value("exeunt_mailbox_depth") == 7
    assert metrics.value("exeunt_mailbox_refused_total") == 2
    assert metrics.value("exeunt_tool_calls_in_flight") == 4
    assert metrics.value("exeunt_subscriber_lag_total") == 5
    assert metrics.value("exeunt_admission_total", decision="queued") == 6


def test_without_a_host_there_are_counters_but_no_gauges(metrics: Metrics) -> None:
    metrics.detach()
    families = {family.name: family for family in metrics.registry.collect()}
    assert "exeunt_mailbox_depth" not in families
    assert "exeunt_turn_terminations" in families
    metrics.attach(Statistics)
    assert metrics.value("exeunt_mailbox_depth") == 7


def test_metrics_belong_to_one_host_at_a_time(metrics: Metrics) -> None:
    with pytest.raises(InvalidConfiguration, match="another host"):
        metrics.attach(lambda: Statistics(mailbox_depth=1))
    assert metrics.value("exeunt_mailbox_depth") == 7


def test_a_state_outside_its_set_is_other_or_refused_where_metrics_are_strict(metrics: Metrics) -> None:
    def statistics() -> Statistics:
        return Statistics(sessions={"live": 1, "dreaming": 2, "lost": 3})

    metrics.detach()
    metrics.attach(statistics)
    with pytest.raises(InvariantViolation, match="dreaming"):
        metrics.exposition()
    lenient = Metrics()
    lenient.attach(statistics)
    assert lenient.value("exeunt_sessions", state="other") == 5
    assert lenient.value("exeunt_sessions", state="failed") == 0


def test_statistics_that_raise_cost_a_scrape_its_gauges_only(caplog: pytest.LogCaptureFixture) -> None:
    def broken() -> Statistics:
        raise RuntimeError("no")

    metrics = Metrics()
    metrics.attach(broken)
    metrics.observe("s1", [make.turn_end()])
    assert metrics.value("exeunt_turn_terminations_total", reason="completed") == 1
    assert metrics.value("exeunt_mailbox_depth") == 0
    assert "the statistics raised" in caplog.text


async def test_statistics_are_read_in_the_thread_of_the_loop() -> None:
    threads: list[int] = []

    def statistics() -> Statistics:
        threads.append(threading.get_ident())
        return Statistics()

    metrics = Metrics()
    metrics.attach(statistics)
    body = await trio.to_thread.run_sync(metrics.exposition)
    assert b"exeunt_mailbox_depth 7.0" in body
    assert metrics.value("exeunt_mailbox_depth") == 7
    assert set(threads) == {threading.get_ident()}


def test_a_loop_that_does_not_answer_costs_a_scrape_its_gauges_only(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(sources, "ANSWER_WAIT", 0.01)
    metrics = Metrics()
    bodies: list[bytes] = []
    scrape = threading.Thread(target=lambda: bodies.append(metrics.exposition()))

    def block_the_loop() -> None:
        scrape.start()
        scrape.join()

    async def host() -> None:
        await trio.lowlevel.checkpoint()
        metrics.attach(Statistics)
        block_the_loop()

    with caplog.at_level(logging.WARNING):
        trio.run(host)
    assert b"exeunt_mailbox_depth" not in bodies[0]
    assert b"exeunt_turn_terminations_total" in bodies[0]
    assert "the loop did not answer" in caplog.text


def test_a_loop_that_has_ended_costs_a_scrape_its_gauges_only() -> None:
    metrics = Metrics()

    async def host() -> None:
        await trio.lowlevel.checkpoint()
        metrics.attach(Statistics)

    loop = threading.Thread(target=trio.run, args=(host,))
    loop.start()
    loop.join()
    assert b"exeunt_mailbox_depth" not in metrics.exposition()
    assert metrics.value("exeunt_stale_results_total") == 0
