"""SQLite journals for tests: filled ones, and what is in them."""

import shutil
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path

from exeunt.actors.events import Event
from exeunt.actors.events.codec import SliceDecoder
from exeunt.stores.sqlite import SqliteStore
from exeunt.supervisor.journal.log import DurableLog
from exeunt.supervisor.journal.slices import open_slice, rows
from exeunt.testing.journal_events import some_events

Logs = Mapping[str, Sequence[Event]]


def fill(path: Path, sessions: int = 8, slices: int = 6, *, events: int = 3, text: str = "x" * 300) -> Logs:
    """Write *sessions* logs of *slices* slices with *events* events each; return them."""
    store = SqliteStore(path, synchronous="normal")
    store.open()
    logs: dict[str, list[Event]] = {}
    for number in range(sessions):
        name = f"session {number:03}"
        logs[name] = some_events(name, slices * events, tenant=f"tenant {number % 3}", text=text)
    for begin in range(0, slices * events, events):
        for name, log in logs.items():
            assert write(store, name, log[begin : begin + events]) == []
    store.close()
    return logs


def write(store: SqliteStore, name: str, events: Sequence[Event]) -> Sequence[str]:
    """Write one slice in a transaction of its own."""
    return store.write(list(rows(DurableLog(None, name, 0), events)))  # type: ignore[arg-type]


def read(store: SqliteStore, name: str) -> list[Event]:
    """Return the log of a session as the store has it."""
    decoder = SliceDecoder()
    return [event for data in store.read(name, 1) for event in open_slice(decoder, data)]


def live_copy(path: Path, target: Path) -> Path:
    """Copy a journal with its write-ahead log, as a machine that lost power would find it."""
    for suffix in ("", "-wal"):
        source = path.with_name(path.name + suffix)
        if source.exists():
            shutil.copyfile(source, target.with_name(target.name + suffix))
    return target


def page_size(path: Path) -> int:
    with closing(sqlite3.connect(path)) as connection:
        size: int = connection.execute("PRAGMA page_size").fetchone()[0]
        return size
