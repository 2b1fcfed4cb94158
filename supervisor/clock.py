"""The host's clocks."""

import time

import trio
from trio.testing import MockClock

from exeunt.actors.ports import Reading


class HostClock:
    """Durations by the clock that trio goes by, with an offset of its own; the time of day by the system's.

    In virtual time trio's clock gives both, so the events of a test lie as far apart as the time that passed in it.
    """

    now: Reading
    wall: Reading

    def __init__(self) -> None:
        # Not trio.current_time: it looks its clock up at each call, which a turn would pay twelve times.
        self.now = time.perf_counter
        self.wall = time.time
        if isinstance(trio.lowlevel.current_clock(), MockClock):
            self.now = trio.current_time
            offset = time.time() - trio.current_time()
            self.wall = lambda: offset + trio.current_time()
