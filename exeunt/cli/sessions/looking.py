"""List, show and delete stored sessions."""

import json
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

import attrs
import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from exeunt.actors.events import Event
from exeunt.actors.events.codec import to_json
from exeunt.actors.state import SessionState
from exeunt.cli.chat.commands import context_text, event_line
from exeunt.cli.chat.transcript import printable
from exeunt.cli.sessions.place import open_stored
from exeunt.supervisor.journal import SessionMetadata
from exeunt.supervisor.journal.durable import DurableJournal

READ_AT_ONCE = 5_000
"""Events: some megabytes at a time."""
ID_COLUMNS = 40
"""A uuid has 36. Longer names are cut in the table; `--json` has them whole."""


async def list_sessions(url: str | None, tenant: str | None, limit: int, as_json: bool) -> int:
    """Print what is stored, the session used last first."""
    found: list[SessionMetadata] = []
    async with open_stored(url) as journal:
        page: str | None = None
        while len(found) < limit:
            part = await journal.list(tenant=tenant, limit=min(1_000, limit - len(found)), page=page)
            found.extend(part.sessions)
            page = part.next
            if page is None:
                break
    if as_json:
        _print_json([_as_json(session) for session in found])
        return 0
    if not found:
        typer.echo("No sessions.")
        return 0
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for name, justify in (
        ("session", "left"),
        ("tenant", "left"),
        ("last used", "left"),
        ("events", "right"),
    ):
        table.add_column(name, justify=justify, no_wrap=True, overflow="ellipsis")  # type: ignore[arg-type]
    table.columns[0].max_width, table.columns[1].max_width = ID_COLUMNS, 10
    for session in found:
        table.add_row(
            Text(printable(session.session_id)),
            Text(printable(session.tenant)),
            _moment(session.modified_time),
            f"{session.events:,}",
        )
    Console(highlight=False).print(table)
    if page is not None:
        typer.echo(f"There are more; --limit shows more than {limit}.")
    return 0


async def show_session(url: str | None, session_id: str, events: int, as_json: bool) -> int:
    """Print what is known of a session, its conversation, and its last events. Raises `SessionNotFound`."""
    async with open_stored(url) as journal:
        known = await journal.metadata(session_id)
        state, last = await _folded(journal, known, events)
    if as_json:
        found = {
            **_as_json(known),
            "generation": state.context.generation,
            "waiting": [item.prompt for item in state.pending()],
            "turn_under_way": state.turn_id is not None,
            "messages": [_message(message) for message in state.context.visible()],
            "last_events": [to_json(event) for event in last],
        }
        _print_json(found)
        return 0
    console = Console(highlight=False)
    facts = Table.grid(padding=(0, 2, 0, 0))
    for name, value in (
        ("session", printable(known.session_id)),
        ("tenant", printable(known.tenant) or "-"),
        ("started", _moment(known.start_time)),
        ("last used", _moment(known.modified_time)),
        ("events", f"{known.events:,}"),
        ("generation", str(state.context.generation)),
        (
            "waiting",
            f"{state.waiting} messages{', a turn is under way' if state.turn_id is not None else ''}",
        ),
    ):
        facts.add_row(Text(name, "bold"), Text(value))
    console.print(facts)
    lines = context_text(state.context.visible(), console.width)
    if events:
        lines += "\n\n" + "\n".join(event_line(event, console.width) for event in last)
    typer.echo(f"\n{lines}")
    return 0


async def delete_sessions(url: str | None, session_ids: Sequence[str]) -> int:
    """Delete sessions. Raises `SessionNotFound` before anything is deleted."""
    async with open_stored(url) as journal:
        for session_id in session_ids:
            await journal.metadata(session_id)
        for session_id in session_ids:
            await journal.delete(session_id)
            typer.echo(f"deleted {printable(session_id)}")
    return 0


async def _folded(
    journal: DurableJournal, known: SessionMetadata, last: int
) -> tuple[SessionState, list[Event]]:
    state, kept = SessionState(), list[Event]()
    while state.seq < known.events:
        events = await journal.read(known.session_id, state.seq + 1, READ_AT_ONCE)
        if not events:
            break
        SessionState.replay(events, state)
        kept = [*kept, *events][-last:] if last else []
    return state, kept


def _as_json(session: SessionMetadata) -> dict[str, Any]:
    return {
        name: value
        for name, value in attrs.asdict(session).items()
        # What this process has in memory says nothing, and the model is in the log, which is not read for this.
        if name not in ("live", "model")
    }


def _message(message: Any) -> dict[str, Any]:
    found: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.tool_calls:
        found["tool_calls"] = [
            {"id": call.id, "name": call.name, "arguments_json": call.arguments_json}
            for call in message.tool_calls
        ]
    if message.media:
        found["media"] = [str(media) for media in message.media]
    if message.tool_call_id is not None:
        found["tool_call_id"] = message.tool_call_id
    return found


def _print_json(value: dict[str, Any] | Iterable[Any]) -> None:
    typer.echo(json.dumps(value, indent=2, ensure_ascii=False))


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).astimezone().strftime("%Y-%m-%d %H:%M:%S")
