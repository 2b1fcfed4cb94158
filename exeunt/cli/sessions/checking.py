"""Verify and repair a journal."""

import json
from collections.abc import Sequence
from pathlib import Path

import attrs
import trio
import typer

from exeunt import ContextError, InvalidConfiguration, JournalError, StoreUnavailable
from exeunt.actors.state import SessionState
from exeunt.cli.chat.transcript import one_line, printable
from exeunt.cli.sessions.place import default_journal, open_stored, sqlite_path
from exeunt.stores import journal_from_url
from exeunt.stores.repair import DamagedSession, Report, repair, verify
from exeunt.supervisor.journal import SessionMetadata
from exeunt.supervisor.journal.durable import DurableJournal

AT_ONCE = 1_000
"""Events that are read, and sessions that are listed, at a time."""
PROBLEMS_SHOWN = 5
"""Of the file itself: where one page is torn, SQLite has a complaint for each row."""
MOST_OF_PROBLEM = 70
"""Characters of a complaint."""


@attrs.frozen
class _Found:
    """What a verification found, whatever the journal is."""

    place: str
    sessions: int
    events: int
    damaged: Sequence[DamagedSession]
    problems: Sequence[str]

    @classmethod
    def of(cls, report: Report) -> "_Found":
        return cls(str(report.path), report.sessions, report.events, report.damaged, report.problems)

    @property
    def status(self) -> int:
        return int(bool(self.damaged or self.problems))


async def verify_journal(url: str | None, as_json: bool) -> int:
    """Read every log and name the sessions that are damaged; return 1 if there are any. Changes nothing."""
    chosen = url or default_journal()
    path = sqlite_path(chosen)
    if path is not None:
        journal_from_url(chosen)
        found = _Found.of(await trio.to_thread.run_sync(verify, path))
    else:
        found = await _verify_by_reading(chosen)
    if as_json:
        typer.echo(json.dumps(attrs.asdict(found), indent=2))
        return found.status
    _print(found, "can be kept")
    if found.status and path is not None:
        typer.echo("`exeunt sessions repair --into PATH` keeps what is whole.")
    return found.status


async def repair_journal(url: str | None, into: Path) -> int:
    """Write what is whole into a new SQLite journal and say what was not. The damaged one stays as it is."""
    chosen = url or default_journal()
    path = sqlite_path(chosen)
    if path is None:
        raise InvalidConfiguration("only a SQLite journal can be repaired; a server has tools of its own")
    report = await trio.to_thread.run_sync(repair, path, into)
    _print(_Found.of(report), "kept")
    typer.echo(f"Repaired journal: {into}")
    if report.fragments is not None:
        typer.echo(f"Events behind gaps, as JSON lines: {report.fragments}")
    return 0


def _print(found: _Found, kept: str) -> None:
    typer.echo(f"{found.place}: {found.sessions:,} sessions, {found.events:,} events")
    for problem in found.problems[:PROBLEMS_SHOWN]:
        typer.echo(f"  file: {one_line(problem, MOST_OF_PROBLEM)}")
    if len(found.problems) > PROBLEMS_SHOWN:
        typer.echo(f"  file: {len(found.problems) - PROBLEMS_SHOWN} more")
    for session in found.damaged:
        typer.echo(f"  damaged: {printable(session.session_id)}")
        typer.echo(f"    {one_line(session.problem, MOST_OF_PROBLEM)}")
        typer.echo(
            f"    {session.whole:,} events {kept}, {session.behind:,} behind a gap, {session.lost:,} lost"
        )
    if not found.status:
        typer.echo("All is whole.")


async def _verify_by_reading(url: str) -> _Found:
    damaged: list[DamagedSession] = []
    sessions = events = 0
    async with open_stored(url) as journal:
        page: str | None = None
        while True:
            part = await journal.list(limit=AT_ONCE, page=page)
            for session in part.sessions:
                sessions += 1
                whole, problem = await _read(journal, session)
                events += whole
                if problem is not None:
                    lost = session.events - whole
                    damaged.append(DamagedSession(session.session_id, whole, 0, lost, problem))
            page = part.next
            if page is None:
                return _Found(url.partition("://")[0], sessions, events, damaged, [])


async def _read(journal: DurableJournal, session: SessionMetadata) -> tuple[int, str | None]:
    """Return how many events can be read from the first on, and what is wrong with the next."""
    state = SessionState()
    try:
        while state.seq < session.events:
            events = await journal.read(session.session_id, state.seq + 1, AT_ONCE)
            if not events:
                return state.seq, f"event {state.seq + 1} is missing"
            SessionState.replay(events, state)
    except StoreUnavailable:
        raise
    except (ContextError, JournalError) as error:
        return state.seq, str(error)
    return state.seq, None
