"""A server's numbers, as Prometheus reads them beside those of its host."""

from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from typing import Final

import attrs
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector, CollectorRegistry

from exeunt.actors.errors import InvalidConfiguration
from exeunt.metrics.sources import StatisticsSource
from exeunt.wire.statistics import CLOSED_BECAUSE, WireStatistics

NOTHING: Final = WireStatistics()


class WireCollector(Collector):
    """Yields the families of one server, read from its statistics in the thread of its loop."""

    def __init__(self, statistics: Callable[[], WireStatistics]) -> None:
        self._source: Final[StatisticsSource[WireStatistics]] = StatisticsSource.here(statistics)

    def describe(self) -> Iterator[Metric]:
        """Yield all families, for their names. Does not ask for the statistics."""
        yield from families(NOTHING)

    def collect(self) -> Iterator[Metric]:
        """Yield all families; none while the loop does not answer."""
        statistics = self._source.read()
        if statistics is not None:
            yield from families(statistics)


@contextmanager
def scraped(registry: CollectorRegistry, statistics: Callable[[], WireStatistics]) -> Generator[None]:
    """Have the numbers of a server among those of *registry*, in the body.

    Raises `InvalidConfiguration` when those of another server are there.
    """
    collector = WireCollector(statistics)
    try:
        registry.register(collector)
    except ValueError as error:
        raise InvalidConfiguration(
            "the host's metrics have those of another server: a host has one server at a time"
        ) from error
    try:
        yield
    finally:
        registry.unregister(collector)


def families(statistics: WireStatistics) -> Iterator[Metric]:
    """Yield what *statistics* says."""
    yield GaugeMetricFamily("exeunt_wire_connections", "Clients that are connected.", statistics.connections)
    yield _counter(
        "exeunt_wire_connection_attempts",
        "Connections that clients have opened.",
        "decision",
        {"accepted": statistics.accepted, "refused": statistics.refused},
    )
    yield _counter(
        "exeunt_wire_connections_closed",
        "Connections that the server has closed.",
        "reason",
        {reason: statistics.closed.get(reason, 0) for reason in CLOSED_BECAUSE},
    )
    yield GaugeMetricFamily(
        "exeunt_wire_sessions", "Sessions that clients have in memory.", statistics.sessions
    )
    yield CounterMetricFamily(
        "exeunt_wire_events_dropped", "Events that slow clients did without.", value=statistics.events_dropped
    )
    requests = CounterMetricFamily(
        "exeunt_wire_requests", "Requests of clients that have ended.", labels=("method", "outcome")
    )
    # Only what was counted: of some hundred methods clients call a few.
    for (method, outcome), number in sorted(statistics.requests.items()):
        requests.add_metric((method, outcome), number)
    yield requests
    yield _counter(
        "exeunt_wire_files",
        "What has become of the files of sessions.",
        "action",
        attrs.asdict(statistics.files),
    )


def _counter(name: str, help_text: str, label: str, numbers: Mapping[str, int]) -> Metric:
    family = CounterMetricFamily(name, help_text, labels=(label,))
    for value, number in numbers.items():
        family.add_metric((value,), number)
    return family
