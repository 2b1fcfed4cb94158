"""The client as the session sees it: deltas, the response, numbers."""

from typing import Any

import pytest

from exeunt.actors.models import (
    ModelClient,
    ModelDelta,
    ModelError,
    ModelRequest,
    ModelResponse,
    ToolCall,
    Usage,
)
from exeunt.models.openai import OpenAIModel
from exeunt.testing.http_double import HttpReply, event_stream, open_http_double
from tests.models.openai_support import HELLO, Said, chunk, completion, model_at, streamed, tool


def test_it_is_a_model_client() -> None:
    assert isinstance(OpenAIModel("m", api_key="sk-1"), ModelClient)
    assert repr(OpenAIModel("m", api_key="sk-1")) == "<OpenAIModel 'm'>"


async def test_a_whole_answer_is_read() -> None:
    call = {"id": "a", "type": "function", "function": {"name": "t", "arguments": '{"x":1}'}}
    async with open_http_double(HttpReply(body=completion(None, tool_calls=[call]))) as double:
        model = model_at(double)
        answer = await model.complete(ModelRequest([Said("user", "Go")], (tool("t"),)))
        await model.aclose()
    assert answer == ModelResponse("", (ToolCall("a", "t", '{"x":1}'),), "stop", Usage(3, 1))
    assert "stream" not in double.requests[0].json


async def test_a_streamed_answer_comes_in_pieces_and_then_whole() -> None:
    events: list[dict[str, Any]] = [
        chunk({"role": "assistant", "content": ""}),
        chunk({"reasoning_content": "hm"}),
        chunk({"content": "Hi"}),
        chunk({"content": " there"}),
        chunk({}, "stop"),
        {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 2}},
    ]
    async with open_http_double(event_stream(*events)) as double:
        model = model_at(double)
        deltas, answer = await streamed(model)
        await model.aclose()
    assert deltas == [ModelDelta("", "hm"), ModelDelta("Hi"), ModelDelta(" there")]
    assert answer == ModelResponse("Hi there", (), "stop", Usage(3, 2), "hm")
    assert double.requests[0].json["stream"] is True
    assert double.requests[0].headers["accept"] == "text/event-stream"


async def test_a_stream_for_a_plain_request_is_read_too() -> None:
    async with open_http_double(event_stream(chunk({"content": "Hi."}), chunk({}, "stop"))) as double:
        model = model_at(double)
        assert (await model.complete(HELLO)).content == "Hi."
        await model.aclose()


async def test_what_came_before_an_error_in_one_packet_is_shown() -> None:
    body = b"".join(
        packet
        for packet in event_stream(chunk({"content": "Hel"}), {"error": {"code": 502}}).packets
        if isinstance(packet, bytes)
    )
    seen: list[object] = []

    async def note_each_piece(model: OpenAIModel) -> None:
        async for piece in model.stream(HELLO):
            seen.append(piece)

    async with open_http_double(HttpReply(body=body, content_type="text/event-stream")) as double:
        model = model_at(double)
        with pytest.raises(ModelError):
            await note_each_piece(model)
        await model.aclose()
    assert seen == [ModelDelta("Hel")]


async def test_the_numbers_add_up() -> None:
    async with open_http_double(HttpReply(body=completion()), HttpReply(status=500)) as double:
        model = model_at(double)
        await model.complete(HELLO)
        with pytest.raises(ModelError):
            await model.complete(HELLO)
        statistics = model.statistics()
        await model.aclose()
    assert (statistics.calls, statistics.failures, statistics.cancelled, statistics.in_flight) == (2, 1, 0, 0)
