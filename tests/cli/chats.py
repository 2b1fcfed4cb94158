"""What tests of `exeunt chat` share: answers of its model, and how it is told where that is."""

import sys
from collections.abc import Sequence
from typing import Any

import attrs
import msgspec
import pytest

from exeunt.testing.http_double import HttpDouble, HttpReply, event_stream

needs_terminals = pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals are a matter of POSIX")
"""A mark for tests."""


def chunk(text: str, finish_reason: str | None = None) -> dict[str, Any]:
    """A piece of a streamed answer."""
    return {"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": finish_reason}]}


def answer(*parts: str | float) -> HttpReply:
    """A streamed answer in pieces; a number is a pause in seconds."""
    whole = event_stream(chunk("", "stop"))
    body: list[bytes | float] = [piece(part) if isinstance(part, str) else part for part in parts]
    return attrs.evolve(whole, body=[*body, *whole.packets])


def piece(text: str) -> bytes:
    """The same as it is sent."""
    return b"data: " + msgspec.json.encode(chunk(text)) + b"\n\n"


def endless(*words: str) -> HttpReply:
    """The beginning of a streamed answer that goes on for ever."""
    return HttpReply(body=[*map(piece, words), 3600.0], content_type="text/event-stream", framing="chunked")


def failure(status: int, message: str) -> HttpReply:
    """An error of the model's server."""
    return HttpReply(status=status, body=msgspec.json.encode({"error": {"message": message}}))


def at(double: HttpDouble) -> Sequence[str]:
    """How the command is told that *double* is its model."""
    return ("chat", "--base-url", f"http://127.0.0.1:{double.port}/v1", "--model", "test-model")


def contents(double: HttpDouble, number: int) -> list[str]:
    """What the messages of a request say."""
    return [message["content"] for message in double.requests[number].json["messages"]]
