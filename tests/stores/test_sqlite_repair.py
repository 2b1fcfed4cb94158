"""What is whole in a damaged file: each damaged session by name, each intact event kept."""

import json
import random
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from exeunt.actors.errors import InvalidConfiguration, JournalError
from exeunt.stores.repair import Report, repair, verify
from exeunt.stores.sqlite import SqliteStore
from exeunt.stores.sqlite_schema import SCHEMA
from exeunt.testing.journal_events import same, some_events
from tests.stores.sqlite_support import Logs, fill, live_copy, page_size, read, write


def kept(path: Path, logs: Logs) -> dict[str, int]:
    """Return how many events of each session a repaired file has; they must be the first ones that were written."""
    store = SqliteStore(path)
    store.open()
    counts: dict[str, int] = {}
    for name, log in logs.items():
        events = read(store, name)
        assert same(events, log[: len(events)])
        counts[name] = len(events)
    store.close()
    return counts


def check_sums(report: Report, logs: Logs, counts: dict[str, int]) -> None:
    """What is kept, set aside and lost must be all that there was; what is not named must be whole."""
    damaged = {session.session_id: session for session in report.damaged}
    for name, log in logs.items():
        if name in damaged:
            session = damaged[name]
            assert counts[name] == session.whole
            assert session.whole + session.behind + session.lost == len(log)
        else:
            assert counts[name] == len(log), f"{name} is not whole, and is not named"


