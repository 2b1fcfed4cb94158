"""Sessions that have left memory: what each takes, how long one takes to come back, and how long a listing takes.

Over SQLite in a temporary folder. "with options" is a host that keeps a reference to the options of each session, all
of them the same here; "with a function" is one that asks `session_options` anew, and keeps the ids. Memory is the
growth of what the process holds, ids and the database's own cache included. A waking is `resume_session` and `send`, up
to the acknowledgement: a read of the log, and one commit. The sessions that are woken, which are spread over all, have
had one exchange; the others only their beginning.
"""

import gc
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import trio

from exeunt import HostOptions, SessionHost, SessionOptions, approve_all, build_options, open_host
from exeunt.stores.sqlite import SqliteStore
from exeunt.supervisor.journal import SessionMetadata
from exeunt.supervisor.journal.durable import DurableJournal
from loadtests.crowd import ZeroCostModel, add
from loadtests.frame import THRESHOLDS, Size, Table, main, percentile, resident_bytes

KINDS = ("with a function", "with options")

MAKERS = 500
"""Sessions that are made at once: they share a commit."""

TALKS_EVERY = 100
"""One session of so many has an exchange, and is woken later."""

PAGE = 1_000
"""Sessions of one page of the listing."""


class Crowd:
    """The sessions of one host. No handles: they would keep more in memory than the host does."""

    def __init__(self, host: SessionHost, options: SessionOptions) -> None:
        self._host = host
        self._options = options
        self.talked: list[str] = []
        self.count = 0

    async def grow(self, count: int) -> None:
        """Make *count* sessions, hold an exchange in each, and wait until all have left memory."""
        made = 0
        while made < count:
            part = min(MAKERS, count - made)
            async with trio.open_nursery() as nursery:
                for _ in range(part):
                    nursery.start_soon(self._make)
            made += part
        while self._host.live:  # noqa: ASYNC110 - nothing tells of it but this
            await trio.sleep(0.05)

    async def _make(self) -> None:
        self.count += 1
        talks = self.count % TALKS_EVERY == 0
        session = await self._host.open_session(self._options)
        if talks:
            await session.send_and_wait("add 1 and 2")
            self.talked.append(session.session_id)


async def wake_up(host: SessionHost, ids: Sequence[str]) -> list[float]:
    """Return the milliseconds of a message to each of these sessions, one after the other."""
    took: list[float] = []
    for session_id in ids:
        began = time.perf_counter()
        session = await host.resume_session(session_id)
        await session.send("add 1 and 2")
        took.append((time.perf_counter() - began) * 1e3)
    return took


async def measure(kind: str, count: int, wakings: int, folder: Path) -> None:
    """Fill a new database, and print a table."""
    table = Table(f"passivation: {count:,} sessions that have left memory, {kind}", "")
    options = build_options(model=ZeroCostModel(), tools=[add], on_permission_request=approve_all)

    async def resolve(session_id: str, metadata: SessionMetadata) -> SessionOptions:
        await trio.lowlevel.checkpoint()
        return options

    store = SqliteStore(folder / "journal.db", synchronous="normal")
    async with open_host(
        journal=DurableJournal(store),
        options=HostOptions(passivate_after=0.05),
        session_options=resolve if kind == "with a function" else None,
    ) as host:
        crowd = Crowd(host, options)
        await crowd.grow(min(count, 2 * MAKERS))
        gc.collect()
        before = resident_bytes()
        began = time.perf_counter()
        await crowd.grow(count)
        seconds = time.perf_counter() - began
        gc.collect()
        table.row("memory each, bytes", (resident_bytes() - before) / count)
        table.row("made and left, sessions/s", count / seconds)

        step = max(1, len(crowd.talked) // wakings)
        took = await wake_up(host, crowd.talked[::step][:wakings])
        table.row("coming back, ms (p50)", percentile(took, 50))
        table.row("coming back, ms (p99)", percentile(took, 99))

        began = time.perf_counter()
        page = await host.journal.list(limit=PAGE)
        table.row(f"first page of {PAGE:,}, ms", (time.perf_counter() - began) * 1e3)
        assert len(page.sessions) == min(PAGE, crowd.count)
        began = time.perf_counter()
        listed = await host.list_sessions()
        table.row("list of all, s", time.perf_counter() - began)
        assert len(listed) == crowd.count


def run(size: Size) -> None:
    """Measure each kind in a process of its own: memory that another has given back would be used again."""
    count = size.pick(full=1_000_000, quick=20_000, tiny=200)
    wakings = size.pick(full=2_000, quick=200, tiny=2)
    for kind in KINDS:
        command = [
            sys.executable,
            "-m",
            "loadtests.bench_passivation",
            "measure",
            kind,
            str(count),
            str(wakings),
        ]
        subprocess.run(command, check=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["measure"]:
        gc.set_threshold(*THRESHOLDS)
        with tempfile.TemporaryDirectory(prefix="exeunt-bench-") as place:
            trio.run(measure, sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), Path(place))
    else:
        main(run, __doc__)
