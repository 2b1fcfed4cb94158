"""Sessions as JSON lines, for other machines and for ever.

The first line is a header. Each other line is an event and the id of its session, apart, since events have sessions in
them too; the events of a session follow each other. The fields are those of the log: one that a later version adds has
a default, one that it does not know is ignored.
"""

import contextlib
import json
import os
import sys
from collections.abc import AsyncIterator, Generator, Iterable, Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, TextIO, cast

import trio
import typer

from exeunt import ContextError, InvalidConfiguration, JournalError
from exeunt.actors.events import Event
from exeunt.actors.events.codec import JsonDecoder, to_json
from exeunt.actors.state import SessionState
from exeunt.cli.sessions.place import open_stored
from exeunt.supervisor.journal.durable import DurableJournal

FORMAT = 1
"""Number of this form. A reader refuses a higher one."""
AT_ONCE = 1_000
"""Events that are read, or written, at a time; sessions that are listed at a time."""


class _WrongLine(InvalidConfiguration):
    """A line of a file is not what it should be."""


async def export_sessions(
    url: str | None, session_ids: Sequence[str], everything: bool, output: Path | None
) -> int:
    """Write sessions to *output*, which must not exist, or to the standard output. Raises `SessionNotFound`."""
    async with open_stored(url) as journal:
        for session_id in session_ids:
            await journal.metadata(session_id)
        with _written(output) as file:
            _write(file, {"exeunt": "sessions", "format": FORMAT, "version": version("exeunt")})
            count = 0
            async for session_id in _all_of(journal) if everything else _each(session_ids):
                await _export(journal, session_id, file)
                count += 1
    if output is not None:
        typer.echo(f"{count} sessions in {output}")
    return 0


async def import_sessions(url: str | None, source: Path) -> int:
    """Read sessions from *source*, or from the standard input if that is `-`, each whole or not at all.

    Raises `SessionExists`, and `InvalidConfiguration` that names the line; sessions before that line stay.
    """
    count = 0
    async with open_stored(url, make=True) as journal:
        with _read(source) as file:
            for session_id, events in _sessions(file):
                await _import(journal, session_id, events)
                typer.echo(f"imported {session_id}, {len(events):,} events")
                count += 1
    if not count:
        typer.echo("No sessions.")
    return 0


async def _all_of(journal: DurableJournal) -> AsyncIterator[str]:
    page: str | None = None
    while True:
        part = await journal.list(limit=AT_ONCE, page=page)
        for session in part.sessions:
            yield session.session_id
        page = part.next
        if page is None:
            return


async def _each(session_ids: Iterable[str]) -> AsyncIterator[str]:
    for session_id in session_ids:
        yield session_id


async def _export(journal: DurableJournal, session_id: str, file: TextIO) -> None:
    seq = 0
    while events := await journal.read(session_id, seq + 1, AT_ONCE):
        for event in events:
            _write(file, {"session_id": session_id, "event": to_json(event)})
        seq = events[-1].seq


async def _import(journal: DurableJournal, session_id: str, events: Sequence[Event]) -> None:
    log = await journal.create(session_id)
    try:
        for begin in range(0, len(events), AT_ONCE):
            await log.wait_room()
            log.append(events[begin : begin + AT_ONCE])
            await log.wait_durable(log.taken_seq)
    except BaseException:
        with trio.CancelScope(shield=True), contextlib.suppress(Exception):
            await journal.delete(session_id)
        raise


def _sessions(lines: Iterable[str]) -> Iterator[tuple[str, list[Event]]]:
    """Yield the sessions of a file. Raises `InvalidConfiguration` that names the line."""
    numbered = enumerate(lines, 1)
    _check_header(next(numbered, (1, ""))[1])
    current, events, state, decoder = "", list[Event](), SessionState(), JsonDecoder()
    for number, line in numbered:
        if not line.strip():
            continue
        fields = _object(number, line)
        session_id = fields.get("session_id")
        if not isinstance(session_id, str) or not session_id:
            raise _WrongLine(f"line {number}: it names no session")
        event_fields = fields.get("event")
        if not isinstance(event_fields, dict):
            raise _WrongLine(f"line {number}: it holds no event")
        if session_id != current:
            if events:
                yield current, events
            current, events, state, decoder = session_id, [], SessionState(), JsonDecoder()
        try:
            event = decoder.decode(cast("dict[str, Any]", event_fields))
            SessionState.replay((event,), state)
        except (ContextError, JournalError) as error:
            raise _WrongLine(f"line {number}, session {session_id}: {error}") from error
        events.append(event)
    if events:
        yield current, events


def _check_header(line: str) -> None:
    header = _object(1, line)
    if header.get("exeunt") != "sessions" or not isinstance(header.get("format"), int):
        raise _WrongLine("line 1: this is no export of sessions; one begins with a header")
    if header["format"] > FORMAT:
        raise _WrongLine(
            f"line 1: the file has format {header['format']}; this version of Exeunt reads up to {FORMAT}"
        )


def _object(number: int, line: str) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise _WrongLine(f"line {number} is no JSON: {error}") from error
    if not isinstance(found, dict):
        raise _WrongLine(f"line {number} is no JSON object")
    return cast("dict[str, Any]", found)


def _write(file: TextIO, fields: dict[str, Any]) -> None:
    # ASCII: a terminal or an editor that takes the file for something else does it no harm.
    file.write(json.dumps(fields) + "\n")


@contextlib.contextmanager
def _written(output: Path | None) -> Generator[TextIO]:
    if output is None:
        yield sys.stdout
        sys.stdout.flush()
        return
    try:
        # Conversations are private.
        descriptor = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        raise InvalidConfiguration(f"{output} cannot be written: {error.strerror or error}") from error
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        yield file


@contextlib.contextmanager
def _read(source: Path) -> Generator[Iterable[str]]:
    try:
        if str(source) == "-":
            yield sys.stdin
            return
        with source.open(encoding="utf-8") as file:
            yield file
    except OSError as error:
        raise InvalidConfiguration(f"{source} cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise InvalidConfiguration(f"{source} is no UTF-8 text") from error
