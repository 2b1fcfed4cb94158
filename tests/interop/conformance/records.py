"""The recorded scenarios: what the model was scripted to say, what was sent, what the reference showed.

`records.jsonl` holds one JSON object a line, made by `distil.py` from raw recordings. A model request is stored as
what it adds to the one before.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

RECORDS = Path(__file__).with_name("records.jsonl")


@attrs.frozen
class Record:
    """One scenario."""

    name: str
    script: Sequence[Mapping[str, Any]]
    """What the model says: `n` (the request's number, from 0) with a text, calls, a status or raw bytes."""
    sent: Sequence[str | Mapping[str, Any]]
    """Prompts, or messages with their options."""
    shown: Mapping[str, Any]
    """What was seen, in the form of `normal.normal`."""


def load(path: Path = RECORDS) -> dict[str, Record]:
    """All records, by name."""
    lines = map(json.loads, path.read_text().splitlines())
    return {
        line["name"]: Record(line["name"], line["script"], line["sent"], unpacked(line["shown"]))
        for line in lines
    }


def save(records: Mapping[str, Record], path: Path = RECORDS) -> None:
    """Write `records`, in the order of their names."""
    lines = [
        json.dumps(
            {**attrs.asdict(record, recurse=False), "shown": packed(record.shown)},
            separators=(",", ":"),
            ensure_ascii=False,
        )
        for _, record in sorted(records.items())
    ]
    path.write_text("\n".join(lines) + "\n")


def packed(shown: Mapping[str, Any]) -> dict[str, Any]:
    """`shown` with each request as `[how many messages stay, the new ones, tools]`."""
    return {**shown, "requests": list(_pack(shown["requests"]))}


def unpacked(shown: Mapping[str, Any]) -> dict[str, Any]:
    """The reverse of `packed`."""
    return {**shown, "requests": list(_unpack(shown["requests"]))}


def _pack(requests: Sequence[Mapping[str, Any]]) -> Iterator[list[Any]]:
    before: list[Any] = []
    tools: list[str] | None = None
    for request in requests:
        messages = request["messages"]
        same = 0
        while same < min(len(before), len(messages)) and before[same] == messages[same]:
            same += 1
        new = [] if request["tools"] == tools else [request["tools"]]
        yield [same, messages[same:], *new]
        before, tools = messages, request["tools"]


def _unpack(requests: Sequence[Sequence[Any]]) -> Iterator[dict[str, Any]]:
    before: list[Any] = []
    tools: list[str] = []
    for same, added, *new in requests:
        before = [*before[:same], *added]
        tools = new[0] if new else tools
        yield {"tools": tools, "messages": before}
