"""Turns per second and reply times while many sessions talk at once, each sending as soon as it has its reply.

Model and tool cost nothing, so the loop is never idle and a reply waits for everybody else's turn. Beside it the
CPU of a turn, and how often that of a bare trio loop with as many conversations.
"""

import gc
import time

import attrs
import trio

from exeunt import Session, open_host
from loadtests import floor
from loadtests.crowd import open_crowd
from loadtests.frame import Size, Table, main, percentile


@attrs.frozen
class Run:
    """What a crowd took, in seconds."""

    wall: float
    cpu: float
    waited: list[float]
    """For each reply."""


async def crowd(count: int, exchanges: int) -> Run:
    """Hold *exchanges* in each of *count* sessions at once."""
    waited: list[float] = []

    async def user(session: Session) -> None:
        for _ in range(exchanges):
            sent = time.perf_counter()
            await session.send_and_wait("add 1 and 2", None)
            waited.append(time.perf_counter() - sent)

    async with open_host() as host:
        sessions = await open_crowd(host, count)
        gc.collect()
        began, began_cpu = time.perf_counter(), time.process_time()
        async with trio.open_nursery() as users:
            for session in sessions:
                users.start_soon(user, session, name="user")
        return Run(time.perf_counter() - began, time.process_time() - began_cpu, waited)


async def bare(count: int, exchanges: int) -> float:
    """Return the seconds of CPU that a bare loop takes for the same."""
    gc.collect()
    began = time.process_time()
    await floor.talk(count, exchanges, concurrent=True)
    return time.process_time() - began


def run(size: Size) -> None:
    """Measure and print."""
    table = Table("turns with one tool call", "turns/s", "p50 ms", "p99 ms", "CPU us", "x floor")
    total = size.pick(full=40_000, quick=12_000, tiny=100)
    for count in size.pick(full=(1, 100, 1_000, 10_000), quick=(100, 1_000, 4_000), tiny=(1, 20)):
        exchanges = max(2, min(2_000, total // count))
        ours = trio.run(crowd, count, exchanges)
        least = trio.run(bare, count, exchanges)
        turns = count * exchanges
        assert len(ours.waited) == turns
        table.row(
            f"sessions: {count:,}, turns each: {exchanges:,}",
            turns / ours.wall,
            percentile(ours.waited, 50) * 1e3,
            percentile(ours.waited, 99) * 1e3,
            ours.cpu / turns * 1e6,
            ours.cpu / least,
        )


if __name__ == "__main__":
    main(run, __doc__)
