"""The host's clocks."""

import time
from collections.abc import Callable

import trio
from trio.testing import MockClock


class HostClock:
    """Durations by trio's clock; the time of day by the system's, or in virtual time by trio's as well.

    So the events of a test in virtual time lie as far apart as the time that passed in it.
    """

    __slots__ = ("now", "wall")

    def __init__(self) -> None:
        # The clock's own method: trio.current_time() looks the clock up at each call, 0.6 us more.
        self.now: Callable[[], float] = trio.lowlevel.current_clock().current_time
        self.wall: Callable[[], float] = time.time
        if isinstance(trio.lowlevel.current_clock(), MockClock):
            now, offset = self.now, time.time() - self.now()
            self.wall = lambda: offset + now()
