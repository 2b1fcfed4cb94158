"""Sessions that are made, taken out of memory and taken up again, per second."""

import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import trio

from exeunt import open_host
from loadtests.crowd import open_crowd, talk
from loadtests.frame import Size, Table, main


class Laps:
    """A table of what was done how often in how many seconds."""

    def __init__(self, table: Table, count: int) -> None:
        self._table = table
        self._count = count

    @asynccontextmanager
    async def lap(self, label: str) -> AsyncGenerator[None]:
        """Measure the body, which does something for each session."""
        began = time.perf_counter()
        yield
        seconds = time.perf_counter() - began
        self._table.row(label, self._count / seconds, seconds / self._count * 1e6)


async def measure(laps: Laps, count: int) -> None:
    """Take *count* sessions through their life, one after the other."""
    async with open_host() as host:
        async with laps.lap("create_session"):
            sessions = await open_crowd(host, count, system_message="You are terse.")
        await talk(sessions, 1)
        async with laps.lap("disconnect, after one exchange"):
            for session in sessions:
                await session.disconnect()
        async with laps.lap("resume_session, from the log in memory"):
            for session in sessions:
                await host.resume_session(session.session_id)
        async with laps.lap("delete_session"):
            for session in sessions:
                await host.delete_session(session.session_id)


def run(size: Size) -> None:
    """Measure and print."""
    count = size.pick(full=20_000, quick=4_000, tiny=50)
    table = Table(f"{count:,} sessions, one after the other", "sessions/s", "us each")
    trio.run(measure, Laps(table, count), count)


if __name__ == "__main__":
    main(run, __doc__)
