"""Logs in a SQLite file: the embedded default.

Write-ahead log, one writer. With `synchronous="full"` a commit survives the loss of power; with `"normal"` it
survives the end of the process at any instant, and the last commits may be lost with the machine.
"""

import logging
import os
import sqlite3
import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

from exeunt.actors.errors import InvalidConfiguration, JournalError
from exeunt.stores.paging import COLUMNS, listing, page_after
from exeunt.stores.sqlite_files import check_length
from exeunt.stores.sqlite_schema import migrate, owner_is_exeunt
from exeunt.stores.sqlite_wal import torn_bytes
from exeunt.stores.sqlite_writing import write_rows
from exeunt.supervisor.journal.store import Row, StoreDamaged, StoredSession, StoreUnavailable

logger = logging.getLogger(__name__)

BUSY_SECONDS = 5.0
"""How long SQLite itself waits for another process that holds the file, before the journal tries again later."""

SYNCHRONOUS = ("full", "normal")

_UNAVAILABLE = {
    sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_PROTOCOL,
}  # fmt: skip


class SqliteStore:
    """A SQLite file as a store. Implements `exeunt.supervisor.journal.Store`."""

    def __init__(self, path: str | os.PathLike[str], *, synchronous: str = "full") -> None:
        """Name the file; it is opened, or made, by `open`. Raises `InvalidConfiguration`."""
        if not isinstance(synchronous, str) or synchronous.lower() not in SYNCHRONOUS:
            raise InvalidConfiguration(f"synchronous is 'full' or 'normal', not {synchronous!r:.40}")
        self.path = Path(path)
        self.name = f"sqlite:{self.path}"
        self.truncated_bytes = 0
        self._synchronous = synchronous.lower()
        self._writer: sqlite3.Connection | None = None
        self._writing = threading.Lock()
        """Whoever writes holds it, so that a deletion need not poll for the writer's lock on the file."""
        self._idle: list[sqlite3.Connection] = []
        """Connections for reading that nobody uses now: as many as there were readers at once."""

    def open(self) -> None:
        """Open the file, make or migrate its tables, check what all sessions share.

        The slices of a session are checked when they are read: damage to one is no reason to refuse the others.
        A commit that was cut off half-way was never acknowledged: its bytes are dropped, counted and logged.
        Raises `StoreUnavailable`, `StoreDamaged`, or `JournalError` for a file that is no journal.
        """
        self._make_private()
        with self._translated("opened"):
            connection = self._connect()
            try:
                self._prepare(connection)
            except BaseException:
                connection.close()
                raise
            self._writer = connection

    def _make_private(self) -> None:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            # Conversations are private: the file is made before SQLite would, for its owner alone. SQLite gives the
            # files beside it the same permissions.
            os.close(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600))
            check_length(self.path, f"{self.name} cannot be opened")
        except OSError as error:
            raise StoreUnavailable(f"{self.name} cannot be opened: {error.strerror or error}") from error

    def _connect(self) -> sqlite3.Connection:
        return sqlite3.connect(
            self.path,
            timeout=BUSY_SECONDS,
            isolation_level=None,
            check_same_thread=False,  # used by one thread at a time, not always the same
            cached_statements=32,
        )

    def _prepare(self, connection: sqlite3.Connection) -> None:
        if not owner_is_exeunt(connection):
            raise JournalError(f"{self.name} is a database of another program; nothing was changed")
        (mode,) = connection.execute("PRAGMA journal_mode=WAL").fetchone()
        if mode != "wal":
            raise JournalError(
                f"{self.name} lies where SQLite cannot keep a write-ahead log (it offers {mode!r})"
            )
        connection.execute(f"PRAGMA synchronous={self._synchronous}")
        # Who deletes a conversation wants it gone, not merely unlisted.
        connection.execute("PRAGMA secure_delete=ON")
        self._look_for_torn_tail(connection)
        migrate(connection, self.name)
        (verdict,) = connection.execute("PRAGMA quick_check(sessions)").fetchone()
        if verdict != "ok":
            raise StoreDamaged(
                f"{self.name} is damaged: {verdict}; `exeunt sessions repair` keeps what is whole"
            )

    def _look_for_torn_tail(self, connection: sqlite3.Connection) -> None:
        connection.execute("PRAGMA busy_timeout=0")
        try:
            self.truncated_bytes = torn_bytes(connection, self.path)
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF not in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                raise
            # Another process is writing: it was first to open the file, and has looked.
        finally:
            connection.execute(f"PRAGMA busy_timeout={BUSY_SECONDS * 1000:.0f}")
        if self.truncated_bytes:
            logger.warning(
                "%s: the last write was cut off, and %d bytes of it were dropped; it had not been acknowledged",
                self.name,
                self.truncated_bytes,
            )

    def close(self) -> None:
        """Close the file. May be called twice."""
        writer, self._writer = self._writer, None
        idle, self._idle = self._idle, []
        for connection in (*idle, writer):
            if connection is not None:
                connection.close()

    def write(self, rows: Sequence[Row]) -> Sequence[str]:
        """Write *rows* in one transaction; return the sessions whose rows do not follow what is stored."""
        with self._transaction() as writer:
            return write_rows(writer, rows)

    def read(self, session_id: str, from_seq: int, limit: int | None = None) -> Sequence[bytes]:
        """Return the slices that hold events from number *from_seq* on, in order."""
        with self._reader() as reader:
            # The slice that holds from_seq begins at or before it: two looks at the index, and no scan of the log.
            found = reader.execute(
                "SELECT data FROM slices WHERE session_id = :id AND last_seq >= :seq AND first_seq >= coalesce("
                " (SELECT max(first_seq) FROM slices WHERE session_id = :id AND first_seq <= :seq), 0)"
                " ORDER BY first_seq LIMIT :limit",
                {"id": session_id, "seq": from_seq, "limit": -1 if limit is None else limit},
            )
            return [data for (data,) in found]

    def find(self, session_id: str) -> StoredSession | None:
        """Return what is known of a session, or `None`."""
        with self._reader() as reader:
            query = f"SELECT {COLUMNS} FROM sessions WHERE session_id = ?"
            row = reader.execute(query, (session_id,)).fetchone()
            return None if row is None else StoredSession(*row)

    def list(
        self, tenant: str | None, limit: int, page: str | None
    ) -> tuple[Sequence[StoredSession], str | None]:
        """Return sessions, those used last first, and what to ask for the next part with."""
        query, values = listing("sessions", "?", tenant, page)
        with self._reader() as reader:
            rows = reader.execute(query, (*values, limit + 1)).fetchall()
        found = [StoredSession(*row) for row in rows[:limit]]
        return found, page_after(found[-1]) if len(rows) > limit else None

    def delete(self, session_id: str) -> bool:
        """Remove a session with its slices and snapshots; say whether there was one."""
        with self._transaction() as writer:
            gone = writer.execute("DELETE FROM sessions WHERE session_id = ?", (session_id,)).rowcount
            writer.execute("DELETE FROM slices WHERE session_id = ?", (session_id,))
            writer.execute("DELETE FROM snapshots WHERE session_id = ?", (session_id,))
            return gone == 1

    def write_snapshot(self, session_id: str, seq: int, data: bytes) -> None:
        """Keep the state after event *seq*, instead of the one before; of an unknown session nothing is kept."""
        with self._transaction(synchronous="normal") as writer:
            writer.execute(
                "INSERT INTO snapshots SELECT :id, :seq, :data FROM sessions"
                " WHERE session_id = :id AND last_seq >= :seq"
                " ON CONFLICT (session_id) DO UPDATE SET seq = excluded.seq, data = excluded.data"
                " WHERE excluded.seq > snapshots.seq",
                {"id": session_id, "seq": seq, "data": data},
            )

    def read_snapshot(self, session_id: str) -> tuple[int, bytes] | None:
        """Return the newest snapshot."""
        with self._reader() as reader:
            row: tuple[int, bytes] | None = reader.execute(
                "SELECT seq, data FROM snapshots WHERE session_id = ?", (session_id,)
            ).fetchone()
            return row

    # --- Connections -----------------------------------------------------------------------------------------

    @contextmanager
    def _transaction(self, synchronous: str | None = None) -> Generator[sqlite3.Connection]:
        """Lend the connection that writes. *synchronous* differs for what need not survive the loss of power."""
        # Twice what SQLite itself waits: whoever writes now may have begun to wait a moment ago.
        if not self._writing.acquire(timeout=2 * BUSY_SECONDS):
            raise StoreUnavailable(f"{self.name} is being written to for too long")
        try:
            with self._translated("written to"):
                writer = self._writer
                if writer is None:
                    raise StoreUnavailable(f"{self.name} is closed")
                if synchronous is not None:
                    writer.execute(f"PRAGMA synchronous={synchronous}")
                try:
                    writer.execute("BEGIN IMMEDIATE")
                    yield writer
                    writer.execute("COMMIT")
                finally:
                    if writer.in_transaction:
                        writer.execute("ROLLBACK")
                    if synchronous is not None:
                        writer.execute(f"PRAGMA synchronous={self._synchronous}")
        finally:
            self._writing.release()

    @contextmanager
    def _reader(self) -> Generator[sqlite3.Connection]:
        """Lend a connection to this thread."""
        with self._translated("read"):
            if self._writer is None:
                raise StoreUnavailable(f"{self.name} is closed")
            connection = self._idle.pop() if self._idle else self._connect()
            try:
                yield connection
            except BaseException:
                connection.close()
                raise
            if self._writer is None:
                connection.close()
            else:
                self._idle.append(connection)

    @contextmanager
    def _translated(self, what: str) -> Generator[None]:
        try:
            yield
        except sqlite3.Error as error:
            code = getattr(error, "sqlite_errorcode", 0) & 0xFF
            text = f"{self.name} cannot be {what}: {error}"
            if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
                raise StoreDamaged(text) from error
            if code in _UNAVAILABLE:
                raise StoreUnavailable(text) from error
            raise JournalError(text) from error
