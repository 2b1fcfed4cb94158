"""What differs between the APIs for the dirty answers of a session."""

from collections.abc import Callable
from typing import Any

import attrs

from exeunt.testing.http_double import HttpReply, HttpRequest
from tests.models import anthropic_support, responses_support, strict_responses, strict_server


@attrs.frozen
class Api:
    """One API as a session meets it."""

    provider: dict[str, str]
    """What plain configuration says of it."""
    recovered: Callable[[HttpRequest], HttpReply]
    """What every later request is answered with."""
    refusals: Callable[[bytes], list[str]]
    """Why a strict server refuses a request."""
    results: Callable[[Any], list[tuple[str, str]]]
    """The ids and texts of the results in a request."""


def _chat_results(request: Any) -> list[tuple[str, str]]:
    return [(each["tool_call_id"], each["content"]) for each in request["messages"] if each["role"] == "tool"]


def _messages_results(request: Any) -> list[tuple[str, str]]:
    return [
        (block["tool_use_id"], block["content"])
        for message in request["messages"]
        for block in message["content"]
        if block["type"] == "tool_result"
    ]


def _responses_results(request: Any) -> list[tuple[str, str]]:
    return [
        (each["call_id"], each["output"])
        for each in request["input"]
        if each["type"] == "function_call_output"
    ]


CHAT = Api({"type": "openai"}, strict_server.recovered, strict_server.refusals, _chat_results)
MESSAGES = Api(
    {"type": "anthropic"}, anthropic_support.recovered, anthropic_support.refusals, _messages_results
)
RESPONSES = Api(
    {"type": "openai", "wire_api": "responses"},
    responses_support.recovered,
    strict_responses.refusals,
    _responses_results,
)
