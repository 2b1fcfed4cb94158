"""How often something may be restarted, and how long to wait before: pure bookkeeping.

No clock and no trio in here. The caller brings the time and the random numbers, so the same classes serve the
children of a `Supervisor` and the session actors, which have no task of their own while they are idle.
"""

from collections.abc import Callable

import attrs

from exeunt.actors.errors import InvalidConfiguration
from exeunt.supervisor.checks import number, whole_number


@attrs.frozen
class RestartIntensity:
    """At most `max_restarts` restarts within any `period`.

    The default forgives an accident or two and gives a crash loop up in seconds.
    """

    max_restarts: int = attrs.field(default=3, validator=whole_number(least=0))
    """Restarts that are tolerated; 0 gives up at the first failure."""

    period: float = attrs.field(default=5.0, validator=number(least=0, open_at_least=True))
    """Seconds that a restart is remembered. One that is exactly this old still counts."""


@attrs.define(eq=False)
class RestartLog:
    """The restarts of the last period. Holds at most `max_restarts + 1` numbers."""

    intensity: RestartIntensity
    _times: tuple[float, ...] = attrs.field(default=(), init=False)
    """Newest first."""

    def record(self, now: float) -> bool:
        """Note a restart at *now* (seconds of a monotonic clock); say whether it is tolerated.

        `False` means that the intensity is exceeded: do not restart, give up.
        """
        horizon = now - self.intensity.period
        limit = self.intensity.max_restarts
        # One more than the limit is enough to know that the limit is exceeded.
        self._times = (now, *(time for time in self._times[:limit] if time >= horizon))
        return len(self._times) <= limit

    @property
    def recent(self) -> int:
        """How many restarts the last `record` saw within the period, its own included: an attempt number."""
        return len(self._times)


@attrs.frozen
class Backoff:
    """Exponential waiting before a restart: `first`, then `factor` times more each time, up to `maximum`.

    The intensity counts by the clock, so delays of more than `period / max_restarts` can never exceed it: then the
    child is tried again for ever. The defaults wait 0.7 s in total before the default intensity gives up.
    """

    first: float = attrs.field(default=0.1, validator=number(least=0))
    """Seconds before the first restart. The default outlives a hiccup, and nobody notices it."""

    maximum: float = attrs.field(default=30.0, validator=number(least=0))
    """Seconds that no delay exceeds. The default lets a service that came back be found within half a minute."""

    factor: float = attrs.field(default=2.0, validator=number(least=1))

    jitter: float = attrs.field(default=0.2, validator=number(least=0, most=1))
    """The part of a delay that chance may take away, so that what failed together does not return together."""

    def __attrs_post_init__(self) -> None:
        if self.maximum < self.first:
            raise InvalidConfiguration(
                f"Backoff.maximum is {self.maximum!r}, less than first ({self.first!r}): give at least as much"
            )

    def delay(self, attempt: int, random: Callable[[], float]) -> float:
        """Return the seconds to wait before restart number *attempt* (the first is 1) of a row of failures.

        *random* gives a number in [0, 1), as `random.random` does; it is called exactly once. The result is within
        `(1 - jitter) * d` and `d`, where d is the delay without jitter.
        """
        try:
            delay = min(self.maximum, self.first * float(self.factor) ** (attempt - 1))
        except OverflowError:
            delay = self.maximum
        return delay * (1.0 - self.jitter * random())


@attrs.frozen
class RestartPolicy:
    """All that decides about a restart: how often, how late, and the source of chance."""

    intensity: RestartIntensity
    backoff: Backoff
    random: Callable[[], float]
    """Gives numbers in [0, 1)."""

    def delay(self, attempt: int) -> float:
        """Return the seconds to wait before restart number *attempt*."""
        return self.backoff.delay(attempt, self.random)
