"""One form for what a scenario showed, so that two runtimes, or two runs of one, can be compared.

Ids, times, paths and ports differ between any two runs; they are replaced. Two things that happen at once (two calls
of a batch; a pipe and a socket) come in either order; such events are put into lanes, and order counts within a lane.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from exeunt.models.door.jsontext import is_dict, is_list

JSON = Any
Event = Mapping[str, JSON]

FIELDS: Mapping[str, tuple[str, ...]] = {
    "abort": ("reason",),
    "agent.interrupted": ("activity", "toolCallIds", "toolNames", "cancelPhase"),
    "assistant.idle": ("aborted",),
    "assistant.message": ("messageId", "model", "content", "toolRequests", "turnId"),
    "assistant.message_delta": ("messageId", "deltaContent"),
    "assistant.message_start": ("messageId",),
    "assistant.tool_call_delta": ("toolCallId", "toolName", "inputDelta"),
    "assistant.turn_end": ("turnId",),
    "assistant.turn_start": ("turnId",),
    "external_tool.completed": ("requestId",),
    "external_tool.requested": ("requestId", "sessionId", "toolCallId", "toolName", "arguments"),
    "hook.end": ("hookType", "success", "output"),
    "hook.start": ("hookType", "input"),
    "permission.completed": ("requestId", "toolCallId", "result"),
    "permission.requested": ("requestId", "permissionRequest", "agentMode"),
    "session.context_cleared": ("messagesCleared", "initialMessage"),
    "session.error": ("errorType", "message", "statusCode"),
    "session.idle": ("aborted", "mode"),
    "session.resume": ("selectedModel", "continuePendingWork"),
    "session.snapshot_rewind": ("upToEventId", "eventsRemoved"),
    "session.start": ("sessionId", "selectedModel"),
    "system.message": ("role", "content"),
    "tool.execution_complete": ("toolCallId", "model", "turnId", "success", "result", "error"),
    "tool.execution_start": ("toolCallId", "toolName", "arguments", "turnId", "model"),
    "user.message": ("content", "transformedContent", "source", "messageId", "delivery", "turnId"),
}
"""The events that are compared, and of each the fields: those that a client can act on.

Left out are `pending_messages.modified` (that a queue changed: how often says only how the queue is built),
`session.shutdown` (whether it is still seen depends on when the client leaves), and the events of a coding product.
"""

IDS = frozenset({"messageId", "requestId", "sessionId", "upToEventId", "interactionId"})
MESSAGE = ("role", "content", "tool_calls", "tool_call_id")
"""What is compared of a model's message."""

NUMBERS = frozenset({"timestamp"})
PLACES = frozenset({"cwd", "workingDirectory", "transcriptPath"})
"""Where a runtime runs and keeps its files."""

UNTOLD_KEYS = NUMBERS | PLACES | {"intentionSummary", "toolTelemetry"}
"""Left out wherever they stand; the last two are a coding product's."""

UNTOLD = frozenset(
    {
        "tool msg",
        "sys len",
        "sys tail",
        "disk",
        "disk tail",
        "files",
        "elapsed",
        "REQ KEYS",
        "list",
        "usage",
        "roles",
        "syslen",
        "reqs",
    }
)
"""Notes about the reference's files, its HTTP client's headers, and clocks."""

