"""Files that are torn, cut, zeroed or foreign: an error with a name, and never another log than was written."""

import os
import random
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from exeunt.actors.errors import InvalidConfiguration, JournalError
from exeunt.stores.sqlite import SqliteStore
from exeunt.stores.sqlite_schema import APPLICATION_ID, SCHEMA
from exeunt.stores.sqlite_wal import HEADER_SIZE
from exeunt.supervisor.journal import StoreDamaged, StoreUnavailable
from exeunt.testing.journal_events import same, some_events
from tests.stores.sqlite_support import Logs, fill, live_copy, page_size, read, write

NOBODY = 65534
"""A user without rights, where tests run as one who may do everything."""


def readable(path: Path, logs: Logs) -> dict[str, bool]:
    """Return, for each session, whether it can be read; what can be read must be a beginning of what was written."""
    store = SqliteStore(path)
    found: dict[str, bool] = {}
    try:
        store.open()
        for name, log in logs.items():
            try:
                events = read(store, name)
            except StoreDamaged:
                found[name] = False
            else:
                found[name] = same(events, log)
                assert found[name] or same(events, log[: len(events)]), (
                    f"{name} was read otherwise than written"
                )
    except StoreDamaged:
        return dict.fromkeys(logs, False)
    finally:
        store.close()
    return found


