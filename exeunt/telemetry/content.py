"""What was said, as attributes: JSON texts in the shape that OpenTelemetry's conventions give messages.

Only where content is captured. Each text is bounded: a context may hold thousands of messages, and all of it goes with
every request.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from exeunt.actors.events import AssistantMessage
from exeunt.actors.models import Message

PREAMBLE = ("system", "developer")


def as_json(value: Any) -> str:
    """Return *value* as JSON."""
    return msgspec.json.encode(value).decode()


def clipped(text: str, limit: int) -> str:
    """Return the first *limit* characters of *text*."""
    return text if len(text) <= limit else text[:limit]


def instructions(messages: Sequence[Message], limit: int) -> str | None:
    """Return the system and developer messages at the beginning; `None` where there are none."""
    parts: list[dict[str, str]] = []
    for message in messages:
        if message.role not in PREAMBLE:
            break
        parts.append({"type": "text", "content": clipped(message.content, limit)})
    return as_json(parts) if parts else None


def conversation(messages: Sequence[Message], before: int, limit: int) -> tuple[str, int]:
    """Return the newest messages of a conversation, *limit* characters of JSON at most, and how many are left out.

    *before* is the number of an event: what came after it is no part of the request. The last message is always there,
    if only its beginning.
    """
    told: list[str] = []
    room = limit
    position = len(messages)
    while position:
        message = messages[position - 1]
        if message.role in PREAMBLE:
            break
        if getattr(message, "seq", 0) < before:
            text = as_json(_message(message, limit))
            if told and len(text) > room:
                break
            told.append(text)
            room -= len(text)
        position -= 1
    told.reverse()
    omitted = sum(messages[index].role not in PREAMBLE for index in range(position))
    return f"[{','.join(told)}]", omitted


def one(role: str, text: str, limit: int) -> str:
    """Return a single message of one text."""
    return as_json([{"role": role, "parts": [{"type": "text", "content": clipped(text, limit)}]}])


def answer(message: AssistantMessage, limit: int) -> str:
    """Return what the model has said."""
    told = _message(message, limit)
    told["finish_reason"] = "tool_call" if message.tool_calls else "stop"
    return as_json([told])


def _message(message: Any, limit: int) -> dict[str, Any]:
    parts: list[dict[str, Any]] = []
    if message.role == "tool":
        response = clipped(message.content, limit)
        parts.append({"type": "tool_call_response", "id": message.tool_call_id, "response": response})
    elif message.content:
        parts.append({"type": "text", "content": clipped(message.content, limit)})
    for call in message.tool_calls:
        small = len(call.arguments_json) <= limit
        arguments = call.arguments if small else clipped(call.arguments_json, limit)
        parts.append({"type": "tool_call", "id": call.id, "name": call.name, "arguments": arguments})
    return {"role": message.role, "parts": parts}
