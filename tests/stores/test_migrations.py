"""Journals of earlier versions become those of today, whole or not at all."""

import sqlite3
from collections.abc import Generator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

from exeunt.stores import postgres_schema, sqlite_schema
from exeunt.stores.paging import listing
from exeunt.stores.postgres import PostgresStore
from exeunt.stores.sqlite import SqliteStore
from exeunt.supervisor.journal import Row, Store

ROWS = [
    Row("hamlet", 1, 3, 3.0, b"slice", "globe", 1.0),
    Row("iago", 1, 1, 4.0, b"villain", "rose", 4.0),
    Row("lear", 1, 2, 2.0, b"king", "globe", 2.0),
    Row("nobody", 1, 1, 5.0, b"alone", "", 5.0),
]


@contextmanager
def opened(store: Store) -> Generator[Store]:
    store.open()
    try:
        yield store
    finally:
        store.close()


class InSqlite:
    """A file that stores of several versions open, one after another."""

    schema = sqlite_schema

    def __init__(self, path: Path) -> None:
        self._path = path

    def opened(self) -> AbstractContextManager[Store]:
        return opened(SqliteStore(self._path))

    def ask(self, query: str) -> list[Any]:
        with closing(sqlite3.connect(self._path)) as connection:
            return connection.execute(query).fetchall()

    def version(self) -> int:
        version: int = self.ask("PRAGMA user_version")[0][0]
        return version

    def plan(self, tenant: str | None) -> str:
        query, values = listing(sqlite_schema.listed_from(tenant), "?", tenant, None)
        with closing(sqlite3.connect(self._path)) as connection:
            return str(connection.execute(f"EXPLAIN QUERY PLAN {query}", (*values, 2)).fetchall())


class InPostgres:
    """The same in a schema of PostgreSQL."""

    schema = postgres_schema

    def __init__(self, url: str) -> None:
        self._url = url

    def opened(self) -> AbstractContextManager[Store]:
        return opened(PostgresStore(self._url))

    def ask(self, query: str) -> list[Any]:
        with psycopg.connect(self._url) as connection:
            return connection.execute(query.encode()).fetchall()

    def version(self) -> int:
        version: int = self.ask("SELECT version FROM exeunt_schema")[0][0]
        return version

    def plan(self, tenant: str | None) -> str:
        query, values = listing("exeunt_sessions", "%s", tenant, None)
        with psycopg.connect(self._url) as connection:
            # Of four rows, reading all of them is the best plan.
            connection.execute("SET enable_seqscan = off")
            connection.execute("SET enable_bitmapscan = off")
            return str(connection.execute(f"EXPLAIN {query}".encode(), (*values, 2)).fetchall())


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> InSqlite | InPostgres:
    if request.param == "sqlite":
        return InSqlite(tmp_path / "journal.sqlite3")
    return InPostgres(request.getfixturevalue("postgres_url"))


def in_version(monkeypatch: pytest.MonkeyPatch, database: InSqlite | InPostgres, version: int) -> None:
    monkeypatch.setattr(database.schema, "SCHEMA", version)


def names(store: Store, tenant: str | None) -> list[str]:
    """All sessions of a tenant, in pages of one."""
    found: list[str] = []
    page: str | None = None
    while True:
        part, page = store.list(tenant, 1, page)
        found += [session.session_id for session in part]
        if page is None:
            return found


def test_a_journal_of_the_first_version_keeps_all_that_it_holds(
    database: InSqlite | InPostgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as then:
        in_version(then, database, 1)
        with database.opened() as store:
            assert store.write(ROWS) == []
            store.write_snapshot("hamlet", 2, b"snapshot")
        assert database.version() == 1
    with database.opened() as store:
        assert [session.tenant for session in store.list(None, 9, None)[0]] == ["", "rose", "globe", "globe"]
        assert [list(store.read(row.session_id, 1)) for row in ROWS] == [[row.data] for row in ROWS]
        assert store.read_snapshot("hamlet") == (2, b"snapshot")
        assert store.write([Row("hamlet", 4, 4, 6.0, b"more")]) == []
        assert names(store, "globe") == ["hamlet", "lear"]
    assert database.version() == 2


def test_a_step_that_fails_leaves_the_journal_as_it_was(
    database: InSqlite | InPostgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    with database.opened() as store:
        store.write(ROWS)
    before = database.version()
    with monkeypatch.context() as broken:
        in_version(broken, database, before + 2)
        steps = {
            before + 1: "CREATE TABLE exeunt_acts (name TEXT)",
            before + 2: "CREATE TABLE exeunt_scenes (name TEXT); CREATE TABLE exeunt_acts (name TEXT)",
        }
        broken.setattr(database.schema, "_MIGRATIONS", {**vars(database.schema)["_MIGRATIONS"], **steps})
        with pytest.raises(Exception, match="exeunt_acts"), database.opened():
            pass
    assert database.version() == before
    with database.opened() as store:
        assert names(store, None) == ["nobody", "iago", "hamlet", "lear"]
    # Nothing of the first step is left either: the next try can make it again.
    with monkeypatch.context() as mended:
        in_version(mended, database, before + 1)
        mended.setattr(
            database.schema,
            "_MIGRATIONS",
            {**vars(database.schema)["_MIGRATIONS"], before + 1: "CREATE TABLE exeunt_acts (name TEXT)"},
        )
        with database.opened() as store:
            assert names(store, "rose") == ["iago"]


def test_sessions_of_a_tenant_are_found_without_a_look_at_those_of_others(
    database: InSqlite | InPostgres,
) -> None:
    with database.opened() as store:
        store.write(ROWS)
        assert names(store, "globe") == ["hamlet", "lear"]
        assert names(store, "") == ["nobody"]
        assert names(store, "swan") == []
    assert "sessions_by_tenant" in database.plan("globe")
    assert "sessions_by_use" in database.plan("")
    assert "sessions_by_use" in database.plan(None)
