"""What is whole in a damaged SQLite journal: `verify` names the sessions that are not, `repair` keeps what is.

Both only read the file. `verify` may be used while a host has it open; for `repair` stop the host first.
"""

import json
import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path

import attrs

from exeunt.actors.errors import InvalidConfiguration, JournalError
from exeunt.actors.events import Event
from exeunt.actors.events.codec import SliceDecoder, to_json
from exeunt.stores.sqlite import BUSY_SECONDS, SqliteStore
from exeunt.stores.sqlite_files import check_readable
from exeunt.stores.sqlite_pages import INDEX_INTERIOR, INDEX_LEAF, TABLE_LEAF, Pages, Record
from exeunt.stores.sqlite_schema import SCHEMA, owner_is_exeunt
from exeunt.supervisor.journal.slices import open_slice, unseal
from exeunt.supervisor.journal.store import Row, StoreDamaged

BATCH = 1_000
"""Slices that `repair` writes in one transaction."""

MOST_PROBLEMS = 100
"""Complaints of SQLite that are reported: a torn page has hundreds."""


@attrs.frozen
class DamagedSession:
    """A session whose log is not whole."""

    session_id: str
    whole: int
    """Events from the first on that are intact and follow each other: what `repair` keeps as the session."""
    behind: int
    """Intact events behind the first gap: `repair` sets them aside."""
    lost: int
    """Events that cannot be read, as far as the file says how many there were."""
    problem: str


@attrs.frozen
class Report:
    """What was found."""

    path: Path
    sessions: int
    events: int
    """Intact ones, those behind gaps included."""
    damaged: Sequence[DamagedSession]
    problems: Sequence[str]
    """What is wrong with the file itself."""
    fragments: Path | None = None
    """The file that `repair` has put events behind gaps into, one JSON object a line; `None` if there were none."""

    @property
    def intact(self) -> bool:
        """Whether nothing is wrong."""
        return not self.damaged and not self.problems


@attrs.define
class _Session:
    """What is known of a session: its intact slices, by first number, and how far it should reach."""

    slices: dict[int, bytes] = attrs.field(factory=dict[int, bytes])
    last_seq: int = 0
    listed: bool = False


def verify(path: str | os.PathLike[str]) -> Report:
    """Read every log of a journal; say which are damaged. Changes nothing.

    Raises `JournalError` when there is no such file, or it is another program's or of a future version.
    """
    place = _checked(path)
    try:
        with closing(_read_only(place)) as connection:
            problems = _complaints(connection)
            return _report(place, _by_sql(connection), problems)
    except sqlite3.DatabaseError as error:
        with Pages(place) as pages:
            report = _report(place, _by_page(pages), [str(error), *filter(None, [pages.problem])])
            if pages.problem and not report.sessions:
                raise JournalError(f"{place} holds nothing of a journal: {pages.problem}") from error
            return report


def repair(path: str | os.PathLike[str], into: str | os.PathLike[str]) -> Report:
    """Write every intact event of *path* into the new journal *into*; return what was kept, and what was not.

    A session keeps its events up to its first gap. What is intact behind a gap goes to the file that
    `Report.fragments` names. Snapshots are not kept: they say nothing that the logs do not say. Raises `JournalError`
    as `verify` does, and `InvalidConfiguration` when *into* exists. When it fails, *into* may be there in part.
    """
    place, target = _checked(path), Path(into)
    aside = target.with_name(f"{target.name}.fragments.jsonl")
    for new in (target, aside):
        if new.exists():
            raise InvalidConfiguration(f"{new} exists: name a file that does not")
    problems = list(verify(place).problems)
    store = SqliteStore(target, synchronous="normal")
    with Pages(place) as pages:
        sessions = list(_by_page(pages))
    store.open()
    try:
        for rows in _batches(sessions):
            store.write(rows)
        fragments = [(name, events) for name, session in sessions if (events := _examined(name, session)[1])]
        if fragments:
            _set_aside(aside, fragments)
        return attrs.evolve(_report(place, sessions, problems), fragments=aside if fragments else None)
    finally:
        store.close()


def _checked(path: str | os.PathLike[str]) -> Path:
    place = Path(path)
    check_readable(place)
    with suppress(sqlite3.DatabaseError), closing(_read_only(place)) as connection:
        if not owner_is_exeunt(connection):
            raise JournalError(f"{place} is a database of another program")
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version > SCHEMA:
            raise JournalError(f"{place} has schema {version}; this version of Exeunt knows up to {SCHEMA}")
    return place


