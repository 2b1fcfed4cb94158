"""From numbers to metric families, at scrape time and in whatever thread the scrape has."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Final

import attrs
from prometheus_client.metrics_core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector
from prometheus_client.samples import Exemplar

from exeunt.actors.prices import NANO
from exeunt.actors.text import encodable
from exeunt.metrics import labels
from exeunt.metrics.instruments import ClosedLabel, Counter, Histogram
from exeunt.metrics.recorder import Recorder
from exeunt.metrics.sources import HostStatisticsLike

EXEMPLAR_LABEL: Final = "session_id"
# OpenMetrics allows an exemplar 128 characters, names and values of its labels together. Prometheus throws a
# whole scrape away for less.
_LONGEST_SESSION_ID: Final = 128 - len(EXEMPLAR_LABEL)


@attrs.frozen
class _Nothing:
    sessions: Mapping[str, int] = {}
    mailbox_depth: int = 0
    mailbox_refused: int = 0
    tool_calls_in_flight: int = 0
    pending_requests: int = 0
    subscriber_lag: int = 0
    admission: Mapping[str, int] = {}


_NOTHING: Final = _Nothing()


class HostCollector(Collector):
    """Yields the families of one host. Reads copies, so counting goes on meanwhile."""

    def __init__(self, recorder: Recorder, statistics: Callable[[], HostStatisticsLike | None]) -> None:
        self._recorder: Final = recorder
        self._statistics: Final = statistics
        self._states: Final = ClosedLabel("exeunt_sessions{state}", labels.SESSION_STATES, recorder.strict)
        self._decisions: Final = ClosedLabel(
            "exeunt_admission_total{decision}", labels.ADMISSION_DECISIONS, recorder.strict
        )

    def describe(self) -> Iterator[Metric]:
        """Yield all families, for their names. Does not ask for the statistics."""
        yield from self._counted()
        yield from self._read(_NOTHING)

    def collect(self) -> Iterator[Metric]:
        """Yield all families, but those that are read from statistics only if there are any."""
        yield from self._counted()
        statistics = self._statistics()
        if statistics is not None:
            yield from self._read(statistics)

    def _counted(self) -> Iterator[Metric]:
        recorder = self._recorder
        yield _counter(
            "exeunt_context_clears", "Clears of a context that were asked for.", "outcome", recorder.clears
        )
        yield _histogram(
            "exeunt_context_messages_cleared",
            "Messages that left a context with one clear, system and developer messages not counted.",
            (),
            [((), recorder.messages_cleared)],
        )
        yield _counter(
            "exeunt_context_clear_triggers",
            "Contexts that were cleared, by what brought it about.",
            "trigger",
            recorder.clear_triggers,
        )
        yield self._handoffs()
        yield _counter(
            "exeunt_permission_requests",
            "Requests for approval that have ended.",
            "end",
            recorder.permissions,
        )
        yield _counter(
            "exeunt_user_input_requests", "Questions to users that have ended.", "end", recorder.questions
        )
        yield _counter(
            "exeunt_credit_requests",
            "Requests for more credits that have ended.",
            "end",
            recorder.credit_requests,
        )
        yield _counter(
            "exeunt_model_switch_requests",
            "Requests to go on with another model that have ended.",
            "end",
            recorder.model_switches,
        )
        yield CounterMetricFamily(
            "exeunt_credits",
            "Credits that calls of models with a price have cost.",
            value=recorder.nano_credits / NANO,
        )
        yield _counter("exeunt_turn_terminations", "Turns that ended.", "reason", recorder.terminations)
        yield _histogram(
            "exeunt_turn_duration_seconds",
            "Time from the first wait of a turn to its end.",
            ("reason",),
            _shown(recorder.turn_seconds.histograms),
        )
        yield _histogram(
            "exeunt_model_call_duration_seconds",
            "Time that one attempt of a model call took.",
            ("provider", "status"),
            sorted(recorder.model_seconds.histograms.copy().items(), key=lambda item: item[0]),
        )
        yield _histogram(
            "exeunt_tool_duration_seconds",
            "Time from the start of a tool call to its outcome, waits for approval and slots included.",
            ("outcome",),
            _shown(recorder.tool_seconds.histograms),
        )
        yield self._tool_calls()
        yield _counter("exeunt_tokens", "Tokens that providers reported.", "direction", recorder.tokens)
        yield _counter(
            "exeunt_actor_restarts",
            "Session actors that crashed and were built anew.",
            "reason",
            recorder.restarts,
        )
        yield _counter(
            "exeunt_actor_failures",
            "Sessions that crashed too often, or whose log was lost.",
            "reason",
            recorder.failures,
        )
        yield _counter(
            "exeunt_dead_letters",
            "Mailbox entries that will never be handled.",
            "reason",
            recorder.dead_letters,
        )
        yield CounterMetricFamily(
            "exeunt_stale_results",
            "Results that came after their call had an outcome and were dropped.",
            value=recorder.stale_results,
        )
        yield CounterMetricFamily(
            "exeunt_media_removed",
            "Pictures and other media that left a context because it held too much.",
            value=recorder.media_removed,
        )
        yield _counter(
            "exeunt_messages_dropped",
            "Accepted messages that ended without a turn.",
            "cause",
            recorder.dropped,
        )
        yield _histogram(
            "exeunt_journal_commit_seconds",
            "Time that one commit of the journal took.",
            (),
            [((), recorder.commit_seconds)],
        )
        yield _histogram(
            "exeunt_journal_batch_events",
            "Events made durable by one commit.",
            (),
            [((), recorder.batch_events)],
        )

    def _tool_calls(self) -> Metric:
        family = CounterMetricFamily(
            "exeunt_tool_calls", "Tool calls that have their outcome.", labels=("tool", "outcome", "terminal")
        )
        calls = self._recorder.tool_calls
        for tool, row in sorted(calls.counts.copy().items()):
            for outcome, index in calls.outcomes.items():
                # Only what was counted: of the 18 series that a tool may have, most stay empty for ever.
                for terminal, count in (("false", row[index]), ("true", row[index + 1])):
                    if count:
                        family.add_metric((tool, outcome, terminal), count)
        return family

    def _handoffs(self) -> Metric:
        family = CounterMetricFamily(
            "exeunt_handoffs",
            "Steps of handoffs, between contexts or sessions.",
            labels=("action", "trigger"),
        )
        for pair, count in sorted(self._recorder.handoffs.counts.copy().items()):
            family.add_metric(pair, count)
        return family

    def _read(self, statistics: HostStatisticsLike) -> Iterator[Metric]:
        sessions = GaugeMetricFamily("exeunt_sessions", "Sessions in memory.", labels=("state",))
        for state, number in _close(self._states, statistics.sessions).items():
            sessions.add_metric((state,), number)
        yield sessions
        yield GaugeMetricFamily(
            "exeunt_mailbox_depth", "Accepted messages not yet in a context.", statistics.mailbox_depth
        )
        yield CounterMetricFamily(
            "exeunt_mailbox_refused", "Messages refused by a full mailbox.", statistics.mailbox_refused
        )
        yield GaugeMetricFamily(
            "exeunt_tool_calls_in_flight",
            "Tool calls without an outcome yet.",
            statistics.tool_calls_in_flight,
        )
        yield GaugeMetricFamily(
            "exeunt_pending_requests",
            "Approvals and questions to users that nobody has answered.",
            statistics.pending_requests,
        )
        yield CounterMetricFamily(
            "exeunt_subscriber_lag", "Times that a subscriber's buffer was full.", statistics.subscriber_lag
        )
        admission = CounterMetricFamily(
            "exeunt_admission", "Decisions about turns that wanted to run.", labels=("decision",)
        )
        for decision, number in _close(self._decisions, statistics.admission).items():
            admission.add_metric((decision,), number)
        yield admission


def _close(label: ClosedLabel, given: Mapping[str, int]) -> dict[str, int]:
    """Return the numbers with all values of the set, and the sum of any others as `other`."""
    numbers = dict.fromkeys(label.values, 0)
    for value, number in given.items():
        known = value if value in label.values else label.outside(value)
        numbers[known] = numbers.get(known, 0) + number
    return numbers


def _counter(name: str, help_text: str, label: str, counter: Counter) -> Metric:
    family = CounterMetricFamily(name, help_text, labels=(label,))
    exemplars = counter.exemplars.copy()
    for value, count in counter.counts.copy().items():
        if count or value != labels.OTHER:
            family.add_metric((value,), count, exemplar=_exemplar(exemplars.get(value)))
    return family


def _exemplar(last: tuple[str, float] | None) -> Exemplar | None:
    if last is None or len(last[0]) > _LONGEST_SESSION_ID:
        return None
    return Exemplar({EXEMPLAR_LABEL: encodable(last[0])}, 1.0, last[1])


def _shown(histograms: Mapping[str, Histogram]) -> list[tuple[tuple[str, ...], Histogram]]:
    return [
        ((value,), histogram)
        for value, histogram in histograms.items()
        if value != labels.OTHER or any(histogram.counts)
    ]


def _histogram(
    name: str,
    help_text: str,
    label_names: tuple[str, ...],
    histograms: Sequence[tuple[tuple[str, ...], Histogram]],
) -> Metric:
    family = HistogramMetricFamily(name, help_text, labels=label_names)
    for label_values, histogram in histograms:
        edges = (*map(repr, histogram.bounds), "+Inf")
        total = histogram.sum
        family.add_metric(
            label_values, list(zip(edges, accumulate(histogram.counts.copy()), strict=True)), total
        )
    return family
