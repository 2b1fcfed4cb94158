"""Writing the slices of many sessions to SQLite, with few statements.

Python's sqlite3 lets other threads run at each step of a statement, and has to wait for its turn again behind a busy
event loop: up to 5 ms, the interpreter's switch interval. So what counts is not the rows but the statements. Rows of
many sessions go in as a handful of statements; only where one of them does not fit is each looked at by itself.
"""

import sqlite3
from collections.abc import Iterator, Sequence

from exeunt.supervisor.journal.store import Row

MOST_AT_ONCE = 1024
"""Rows of one statement. SQLite takes 32,766 values in a statement, and a row has at most five."""

_UPDATES_FROM = sqlite3.sqlite_version_info >= (3, 33)
"""Whether this SQLite can update from a list of values."""


def write_rows(writer: sqlite3.Connection, rows: Sequence[Row]) -> list[str]:
    """Write *rows* in the open transaction; return the sessions whose rows do not follow what is stored."""
    if len(rows) > 1 and _UPDATES_FROM and len({row.session_id for row in rows}) == len(rows):
        writer.execute("SAVEPOINT together")
        if _write_together(writer, rows):
            writer.execute("RELEASE together")
            return []
        writer.execute("ROLLBACK TO together")
        writer.execute("RELEASE together")
    return _write_each(writer, rows)


def _write_together(writer: sqlite3.Connection, rows: Sequence[Row]) -> bool:
    """Write rows of as many sessions; say whether all of them followed what was stored."""
    new = [row for row in rows if row.start_time is not None]
    old = [row for row in rows if row.start_time is None]
    return (
        all(_begin_sessions(writer, part) for part in _parts(new))
        and all(_go_on_with_sessions(writer, part) for part in _parts(old))
        and all(_add_slices(writer, part) for part in _parts(rows))
    )


def _parts(rows: Sequence[Row]) -> Iterator[Sequence[Row]]:
    """Cut *rows* into parts of a power of two each, so that there are few different statements to prepare."""
    begin = 0
    while begin < len(rows):
        size = min(MOST_AT_ONCE, 1 << ((len(rows) - begin).bit_length() - 1))
        yield rows[begin : begin + size]
        begin += size


def _begin_sessions(writer: sqlite3.Connection, rows: Sequence[Row]) -> bool:
    values = [
        value
        for row in rows
        for value in (row.session_id, row.tenant or "", row.start_time, row.time, row.last_seq)
    ]
    places = ", ".join(["(?, ?, ?, ?, ?)"] * len(rows))
    done = writer.execute(f"INSERT INTO sessions VALUES {places} ON CONFLICT DO NOTHING", values)
    return done.rowcount == len(rows)


def _go_on_with_sessions(writer: sqlite3.Connection, rows: Sequence[Row]) -> bool:
    values = [value for row in rows for value in (row.session_id, row.first_seq - 1, row.last_seq, row.time)]
    places = ", ".join(["(?, ?, ?, ?)"] * len(rows))
    done = writer.execute(
        f"WITH new (session_id, before, last_seq, time) AS (VALUES {places}) "
        "UPDATE sessions SET modified_time = new.time, last_seq = new.last_seq FROM new "
        "WHERE sessions.session_id = new.session_id AND sessions.last_seq = new.before",
        values,
    )
    return done.rowcount == len(rows)


def _add_slices(writer: sqlite3.Connection, rows: Sequence[Row]) -> bool:
    values = [value for row in rows for value in (row.session_id, row.first_seq, row.last_seq, row.data)]
    places = ", ".join(["(?, ?, ?, ?)"] * len(rows))
    writer.execute(f"INSERT INTO slices VALUES {places}", values)
    return True


def _write_each(writer: sqlite3.Connection, rows: Sequence[Row]) -> list[str]:
    lost: set[str] = set()
    good: list[tuple[str, int, int, bytes]] = []
    for row in rows:
        if row.session_id in lost:
            continue
        if row.start_time is not None:
            written = writer.execute(
                "INSERT INTO sessions VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
                (row.session_id, row.tenant or "", row.start_time, row.time, row.last_seq),
            )
        else:
            written = writer.execute(
                "UPDATE sessions SET modified_time = ?, last_seq = ? WHERE session_id = ? AND last_seq = ?",
                (row.time, row.last_seq, row.session_id, row.first_seq - 1),
            )
        if written.rowcount == 1:
            good.append((row.session_id, row.first_seq, row.last_seq, row.data))
        elif not _is_stored(writer, row):
            lost.add(row.session_id)
    writer.executemany("INSERT INTO slices VALUES (?, ?, ?, ?)", good)
    return sorted(lost)


def _is_stored(writer: sqlite3.Connection, row: Row) -> bool:
    """Whether *row* was written before: the answer to a commit may be lost, and it is then written again.

    Slices name their activation, so two hosts never write the same bytes.
    """
    stored = writer.execute(
        "SELECT data FROM slices WHERE session_id = ? AND first_seq = ?", (row.session_id, row.first_seq)
    ).fetchone()
    return stored is not None and stored[0] == row.data
