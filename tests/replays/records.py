"""Logs of sessions as files: what a journal stored, and what was known of the session when it did.

A record is a file of JSON lines: the slices as they were stored, each event in the form of JSON lines for people, the
state that followed from them, and a snapshot with its place. It is never written again: what it says must come out of
the same bytes in every later version.
"""

import base64
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import attrs
import msgspec

from exeunt.actors.events import Event
from exeunt.actors.events.codec import SliceDecoder, to_json
from exeunt.actors.state import SessionState
from exeunt.supervisor.journal.slices import open_slice

FOLDER = Path(__file__).parent

_line = msgspec.json.Encoder()


@attrs.frozen
class Record:
    """One log, as it was stored."""

    about: str
    slices: Sequence[bytes]
    events: Sequence[dict[str, Any]]
    state: dict[str, Any] | None
    """What `told` said; `None` for a log that no session would write."""
    snapshot: tuple[int, bytes] | None

    def decode(self) -> list[Event]:
        """Return the events that are in the slices."""
        decoder = SliceDecoder()
        return [event for data in self.slices for event in open_slice(decoder, data)]

    def write(self, path: Path) -> None:
        """Make the file. Raises `FileExistsError`: a record stands for ever."""
        place, snapshot = (None, None) if self.snapshot is None else self.snapshot
        lines: list[Any] = [{"about": self.about, "state": self.state}]
        if snapshot is not None:
            lines.append({"snapshot": base64.b64encode(snapshot).decode(), "seq": place})
        lines += [{"slice": base64.b64encode(data).decode()} for data in self.slices]
        lines += [{"event": event} for event in self.events]
        with path.open("xb") as file:
            file.writelines(_line.encode(line) + b"\n" for line in lines)

    @classmethod
    def read(cls, path: Path) -> "Record":
        """Return what is in a file."""
        lines = [msgspec.json.decode(line) for line in path.read_bytes().splitlines()]
        snapshots = [
            (line["seq"], base64.b64decode(line["snapshot"])) for line in lines if "snapshot" in line
        ]
        return cls(
            lines[0]["about"],
            [base64.b64decode(line["slice"]) for line in lines if "slice" in line],
            [line["event"] for line in lines if "event" in line],
            lines[0]["state"],
            snapshots[0] if snapshots else None,
        )


def record(
    about: str, slices: Sequence[bytes], snapshot: tuple[int, bytes] | None, *, whole: bool = True
) -> Record:
    """Return a record of what is stored now; without a state unless it is a *whole* log."""
    bare = Record(about, slices, [], None, snapshot)
    events = bare.decode()
    state = told(SessionState.replay(events)) if whole else None
    return attrs.evolve(bare, events=[plain(to_json(event)) for event in events], state=state)


def told(state: SessionState) -> dict[str, Any]:
    """Say in plain values what a state holds."""
    found: dict[str, Any] = {
        "seq": state.seq,
        "last_id": state.last_id,
        "generation": state.context.generation,
        "messages": [
            [
                m.role,
                m.content,
                m.tool_call_id,
                [[call.id, call.name, call.arguments_json] for call in m.tool_calls],
            ]
            for m in state.context.visible()
        ],
        "media": [[repr(media) for media in m.media] for m in state.context.visible()],
        "batch_is_open": state.context.batch is not None,
        "queue": [[item.message_id, item.prompt] for item in state.queue or ()],
        "steering": [[item.message_id, item.prompt] for item in state.steering or ()],
        "turn_id": state.turn_id,
        "turn_steps": state.turn_steps,
        "step_is_open": state.step is not None,
        "open_calls": sorted(state.open_calls or ()),
        "approvals": sorted((state.approvals or {}).items()),
        "clears_in_a_row": state.clears_in_a_row,
    }
    plain_state: dict[str, Any] = plain(found)
    return plain_state


def plain(value: Any) -> Any:
    """Return *value* as it comes back from JSON."""
    return msgspec.json.decode(_line.encode(value))
