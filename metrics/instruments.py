"""What the hot path touches: a counter with a closed label, and a histogram. Plain ints and lists.

`prometheus_client` has both, at six times the cost: it locks each value and searches the buckets one by one.
Here each instrument has one writer, and a scrape in another thread reads copies that the interpreter makes in
one step. It may see a histogram's sum one observation beside its counts; both are right at the next scrape.
"""

from bisect import bisect_left
from collections.abc import Iterable

import attrs

from exeunt.actors.errors import InvariantViolation
from exeunt.actors.text import encodable
from exeunt.metrics.labels import OTHER


@attrs.define(eq=False)
class ClosedLabel:
    """A label and the only values that it may have."""

    name: str
    """The metric and the label, for messages: `exeunt_context_clears_total{outcome}`."""
    values: tuple[str, ...]
    strict: bool = False

    def outside(self, value: str) -> str:
        """Return the value to count instead of *value*, which is not in the set.

        Raises `InvariantViolation` if strict: an event has a value that the metrics do not know.
        """
        if self.strict:
            raise InvariantViolation(f"{self.name}: {value!r} is none of {', '.join(self.values)}")
        return OTHER


@attrs.define(eq=False)
class Counter:
    """A counter for each value of a closed label."""

    label: ClosedLabel
    counts: dict[str, int] = attrs.field(init=False)
    """All values from the start: a series that begins with its first event has no rate for that event."""
    exemplars: dict[str, tuple[str, float]] = attrs.field(init=False, factory=dict[str, tuple[str, float]])
    """Session id and time, in seconds since the epoch, of the last event of each value."""

    def __attrs_post_init__(self) -> None:
        self.counts = dict.fromkeys((*self.label.values, OTHER), 0)

    def add(self, value: str, amount: int = 1) -> None:
        """Count *amount* more of *value*."""
        if value not in self.counts:
            value = self.label.outside(value)
        self.counts[value] += amount

    def add_one_of(self, value: str, session_id: str, time: float) -> None:
        """Count one more of *value*, and remember whose it was."""
        if value not in self.counts:
            value = self.label.outside(value)
        self.counts[value] += 1
        self.exemplars[value] = (session_id, time)


@attrs.define(eq=False)
class PairCounter:
    """A counter for each pair of values of two closed labels. Only pairs that were counted have a series."""

    first: ClosedLabel
    second: ClosedLabel
    counts: dict[tuple[str, str], int] = attrs.field(init=False, factory=dict[tuple[str, str], int])

    def add(self, first: str, second: str) -> None:
        """Count one more of a pair."""
        pair = (
            first if first in self.first.values else self.first.outside(first),
            second if second in self.second.values else self.second.outside(second),
        )
        self.counts[pair] = self.counts.get(pair, 0) + 1


@attrs.define(eq=False)
class Histogram:
    """How often values fell between bounds. A value equal to a bound counts below it, as Prometheus wants."""

    bounds: tuple[float, ...]
    counts: list[int] = attrs.field(init=False)
    """Not cumulative; the last one counts what is above all bounds."""
    sum: float = attrs.field(init=False, default=0.0)

    def __attrs_post_init__(self) -> None:
        self.counts = [0] * (len(self.bounds) + 1)

    def observe(self, value: float) -> None:
        """Count *value*, which is not negative."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.sum += value


@attrs.define(eq=False)
class HistogramSet:
    """A histogram for each value of a closed label."""

    label: ClosedLabel
    bounds: tuple[float, ...]
    histograms: dict[str, Histogram] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.histograms = {value: Histogram(self.bounds) for value in (*self.label.values, OTHER)}

    def observe(self, label_value: str, value: float) -> None:
        """Count *value* in the histogram of *label_value*."""
        histogram = self.histograms.get(label_value) or self.histograms[self.label.outside(label_value)]
        histogram.counts[bisect_left(histogram.bounds, value)] += 1
        histogram.sum += value


@attrs.define(eq=False)
class ToolCalls:
    """Calls by tool, outcome and whether the tool is terminal. Only registered names make series."""

    label: ClosedLabel
    cap: int
    counts: dict[str, list[int]] = attrs.field(init=False)
    """Two counts for each outcome in the order of `outcomes`: ordinary, terminal."""
    outcomes: dict[str, int] = attrs.field(init=False)
    """Outcome to the position of its first count."""

    def __attrs_post_init__(self) -> None:
        self.outcomes = {value: 2 * index for index, value in enumerate((*self.label.values, OTHER))}
        self.counts = {OTHER: [0] * (2 * len(self.outcomes))}

    def register(self, names: Iterable[str]) -> None:
        """Give each of *names* series of its own, until the cap is reached; none to one that is no UTF-8."""
        for name in names:
            # The row of OTHER does not count towards the cap.
            if name not in self.counts and len(self.counts) <= self.cap and encodable(name) == name:
                self.counts[name] = [0] * (2 * len(self.outcomes))

    def add(self, tool: str, outcome: str, terminal: bool) -> None:
        """Count one more call."""
        row = self.counts.get(tool) or self.counts[OTHER]
        if outcome not in self.outcomes:
            outcome = self.label.outside(outcome)
        row[self.outcomes[outcome] + terminal] += 1


@attrs.define(eq=False)
class ModelCalls:
    """How long model calls took, by provider and status. The first providers make series, until the cap."""

    label: ClosedLabel
    cap: int
    bounds: tuple[float, ...]
    histograms: dict[tuple[str, str], Histogram] = attrs.field(
        init=False, factory=dict[tuple[str, str], Histogram]
    )
    providers: set[str] = attrs.field(init=False, factory=set[str])

    def observe(self, provider: str, status: str, seconds: float) -> None:
        """Count one more call."""
        histogram = self.histograms.get((provider, status)) or self._find(provider, status)
        histogram.counts[bisect_left(histogram.bounds, seconds)] += 1
        histogram.sum += seconds

    def _find(self, provider: str, status: str) -> Histogram:
        if status not in self.label.values:
            status = self.label.outside(status)
        provider = encodable(provider)
        if provider not in self.providers:
            if len(self.providers) < self.cap:
                self.providers.add(provider)
            else:
                provider = OTHER
        return self.histograms.setdefault((provider, status), Histogram(self.bounds))
