"""The client of a Responses API as the session sees it."""

import gc
import json
from typing import Any

import pytest
import trio

from exeunt import TurnFailed, approve_all, tool
from exeunt.actors.errors import InvalidConfiguration
from exeunt.actors.events import AssistantMessage, AssistantUsage, Origin
from exeunt.actors.models import (
    ModelClient,
    ModelDelta,
    ModelError,
    ModelErrorKind,
    ModelRequest,
    ModelResponse,
    ReasoningBlocks,
    ToolCall,
    Usage,
)
from exeunt.models import model_from_provider, model_names
from exeunt.models.door import reasoning
from exeunt.models.openai import OpenAIModel
from exeunt.models.responses import ResponsesModel
from exeunt.testing import checked_host
from exeunt.testing.http_double import HttpReply, open_http_double
from tests.models.openai_support import HELLO, Said, completion, streamed
from tests.models.openai_support import tool as described
from tests.models.responses_support import (
    calling,
    message,
    provider_at,
    responses_at,
    streamed_reply,
    thinking,
    whole_reply,
)
from tests.models.strict_responses import refusals

NUMBERS = Usage(12, 9, 4, 0, 5)


def test_it_is_a_model_client() -> None:
    assert isinstance(ResponsesModel("m", api_key="sk-1"), ModelClient)
    assert repr(ResponsesModel("m", api_key="sk-1")) == "<ResponsesModel 'm'>"


async def test_a_whole_answer_is_read() -> None:
    async with open_http_double(whole_reply(calling("t", '{"x":1}', "a"))) as double:
        model = responses_at(double, api_key="sk-1")
        answer = await model.complete(ModelRequest([Said("user", "Go")], (described("t"),)))
        await model.aclose()
    assert answer == ModelResponse("", (ToolCall("a", "t", '{"x":1}'),), "tool_calls", NUMBERS)
    (request,) = double.requests
    assert (request.target, request.headers["authorization"]) == ("/v1/responses", "Bearer sk-1")
    assert "stream" not in request.json


async def test_a_streamed_answer_comes_in_pieces_and_then_whole() -> None:
    async with open_http_double(streamed_reply(thinking("hm.", None), message("Hi there"))) as double:
        model = responses_at(double)
        deltas, answer = await streamed(model)
        await model.aclose()
    assert deltas == [
        ModelDelta("", "h"),
        ModelDelta("", "m."),
        ModelDelta("Hi t"),
        ModelDelta("here"),
    ]
    assert answer == ModelResponse("Hi there", (), "stop", NUMBERS, "hm.")
    assert double.requests[0].json["stream"] is True
    assert double.requests[0].headers["accept"] == "text/event-stream"


async def test_connections_are_kept_after_a_stream() -> None:
    async with open_http_double(streamed_reply(message("One.")), streamed_reply(message("Two."))) as double:
        model = responses_at(double)
        assert [(await streamed(model))[1].content for _ in range(2)] == ["One.", "Two."]
        assert double.connections == 1
        await model.aclose()


async def test_what_a_server_does_not_take_back_is_left_out_and_the_request_sent_again() -> None:
    refused = {
        "error": {
            "code": "invalid_encrypted_content",
            "message": "The encrypted content gA could not be verified.",
        }
    }
    async with (
        open_http_double(
            whole_reply(thinking("hm"), message("One.")),
            HttpReply(status=400, body=json.dumps(refused).encode()),
            whole_reply(message("Two.")),
        ) as double,
        checked_host() as host,
    ):
        where = provider_at(double)
        session = await host.create_session(model="m", provider=where)
        assert (await session.send_and_wait("hello")).content == "One."
        assert (await session.send_and_wait("again")).content == "Two."
    kinds = [[item["type"] for item in request.json["input"]] for request in double.requests]
    assert kinds == [
        ["message"],
        ["message", "reasoning", "message", "message"],
        ["message", "message", "message"],
    ]


async def test_what_a_server_has_not_taken_back_is_not_sent_to_it_once_more() -> None:
    refused = {"error": {"code": "invalid_encrypted_content", "message": "encrypted content"}}
    old, new = thinking("hm", "gOld"), thinking("aha", "gNew")
    async with (
        open_http_double(
            whole_reply(old, message("One.")),
            HttpReply(status=400, body=json.dumps(refused).encode()),
            whole_reply(new, message("Two.")),
            whole_reply(message("Three.")),
            whole_reply(message("Four.")),
        ) as double,
        checked_host() as host,
    ):
        model = responses_at(double)
        session = await host.create_session(model=model)
        for text in ("One.", "Two.", "Three."):
            assert (await session.send_and_wait("go on")).content == text
        # Another session of the same model has been refused nothing.
        other = await host.create_session(model=model)
        assert (await other.send_and_wait("hello")).content == "Four."
    sent = [
        [item["encrypted_content"] for item in request.json["input"] if item["type"] == "reasoning"]
        for request in double.requests
    ]
    assert sent == [[], ["gOld"], [], ["gNew"], []]


async def test_reasoning_is_given_back_where_leaving_it_out_was_no_help() -> None:
    refused = {"error": {"code": "invalid_encrypted_content", "message": "encrypted content"}}
    no = HttpReply(status=400, body=json.dumps(refused).encode())
    async with (
        open_http_double(
            whole_reply(thinking("hm"), message("One.")), no, no, whole_reply(message("Two."))
        ) as double,
        checked_host() as host,
    ):
        session = await host.create_session(model=responses_at(double))
        await session.send_and_wait("hello")
        with pytest.raises(TurnFailed):
            await session.send_and_wait("again")
        assert (await session.send_and_wait("once more")).content == "Two."
    reasoned = [any(item["type"] == "reasoning" for item in one.json["input"]) for one in double.requests]
    assert reasoned == [False, True, False, True]