_TIME = re.compile(r"(<current_datetime>).*?(</current_datetime>)")
_WAITED = re.compile(r"(total retry wait time: )[\d.]+")
_ADDRESS = re.compile(r"http://127\.0\.0\.1:[^/\s]+(/[^/\s]+)?/v1")
_ID = re.compile(r"<id\d+>|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_STAMP = re.compile(r"^\d{4}-\d\d-\d\dT[\d:.]+Z$")
_FILE = re.compile(r"Saved to: \S+")

OWN_PROMPT = "SYS"
PRODUCT_PROMPT = "<system prompt>"
"""A coding product's own, in the scenarios that do not replace it."""

LONG = 300
"""Characters: a longer text is a result that was cut, or the words of an error; its beginning is compared."""


def normal(outcome: Mapping[str, JSON]) -> dict[str, JSON]:
    """What `outcome` (of a player, or a record) showed: `events` by lane, `requests`, `notes`."""
    names = _Names()
    lanes = _lanes([event for event in outcome["events"] if event["type"] in FIELDS])
    return {
        "events": {lane: [names.event(event) for event in events] for lane, events in sorted(lanes.items())},
        "requests": [_request(request, names) for request in outcome["requests"]],
        "notes": sorted(_notes(outcome["notes"], names), key=repr),
    }


def _lanes(events: Sequence[Event]) -> dict[str, list[Event]]:
    calls: dict[str, str] = {}
    lanes: dict[str, list[Event]] = {}
    for event in events:
        data = event["data"]
        call = data.get("toolCallId") or data.get("permissionRequest", {}).get("toolCallId")
        request = data.get("requestId")
        if request and call:
            calls[request] = call
        call = call or calls.get(request or "")
        prefix = f"{event['session']} " if event.get("session") else ""
        # An id that the runtime has made up is another one in each run.
        lane = _ID.sub("<id>", _lane(event["type"], call))
        lanes.setdefault(prefix + lane, []).append(event)
    for each in lanes.values():
        _settle(each)
    return lanes


def _lane(kind: str, call: str | None) -> str:
    if kind.startswith("hook."):
        return "hooks"
    if kind in {"session.start", "session.resume"}:
        return "start"
    if kind in {"abort", "agent.interrupted"}:
        return "abort"
    if kind == "session.context_cleared":
        return "clears"
    return f"call {call}" if call else "main"


_PAIRS = {
    ("external_tool.requested", "permission.completed"),
    ("tool.execution_complete", "external_tool.completed"),
    ("tool.execution_complete", "permission.completed"),
    ("agent.interrupted", "abort"),
}
"""Neighbours that the reference shows in either order."""


def _settle(lane: list[Event]) -> None:
    for _ in range(2):
        for n in range(len(lane) - 1):
            pair = lane[n]["type"], lane[n + 1]["type"]
            if pair in _PAIRS:
                lane[n], lane[n + 1] = lane[n + 1], lane[n]
    # A resume is shown once or twice: live, and from the log.
    lane[:] = [
        event for n, event in enumerate(lane) if event["type"] != "session.resume" or not _again(lane, n)
    ]


def _again(lane: Sequence[Event], n: int) -> bool:
    return n > 0 and lane[n - 1]["type"] == "session.resume"


def _told(value: JSON, field: str) -> bool:
    """Whether a field says something: absent, null and (but for success) false are the same."""
    return value is not None and (value is not False or field == "success")


class _Names:
    """Ids of one outcome, numbered as they come."""

    def __init__(self) -> None:
        self._seen: dict[str, str] = {}

    def event(self, event: Event) -> dict[str, JSON]:
        data = event["data"]
        if event["type"] == "system.message" and data["content"] != OWN_PROMPT:
            data = {**data, "content": PRODUCT_PROMPT}
        kept = {field: data[field] for field in FIELDS[event["type"]] if _told(data.get(field), field)}
        return {"type": event["type"], **cast("dict[str, JSON]", self.value(kept))}

    def value(self, value: JSON, key: str = "") -> JSON:
        if is_dict(value):
            items = value.items()
            return {k: self.value(v, k) for k, v in items if k not in UNTOLD_KEYS}
        if is_list(value):
            return [self.value(each) for each in value]
        if not isinstance(value, str):
            return value
        if key in IDS:
            return self._name(value)
        return self.text(value)

    def _name(self, value: str) -> str:
        return self._seen.setdefault(value, f"<id{len(self._seen) + 1}>")

    def text(self, text: str) -> str:
        text = _ID.sub(lambda found: self._name(found[0]), text)
        text = _TIME.sub(r"\1<ts>\2", text)
        text = _STAMP.sub("<ts>", text)
        text = _FILE.sub("Saved to: <file>", text)
        text = _WAITED.sub(r"\1<n>", text)
        text = _ADDRESS.sub("<provider>", text)
        return text if len(text) <= LONG else text[:60] + "..."


def _request(request: Mapping[str, JSON], names: _Names) -> dict[str, JSON]:
    declared: list[JSON] = request.get("tools") or []
    tools = [tool if isinstance(tool, str) else tool["function"]["name"] for tool in declared]
    return {"tools": tools, "messages": list(_messages(request["messages"], names))}


def _messages(messages: Sequence[Mapping[str, JSON]], names: _Names) -> Iterator[JSON]:
    """The messages, with each run of tool results in the order of the calls: the reference's order is chance."""
    calls: list[str] = []
    results: list[Mapping[str, JSON]] = []
    end: Mapping[str, JSON] = {"role": ""}
    for message in [*messages, end]:
        if message["role"] == "tool":
            results.append(message)
            continue
        yield from (
            names.value({key: each[key] for key in MESSAGE if key in each})
            for each in sorted(results, key=lambda m: _place(m, calls))
        )
        results = []
        asked: list[JSON] = message.get("tool_calls") or []
        calls = [call["id"] for call in asked]
        if message["role"] == "system" and message["content"] != OWN_PROMPT:
            message = {**message, "content": PRODUCT_PROMPT}
        if message["role"]:
            yield names.value({key: message[key] for key in MESSAGE if message.get(key) is not None})


def _place(message: Mapping[str, JSON], calls: Sequence[str]) -> int:
    call = message["tool_call_id"]
    return calls.index(call) if call in calls else len(calls)


def _notes(notes: Sequence[Mapping[str, JSON]], names: _Names) -> Iterator[JSON]:
    for note in notes:
        ((key, value),) = note.items()
        if key not in UNTOLD:
            yield {key: names.value(value)}