def test_a_whole_journal_is_intact_and_repairs_to_itself(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    logs = fill(path, sessions=30, text="y" * 3_000)
    content = path.read_bytes()
    report = verify(path)
    assert report.intact
    assert (report.sessions, report.events) == (30, 30 * 18)
    report = repair(path, tmp_path / "repaired.db")
    assert report.intact
    assert report.fragments is None
    assert kept(tmp_path / "repaired.db", logs) == dict.fromkeys(logs, 18)
    assert verify(tmp_path / "repaired.db") == Report(tmp_path / "repaired.db", 30, 540, [], [])
    before, after = SqliteStore(path), SqliteStore(tmp_path / "repaired.db")
    before.open()
    after.open()
    assert before.list(None, 100, None) == after.list(None, 100, None)
    before.close()
    after.close()
    assert path.read_bytes() == content


def test_a_journal_can_be_verified_while_it_is_written(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "journal.db")
    store.open()
    events = some_events("hamlet", 9)
    for event in events:
        write(store, "hamlet", [event])
        assert verify(tmp_path / "journal.db").intact
    store.close()


@pytest.mark.parametrize("length", [200, 6_000])
def test_what_stands_only_in_the_write_ahead_log_is_kept(length: int, tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "journal.db")
    store.open()
    events = some_events("hamlet", 9, text="x" * length)
    for event in events:
        write(store, "hamlet", [event])
    copy = live_copy(tmp_path / "journal.db", tmp_path / "copy.db")
    store.close()
    wal = copy.with_name("copy.db-wal")
    wal.write_bytes(wal.read_bytes()[:-10])  # the last commit is torn
    # A reading connection would bring the log into the file; repair must be able to do without.
    content = copy.read_bytes()
    copy.write_bytes(b"\0" * 10 + content[10:])
    report = repair(copy, tmp_path / "repaired.db")
    assert kept(tmp_path / "repaired.db", {"hamlet": events}) == {"hamlet": 8}
    assert report.events == 8


@pytest.mark.parametrize("seed", range(12))
def test_any_damaged_pages_cost_only_what_is_on_them(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    path = tmp_path / "journal.db"
    logs = fill(path, sessions=25, slices=5, text="z" * chance.choice([100, 900, 7_000]))
    size = page_size(path)
    content = bytearray(path.read_bytes())
    pages = len(content) // size
    for _ in range(chance.randint(1, 4)):
        number = chance.randrange(pages)
        begin, length = number * size, chance.choice([1, 64, size])
        place = begin + chance.randrange(size - length + 1)
        content[place : place + length] = bytes(length) if chance.random() < 0.5 else chance.randbytes(length)
    if chance.random() < 0.3:
        del content[-chance.randrange(1, 2 * size) :]
    path.write_bytes(content)

    report = repair(path, tmp_path / "repaired.db")
    counts = kept(tmp_path / "repaired.db", logs)
    named = {session.session_id for session in report.damaged}
    for name, log in logs.items():
        assert counts[name] == len(log) or name in named or report.problems
    assert verify(tmp_path / "repaired.db").intact
    aside = 0 if report.fragments is None else len(report.fragments.read_text().splitlines())
    assert sum(counts.values()) + aside == report.events
    # A page holds a few slices of small sessions, or parts of one big one.
    assert report.events >= 25 * 15 - 5 * 40 * 3


def test_intact_events_behind_a_gap_are_set_aside(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    logs = fill(path, sessions=3, slices=4)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DELETE FROM slices WHERE session_id = 'session 001' AND first_seq = 4")
        connection.execute("DELETE FROM slices WHERE session_id = 'session 002' AND first_seq = 10")
    report = verify(path)
    assert [(each.session_id, each.whole, each.behind, each.lost) for each in report.damaged] == [
        ("session 001", 3, 6, 3),
        ("session 002", 9, 0, 3),
    ]
    assert [each.problem for each in report.damaged] == ["event 4 is missing", "event 10 is missing"]
    report = repair(path, tmp_path / "repaired.db")
    check_sums(report, logs, kept(tmp_path / "repaired.db", logs))
    assert report.fragments is not None
    assert report.fragments.stat().st_mode & 0o777 == 0o600
    lines = [json.loads(line) for line in report.fragments.read_text().splitlines()]
    assert [(line["session_id"], line["event"]["seq"]) for line in lines] == [
        ("session 001", seq) for seq in range(7, 13)
    ]
    assert lines[0]["event"]["id"] == logs["session 001"][6].id


def test_a_bit_that_fell_over_in_a_value_is_found(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    logs = fill(path, text="y" * 5_000, slices=4)
    content = bytearray(path.read_bytes())
    content[content.rfind(b"y" * 500) + 100] ^= 0x01
    path.write_bytes(content)
    report = verify(path)
    assert not report.problems  # SQLite sees nothing wrong
    (session,) = report.damaged
    assert "checksum" in session.problem
    repaired = repair(path, tmp_path / "repaired.db")
    check_sums(repaired, logs, kept(tmp_path / "repaired.db", logs))


def test_sessions_that_fell_out_of_the_list_are_found(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    logs = fill(path, sessions=3)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DELETE FROM sessions WHERE session_id = 'session 001'")
    (session,) = verify(path).damaged
    assert (session.session_id, session.problem) == ("session 001", "it is not in the list of sessions")
    repair(path, tmp_path / "repaired.db")
    assert kept(tmp_path / "repaired.db", logs) == dict.fromkeys(logs, 18)


def test_what_was_deleted_is_not_brought_back(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    fill(path, sessions=12, text="y" * 2_000)
    store = SqliteStore(path)
    store.open()
    for number in range(0, 12, 2):
        store.delete(f"session {number:03}")
    store.close()
    report = repair(path, tmp_path / "repaired.db")
    assert report.intact
    assert report.sessions == 6


def test_what_is_no_journal_is_refused(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_bytes(b"To be, or not to be" * 1_000)
    with closing(sqlite3.connect(tmp_path / "plays.db")) as connection:
        connection.execute("CREATE TABLE plays (name)")
    fill(tmp_path / "future.db", sessions=1)
    with closing(sqlite3.connect(tmp_path / "future.db")) as connection:
        connection.execute(f"PRAGMA user_version={SCHEMA + 1}")
    for name, reason in {
        "letter.txt": "nothing of a journal",
        "plays.db": "another program",
        "future.db": "schema",
        "nowhere.db": "no journal",
    }.items():
        with pytest.raises(JournalError, match=reason):
            verify(tmp_path / name)
        with pytest.raises(JournalError, match=reason):
            repair(tmp_path / name, tmp_path / "new.db")
    assert not (tmp_path / "new.db").exists()


def test_a_repair_writes_over_nothing(tmp_path: Path) -> None:
    fill(tmp_path / "journal.db", sessions=1)
    (tmp_path / "there.db").write_bytes(b"mine")
    (tmp_path / "new.db.fragments.jsonl").write_bytes(b"mine")
    for name in ("there.db", "new.db"):
        with pytest.raises(InvalidConfiguration, match="exists"):
            repair(tmp_path / "journal.db", tmp_path / name)
    assert (tmp_path / "there.db").read_bytes() == b"mine"
    assert not (tmp_path / "new.db").exists()
