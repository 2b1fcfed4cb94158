"""A process that is killed at any instant: what it was told is durable is there afterwards, and in order."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import psycopg
import pytest
import trio

from exeunt.stores.postgres import PostgresStore
from exeunt.stores.repair import verify
from exeunt.stores.sqlite import SqliteStore
from exeunt.supervisor.journal import Store
from exeunt.testing.journal_events import LAST_ACT
from exeunt.testing.journals import running_journal

WRITER = """
import sys
import trio
from exeunt.actors.events import Origin
from exeunt.stores import journal_from_url
from exeunt.testing.journal_events import some_events

async def session(journal, name):
    log = await journal.create(name)
    origin = Origin.fresh()
    for seq in range(1, 100_000):
        log.append(some_events(name, seq, first_seq=seq, origin=origin))
        await log.wait_durable(seq)
        sys.stdout.write(f"{name} {seq}\\n")
        sys.stdout.flush()

async def main():
    async with trio.open_nursery() as nursery:
        journal = await nursery.start(journal_from_url(sys.argv[1]).run)
        for number in range(10):
            nursery.start_soon(session, journal, f"session-{number}")

trio.run(main)
"""


def killed(url: str, seed: str) -> dict[str, int]:
    """Run a writer, kill it at an instant that *seed* says, return the last acknowledged event of each session."""
    writer = subprocess.Popen([sys.executable, "-c", WRITER, url], stdout=subprocess.PIPE, text=True)
    assert writer.stdout is not None
    # The instant is a number of acknowledgements, so that a slow machine is not killed before it began.
    acknowledged = [writer.stdout.readline() for _ in range(random.Random(seed).randint(1, 1_000))]
    os.kill(writer.pid, signal.SIGKILL)
    with writer.stdout:
        acknowledged += writer.stdout.readlines()
    writer.wait()
    known: dict[str, int] = {}
    for line in acknowledged:
        if line.endswith("\n"):  # the last line may be torn
            name, seq = line.split()
            known[name] = max(known.get(name, 0), int(seq))
    return known


async def check(store: Store, known: dict[str, int]) -> None:
    assert known
    async with running_journal(store) as journal:
        for name, last_seq in known.items():
            log = await journal.open(name)
            events = await log.read()
            assert len(events) >= last_seq
            assert log.durable_seq == len(events)
            assert [event.seq for event in events] == list(range(1, len(events) + 1))
            assert [event.time for event in events] == [LAST_ACT + event.seq for event in events]


@pytest.mark.parametrize("synchronous", ["full", "normal"])
@pytest.mark.parametrize("run", range(4))
async def test_sqlite_has_what_was_acknowledged_before_a_kill(
    run: int, synchronous: str, tmp_path: Path
) -> None:
    path = tmp_path / "journal.db"
    known = killed(f"sqlite:///{path}?synchronous={synchronous}", f"{run} {synchronous}")
    assert verify(path).intact
    await check(SqliteStore(path), known)
    assert verify(path).intact


@pytest.mark.parametrize("run", range(3))
async def test_postgres_has_what_was_acknowledged_before_a_kill(run: int, postgres_url: str) -> None:
    known = killed(postgres_url, f"{run} postgres")
    await trio.to_thread.run_sync(wait_for_the_last_commit, postgres_url)
    await check(PostgresStore(postgres_url), known)


def wait_for_the_last_commit(url: str) -> None:
    """Wait until the server has no client left: it may still commit what a client sent before it was killed."""
    others = (
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        " AND backend_type = 'client backend'"
    )
    end = time.monotonic() + 20
    with psycopg.connect(url, autocommit=True) as connection:
        while connection.execute(others).fetchone() != (0,):
            assert time.monotonic() < end, "a client that was killed is still connected"
            time.sleep(0.01)
