"""What a journal needs of every database, whatever it is."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from exeunt.stores.postgres import FEW, PostgresStore
from exeunt.stores.sqlite import SqliteStore
from exeunt.supervisor.journal import Store
from exeunt.testing.faulty_store import MemoryStore
from tests.stores.store_rows import row


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    opened: Store
    match request.param:
        case "memory":
            opened = MemoryStore()
        case "sqlite":
            opened = SqliteStore(tmp_path / "journal.db")
        case _:
            opened = PostgresStore(request.getfixturevalue("postgres_url"))
    opened.open()
    yield opened
    opened.close()


def last_seq(store: Store, session_id: str) -> int:
    found = store.find(session_id)
    assert found is not None
    return found.last_seq


@pytest.mark.parametrize("count", [2, FEW, FEW + 1, 300])
def test_a_batch_of_any_size_leaves_out_exactly_the_sessions_that_do_not_follow(
    count: int, store: Store
) -> None:
    ids = [f"session {number:03}" for number in range(count)]
    assert store.write([row(name, 1, 3) for name in ids]) == []
    assert store.write([row(ids[0], 4), row(ids[1], 4)]) == []
    batch = [row(name, 4, 5, data=b"late") for name in reversed(ids)]
    assert store.write(batch) == ids[:2]
    assert store.read(ids[0], 1) == [b"slice", b"slice"]
    if count > 2:
        assert store.read(ids[2], 1) == [b"slice", b"late"]
    assert [last_seq(store, name) for name in ids[:3]] == [4, 4, 5][:count]


@pytest.mark.parametrize("count", [1, FEW + 1])
def test_what_is_written_again_after_a_lost_answer_is_taken_for_what_it_is(count: int, store: Store) -> None:
    batch = [row(f"session {number}", 1, 2) for number in range(count)]
    assert store.write(batch) == []
    assert store.write(batch) == []
    more = [row(f"session {number}", 3) for number in range(count)]
    assert store.write(more) == []
    assert store.write(more) == []
    assert store.write([row("session 0", 3, data=b"of another")]) == ["session 0"]
    assert store.read("session 0", 1) == [b"slice", b"slice"]


def test_several_slices_of_a_session_are_one_step(store: Store) -> None:
    assert store.write([row("hamlet", 1, 2), row("hamlet", 3, 3), row("ophelia", 1)]) == []
    assert store.read("hamlet", 1) == [b"slice", b"slice"]
    assert store.write([row("hamlet", 4), row("hamlet", 5), row("ophelia", 3)]) == ["ophelia"]
    assert last_seq(store, "hamlet") == 5


def test_a_read_begins_with_the_slice_that_holds_the_number(store: Store) -> None:
    store.write([row("hamlet", first, first + 9, data=str(first).encode()) for first in range(1, 100, 10)])
    assert store.read("hamlet", 35) == [str(first).encode() for first in range(31, 100, 10)]
    assert store.read("hamlet", 31, 1) == [b"31"]
    assert store.read("hamlet", 101) == []
    assert store.read("nobody", 1) == []


def test_a_snapshot_is_kept_for_a_session_that_has_its_events(store: Store) -> None:
    store.write_snapshot("hamlet", 1, b"nobody")
    assert store.read_snapshot("hamlet") is None
    store.write([row("hamlet", 1, 5)])
    store.write_snapshot("hamlet", 6, b"of the future")
    assert store.read_snapshot("hamlet") is None
    store.write_snapshot("hamlet", 4, b"four")
    store.write_snapshot("hamlet", 3, b"older")
    assert store.read_snapshot("hamlet") == (4, b"four")
    store.write_snapshot("hamlet", 5, b"five")
    assert store.read_snapshot("hamlet") == (5, b"five")
    assert store.delete("hamlet")
    store.write_snapshot("hamlet", 5, b"too late")
    assert store.read_snapshot("hamlet") is None
    assert not store.delete("hamlet")


def test_closing_twice_is_closing_once(store: Store) -> None:
    store.close()
    store.close()
