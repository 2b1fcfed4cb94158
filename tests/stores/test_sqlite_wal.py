"""What is counted as cut off at the end of a write-ahead log, and what only looks like it."""

import io
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from exeunt.stores.sqlite import SqliteStore
from exeunt.stores.sqlite_wal import FRAME_HEADER_SIZE, HEADER_SIZE, behind_last_commit
from exeunt.testing.journal_events import some_events
from tests.stores.sqlite_support import live_copy, page_size, read, write


@pytest.fixture
def left(tmp_path: Path) -> Path:
    """A journal as a killed process leaves it: two events of one session, and a log that is whole."""
    store = SqliteStore(tmp_path / "running.db")
    store.open()
    for event in some_events("hamlet", 2, text="x" * 9_000):
        write(store, "hamlet", [event])
    copy = live_copy(tmp_path / "running.db", tmp_path / "left.db")
    store.close()
    assert opened(copy, close=False) == 0
    return copy


def log_of(path: Path) -> Path:
    return path.with_name(f"{path.name}-wal")


def opened(path: Path, *, close: bool = True) -> int:
    """Return what opening the journal counts. A close that is clean would bring the log into the database."""
    if not close:
        path = live_copy(path, path.with_name(f"look-at-{path.name}"))
    store = SqliteStore(path)
    store.open()
    counted = store.truncated_bytes
    assert len(read(store, "hamlet")) <= 2
    store.close()
    return counted


def test_zeros_behind_the_last_commit_are_counted(left: Path) -> None:
    for zeros in (1, 7, 23, 24, 5_000, 3 * page_size(live_copy(left, left.with_name("size.db")))):
        padded = live_copy(left, left.with_name(f"padded-{zeros}.db"))
        with log_of(padded).open("ab") as file:
            file.write(bytes(zeros))
        assert opened(padded) == zeros


def test_a_byte_that_fell_over_ends_the_log_where_it_stands(left: Path) -> None:
    frame = FRAME_HEADER_SIZE + page_size(live_copy(left, left.with_name("size.db")))
    content = log_of(left).read_bytes()
    assert (len(content) - HEADER_SIZE) % frame == 0
    for place in (len(content) - 1, len(content) - frame + 1, len(content) - frame + 20):
        fallen = live_copy(left, left.with_name(f"fallen-{place}.db"))
        changed = bytearray(content)
        changed[place] ^= 0x40
        log_of(fallen).write_bytes(changed)
        dropped = opened(fallen)
        assert dropped >= frame
        assert dropped % frame == 0


def test_a_header_that_was_cut_off_takes_all_behind_it_along(left: Path) -> None:
    content = bytearray(log_of(left).read_bytes())
    content[5] ^= 0xFF
    log_of(left).write_bytes(content)
    assert opened(left) == len(content)


def test_frames_of_an_earlier_round_are_no_torn_tail(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "running.db")
    store.open()
    for event in some_events("hamlet", 2, text="x" * 50_000):
        write(store, "hamlet", [event])
    with closing(sqlite3.connect(tmp_path / "running.db")) as other:
        other.execute("PRAGMA wal_checkpoint(FULL)")
    size = log_of(tmp_path / "running.db").stat().st_size
    # The next commit begins the log anew and leaves most of the old frames behind it.
    write(store, "ophelia", some_events("ophelia", 1))
    assert log_of(tmp_path / "running.db").stat().st_size == size
    copy = live_copy(tmp_path / "running.db", tmp_path / "left.db")
    store.close()
    assert opened(copy) == 0


def test_what_another_process_is_writing_is_not_counted(left: Path) -> None:
    with closing(sqlite3.connect(left, isolation_level=None)) as other:
        # A page cache this small lets an open transaction spill into the log.
        other.execute("PRAGMA cache_size=1")
        other.execute("BEGIN IMMEDIATE")
        other.execute("INSERT INTO snapshots VALUES ('hamlet', 1, zeroblob(200000))")
        assert log_of(left).stat().st_size > 200_000
        store = SqliteStore(left)
        store.open()
        assert store.truncated_bytes == 0
        other.execute("COMMIT")
        store.close()


def test_what_sqlite_knows_of_the_log_only_saves_the_reading(left: Path) -> None:
    """Another process may have gone on with the log, or begun it anew, since SQLite was asked."""
    frame = FRAME_HEADER_SIZE + page_size(live_copy(left, left.with_name("size.db")))
    content = log_of(left).read_bytes()
    frames = (len(content) - HEADER_SIZE) // frame
    sizes = [content[HEADER_SIZE + number * frame :][4:8] for number in range(frames)]
    commits = [number + 1 for number, size in enumerate(sizes) if size != bytes(4)]
    assert len(commits) > 2
    assert commits[-1] == frames
    for torn in (b"", bytes(10), content[-frame:], content[-frame : -frame // 2]):
        file = io.BytesIO(content + torn)
        assert [behind_last_commit(file, known) for known in (0, *commits)] == [len(torn)] * (
            len(commits) + 1
        )
        # Of a round that ended: its frames are not there any more.
        assert behind_last_commit(file, frames + 5) == len(torn)
    cut_off = io.BytesIO(content[: HEADER_SIZE + (commits[1] + 1) * frame - 1])
    assert behind_last_commit(cut_off, 0) == frame - 1


def test_a_torn_tail_is_named_in_the_log_of_the_process(left: Path, caplog: pytest.LogCaptureFixture) -> None:
    with log_of(left).open("ab") as file:
        file.write(bytes(100))
    opened(left)
    (record,) = caplog.records
    assert record.levelname == "WARNING"
    assert "100 bytes" in record.getMessage()
    assert str(left) in record.getMessage()
