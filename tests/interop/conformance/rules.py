"""Differences from the reference that hold everywhere, each applied to a record (and to what we showed) before both
are compared.

A rule takes what was shown, in the form of `normal.normal`, and returns it as it would be with us.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

Shown = Mapping[str, Any]
Rule = Callable[[Shown], Shown]

_CLOCK = re.compile(r"<current_datetime><ts></current_datetime>\s*")
SEED = "session-memory-rollover"


def without_clock(shown: Shown) -> Shown:
    """The reference puts a clock before each prompt; here a model is told what its user wrote, and nothing else."""
    return _texts(shown, lambda text: _CLOCK.sub("", text))


def system_message_once(shown: Shown) -> Shown:
    """The reference tells the system message anew, live, with each prompt (its log has it once); here it is told
    when it is set, before the first prompt."""
    return _events(shown, "main", lambda events: [e for e in events if e["type"] != "system.message"])


def seed_is_content(shown: Shown) -> Shown:
    """The reference leaves the `content` of a seed's message empty; here it holds the seed."""

    def seeded(event: dict[str, Any]) -> dict[str, Any]:
        if event.get("source") != SEED:
            return event
        return {**event, "content": event["transformedContent"]}

    return _events(shown, "main", lambda events: [seeded(event) for event in events])


def failures_in_our_words(shown: Shown) -> Shown:
    """Each runtime has its own words, and kinds, for what a provider did wrong; that it failed, when, and with which
    status are compared."""

    def plain(event: dict[str, Any]) -> dict[str, Any]:
        if event["type"] != "session.error":
            return event
        return {key: value for key, value in event.items() if key in {"type", "statusCode"}}

    return _events(shown, "main", lambda events: [plain(event) for event in events])


RULES: tuple[Rule, ...] = (without_clock, system_message_once, seed_is_content, failures_in_our_words)


def as_ours(shown: Shown) -> Shown:
    """`shown` with every rule applied."""
    for rule in RULES:
        shown = rule(shown)
    return shown


def _events(shown: Shown, lane: str, change: Callable[[list[dict[str, Any]]], list[dict[str, Any]]]) -> Shown:
    lanes = {
        name: change(events) if name.split(" ")[-1] == lane or name == lane else events
        for name, events in shown["events"].items()
    }
    return {**shown, "events": lanes}


def _texts(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, dict):
        return {key: _texts(each, change) for key, each in value.items()}
    if isinstance(value, list):
        return [_texts(each, change) for each in value]
    return change(value) if isinstance(value, str) else value
