"""What strict servers refuse in a Responses request, as a check of one request's body."""

import json
from collections.abc import Callable
from typing import Any

from exeunt.models.door.jsontext import is_dict, is_list
from tests.models.strict_server import broken_texts, check_arguments, check_name

_ROLES = ("system", "developer", "user", "assistant")
_LONGEST_ID = 64
_PARTS = ("input_text", "input_image", "input_file")


def refusals(body: bytes) -> list[str]:
    """Return why a strict server refuses the request, empty if it does not."""
    try:
        request: Any = json.loads(body.decode())
    except (ValueError, RecursionError) as error:
        return [f"the body is no JSON: {error}"]
    found: list[str] = ["half a surrogate pair"] if broken_texts(request) else []
    for tool in request.get("tools", ()):
        check_name(tool["name"], found.append)
        if tool["strict"] is not False or tool["parameters"].get("type") != "object":
            found.append(f"the tool {tool}")
    if request.get("tools") == []:
        found.append("tools is empty")
    if "instructions" in request and not request["instructions"]:
        found.append("instructions are empty")
    items = request.get("input")
    if not is_list(items) or not items or not all(map(is_dict, items)):
        return [*found, "no input"]
    _check_items(items, found.append)
    return found


def _check_items(items: list[dict[str, Any]], say: Callable[[str], None]) -> None:
    calls: list[str] = []
    answered: list[str] = []
    for number, item in enumerate(items):
        kind = item.get("type")
        where = f"item {number} ({kind})"
        if kind == "message":
            if item.get("role") not in _ROLES or not _is_content(item.get("content")):
                say(f"{where}: its role or its content is unknown")
            if item["role"] == "assistant" and not (
                isinstance(item["content"], str) and item["content"].strip()
            ):
                say(f"{where}: an answer of nothing")
        elif kind == "function_call":
            calls.append(item["call_id"])
            check_name(item["name"], say)
            check_arguments(item["arguments"], say)
            if not 1 <= len(item["call_id"]) <= _LONGEST_ID:
                say(f"{where}: the call_id {item['call_id']!r}")
        elif kind == "function_call_output":
            answered.append(item["call_id"])
            if item["call_id"] not in calls:
                say(f"{where}: a result of no call, {item['call_id']!r}")
            if not _is_content(item.get("output")):
                say(f"{where}: a result of no known shape")
        elif kind == "reasoning":
            if "status" in item or not is_list(item.get("summary")):
                say(f"{where}: no legal reasoning: {item}")
            follows = items[number + 1] if number + 1 < len(items) else {}
            if follows.get("role") != "assistant" and follows.get("type") not in (
                "function_call",
                "reasoning",
            ):
                say(f"{where}: without the item that must follow it")
        else:
            say(f"{where}: of an unknown type")
    if sorted(calls) != sorted(answered):
        say(f"calls {calls} and results {answered}")
    if len(set(calls)) != len(calls):
        say(f"two calls have one id: {calls}")


def _is_content(value: Any) -> bool:
    if isinstance(value, str):
        return True
    return (
        is_list(value) and bool(value) and all(is_dict(part) and part.get("type") in _PARTS for part in value)
    )
