"""A model for the scenes: it calls a tool when it is asked to, and repeats what it reads otherwise."""

import json
from typing import Any

from exeunt.testing.http_double import HttpReply, HttpRequest, event_stream

ARGUMENTS: dict[str, dict[str, Any]] = {
    "clear_context": {"prompt": "Continue with step 2"},
    "note": {"text": "of the model"},
    "ask_user": {"question": "Red or blue?", "choices": ["red", "blue"], "allow_freeform": False},
}
"""What the model calls each tool with."""


def model(request: HttpRequest) -> HttpReply:
    """Answer like a model that does what the last message says."""
    asked = request.json
    last = asked["messages"][-1]
    name = _wanted(last)
    if name is None:
        text = f"tool: {last['content']}" if last["role"] == "tool" else f"re: {last['content']}"
        return _reply({"role": "assistant", "content": text}, asked)
    function = {"name": name, "arguments": json.dumps(ARGUMENTS[name])}
    call = {"index": 0, "id": f"call_{len(asked['messages'])}", "type": "function", "function": function}
    return _reply({"role": "assistant", "content": None, "tool_calls": [call]}, asked)


def _wanted(message: dict[str, Any]) -> str | None:
    """The tool that `message` asks for."""
    content = message["content"]
    if message["role"] != "user":
        return None
    if content == "please start over":
        return "clear_context"
    return content.removeprefix("use ") if content.startswith("use ") else None


def _reply(message: dict[str, Any], asked: dict[str, Any]) -> HttpReply:
    reason = "tool_calls" if "tool_calls" in message else "stop"
    if not asked.get("stream"):
        answer = {"choices": [{"index": 0, "message": message, "finish_reason": reason}]}
        return HttpReply(body=json.dumps(answer).encode())
    words = (message["content"] or "").split(" ")
    pieces: list[dict[str, Any]] = [
        {"content": word if i == 0 else f" {word}"} for i, word in enumerate(words) if word
    ]
    if "tool_calls" in message:
        pieces.append({"tool_calls": message["tool_calls"]})
    return event_stream(
        *({"choices": [{"index": 0, "delta": piece, "finish_reason": None}]} for piece in pieces),
        {"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]},
    )