def test_a_file_cut_anywhere_in_its_last_page_is_damaged_and_nothing_wrong_is_read(tmp_path: Path) -> None:
    logs = fill(tmp_path / "whole.db")
    whole = (tmp_path / "whole.db").read_bytes()
    size = page_size(tmp_path / "whole.db")
    cuts = {1, 2, size // 2, size - 1, size, *random.Random(3).sample(range(1, size), 20)}
    for cut in sorted(cuts):
        path = tmp_path / f"cut-{cut}.db"
        path.write_bytes(whole[: len(whole) - cut])
        assert not all(readable(path, logs).values()), f"{cut} bytes are missing, and nobody noticed"


def test_a_write_ahead_log_cut_anywhere_loses_only_the_commits_behind_the_cut(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "whole.db")
    store.open()
    events = some_events("hamlet", 12, text="x" * 200)
    wal = tmp_path / "whole.db-wal"
    tables = wal.stat().st_size
    ends: list[int] = []
    for event in events:
        write(store, "hamlet", [event])
        ends.append(wal.stat().st_size)
    live = live_copy(tmp_path / "whole.db", tmp_path / "live.db")
    store.close()
    content = live.with_name("live.db-wal").read_bytes()
    edges = [cut for end in ends for cut in (end - 1, end, end + 1) if cut <= len(content)]
    for cut in {0, 10, 32, *edges, *random.Random(4).sample(range(len(content)), 15)}:
        path = tmp_path / f"cut-{cut}.db"
        path.write_bytes(live.read_bytes())
        path.with_name(path.name + "-wal").write_bytes(content[:cut])
        again = SqliteStore(path)
        again.open()
        survivors = sum(end <= cut for end in ends)
        whole = max(end for end in (0, HEADER_SIZE, tables, *ends) if end <= cut)
        assert again.truncated_bytes == cut - whole
        assert same(read(again, "hamlet"), events[:survivors]), f"the log was cut at {cut}"
        assert write(again, "hamlet", some_events("hamlet", survivors + 1, first_seq=survivors + 1)) == []
        again.close()


def test_a_tail_of_zeros_is_damage_of_the_sessions_in_it(tmp_path: Path) -> None:
    logs = fill(tmp_path / "journal.db", sessions=20)
    path = tmp_path / "journal.db"
    content = path.read_bytes()
    size = page_size(path)
    for pages in (1, 2, 5):
        zeroed = tmp_path / f"zeroed-{pages}.db"
        zeroed.write_bytes(content[: -pages * size] + bytes(pages * size))
        assert not all(readable(zeroed, logs).values())


def test_a_damaged_page_of_one_session_leaves_the_others_readable(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    logs = fill(path, text="y" * 5_000, slices=4)
    content = bytearray(path.read_bytes())
    place = content.rfind(b"y" * 500)
    content[place + 100] ^= 0x01
    path.write_bytes(content)
    found = readable(path, logs)
    assert sorted(found.values()) == [False, *[True] * (len(logs) - 1)]


def test_a_damaged_list_of_sessions_is_found_when_the_file_is_opened(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    fill(path)
    with closing(sqlite3.connect(path)) as connection:
        (root,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'sessions'").fetchone()
    size = page_size(path)
    content = bytearray(path.read_bytes())
    content[(root - 1) * size : root * size] = random.Random(5).randbytes(size)
    path.write_bytes(content)
    store = SqliteStore(path)
    with pytest.raises(StoreDamaged, match=r"journal\.db"):
        store.open()
    store.close()


@pytest.mark.parametrize(
    "content", [b"To be, or not to be" * 100, b"SQLite format 3\0 and then nothing" * 40]
)
def test_a_file_that_is_no_database_is_refused_and_not_touched(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "letter.txt"
    path.write_bytes(content)
    with pytest.raises(JournalError, match=r"letter\.txt"):
        SqliteStore(path).open()
    assert path.read_bytes() == content
    assert [file.name for file in tmp_path.iterdir()] == ["letter.txt"]


@pytest.mark.parametrize(
    "prepare", ["CREATE TABLE plays (name)", "PRAGMA application_id=7", "PRAGMA user_version=4"]
)
def test_a_database_of_another_program_is_refused_and_not_touched(prepare: str, tmp_path: Path) -> None:
    path = tmp_path / "plays.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(prepare)
    content = path.read_bytes()
    with pytest.raises(JournalError, match="another program"):
        SqliteStore(path).open()
    assert path.read_bytes() == content


def test_a_file_of_a_future_version_is_refused_and_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    fill(path, sessions=1)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA user_version={SCHEMA + 1}")
    content = path.read_bytes()
    with pytest.raises(JournalError, match=f"schema {SCHEMA + 1}"):
        SqliteStore(path).open()
    assert path.read_bytes() == content


def test_an_empty_file_becomes_a_journal_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "new folder" / "journal.db"
    store = SqliteStore(path)
    store.open()
    write(store, "hamlet", some_events("hamlet", 1))
    assert {file.name: oct(file.stat().st_mode & 0o777) for file in path.parent.iterdir()} == {
        "journal.db": "0o600",
        "journal.db-wal": "0o600",
        "journal.db-shm": "0o600",
    }
    store.close()
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA application_id").fetchone() == (APPLICATION_ID,)


def test_two_processes_may_make_the_same_file_at_the_same_time(tmp_path: Path) -> None:
    program = "import sys; from exeunt.stores.sqlite import SqliteStore; SqliteStore(sys.argv[1]).open()"
    processes = [
        subprocess.Popen([sys.executable, "-c", program, str(tmp_path / "journal.db")]) for _ in range(4)
    ]
    assert [process.wait(60) for process in processes] == [0] * 4


@pytest.mark.parametrize("what", ["folder", "file"])
def test_what_may_not_be_written_is_unavailable(what: str, tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    if what == "file":
        fill(path, sessions=1)
    program = (
        "import os, sys\n"
        "from exeunt.stores.sqlite import SqliteStore\n"
        "from exeunt.supervisor.journal import StoreUnavailable\n"
        f"os.geteuid() or os.setuid({NOBODY})\n"
        "try:\n    SqliteStore(sys.argv[1]).open()\n"
        "except StoreUnavailable as error:\n    print(error)\n"
    )
    path.chmod(0o444) if what == "file" else None
    # The folders above a test's are for the user alone who runs it.
    for folder in [tmp_path, *tmp_path.parents][:3]:
        folder.chmod(0o555)
    try:
        run = subprocess.run(
            [sys.executable, "-c", program, str(path)],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
    finally:
        for folder in [tmp_path, *tmp_path.parents][:3]:
            folder.chmod(0o700)
    assert "cannot be opened" in run.stdout, run.stderr
    assert path.exists() == (what == "file")


def test_a_folder_is_no_journal(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable, match="directory"):
        SqliteStore(tmp_path).open()


def test_an_unknown_way_to_synchronise_is_refused() -> None:
    with pytest.raises(InvalidConfiguration, match="'full' or 'normal'"):
        SqliteStore("journal.db", synchronous="off")


def test_another_process_that_holds_the_file_makes_it_unavailable_until_it_lets_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("exeunt.stores.sqlite.BUSY_SECONDS", 0.05)
    path = tmp_path / "journal.db"
    store = SqliteStore(path)
    store.open()
    events = some_events("hamlet", 2)
    write(store, "hamlet", events[:1])
    program = (
        "import sqlite3, sys\n"
        "connection = sqlite3.connect(sys.argv[1], isolation_level=None)\n"
        "connection.execute('BEGIN EXCLUSIVE')\nprint('held', flush=True)\nsys.stdin.read()\n"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", program, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert holder.stdin is not None
    assert holder.stdout is not None
    assert holder.stdout.readline() == b"held\n"
    with pytest.raises(StoreUnavailable, match="locked"):
        write(store, "hamlet", events[1:])
    assert same(read(store, "hamlet"), events[:1])  # readers do not mind
    holder.communicate()
    assert write(store, "hamlet", events[1:]) == []
    assert same(read(store, "hamlet"), events)
    store.close()


class SmallDisk(SqliteStore):
    """A store whose file has a largest size; it stands for that of a disk."""

    def limit(self, more_pages: int) -> None:
        with self._transaction() as writer:
            (pages,) = writer.execute("PRAGMA page_count").fetchone()
            writer.execute(f"PRAGMA max_page_count={pages + more_pages}")


def test_a_full_disk_makes_the_file_unavailable_and_loses_nothing_that_was_written(tmp_path: Path) -> None:
    store = SmallDisk(tmp_path / "journal.db")
    store.open()
    events = some_events("hamlet", 4, text="x" * 50_000)
    write(store, "hamlet", events[:2])
    store.limit(2)
    for _ in range(2):
        with pytest.raises(StoreUnavailable, match="full"):
            write(store, "hamlet", events[2:])
    store.limit(1_000_000)
    assert same(read(store, "hamlet"), events[:2])
    assert write(store, "hamlet", events[2:]) == []
    assert same(read(store, "hamlet"), events)
    store.close()


@pytest.mark.skipif(sys.platform == "win32", reason="limits of a process are a thing of POSIX")
def test_a_file_that_may_not_grow_makes_the_journal_unavailable(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    program = (
        "import resource, signal, sys\n"
        "from exeunt.supervisor.journal import StoreUnavailable\n"
        "from exeunt.stores.sqlite import SqliteStore\n"
        "from exeunt.testing.journal_events import some_events\n"
        "from tests.stores.sqlite_support import write\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "store = SqliteStore(sys.argv[1]); store.open()\n"
        "events = some_events('hamlet', 300, text='x' * 20_000)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (2_000_000, resource.RLIM_INFINITY))\n"
        "written = 0\n"
        "try:\n"
        "    for event in events:\n"
        "        write(store, 'hamlet', [event]); written += 1\n"
        "except StoreUnavailable as error:\n"
        "    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)\n"
        "    write(store, 'hamlet', events[written:written + 1])\n"
        "    print(written + 1)\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=True, timeout=60
    )
    written = int(run.stdout)
    assert 10 < written < 300
    store = SqliteStore(path)
    store.open()
    assert len(read(store, "hamlet")) == written
    store.close()


def test_a_closed_store_is_unavailable() -> None:
    store = SqliteStore("never opened.db")
    for call in (lambda: store.write([]), lambda: store.find("x"), lambda: store.delete("x")):
        with pytest.raises(StoreUnavailable, match="closed"):
            call()
    assert not os.path.exists("never opened.db")  # noqa: PTH110


def test_what_is_deleted_leaves_the_file(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    store = SqliteStore(path)
    store.open()
    write(store, "hamlet", some_events("hamlet", 40, text="a secret that nobody may keep" * 100))
    write(store, "ophelia", some_events("ophelia", 2))
    assert store.delete("hamlet")
    store.close()
    assert b"a secret that nobody" not in path.read_bytes()
