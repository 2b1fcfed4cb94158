"""Logs in PostgreSQL: for hosts on several machines.

Needs `exeunt[postgres]`. Each batch is one transaction. The fence between two hosts
which both believe to hold a session is the row of the session: who does not know its last number cannot add to it.
"""

import importlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from exeunt.actors.errors import InvalidConfiguration
from exeunt.stores.paging import COLUMNS, listing, page_after
from exeunt.stores.postgres_connections import Connections
from exeunt.stores.postgres_schema import migrate
from exeunt.supervisor.journal.store import Row, StoredSession

if TYPE_CHECKING:
    import psycopg

    Connection = psycopg.Connection[tuple[Any, ...]]


FEW = 16
"""Rows that are written by one statement: a commit is then one round trip. COPY takes four, and from some dozens of
rows on a fifth to a half less time."""

_FENCE = """
WITH given AS (
    SELECT * FROM unnest(%b::text[], %b::bigint[], %b::bigint[], %b::float8[], %b::text[], %b::float8[])
        AS given (session_id, first_seq, last_seq, modified_time, tenant, start_time)
), made AS (
    INSERT INTO exeunt_sessions (session_id, tenant, start_time, modified_time, last_seq)
    SELECT session_id, tenant, start_time, modified_time, last_seq FROM given
    WHERE start_time IS NOT NULL ORDER BY session_id
    ON CONFLICT DO NOTHING RETURNING session_id
), moved AS (
    UPDATE exeunt_sessions AS stored SET modified_time = given.modified_time, last_seq = given.last_seq FROM given
    WHERE given.start_time IS NULL
        AND stored.session_id = given.session_id AND stored.last_seq = given.first_seq - 1
    RETURNING stored.session_id
), good AS (
    SELECT session_id FROM made UNION ALL SELECT session_id FROM moved
)"""

_SLICES = """, written AS (
    INSERT INTO exeunt_slices (session_id, first_seq, last_seq, data)
    SELECT * FROM unnest(%b::text[], %b::bigint[], %b::bigint[], %b::bytea[])
        AS slice (session_id, first_seq, last_seq, data)
    WHERE session_id IN (SELECT session_id FROM good)
)"""

_GOOD = "SELECT session_id FROM good"

_COPY = "COPY exeunt_slices (session_id, first_seq, last_seq, data) FROM STDIN (FORMAT BINARY)"


class PostgresStore:
    """A PostgreSQL database as a store. Implements `exeunt.supervisor.journal.Store`.

    The tables are called `exeunt_...` and lie in the first schema of the search path. Connections that were lost are
    made anew at the next call; nothing waits for the server for longer than `postgres_connections` says.
    """

    truncated_bytes = 0

    def __init__(self, url: str) -> None:
        """Name the database as libpq does; nothing is opened. Raises `InvalidConfiguration`."""
        try:
            importlib.import_module("psycopg")
        except ImportError as error:
            raise InvalidConfiguration(
                "a journal in PostgreSQL needs the extra 'postgres': pip install 'exeunt[postgres]'"
            ) from error
        self._connections = Connections(url)
        self.name = self._connections.name

    def open(self) -> None:
        """Connect, make or migrate the tables. Raises `StoreUnavailable`, `JournalError`."""
        self._connections.open()
        self._connections.write("opened", migrate)

    def close(self) -> None:
        """Disconnect. May be called twice."""
        self._connections.close()

    def write(self, rows: Sequence[Row]) -> Sequence[str]:
        """Write *rows* in one transaction; return the sessions whose rows do not follow what is stored."""
        return self._connections.write("written to", lambda connection: _write(connection, rows))

    def read(self, session_id: str, from_seq: int, limit: int | None = None) -> Sequence[bytes]:
        """Return the slices that hold events from number *from_seq* on, in order."""
        # The slice that holds from_seq begins at or before it: two looks at the index, and no scan of the log.
        rows = self._rows(
            "SELECT data FROM exeunt_slices WHERE session_id = %b AND last_seq >= %b AND first_seq >= coalesce("
            " (SELECT max(first_seq) FROM exeunt_slices WHERE session_id = %b AND first_seq <= %b), 0)"
            " ORDER BY first_seq LIMIT %b::bigint",
            (session_id, from_seq, session_id, from_seq, limit),
        )
        return [data for (data,) in rows]

    def find(self, session_id: str) -> StoredSession | None:
        """Return what is known of a session, or `None`."""
        rows = self._rows(f"SELECT {COLUMNS} FROM exeunt_sessions WHERE session_id = %b", (session_id,))
        return StoredSession(*rows[0]) if rows else None

    def list(
        self, tenant: str | None, limit: int, page: str | None
    ) -> tuple[Sequence[StoredSession], str | None]:
        """Return sessions, those used last first, and what to ask for the next part with."""
        tenant_value = None if tenant is None else _text(tenant)
        query, values = listing("exeunt_sessions", "%b", tenant_value, page)
        rows = self._rows(query, (*values, limit + 1))
        found = [StoredSession(*row) for row in rows[:limit]]
        return found, page_after(found[-1]) if len(rows) > limit else None

    def delete(self, session_id: str) -> bool:
        """Remove a session with its slices and snapshots; say whether there was one."""
        query = """
            WITH slices AS (DELETE FROM exeunt_slices WHERE session_id = %b),
            snapshots AS (DELETE FROM exeunt_snapshots WHERE session_id = %b)
            DELETE FROM exeunt_sessions WHERE session_id = %b RETURNING session_id
            """
        return bool(self._rows(query, (session_id,) * 3, "written to", repeat=False))

    def write_snapshot(self, session_id: str, seq: int, data: bytes) -> None:
        """Keep the state after event *seq*, instead of the one before; of an unknown session nothing is kept."""
        self._rows(
            "INSERT INTO exeunt_snapshots (session_id, seq, data)"
            " SELECT session_id, %b, %b FROM exeunt_sessions WHERE session_id = %b AND last_seq >= %b"
            " ON CONFLICT (session_id) DO UPDATE SET seq = excluded.seq, data = excluded.data"
            " WHERE excluded.seq > exeunt_snapshots.seq RETURNING seq",
            (seq, data, session_id, seq),
            "written to",
        )

    def read_snapshot(self, session_id: str) -> tuple[int, bytes] | None:
        """Return the newest snapshot."""
        rows = self._rows("SELECT seq, data FROM exeunt_snapshots WHERE session_id = %b", (session_id,))
        return (rows[0][0], rows[0][1]) if rows else None

    def _rows(
        self, query: str, values: Sequence[object], what: str = "read", *, repeat: bool = True
    ) -> Sequence[tuple[Any, ...]]:
        return self._connections.read(what, lambda connection: _all(connection, query, values), repeat=repeat)


