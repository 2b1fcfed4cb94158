"""Pauses of the garbage collector: a full collection over idle sessions, and those while many turns run at once.

A pause stops every session. Sessions are made of few objects that the collector has to visit, and a turn leaves
no cycles for it to find, so a host may let it look rarely (`gc.set_threshold`).
"""

import gc
import time
from types import TracebackType
from typing import Self

import trio

from exeunt import Session, open_host
from loadtests.crowd import open_crowd, talk
from loadtests.frame import PYTHON_THRESHOLDS, THRESHOLDS, Size, Table, main

EXCHANGES = 2


class Pauses:
    """Measures each collection while the `with` runs, in seconds."""

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self._began = 0.0

    def _look(self, phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            self._began = time.perf_counter()
        else:
            self.seconds.append(time.perf_counter() - self._began)

    def __enter__(self) -> Self:
        gc.callbacks.append(self._look)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        gc.callbacks.remove(self._look)


async def idle(table: Table, count: int) -> None:
    """Measure one full collection while *count* sessions are idle."""
    gc.collect()
    without = len(gc.get_objects())
    async with open_host() as host:
        sessions = await open_crowd(host, count)
        # In parts: as many workers as turns at once would stay in the heap.
        for first in range(0, count, 100):
            await talk(sessions[first : first + 100], EXCHANGES)
        gc.collect()
        seconds = _full_collection()
        objects = (len(gc.get_objects()) - without) / count
        table.row(f"full, {count:,} idle sessions", seconds * 1e3, f"{objects:.1f}")


def _full_collection() -> float:
    """Return the seconds of one: the better of two, since other work on the machine can only add."""
    taken: list[float] = []
    for _ in range(2):
        began = time.perf_counter()
        gc.collect()
        taken.append(time.perf_counter() - began)
    return min(taken)


async def busy(count: int, thresholds: tuple[int, int, int]) -> tuple[Pauses, float]:
    """Return the pauses while *count* sessions have a turn at once, and the seconds that all takes."""
    gc.set_threshold(*thresholds)
    async with open_host() as host:
        sessions = await open_crowd(host, count)
        gc.collect()
        with Pauses() as pauses:
            began = time.perf_counter()
            await talk(sessions, EXCHANGES)
            return pauses, time.perf_counter() - began


async def garbage(turns: int) -> float:
    """Return the objects in cycles that each of *turns* leaves behind."""
    async with open_host() as host:
        (session,) = await open_crowd(host, 1)
        await talk([session], 1)
        gc.collect()
        gc.disable()
        try:
            return await _unreachable_after(session, turns) / turns
        finally:
            gc.enable()


async def _unreachable_after(session: Session, turns: int) -> int:
    await talk([session], turns, concurrent=False)
    return gc.collect()


def run(size: Size) -> None:
    """Measure and print."""
    turns = size.pick(full=1_000, quick=200, tiny=10)
    table = Table("objects in cycles that a turn leaves", "objects")
    table.row(f"each of {turns:,} turns", trio.run(garbage, turns))

    count = size.pick(full=10_000, quick=2_000, tiny=50)
    table = Table(
        f"pauses while {count:,} sessions have a turn at once, {EXCHANGES} times",
        "longest ms",
        "together ms",
        "us a turn",
    )
    for thresholds in (PYTHON_THRESHOLDS, THRESHOLDS):
        pauses, seconds = trio.run(busy, count, thresholds)
        each = seconds / (count * EXCHANGES) * 1e6
        longest, total = max(pauses.seconds, default=0.0), sum(pauses.seconds)
        table.row(f"thresholds {thresholds}", longest * 1e3, total * 1e3, each)
    gc.set_threshold(*THRESHOLDS)

    table = Table(f"a full collection over idle sessions with {EXCHANGES} exchanges", "ms", "objects each")
    for count in size.pick(full=(10_000, 100_000), quick=(5_000,), tiny=(50,)):
        trio.run(idle, table, count)


if __name__ == "__main__":
    main(run, __doc__)
