"""Virtual time for programs on asyncio: both loops share one clock, which goes on when nobody has anything to do.

    def test_a_tool_that_takes_an_hour() -> None:
        run_virtual(my_async_test)

Sleeps and time-outs, of asyncio and of the host, take no time. As with trio's own virtual time it jumps over real work:
while a thread or a socket is busy nothing seems to happen, and a time-out may fire at once.
"""

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar, TypeVarTuple

import trio
from trio.testing import MockClock

T = TypeVar("T")
Args = TypeVarTuple("Args")

DAY = 86_400.0
"""Default bound of a run, in virtual seconds: above every default time-out of Exeunt, of at most an hour."""


def run_virtual(async_fn: Callable[[*Args], Coroutine[Any, Any, T]], *args: *Args, timeout: float = DAY) -> T:
    """Run `async_fn(*args)` as `asyncio.run` does, in virtual time that starts at 0, and return its result.

    Raises `TimeoutError` after *timeout* virtual seconds: at once, if everybody waits for each other. Raises what
    *async_fn* raises.
    """

    async def bounded() -> T:
        async with asyncio.timeout(timeout):
            return await async_fn(*args)

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(bounded())


class VirtualLoop(asyncio.SelectorEventLoop):
    """An asyncio loop whose time is virtual, and is that of the trio run on it."""

    def __init__(self) -> None:
        self.trio_clock = MockClock()
        """The clock of a trio run that is the guest of this loop."""
        super().__init__(_Selector(self))

    def time(self) -> float:
        """Return the virtual time, in seconds."""
        return self.trio_clock.current_time()


class _Selector(selectors.DefaultSelector):
    """Where the loop waits: when nothing else can happen, time passes instead."""

    def __init__(self, loop: VirtualLoop) -> None:
        super().__init__()
        self._virtual = loop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        # First what has happened already, from threads and sockets too.
        found = super().select(0)
        if found or timeout == 0:
            return found
        until = _next_of_trio()
        if until is None:
            return super().select(None)  # trio is on its way here from the thread in which it waits
        until = until if timeout is None else min(until, timeout)
        if until == float("inf"):
            return super().select(None)
        self._virtual.trio_clock.jump(until)
        if trio.lowlevel.in_trio_run():
            # So that trio looks at its clock.
            trio.lowlevel.current_trio_token().run_sync_soon(_nothing)
        return []


def _next_of_trio() -> float | None:
    """Return the seconds to the next deadline in trio; infinity for none, `None` if trio has something to do."""
    if not trio.lowlevel.in_trio_run():
        return float("inf")
    now = trio.lowlevel.current_statistics()
    if now.tasks_runnable or now.run_sync_soon_queue_size:
        return None
    return max(0.0, now.seconds_to_next_deadline)


def _nothing() -> None:
    pass
