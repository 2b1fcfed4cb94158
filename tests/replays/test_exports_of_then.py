"""What an earlier version has exported is taken in today, and says the same."""

import json
from pathlib import Path

import pytest

from exeunt.actors.events.codec import to_json
from exeunt.cli.sessions.place import open_stored
from exeunt.cli.sessions.transfer import import_sessions
from tests.replays.records import FOLDER, Record, plain

HEADER = {"exeunt": "sessions", "format": 1, "version": "0.1"}
"""The first line of each file of the first version."""

PATHS = [path for path in sorted(FOLDER.glob("*.jsonl")) if Record.read(path).state is not None]


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
async def test_an_export_of_then_is_taken_in_with_all_that_it_says(path: Path, tmp_path: Path) -> None:
    events = Record.read(path).events
    session_id = events[0]["session_id"]
    lines = [HEADER, *({"session_id": session_id, "event": event} for event in events)]
    source = tmp_path / "then.jsonl"
    source.write_text("".join(json.dumps(line) + "\n" for line in lines))
    url = f"sqlite:///{tmp_path / 'now.sqlite3'}"
    assert await import_sessions(url, source) == 0
    async with open_stored(url) as journal:
        taken = await journal.read(session_id, 1, len(events) + 1)
    assert [plain(to_json(event)) for event in taken] == events
