"""Responses as the Responses API writes them, and a client of the double that reads them."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from exeunt.models.responses import ResponsesModel
from exeunt.testing.http_double import HttpDouble, HttpReply, HttpRequest, event_stream
from tests.models.strict_server import RECOVERED

USAGE = {
    "input_tokens": 12,
    "input_tokens_details": {"cached_tokens": 4},
    "output_tokens": 9,
    "output_tokens_details": {"reasoning_tokens": 5},
    "total_tokens": 21,
}


def message(text: str, item_id: str = "msg_1", **more: Any) -> dict[str, Any]:
    """An item with a text."""
    part: dict[str, Any] = {"type": "output_text", "text": text, "annotations": []}
    return {
        "type": "message", "id": item_id, "role": "assistant", "status": "completed", "content": [part], **more
    }  # fmt: skip


def calling(name: str, arguments: str, call_id: str = "call_1", item_id: str = "fc_1") -> dict[str, Any]:
    """An item with a call."""
    return {
        "type": "function_call", "id": item_id, "call_id": call_id, "name": name, "arguments": arguments,
        "status": "completed",
    }  # fmt: skip


def thinking(summary: str, encrypted: str | None = "gAAA", item_id: str = "rs_1") -> dict[str, Any]:
    """An item with reasoning."""
    parts = [{"type": "summary_text", "text": summary}] if summary else []
    return {
        "type": "reasoning", "id": item_id, "summary": parts, "encrypted_content": encrypted, "status": None
    }  # fmt: skip


def response(*output: Mapping[str, Any], status: str = "completed", **more: Any) -> dict[str, Any]:
    """A whole response."""
    return {
        "id": "resp_1", "object": "response", "status": status, "error": None, "incomplete_details": None,
        "output": list(output), "usage": USAGE, **more,
    }  # fmt: skip


def told(*output: Mapping[str, Any], **end: Any) -> list[dict[str, Any]]:
    """The events of a response, as its maker's own server sends them."""
    events: list[dict[str, Any]] = [{"type": "response.created", "response": response(status="in_progress")}]
    for index, item in enumerate(output):
        events += _told_item(index, item)
    whole = response(*output, **end)
    events.append({"type": f"response.{whole['status']}", "response": whole})
    for number, event in enumerate(events):
        event["sequence_number"] = number
    return events


def _told_item(index: int, item: Mapping[str, Any]) -> list[dict[str, Any]]:
    at = {"output_index": index, "item_id": item["id"]}
    begun: dict[str, Any]
    pieces: list[dict[str, Any]]
    if item["type"] == "message":
        begun = {**item, "content": [], "status": "in_progress"}
        text = item["content"][0]["text"]
        at["content_index"] = 0
        pieces = [
            {"type": "response.content_part.added", **at, "part": {"type": "output_text", "text": ""}},
            *({"type": "response.output_text.delta", **at, "delta": piece} for piece in halves(text)),
            {"type": "response.output_text.done", **at, "text": text},
            {"type": "response.content_part.done", **at, "part": item["content"][0]},
        ]
    elif item["type"] == "function_call":
        begun = {**item, "arguments": "", "status": "in_progress"}
        kind = "response.function_call_arguments"
        pieces = [
            *({"type": f"{kind}.delta", **at, "delta": piece} for piece in halves(item["arguments"])),
            {"type": f"{kind}.done", **at, "arguments": item["arguments"]},
        ]
    else:
        begun = {**item, "summary": [], "encrypted_content": "gA"}
        pieces = [
            {"type": "response.reasoning_summary_text.delta", **at, "summary_index": number, "delta": piece}
            for number, part in enumerate(item["summary"])
            for piece in halves(part["text"])
        ]
    return [
        {"type": "response.output_item.added", "output_index": index, "item": begun},
        *pieces,
        {"type": "response.output_item.done", "output_index": index, "item": dict(item)},
    ]


def halves(text: str) -> Sequence[str]:
    """Return *text* in two pieces, where it has two."""
    half = len(text) // 2
    return [piece for piece in (text[:half], text[half:]) if piece]


def streamed_reply(*output: Mapping[str, Any], **end: Any) -> HttpReply:
    """A streamed answer with these items."""
    return event_stream(*told(*output, **end), done=False)


def recovered(request: HttpRequest) -> HttpReply:
    """A plain answer, streamed if that was asked for. For `HttpDouble.otherwise`."""
    if request.json.get("stream"):
        return streamed_reply(message(RECOVERED))
    return whole_reply(message(RECOVERED))


def whole_reply(*output: Mapping[str, Any], **more: Any) -> HttpReply:
    """An answer in one piece."""
    return HttpReply(body=msgspec.json.encode(response(*output, **more)))


def responses_at(double: HttpDouble, **settings: Any) -> ResponsesModel:
    """A client of the double that ignores the environment's proxies."""
    settings = {"base_url": f"http://127.0.0.1:{double.port}/v1", "trust_env": False, **settings}
    return ResponsesModel("test-model", **settings)


def provider_at(double: HttpDouble, **settings: Any) -> dict[str, Any]:
    """The double, as plain configuration."""
    return {
        "type": "openai",
        "wire_api": "responses",
        "base_url": f"http://127.0.0.1:{double.port}/v1",
        "trust_env": False,
        **settings,
    }