def test_no_more_sessions_are_remembered_than_are_worth_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reasoning, "MOST_REMEMBERED", 2)
    blocks = ReasoningBlocks("p", "[1]")
    said: Any = AssistantMessage(Origin.fresh(), 3, 0.0, "One.", "t1", "a1", reasoning_blocks=blocks)

    def request(session_id: str) -> ModelRequest:
        return ModelRequest([Said("user", "a"), said, Said("user", "b")], session_id=session_id)

    known = reasoning.RefusedReasoning()
    for name in ("a", "b", ""):
        known.note(request(name))
    assert known.left_out(request("a")) != request("a")
    known.note(request("c"))
    assert [known.left_out(request(name)) == request(name) for name in ("a", "b", "c", "")] == [
        False, True, False, True
    ]  # fmt: skip


@pytest.mark.parametrize("error", [{"code": "bad", "message": "x"}, {"message": "no encrypted content here"}])
async def test_a_request_that_is_wrong_is_not_sent_again(error: dict[str, Any]) -> None:
    async with open_http_double(HttpReply(status=400, body=json.dumps({"error": error}).encode())) as double:
        model = responses_at(double)
        with pytest.raises(ModelError) as caught:
            await model.complete(HELLO)
        await model.aclose()
        assert len(double.requests) == 1
    assert (caught.value.kind, caught.value.status) == (ModelErrorKind.BAD_REQUEST, 400)


# --- From configuration ------------------------------------------------------------------------------------------


async def made(provider: Any, model: str = "m") -> ModelClient:
    await trio.lowlevel.checkpoint()
    return model_from_provider(model, provider)


async def test_a_provider_says_which_api_it_speaks() -> None:
    plain = {"type": "openai", "api_key": "k"}
    responses = await made({**plain, "wire_api": "responses"})
    chat = await made({**plain, "wire_api": "completions"})
    assert isinstance(responses, ResponsesModel)
    assert isinstance(chat, OpenAIModel)
    assert chat is await made(plain)
    assert responses is await made({"wire_api": "responses", **plain})
    assert responses.http is chat.http


@pytest.mark.parametrize(
    "provider",
    [
        {"type": "openai", "wire_api": "messages"},
        {"type": "openai", "wire_api": 7},
        {"type": "openai", "wire_api": "responses", "stream_usage": True},
        {"type": "openai", "wire_api": "responses", "developer_role": "root"},
        {"type": "openai", "wire_api": "responses", "options": {"input": []}},
    ],
)
async def test_a_provider_that_cannot_work_is_refused(provider: Any) -> None:
    with pytest.raises(InvalidConfiguration):
        await made(provider)


async def test_the_models_of_a_provider_are_listed_whatever_it_speaks() -> None:
    listed = HttpReply(body=b'{"data": [{"id": "a"}, {"id": "b"}]}')
    async with open_http_double(listed) as double:
        where = provider_at(double, options={"max_output_tokens": 9})
        assert await model_names(where) == ["a", "b"]
        assert double.requests[0].target == "/v1/models"
    gc.collect()


# --- In a session ------------------------------------------------------------------------------------------------


async def test_a_session_calls_its_tools_and_gives_the_reasoning_back() -> None:
    called: list[str] = []

    @tool
    async def look(word: str) -> str:
        """Look a word up."""
        await trio.lowlevel.checkpoint()
        called.append(word)
        return "they leave"

    async with (
        open_http_double(
            streamed_reply(thinking("I look."), calling("look", '{"word": "exeunt"}', "call_a")),
            streamed_reply(message("They leave.")),
            whole_reply(message("Over chat?")),
        ) as double,
        checked_host() as host,
    ):
        where = provider_at(double)
        session = await host.create_session(
            model="m", provider=where, tools=[look], system_message="Be brief.", streaming=True,
            on_permission_request=approve_all,
        )  # fmt: skip
        usages: list[AssistantUsage] = []
        answers: list[AssistantMessage] = []
        session.on(lambda event: usages.append(event) if isinstance(event, AssistantUsage) else None)
        session.on(lambda event: answers.append(event) if isinstance(event, AssistantMessage) else None)
        reply = await session.send_and_wait("What does exeunt mean?")
    assert (reply.content, called) == ("They leave.", ["exeunt"])
    first, second = (request.json for request in double.requests)
    assert first["instructions"] == second["instructions"] == "Be brief."
    assert [item["type"] for item in second["input"]] == [
        "message", "reasoning", "function_call", "function_call_output"
    ]  # fmt: skip
    assert second["input"][1]["encrypted_content"] == "gAAA"
    assert second["input"][3] == {"type": "function_call_output", "call_id": "call_a", "output": "they leave"}
    assert [refusals(request.body) for request in double.requests] == [[], []]
    assert [(one.cache_read_tokens, one.reasoning_tokens) for one in usages] == [(4, 5), (4, 5)]
    assert answers[0].reasoning == "I look."


async def test_a_session_that_changes_its_model_does_not_send_foreign_reasoning() -> None:
    async with (
        open_http_double(
            whole_reply(thinking("hm"), message("One.")),
            HttpReply(body=completion("Two.")),
            whole_reply(message("Three.")),
        ) as double,
        checked_host() as host,
    ):
        session = await host.create_session(model="m0", provider=provider_at(double))
        for number, api in enumerate(("responses", "completions", "responses")):
            if number:
                await session.disconnect()
                provider = provider_at(double, wire_api=api)
                session = await host.resume_session(session.session_id, model=f"m{number}", provider=provider)
            await session.send_and_wait("go")
    kinds = [[item["type"] for item in request.json.get("input", ())] for request in double.requests]
    assert kinds == [["message"], [], ["message"] * 5]
