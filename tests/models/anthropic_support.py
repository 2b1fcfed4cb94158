"""Answers of the Messages API, and what it refuses."""

import json
import re
from collections.abc import Callable
from typing import Any

import msgspec

from exeunt.actors.models import Message, ModelRequest, ReasoningBlocks, ToolCall, ToolDefinition
from exeunt.models.anthropic import AnthropicModel
from exeunt.models.anthropic.requests import RequestEncoder
from exeunt.models.door.jsontext import is_dict, is_list
from exeunt.models.media import IMAGES_AND_PDFS
from exeunt.testing.http_double import HttpDouble, HttpReply, HttpRequest
from tests.models.openai_support import Said
from tests.models.strict_server import RECOVERED, texts_in

_ID = re.compile(r"[a-zA-Z0-9_-]+", re.ASCII)
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}", re.ASCII)

USAGE = {"input_tokens": 3, "output_tokens": 1}

EPHEMERAL = {"type": "ephemeral"}
"""How a request marks where the cache is to reach."""


def called(*ids: str) -> Said:
    """An answer in a conversation that calls a tool once for each id."""
    return Said("assistant", "", tuple(ToolCall(each, "look", '{"at": 1}') for each in ids))


def text(words: str, **more: Any) -> dict[str, Any]:
    """A block of text."""
    return {"type": "text", "text": words, **more}


def use(name: str, arguments: Any, call_id: str = "toolu_1") -> dict[str, Any]:
    """A block that calls a tool."""
    return {"type": "tool_use", "id": call_id, "name": name, "input": arguments}


def thought(words: str, signature: str = "sig") -> dict[str, Any]:
    """A block of thoughts."""
    return {"type": "thinking", "thinking": words, "signature": signature}


def answer(*blocks: dict[str, Any], stop: str = "end_turn", **more: Any) -> HttpReply:
    """A whole answer."""
    whole = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": blocks}
    return HttpReply(body=msgspec.json.encode({**whole, "stop_reason": stop, "usage": USAGE, **more}))


def events(*blocks: dict[str, Any], stop: str = "end_turn", usage: Any = None) -> list[dict[str, Any]]:
    """The events of a streamed answer; each block comes in two pieces."""
    start: dict[str, Any] = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "content": [],
        "usage": usage or USAGE,
    }
    found: list[dict[str, Any]] = [{"type": "message_start", "message": start}]
    for index, block in enumerate(blocks):
        shell, deltas = _pieces(block)
        found.append({"type": "content_block_start", "index": index, "content_block": shell})
        found += ({"type": "content_block_delta", "index": index, "delta": each} for each in deltas)
        found.append({"type": "content_block_stop", "index": index})
    end = {"type": "message_delta", "delta": {"stop_reason": stop}, "usage": {"output_tokens": 9}}
    return [*found, end, {"type": "message_stop"}]


