"""The tables of a PostgreSQL journal, and how they came to be."""

from typing import TYPE_CHECKING, Any

from exeunt.actors.errors import JournalError

if TYPE_CHECKING:
    import psycopg

SCHEMA = 2
"""Version of the tables, kept in the table `exeunt_schema`."""

LOCK = 0x45584E54
"""Number of the advisory lock under which tables are made ("EXNT"): hosts may start at the same time."""

# Ids compare byte by byte, as in SQLite, whatever language the database sorts by.
_MIGRATIONS = {
    1: """
    CREATE TABLE exeunt_sessions (
        session_id text COLLATE "C" PRIMARY KEY, tenant text COLLATE "C" NOT NULL, start_time float8 NOT NULL,
        modified_time float8 NOT NULL, last_seq bigint NOT NULL
    );
    CREATE INDEX exeunt_sessions_by_use ON exeunt_sessions (modified_time DESC, session_id);
    CREATE TABLE exeunt_slices (
        session_id text COLLATE "C" NOT NULL, first_seq bigint NOT NULL, last_seq bigint NOT NULL,
        data bytea NOT NULL, PRIMARY KEY (session_id, first_seq)
    );
    CREATE TABLE exeunt_snapshots (
        session_id text COLLATE "C" PRIMARY KEY, seq bigint NOT NULL, data bytea NOT NULL
    );
    """,
    # Only of tenants with a name: who has none pays nothing for it at each write.
    2: """
    CREATE INDEX exeunt_sessions_by_tenant ON exeunt_sessions (tenant, modified_time DESC, session_id)
        WHERE tenant <> '';
    """,
}
"""What leads to each version from the one before."""


def migrate(connection: "psycopg.Connection[tuple[Any, ...]]") -> None:
    """Bring the tables to this version, whole or not at all. Raises `JournalError` for those of the future."""
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (LOCK,))
        connection.execute("CREATE TABLE IF NOT EXISTS exeunt_schema (version integer NOT NULL)")
        rows = connection.execute("SELECT version FROM exeunt_schema").fetchall()
        version: int = max((row[0] for row in rows), default=0)
        if version > SCHEMA:
            raise JournalError(
                f"the database has schema {version}; this version of Exeunt knows up to {SCHEMA}: update Exeunt"
            )
        for number in range(version + 1, SCHEMA + 1):
            connection.execute(_MIGRATIONS[number].encode())
            connection.execute("DELETE FROM exeunt_schema")
            connection.execute("INSERT INTO exeunt_schema VALUES (%s)", (number,))