def _read_only(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(
        f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=BUSY_SECONDS, isolation_level=None
    )


def _complaints(connection: sqlite3.Connection) -> list[str]:
    found = [line for (line,) in connection.execute(f"PRAGMA integrity_check({MOST_PROBLEMS})")]
    return [] if found == ["ok"] else found


# --- Reading -----------------------------------------------------------------------------------------------------


def _by_sql(connection: sqlite3.Connection) -> Iterator[tuple[str, _Session]]:
    """Yield the sessions one by one, as the tables have them. Raises `sqlite3.DatabaseError` when they have none."""
    listed = dict(connection.execute("SELECT session_id, last_seq FROM sessions"))
    names = {name for (name,) in connection.execute("SELECT DISTINCT session_id FROM slices")}
    for name in sorted(names | listed.keys()):
        session = _Session(last_seq=listed.get(name, 0), listed=name in listed)
        rows = connection.execute("SELECT first_seq, data FROM slices WHERE session_id = ?", (name,))
        # A torn page ends the rows; which events that costs is seen from their numbers.
        with suppress(sqlite3.DatabaseError):
            for first_seq, data in rows:
                session.slices[first_seq] = data
        yield name, session


def _by_page(pages: Pages) -> Iterator[tuple[str, _Session]]:
    """Yield the sessions as the pages of the file have them, whatever the tables say; damaged slices left out."""
    found: dict[str, _Session] = {}
    for record in pages.records():
        slice_ = _as_slice(record)
        if slice_ is not None:
            name, first_seq, data = slice_
            with suppress(StoreDamaged):
                unseal(data)
                found.setdefault(name, _Session()).slices[first_seq] = data
        known = _as_session(record)
        if known is not None:
            session = found.setdefault(known[0], _Session())
            session.last_seq = max(session.last_seq, known[1])
            session.listed = True
    yield from sorted(found.items())


def _as_slice(record: Record) -> tuple[str, int, bytes] | None:
    if record.page_kind == TABLE_LEAF:
        match record.columns:
            case (str(name), int(first_seq), int(), bytes(data)):
                return name, first_seq, data
            case _:
                pass
    return None


def _as_session(record: Record) -> tuple[str, int] | None:
    if record.page_kind in (INDEX_LEAF, INDEX_INTERIOR):
        match record.columns:
            case (str(name), str(), int() | float(), int() | float(), int(last_seq)):
                return name, last_seq
            case _:
                pass
    return None


# --- Judging -----------------------------------------------------------------------------------------------------


def _examined(name: str, session: _Session) -> tuple[list[Event], list[Event], str]:
    """Return the events up to the first gap, those behind it, and what is wrong."""
    decoder = SliceDecoder()
    whole: list[Event] = []
    behind: list[Event] = []
    problem = "" if session.listed else "it is not in the list of sessions"
    for first_seq, data in sorted(session.slices.items()):
        try:
            events = open_slice(decoder, data)
        except JournalError as error:
            problem = f"events from {first_seq} on: {error}"
            continue
        if not events or events[0].seq != first_seq:
            problem = f"events from {first_seq} on: they have other numbers"
        elif first_seq != len(whole) + 1:
            behind.extend(events)
        else:
            whole.extend(events)
    if not problem and (behind or len(whole) < session.last_seq):
        problem = f"event {len(whole) + 1} is missing"
    return whole, behind, problem


def _report(path: Path, sessions: Iterable[tuple[str, _Session]], problems: Sequence[str]) -> Report:
    damaged: list[DamagedSession] = []
    count = events = 0
    for name, session in sessions:
        whole, behind, problem = _examined(name, session)
        count += 1
        events += len(whole) + len(behind)
        if problem:
            last = max([session.last_seq, *(event.seq for event in behind)])
            lost = max(0, last - len(whole) - len(behind))
            damaged.append(DamagedSession(name, len(whole), len(behind), lost, problem))
    return Report(path, count, events, damaged, list(problems))


# --- Writing -----------------------------------------------------------------------------------------------------


def _batches(sessions: Iterable[tuple[str, _Session]]) -> Iterator[list[Row]]:
    batch: list[Row] = []
    for name, session in sessions:
        batch.extend(_rows(name, session))
        if len(batch) >= BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def _rows(name: str, session: _Session) -> Iterator[Row]:
    """Yield the slices up to the first gap, as they were written."""
    decoder = SliceDecoder()
    following = 1
    for first_seq, data in sorted(session.slices.items()):
        try:
            events = open_slice(decoder, data)
        except JournalError:
            return
        if first_seq != following or not events or events[0].seq != first_seq:
            return
        following = events[-1].seq + 1
        first, last = events[0], events[-1]
        if first_seq == 1:
            yield Row(name, 1, last.seq, last.time, data, getattr(first, "tenant", ""), first.time)
        else:
            yield Row(name, first_seq, last.seq, last.time, data)


def _set_aside(path: Path, fragments: Iterable[tuple[str, Sequence[Event]]]) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        for name, events in fragments:
            for event in events:
                file.write(
                    json.dumps({"session_id": name, "event": to_json(event)}, ensure_ascii=False) + "\n"
                )