def _pieces(block: dict[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    kind = block["type"]
    if kind == "text":
        halves = [{"type": "text_delta", "text": half} for half in _halves(block["text"])]
        cited = [{"type": "citations_delta", "citation": one} for one in block.get("citations", ())]
        return {"type": "text", "text": ""}, halves + cited
    if kind == "tool_use":
        written = json.dumps(block["input"])
        deltas = [{"type": "input_json_delta", "partial_json": half} for half in ("", *_halves(written))]
        return {**block, "input": {}}, deltas
    if kind == "thinking":
        deltas = [{"type": "thinking_delta", "thinking": half} for half in _halves(block["thinking"])]
        deltas.append({"type": "signature_delta", "signature": block["signature"]})
        return {"type": "thinking", "thinking": "", "signature": ""}, deltas
    return block, []


def _halves(words: str) -> list[str]:
    middle = len(words) // 2
    return [words[:middle], words[middle:]]


def streamed_answer(*blocks: dict[str, Any], **more: Any) -> HttpReply:
    """A streamed answer, each event under its name."""
    packets = [
        f"event: {each['type']}\ndata: {json.dumps(each)}\n\n".encode() for each in events(*blocks, **more)
    ]
    return HttpReply(body=packets, content_type="text/event-stream", framing="chunked")


def recovered(request: HttpRequest) -> HttpReply:
    """A plain answer, streamed if that was asked for. For `HttpDouble.otherwise`."""
    return (streamed_answer if request.json.get("stream") else answer)(text(RECOVERED))


def claude_at(double: HttpDouble, **settings: Any) -> AnthropicModel:
    """A client of the double that ignores the environment's proxies."""
    settings = {"base_url": f"http://127.0.0.1:{double.port}", "trust_env": False, **settings}
    return AnthropicModel("claude-test-4-5", **settings)


def refusals(body: bytes) -> list[str]:
    """Return why the API refuses the request, empty if it does not."""
    request: Any = json.loads(body.decode())
    found: list[str] = []
    if any("\ud800" <= each <= "\udfff" for words in texts_in(request) for each in words):
        found.append("half a surrogate pair")
    if not isinstance(request.get("max_tokens"), int):
        found.append("max_tokens is missing")
    for block in request.get("system", ()):
        _check_text(block, found.append)
    for tool in request.get("tools", ()):
        if not _NAME.fullmatch(tool["name"]) or tool["input_schema"].get("type") != "object":
            found.append(f"the tool {tool['name']!r}")
    if json.dumps(request).count('"cache_control"') > 4:
        found.append("more than four marks for the cache")
    messages = request.get("messages")
    if not is_list(messages) or not messages or messages[0]["role"] != "user":
        return [*found, "the first message is not the user's"]
    _check_messages(messages, found.append)
    return found


def _check_messages(messages: list[dict[str, Any]], say: Callable[[str], None]) -> None:
    ids: list[str] = []
    waiting: list[str] = []
    last = ""
    for number, message in enumerate(messages):
        role, content = message["role"], message["content"]
        if role == last or role not in ("user", "assistant"):
            say(f"message {number}: {role} behind {last}")
        last = role
        if not is_list(content) or not content:
            say(f"message {number}: no content")
            continue
        answered = [block["tool_use_id"] for block in content if block["type"] == "tool_result"]
        if sorted(answered) != sorted(waiting):
            say(f"message {number}: results {answered} for the calls {waiting}")
        kinds = [block["type"] for block in content]
        if "tool_result" in kinds[len(answered) :]:
            say(f"message {number}: a result behind other blocks")
        waiting = [block["id"] for block in content if block["type"] == "tool_use"]
        ids += waiting
        for block in content:
            _check_block(role, block, say)
    if waiting or last != "user":
        say(f"at the end: {last}, calls without a result {waiting}")
    if len(set(ids)) != len(ids):
        say(f"two calls have one id: {ids}")


def _check_block(role: str, block: dict[str, Any], say: Callable[[str], None]) -> None:
    kind = block["type"]
    if kind == "text":
        _check_text(block, say)
    elif kind == "tool_use":
        if role != "assistant" or not is_dict(block["input"]):
            say(f"a call of {role} with {block['input']!r:.80}")
        if not _ID.fullmatch(block["id"]) or not _NAME.fullmatch(block["name"]):
            say(f"the call {block['id']!r}, {block['name']!r}")
    elif kind == "tool_result":
        if not _ID.fullmatch(block["tool_use_id"]):
            say(f"the id {block['tool_use_id']!r}")
        for each in block["content"] if is_list(block["content"]) else ():
            _check_text(each, say)
    elif kind in ("thinking", "redacted_thinking") and role != "assistant":
        say(f"thoughts of {role}")


def _check_text(block: dict[str, Any], say: Callable[[str], None]) -> None:
    if block["type"] == "text" and not block["text"].strip():
        say("a blank text")


# --- What is sent ---


class Answered(Said, frozen=True):
    """An answer that came with thoughts."""

    reasoning_blocks: ReasoningBlocks | None = None


class Result(Said, frozen=True):
    """A result that says how its call ended."""

    success: bool = True


TAG = "anthropic api.anthropic.com claude-sonnet-4-5"


def encoder(model: str = "claude-sonnet-4-5", **settings: Any) -> RequestEncoder:
    """Of requests to this model."""
    defaults: dict[str, Any] = {
        "max_tokens": None,
        "effort": None,
        "prompt_cache": False,
        "citations": False,
        "media": IMAGES_AND_PDFS,
        "tag": TAG,
    }
    return RequestEncoder(model, settings.pop("options", {}), **(defaults | settings))


def sent(
    *messages: Message, tools: tuple[ToolDefinition, ...] = (), stream: bool = False, **settings: Any
) -> dict[str, Any]:
    """What is sent of a conversation, after a strict look at it."""
    body = encoder(**settings).encode(ModelRequest(messages, tools), stream=stream)
    assert refusals(body) == []
    value: dict[str, Any] = json.loads(body)
    return value
