"""Differences from the reference that hold everywhere.

Each is applied to a record, and to what we showed, before both are compared.

A rule takes what was shown, in the form of `normal.normal`, and returns it as it would be with us.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, cast

from exeunt.models.door.jsontext import is_dict, is_list

Shown = Mapping[str, Any]
Rule = Callable[[Shown], Shown]

_CLOCK = re.compile(r"<current_datetime><ts></current_datetime>\s*|<DT>")
_ID = re.compile(r"<id\d+>")
SEED = "session-memory-rollover"


def without_clock(shown: Shown) -> Shown:
    """A model is told what its user wrote.

    The reference puts a clock before each prompt; here a model is told what its user wrote, and nothing else.
    """
    return cast("Shown", _texts(shown, lambda text: _CLOCK.sub("", text)))


def system_message_once(shown: Shown) -> Shown:
    """A system message is told when it is set.

    The reference tells the system message anew, live, with each prompt (its log has it once); here it is told when it
    is set, before the first prompt.
    """
    return _events(shown, "main", lambda events: [e for e in events if e["type"] != "system.message"])


def seed_is_content(shown: Shown) -> Shown:
    """A message has its text in `content`.

    The reference leaves the `content` of a seed's message empty; here it holds the seed. A steering message's
    `transformedContent` is its content, and need not be told.
    """

    def seeded(event: dict[str, Any]) -> dict[str, Any]:
        if event["type"] != "user.message":
            return event
        if event.get("source") != SEED:
            same = event.get("transformedContent") == event["content"]
            return {key: value for key, value in event.items() if not (same and key == "transformedContent")}
        return {**event, "content": event.get("transformedContent", event["content"])}

    return _events(shown, "main", lambda events: [seeded(event) for event in events])


def failures_in_our_words(shown: Shown) -> Shown:
    """That a provider failed is compared, not the words for it.

    Each runtime has its own words, and kinds, for what a provider did wrong; that it failed, when, and with which
    status are compared.
    """

    def plain(event: dict[str, Any]) -> dict[str, Any]:
        if event["type"] != "session.error":
            return event
        return {key: value for key, value in event.items() if key in {"type", "statusCode"}}

    return _events(shown, "main", lambda events: [plain(event) for event in events])


def steering_before_its_turn(shown: Shown) -> Shown:
    """A steering message is told before the turn that it joins.

    The reference tells a steering message after the start of the turn that it joins; here it is told when it is taken
    from the queue, before.
    """

    def moved(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
        events = [*events]
        for n in range(1, len(events)):
            at = n
            while at and _steers(events[at]) and events[at - 1]["type"] == "assistant.turn_start":
                events[at - 1], events[at] = events[at], events[at - 1]
                at -= 1
        return events

    return _events(shown, "main", moved)


def _steers(event: dict[str, Any]) -> bool:
    return event["type"] == "user.message" and event.get("delivery") == "steering"


def interrupted_calls_have_an_outcome(shown: Shown) -> Shown:
    """Each call that was told has an outcome.

    The reference leaves a call that an abort, or the end of the process, has interrupted without an outcome in its
    events; here each call that was told has one.
    """

    def without(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [event for event in events if event.get("error", {}).get("code") not in INTERRUPTED]

    lanes = {name: without(events) if "call " in name else events for name, events in shown["events"].items()}
    return {**shown, "events": lanes}


INTERRUPTED = frozenset({"interrupted", "cancelled", "aborted"})


def log_without_system_message(shown: Shown) -> Shown:
    """The log is compared without what comes at another moment.

    As `system_message_once`, in what a client reads of the log.
    """

    def kept(note: dict[str, Any]) -> dict[str, Any]:
        return {
            key: [each for each in value if each not in UNORDERED] if key in LOGS else value
            for key, value in note.items()
        }

    return {**shown, "notes": [kept(note) for note in shown["notes"]]}


LOGS = frozenset({"getEvents", "events", "disk after kill"})

UNORDERED = frozenset({"system.message", "session.context_cleared", "external_tool.completed"})
"""A clear takes effect, and is logged, when its batch has ended; with the reference at once. That a client has answered
is told, and not logged: the log has the outcome of the call."""


def errors_of_clients_are_told(shown: Shown) -> Shown:
    """What stands for a client's error is compared by itself.

    The reference hides what a client says of a failed handler, though clients send it for the model to read; here it
    is told. Recordings of an earlier reference tell it too.
    """
    return cast("Shown", _texts(shown, lambda text: _FAILED.sub("tool failed", text)))


_FAILED = re.compile(
    r"^(Failed to execute `[\w-]+` tool with arguments: .* due to error: Error: )?"
    r"(Tool execution failed|after clear|boom|x|secret|kaboom secret|E|E msg)$",
    re.DOTALL,
)
"""What handlers of the scenarios throw, and what the reference makes of it."""


def hooks_by_name(shown: Shown) -> Shown:
    """Each kind of hook is compared by itself.

    The reference repeats in its events what a hook was given and what it answered, and asks its client about hooks
    that this client does not have; here they say which hook ran, and whether it did. A session's start is told when it
    is made, not with its first prompt. So each kind of hook is compared by itself.
    """

    def plain(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
        told = [
            {key: event[key] for key in ("type", "hookType")}
            for event in events
            if event["hookType"] in HOOKS
        ]
        return sorted(told, key=lambda event: event["hookType"])

    return _events(shown, "hooks", plain)


HOOKS = frozenset(
    {"sessionStart", "userPromptSubmitted", "preToolUse", "postToolUse", "postToolUseFailure", "sessionEnd"}
)


def words_of_hooks_are_told(shown: Shown) -> Shown:
    """What a hook adds is a message of the log.

    What a hook adds for the model is a message of the log here, with `source` "hook"; the reference keeps it to
    itself. The model requests have it with both.
    """
    return _events(shown, "main", lambda events: [event for event in events if event.get("source") != "hook"])


def calls_are_told_whole(shown: Shown) -> Shown:
    """A call is told when it is whole.

    The reference tells the pieces of a call's arguments as they stream; here a call is told when it is whole.
    """
    lanes = {
        name: [event for event in events if event["type"] != "assistant.tool_call_delta"]
        for name, events in shown["events"].items()
    }
    return {**shown, "events": {name: events for name, events in lanes.items() if events}}


def unknown_tool_in_full(shown: Shown) -> Shown:
    """Client and model are told the same of an unknown tool.

    The reference tells the model which tools there are, and its client only that this one is none; here both are told
    the same.
    """
    return cast("Shown", _texts(shown, lambda text: _KNOWN_TOOLS.sub("", text)))


_KNOWN_TOOLS = re.compile(r" Available tools that can be called are .*", re.DOTALL)


def ids_of_the_queue(shown: Shown) -> Shown:
    """An item of the queue has its message's id.

    The reference counts its queue's items; here an item has its message's id.
    """

    def renamed(note: dict[str, Any]) -> dict[str, Any]:
        if "pending" not in note:
            return note
        items = [{**item, "id": item["messageId"]} for item in note["pending"]["items"]]
        return {"pending": {**note["pending"], "items": items}}

    return {**shown, "notes": [renamed(note) for note in shown["notes"]]}


RULES: tuple[Rule, ...] = (
    without_clock,
    system_message_once,
    seed_is_content,
    failures_in_our_words,
    steering_before_its_turn,
    interrupted_calls_have_an_outcome,
    log_without_system_message,
    errors_of_clients_are_told,
    hooks_by_name,
    words_of_hooks_are_told,
    calls_are_told_whole,
    unknown_tool_in_full,
    ids_of_the_queue,
)


def as_ours(shown: Shown) -> Shown:
    """`shown` with every rule applied."""
    for rule in RULES:
        shown = rule(shown)
    return cast("Shown", _numbered(shown, {}))


def _numbered(value: Any, seen: dict[str, str]) -> Any:
    """`value` with its ids numbered anew: a rule may have taken some away."""
    if is_dict(value):
        return {key: _numbered(each, seen) for key, each in value.items()}
    if is_list(value):
        return [_numbered(each, seen) for each in value]
    if isinstance(value, str):
        return _ID.sub(lambda found: seen.setdefault(found[0], f"<id{len(seen) + 1}>"), value)
    return value


def _events(shown: Shown, lane: str, change: Callable[[list[dict[str, Any]]], list[dict[str, Any]]]) -> Shown:
    lanes = {
        name: change(events) if name.split(" ")[-1] == lane else events
        for name, events in shown["events"].items()
    }
    return {**shown, "events": lanes}


def _texts(value: Any, change: Callable[[str], str]) -> Any:
    if is_dict(value):
        return {key: _texts(each, change) for key, each in value.items()}
    if is_list(value):
        return [_texts(each, change) for each in value]
    return change(value) if isinstance(value, str) else value
