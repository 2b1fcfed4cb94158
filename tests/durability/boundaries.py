"""Points at which a process can be told to kill itself, and a journal that passes them.

Before and after: each append to a log, each transaction of the database, each snapshot, each effect of a tool, each
acknowledgement. The process ends there as by `kill -9`: no `finally`, no flush, no goodbye.
"""

import os
import signal
import threading
from collections.abc import Sequence

from exeunt.stores.postgres import PostgresStore
from exeunt.stores.sqlite import SqliteStore
from exeunt.supervisor.journal import Row, Store, StoredSession
from exeunt.supervisor.journal.durable import DurableJournal
from exeunt.supervisor.journal.log import DurableLog


def store_of(url: str) -> Store:
    """Return the database that *url* names: a path, or the URL of a PostgreSQL database."""
    return PostgresStore(url) if url.startswith("postgresql:") else SqliteStore(url)


class Boundaries:
    """Counts the points that a process passes. Passing number *fatal* ends it."""

    def __init__(self, fatal: int | None) -> None:
        self.passed = 0
        self._fatal = fatal
        self._lock = threading.Lock()

    def cross(self) -> None:
        """Pass a point, in whatever thread."""
        with self._lock:
            self.passed += 1
            if self.passed == self._fatal:
                os.kill(os.getpid(), signal.SIGKILL)


class BoundedJournal(DurableJournal):
    """A durable journal with a boundary before and after it takes note of each append."""

    def __init__(self, store: Store, boundaries: Boundaries) -> None:
        super().__init__(BoundedStore(store, boundaries))
        self._boundaries = boundaries

    def collected(self, log: DurableLog, events: int, first: bool) -> None:
        self._boundaries.cross()
        super().collected(log, events, first)
        self._boundaries.cross()


class BoundedStore:
    """A database with a boundary before and after each transaction."""

    def __init__(self, store: Store, boundaries: Boundaries) -> None:
        self.name = store.name
        self._store = store
        self._boundaries = boundaries

    @property
    def truncated_bytes(self) -> int:
        return self._store.truncated_bytes

    def open(self) -> None:
        self._store.open()

    def close(self) -> None:
        self._store.close()

    def write(self, rows: Sequence[Row]) -> Sequence[str]:
        self._boundaries.cross()
        lost = self._store.write(rows)
        self._boundaries.cross()
        return lost

    def read(self, session_id: str, from_seq: int, limit: int | None = None) -> Sequence[bytes]:
        return self._store.read(session_id, from_seq, limit)

    def find(self, session_id: str) -> StoredSession | None:
        return self._store.find(session_id)

    def list(
        self, tenant: str | None, limit: int, page: str | None
    ) -> tuple[Sequence[StoredSession], str | None]:
        return self._store.list(tenant, limit, page)

    def delete(self, session_id: str) -> bool:
        return self._store.delete(session_id)

    def write_snapshot(self, session_id: str, seq: int, data: bytes) -> None:
        self._boundaries.cross()
        self._store.write_snapshot(session_id, seq, data)
        self._boundaries.cross()

    def read_snapshot(self, session_id: str) -> tuple[int, bytes] | None:
        return self._store.read_snapshot(session_id)
