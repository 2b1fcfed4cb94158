"""The host's clocks."""

import time

import trio


class HostClock:
    """Durations by trio's clock; the time of day by the system's, or in virtual time by trio's as well.

    So the events of a test in virtual time lie as far apart as the time that passed in it.
    """

    __slots__ = ("now", "wall")

    def __init__(self) -> None:
        self.now = trio.current_time
        if isinstance(_run_clock(), trio.testing.MockClock):
            began, offset = trio.current_time(), time.time()
            self.wall = lambda: offset + trio.current_time() - began
        else:
            self.wall = time.time


def _run_clock() -> object:
    return trio.lowlevel.current_clock()