def _all(connection: "Connection", query: str, values: Sequence[object]) -> list[tuple[Any, ...]]:
    return connection.execute(query.encode(), values, binary=True).fetchall()


def _write(connection: "Connection", rows: Sequence[Row]) -> list[str]:
    # In the order of their ids: two hosts that share sessions must not lock them crosswise.
    heads = sorted(_heads(rows), key=lambda row: row.session_id)
    if len(rows) <= FEW:
        query, values = (
            _FENCE + _SLICES + _GOOD,
            (*_arrays(heads, _HEAD_COLUMNS), *_arrays(rows, _SLICE_COLUMNS)),
        )
        good = {row[0] for row in connection.execute(query.encode(), values, binary=True)}
    else:
        good = _copy(connection, heads, rows)
    if len(good) == len(heads):
        return []
    doubtful = [row for row in rows if row.session_id not in good]
    stored = _stored(connection, doubtful)
    return sorted(
        {row.session_id for row in doubtful if (row.session_id, row.first_seq, row.data) not in stored}
    )


def _copy(connection: "Connection", heads: Sequence[Row], rows: Sequence[Row]) -> set[str]:
    with connection.transaction():
        fence = connection.execute((_FENCE + _GOOD).encode(), _arrays(heads, _HEAD_COLUMNS), binary=True)
        good = {row[0] for row in fence}
        with connection.cursor() as cursor, cursor.copy(_COPY.encode()) as copy:
            copy.set_types(["text", "int8", "int8", "bytea"])
            for row in rows:
                if row.session_id in good:
                    copy.write_row((row.session_id, row.first_seq, row.last_seq, row.data))
    return good


_HEAD_COLUMNS: tuple[Callable[[Row], object], ...] = (
    lambda row: row.session_id,
    lambda row: row.first_seq,
    lambda row: row.last_seq,
    lambda row: row.time,
    lambda row: _text(row.tenant or ""),
    lambda row: row.start_time,
)
_SLICE_COLUMNS: tuple[Callable[[Row], object], ...] = (
    lambda row: row.session_id,
    lambda row: row.first_seq,
    lambda row: row.last_seq,
    lambda row: row.data,
)


def _text(text: str) -> str:
    """Return *text* without the one character that PostgreSQL's texts cannot hold. The log itself is bytes."""
    return text.replace("\0", "\ufffd")


def _arrays(rows: Sequence[Row], columns: Sequence[Callable[[Row], object]]) -> list[list[object]]:
    return [[column(row) for row in rows] for column in columns]


def _heads(rows: Sequence[Row]) -> list[Row]:
    """One row for each session: from the first number of its slices to the last."""
    heads: dict[str, Row] = {}
    for row in rows:
        head = heads.get(row.session_id)
        if head is not None:
            row = Row(
                row.session_id, head.first_seq, row.last_seq, row.time, b"", head.tenant, head.start_time
            )
        heads[row.session_id] = row
    return list(heads.values())


def _stored(connection: "Connection", rows: Sequence[Row]) -> set[tuple[str, int, bytes]]:
    """Return those of *rows* that were written before: the answer to a commit may be lost, and it is written again.

    Slices name their activation, so two hosts never write the same bytes.
    """
    query = """
        SELECT stored.session_id, stored.first_seq, stored.data FROM exeunt_slices AS stored
        JOIN unnest(%b::text[], %b::bigint[]) AS given (session_id, first_seq) USING (session_id, first_seq)
        """
    return set(connection.execute(query.encode(), _arrays(rows, _SLICE_COLUMNS[:2]), binary=True))
