"""Durable appends per second: each session appends a slice, waits until it cannot be lost, and appends the next.

The last column is what an event takes on disk at the end, indexes included.
"""

import tempfile
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import attrs
import psycopg
import trio

from exeunt.actors.events import Origin
from exeunt.stores.postgres import PostgresStore
from exeunt.stores.sqlite import SqliteStore
from exeunt.supervisor.journal import Store
from exeunt.supervisor.journal.durable import DurableJournal
from exeunt.testing.journal_events import some_events
from exeunt.testing.journals import running_journal
from loadtests.frame import Size, Table, main
from tests.stores.postgres_server import postgres_server

EVENTS = 3
TEXT = "a line of a play that goes on for a while. " * 6
"""With it a slice has 900 bytes, as one of a turn with a tool call."""


@attrs.frozen
class Place:
    """A new database, and how to ask what it weighs."""

    store: Store
    weight: Callable[[], int]
    """Returns bytes; asked after the journal has ended."""


async def session(journal: DurableJournal, name: str, until: float) -> int:
    """Append until the time is up; return how many slices are durable."""
    log = await journal.create(name)
    origin = Origin.fresh()
    slices = 0
    while time.perf_counter() < until:
        first = slices * EVENTS + 1
        log.append(some_events(name, first + EVENTS - 1, first_seq=first, origin=origin, text=TEXT))
        await log.wait_durable(first + EVENTS - 1)
        slices += 1
    return slices


async def measure(store: Store, sessions: int, seconds: float) -> tuple[int, int]:
    """Return how many slices were written, in how many commits."""
    slices: list[int] = []

    async def count(journal: DurableJournal, number: int, until: float) -> None:
        slices.append(await session(journal, f"session-{number}", until))

    async with running_journal(store) as journal:
        until = time.perf_counter() + seconds
        async with trio.open_nursery() as nursery:
            for number in range(sessions):
                nursery.start_soon(count, journal, number, until)
        return sum(slices), journal.statistics().commits


def sqlite(folder: Path, synchronous: str) -> Place:
    """Return a new SQLite file."""
    path = Path(tempfile.mkdtemp(dir=folder)) / "journal.db"
    return Place(SqliteStore(path, synchronous=synchronous), lambda: path.stat().st_size)


def postgres(url: str) -> Place:
    """Return the tables at *url*."""
    query = (
        "SELECT sum(pg_total_relation_size(oid)) FROM pg_class WHERE relname ~ '^exeunt_s(essions|lices)$'"
    )

    def weight() -> int:
        with psycopg.connect(url) as connection:
            row = connection.execute(f"{query} AND pg_table_is_visible(oid)".encode()).fetchone()
            return int(row[0]) if row else 0

    return Place(PostgresStore(url), weight)


@contextmanager
def places() -> Generator[dict[str, Callable[[], Place]]]:
    """Give the kinds of databases, each with what makes a new one."""
    with tempfile.TemporaryDirectory(prefix="exeunt-bench-") as folder, postgres_server() as server:
        yield {
            "SQLite, full": lambda: sqlite(Path(folder), "full"),
            "SQLite, normal": lambda: sqlite(Path(folder), "normal"),
            "PostgreSQL": lambda: postgres(server.empty_schema()),
        }


def run(size: Size) -> None:
    """Measure and print."""
    seconds = size.pick(full=5.0, quick=1.5, tiny=0.1)
    table = Table(
        f"journal: slices of {EVENTS} events, {seconds:g} s each",
        "appends/s",
        "a commit",
        "commits/s",
        "bytes/event",
    )
    with places() as kinds:
        for kind, place in kinds.items():
            for sessions in size.pick(full=(1, 100, 2_000), quick=(1, 100, 2_000), tiny=(1, 10)):
                database = place()
                began = time.perf_counter()
                slices, commits = trio.run(measure, database.store, sessions, seconds)
                took = time.perf_counter() - began
                weight = database.weight() / (slices * EVENTS)
                table.row(
                    f"{kind}, {sessions:,} sessions", slices / took, slices / commits, commits / took, weight
                )


if __name__ == "__main__":
    main(run, __doc__)
