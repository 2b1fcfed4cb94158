"""The tables of a SQLite journal, and how they came to be."""

import sqlite3

from exeunt.actors.errors import JournalError

SCHEMA = 2
"""Version of the tables, kept in the file as `user_version`."""

APPLICATION_ID = 0x45584E54
"""Marks the file as Exeunt's ("EXNT"), so that another program's database is not taken for one."""

_MIGRATIONS = {
    1: """
    CREATE TABLE sessions (
        session_id TEXT PRIMARY KEY, tenant TEXT NOT NULL, start_time REAL NOT NULL,
        modified_time REAL NOT NULL, last_seq INTEGER NOT NULL
    ) WITHOUT ROWID;
    CREATE INDEX sessions_by_use ON sessions (modified_time DESC, session_id);
    CREATE TABLE slices (
        session_id TEXT NOT NULL, first_seq INTEGER NOT NULL, last_seq INTEGER NOT NULL, data BLOB NOT NULL,
        PRIMARY KEY (session_id, first_seq)
    );
    CREATE TABLE snapshots (session_id TEXT PRIMARY KEY, seq INTEGER NOT NULL, data BLOB NOT NULL);
    """,
    # Only of tenants with a name: who has none pays nothing for it at each write.
    2: """
    CREATE INDEX sessions_by_tenant ON sessions (tenant, modified_time DESC, session_id) WHERE tenant <> '';
    """,
}
"""What leads to each version from the one before."""


def listed_from(tenant: str | None) -> str:
    """Return what a listing of the sessions of *tenant* reads; `None` is all of them."""
    # For a short part of it, SQLite 3.53 would sort all that have no tenant, rather than walk along the index.
    return "sessions INDEXED BY sessions_by_use" if tenant == "" else "sessions"


def owner_is_exeunt(connection: sqlite3.Connection) -> bool:
    """Return whether the file is a journal, or empty. Changes nothing."""
    (owner,) = connection.execute("PRAGMA application_id").fetchone()
    if owner == APPLICATION_ID:
        return True
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    return not (owner or tables or version)


def migrate(connection: sqlite3.Connection, name: str) -> None:
    """Bring the tables to this version, whole or not at all. Raises `JournalError` for those of the future."""
    if _version(connection, name) == SCHEMA:
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        # Another process may have been faster.
        for version in range(_version(connection, name) + 1, SCHEMA + 1):
            # Not executescript(): it would commit first.
            for statement in _MIGRATIONS[version].split(";"):
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version={version}")
        connection.execute(f"PRAGMA application_id={APPLICATION_ID}")
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def _version(connection: sqlite3.Connection, name: str) -> int:
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    if version > SCHEMA:
        raise JournalError(
            f"{name} has schema {version}; this version of Exeunt knows up to {SCHEMA}: update Exeunt"
        )
    return version
