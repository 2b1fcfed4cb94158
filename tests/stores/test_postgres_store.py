"""PostgreSQL that restarts, crashes, freezes, locks and refuses; and what is never told to anybody."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from urllib.parse import quote

import psycopg
import pytest
import trio

from exeunt import HostOptions, open_host
from exeunt.actors.errors import InvalidConfiguration, JournalError
from exeunt.stores import journal_from_url, postgres_connections
from exeunt.stores.postgres import PostgresStore
from exeunt.stores.postgres_schema import SCHEMA
from exeunt.supervisor.journal import Row, StoreUnavailable
from exeunt.supervisor.journal.durable import DurableJournal
from exeunt.testing import ScriptedModel
from exeunt.testing.faulty_store import FaultyStore
from exeunt.testing.journal_events import same, some_events
from exeunt.testing.journals import running_journal
from tests.stores.postgres_server import START_SECONDS, PostgresServer
from tests.stores.store_rows import row


@pytest.fixture
def store(postgres_url: str) -> Iterator[PostgresStore]:
    opened = PostgresStore(postgres_url)
    opened.open()
    yield opened
    opened.close()


def test_a_tenant_with_a_character_that_postgresql_has_not_is_found_by_it(store: PostgresStore) -> None:
    store.write([Row("hamlet", 1, 1, 1.0, b"slice", "zero \0 zero", 1.0)])
    (found,), _ = store.list("zero \0 zero", 10, None)
    assert found.session_id == "hamlet"


# --- Opening -----------------------------------------------------------------------------------------------------


def test_hosts_may_make_the_tables_at_the_same_time(postgres_url: str) -> None:
    errors: list[Exception] = []

    def open_and_close() -> None:
        store = PostgresStore(postgres_url)
        try:
            store.open()
        except Exception as error:  # noqa: BLE001 - shown below
            errors.append(error)
        finally:
            store.close()

    threads = [threading.Thread(target=open_and_close) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []


def test_tables_of_a_future_version_are_refused(postgres_url: str, store: PostgresStore) -> None:
    with psycopg.connect(postgres_url) as connection:
        connection.execute("UPDATE exeunt_schema SET version = %s", (SCHEMA + 1,))
    another = PostgresStore(postgres_url)
    with pytest.raises(JournalError, match=f"schema {SCHEMA + 1}"):
        another.open()
    another.close()


def test_a_database_that_is_not_there_is_unavailable(postgres: PostgresServer) -> None:
    store = PostgresStore(postgres.url("nowhere"))
    with pytest.raises(StoreUnavailable, match="does not exist"):
        store.open()
    store.close()


def test_a_closed_store_is_unavailable(store: PostgresStore) -> None:
    store.close()
    store.close()
    for call in (lambda: store.write([row("hamlet", 1)]), lambda: store.find("hamlet")):
        with pytest.raises(StoreUnavailable, match="closed"):
            call()


def test_without_psycopg_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(InvalidConfiguration, match=r"pip install 'exeunt\[postgres\]'"):
        journal_from_url("postgresql://localhost/exeunt")


def test_psycopg_is_imported_only_when_it_is_used() -> None:
    program = "import sys, exeunt, exeunt.stores, exeunt.stores.sqlite; sys.exit('psycopg' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ann:s3cret@127.0.0.1:1/plays",
        "postgresql://ann@127.0.0.1:1/plays?password=s3cret",
        "postgresql://ann:s3cret@127.0.0.1:not-a-port/plays",
        "postgresql://ann:s3cret@127.0.0.1:1/plays?wrong=option",
        "postgresql://ann:s3cret@[127.0.0.1/plays",
    ],
)
def test_the_password_is_in_no_name_and_no_message(url: str) -> None:
    texts: list[str] = []
    try:
        journal = journal_from_url(url)
        assert isinstance(journal, DurableJournal)
        texts.append(journal.statistics().store)
        PostgresStore(url).open()
    except (StoreUnavailable, InvalidConfiguration) as error:
        texts.append(repr(error))
    assert [text for text in texts if "s3cret" in text] == []
    assert texts


# --- Outages -----------------------------------------------------------------------------------------------------


def test_a_connection_that_was_lost_is_made_anew_within_the_call(
    postgres: PostgresServer, store: PostgresStore
) -> None:
    store.write([row("hamlet", 1)])
    assert store.find("hamlet") is not None
    for seq in (2, 3):
        for pid in postgres.backends():
            os.kill(pid, signal.SIGTERM)
        assert store.write([row("hamlet", seq)]) == []
        found = store.find("hamlet")
        assert found is not None
        assert found.last_seq == seq
        assert store.delete("nobody") is False


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGQUIT])
async def test_a_server_that_ends_or_crashes_is_waited_for_and_nothing_is_lost(
    how: signal.Signals, postgres: PostgresServer, postgres_url: str
) -> None:
    store = FaultyStore(PostgresStore(postgres_url))  # without a fault: it counts attempts
    async with running_journal(store) as journal:
        log = await journal.create("hamlet")
        events = some_events("hamlet", 40)
        for event in events[:20]:
            log.append([event])
            await log.wait_durable(event.seq)
        await trio.to_thread.run_sync(postgres.stop, how)
        try:
            with pytest.raises(StoreUnavailable):
                await journal.read("hamlet")
            log.append(events[20:30])
            journal.flush(log)
            await store.wait_attempts(store.attempts + 3)
            assert not journal.has_room
        finally:
            with trio.move_on_after(START_SECONDS, shield=True):
                await trio.to_thread.run_sync(postgres.start)
        log.append(events[30:])
        await log.wait_durable(40)
        assert journal.has_room
        assert same(await journal.read("hamlet"), events)


def test_a_server_that_does_not_answer_is_given_up_in_time(
    postgres: PostgresServer, store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_connections, "SILENCE_SECONDS", 0.2)
    monkeypatch.setattr(postgres_connections, "CONNECT_SECONDS", 2)
    another = PostgresStore(postgres.url("postgres"))  # has its own watchdog, with the shorter patience
    calls: list[Callable[[PostgresStore], object]] = [
        lambda store: store.write([row("hamlet", 1)]),
        lambda store: store.find("hamlet"),
    ]
    another.open()
    another.find("hamlet")
    frozen = postgres.backends()
    try:
        for pid in frozen:
            os.kill(pid, signal.SIGSTOP)
        postgres.freeze()
        for call in calls:
            with pytest.raises(StoreUnavailable):
                call(another)
    finally:
        postgres.thaw()
        for pid in frozen:
            os.kill(pid, signal.SIGCONT)
    for call in calls:
        call(another)
    another.delete("hamlet")
    another.close()


def test_a_row_that_somebody_holds_makes_the_store_unavailable_until_it_is_free(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_connections, "LOCK_SECONDS", 0.1)
    store = PostgresStore(postgres_url)
    store.open()
    store.write([row("hamlet", 1)])
    with psycopg.connect(postgres_url) as holder:
        holder.execute("SELECT * FROM exeunt_sessions FOR UPDATE")
        with pytest.raises(StoreUnavailable, match="lock"):
            store.write([row("hamlet", 2)])
    assert store.write([row("hamlet", 2)]) == []
    store.close()


def test_a_standby_is_unavailable(postgres_url: str, store: PostgresStore) -> None:
    another = PostgresStore(postgres_url + quote(" -c default_transaction_read_only=on"))
    with pytest.raises(StoreUnavailable, match="read-only"):
        another.open()
    another.close()


def test_commits_are_durable_whatever_the_database_prefers(postgres_url: str) -> None:
    connections = postgres_connections.Connections(postgres_url + quote(" -c synchronous_commit=off"))
    connections.open()
    setting = connections.write(
        "read", lambda connection: connection.execute("SHOW synchronous_commit").fetchone()
    )
    assert setting == ("on",)
    connections.close()


async def test_a_host_waits_for_a_server_that_starts_after_it(
    postgres: PostgresServer, postgres_url: str
) -> None:
    await trio.to_thread.run_sync(postgres.stop)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.to_thread.run_sync, postgres.start)
        async with open_host(journal=postgres_url, options=HostOptions(journal_wait=60)) as host:
            session = await host.create_session(model=ScriptedModel(["hello"]))
            assert (await session.send_and_wait("hi")).content == "hello"
