"""The metrics of one host: what the recorder counted and the host's statistics, as Prometheus reads them."""

from collections.abc import Collection
from typing import Final, final

from prometheus_client.exposition import choose_encoder, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import CollectorRegistry

from exeunt.actors.errors import InvalidConfiguration
from exeunt.metrics.collector import HostCollector
from exeunt.metrics.labels import DEFAULT_TOOL_NAME_CAP
from exeunt.metrics.recorder import Recorder
from exeunt.metrics.sources import HostStatisticsLike, StatisticsCallable, StatisticsSource


@final
class Metrics(Recorder):
    """The metrics of one host.

    Give one object to one host. Without *registry* it has a registry of its own, so that two hosts of a
    process, or two tests, do not add up. *tool_name_cap* is the number of tool names that may have series;
    calls of all others count as `other`.

    *strict* is for tests: a label value outside its closed set raises `InvariantViolation` out of `observe`
    (or out of a scrape) instead of counting as `other`.

    Raises `InvalidConfiguration` if the cap is no number of names, or *registry* has metrics of these names.
    """

    def __init__(
        self,
        registry: CollectorRegistry | None = None,
        *,
        tool_name_cap: int = DEFAULT_TOOL_NAME_CAP,
        strict: bool = False,
    ) -> None:
        super().__init__(tool_name_cap=tool_name_cap, strict=strict)
        self.registry: Final = CollectorRegistry() if registry is None else registry
        """Where the metrics are registered, for exporters of `prometheus_client` and metrics of your own."""
        self._source: StatisticsSource[HostStatisticsLike] | None = None
        self._collector: Final = HostCollector(self, self._read_statistics)
        try:
            self.registry.register(self._collector)
        except ValueError as error:
            raise InvalidConfiguration(
                "the registry has the metrics of another host: give each host a registry of its own"
            ) from error

    def attach(self, statistics: StatisticsCallable, /) -> None:
        """Read gauges from *statistics* at each scrape, until `detach`.

        Called inside a trio run, it makes every later call happen in that run's thread, so *statistics* may
        walk what only the loop changes; it must not wait. While the loop does not answer, has ended, or the
        callable raises, scrapes go without these metrics.

        Raises `InvalidConfiguration` if a host is attached already.
        """
        if self._source is not None:
            raise InvalidConfiguration(
                "these metrics belong to another host: give each host metrics of its own"
            )
        self._source = StatisticsSource.here(statistics)

    def detach(self) -> None:
        """Stop reading gauges. What was counted stays. Does nothing if no host is attached."""
        self._source = None

    def exposition(self) -> bytes:
        """Return all metrics in Prometheus' text format 0.0.4.

        Takes some ms at a thousand series: call it in a worker thread where sessions wait for the loop.
        """
        return generate_latest(self.registry)

    def render(self, accept: str = "", names: Collection[str] = ()) -> tuple[bytes, str]:
        """Return the metrics in the format that *accept* (an HTTP header) asks for, and its content type.

        Only OpenMetrics carries exemplars. A header that makes no sense gets the text format 0.0.4, as one
        that asks for nothing does. *names* restricts the answer to samples of these names. See `exposition`
        for the time that it takes.
        """
        try:
            encode, content_type = choose_encoder(accept)
        except TypeError:
            # A version of letters cannot be compared with numbers.
            encode, content_type = choose_encoder("")
        # A restricted registry is a registry in all but its class.
        registry = self.registry.restricted_registry(names) if names else self.registry
        return encode(registry), content_type

    def value(self, name: str, /, **labels: str) -> float:
        """Return the value of the sample *name* with exactly these labels, for tests; 0 if none was counted.

        *name* is a sample's, such as `exeunt_tool_calls_total` or `exeunt_turn_duration_seconds_count`.
        Raises `InvalidConfiguration` if no metric has such samples.
        """
        known = self.registry.get_sample_value(name, labels)
        if known is not None:
            return known
        if any(name in _sample_names(family) for family in self._collector.describe()):
            return 0.0
        raise InvalidConfiguration(f"no metric of Exeunt has samples named {name!r}")

    def _read_statistics(self) -> HostStatisticsLike | None:
        return None if self._source is None else self._source.read()


def _sample_names(family: Metric) -> tuple[str, ...]:
    match family.type:
        case "counter":
            return (f"{family.name}_total",)
        case "histogram":
            return tuple(f"{family.name}_{part}" for part in ("bucket", "count", "sum"))
        case _:
            return (family.name,)
