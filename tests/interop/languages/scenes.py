"""What each scene must have shown, whatever the language of the program."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

EXPECTED: Mapping[str, Mapping[str, Any]] = {
    "clear": {
        "replies": ["re: hello", "re: Continue with step 2"],
        # A question, its answer, the second question, and the message with the call that clears.
        "cleared": ["Continue with step 2", 4],
        "requests": [["system", "user"], ["system", "user", "assistant", "user"], ["system", "user"]],
    },
    "abort": {"reply": "re: hello"},
    "permission": {
        "asked": ["custom-tool", "custom-tool"],
        "denied": "tool: The user rejected this tool call. User feedback: not today",
        "allowed": "tool: noted of the model",
    },
    "user_input": {"asked": ["Red or blue?"], "reply": "tool: User selected: blue"},
    "hooks": {
        "called": ["prompt use note", "pre note", "post note", "prompt use note", "pre note"],
        "modified": "tool: noted of the hook",
        "denied": "tool: Denied by preToolUse hook: house rules",
    },
    "streaming": {"deltas": ["re:", " hello"], "reply": "re: hello"},
    "resume": {"same": True, "reply": "tool: noted of the model", "said": ["hello", "use note"]},
    "list": {"before": True, "after": False, "resumed": False},
    "two": {"replies": ["tool: left", "tool: right"]},
}


def _clear_once_and_idle_twice(kinds: Sequence[str]) -> str | None:
    counts = (kinds.count("session.context_cleared"), kinds.count("session.idle"))
    return None if counts == (1, 2) else f"cleared {counts[0]} times and idle {counts[1]} times"


def _idle_after_the_aborted_call(kinds: Sequence[str]) -> str | None:
    wanted = ["abort", "tool.execution_complete", "session.idle"]
    first = [kinds.index(kind) if kind in kinds else -1 for kind in wanted]
    return None if -1 not in first and first == sorted(first) else f"events {' '.join(kinds)}"


ORDERS: Mapping[str, Callable[[Sequence[str]], str | None]] = {
    "clear": _clear_once_and_idle_twice,
    "abort": _idle_after_the_aborted_call,
}
"""What the types of a scene's events, in order, must show; a text says what is wrong."""


def wrong(scene: str, seen: Mapping[str, Any] | None) -> list[str]:
    """What is wrong with what a program saw of `scene`: nothing, where the list is empty."""
    if seen is None:
        return ["was not played"]
    if "error" in seen:
        return [f"the client says: {seen['error']}"]
    faults = [
        f"{name} is {seen.get(name)!r}, not {value!r}"
        for name, value in EXPECTED[scene].items()
        if seen.get(name) != value
    ]
    if scene in ORDERS and (fault := ORDERS[scene](seen["kinds"])):
        faults.append(fault)
    return faults
