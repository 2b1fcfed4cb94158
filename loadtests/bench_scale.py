"""Turns per second and reply times while many sessions talk at once, each sending as soon as it has its reply.

Model and tool cost nothing, so the loop is never idle and a reply waits for everybody else's turn.
"""

import time

import trio

from exeunt import Session, open_host
from loadtests.crowd import open_crowd
from loadtests.frame import Size, Table, main, percentile


async def measure(count: int, exchanges: int) -> tuple[float, list[float]]:
    """Return the seconds that *exchanges* in each of *count* sessions take, and the time of each reply."""
    waited: list[float] = []

    async def user(session: Session) -> None:
        for _ in range(exchanges):
            sent = time.perf_counter()
            await session.send_and_wait("add 1 and 2", None)
            waited.append(time.perf_counter() - sent)

    async with open_host() as host:
        sessions = await open_crowd(host, count)
        began = time.perf_counter()
        async with trio.open_nursery() as users:
            for session in sessions:
                users.start_soon(user, session)
        return time.perf_counter() - began, waited


def run(size: Size) -> None:
    """Measure and print."""
    table = Table("scale: turns with one tool call", "turns/s", "p50 ms", "p99 ms")
    total = size.pick(full=100_000, quick=12_000, tiny=100)
    for count in size.pick(full=(1, 100, 1_000, 10_000), quick=(100, 1_000, 4_000), tiny=(1, 20)):
        exchanges = max(2, min(2_000, total // count))
        seconds, waited = trio.run(measure, count, exchanges)
        table.row(
            f"{count:,} sessions, {exchanges:,} turns each",
            len(waited) / seconds,
            percentile(waited, 50) * 1e3,
            percentile(waited, 99) * 1e3,
        )


if __name__ == "__main__":
    main(run, __doc__)
