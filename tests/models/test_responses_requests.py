"""What is sent to a Responses API is legal, whatever stands in the history."""

import json
import re
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exeunt import Media, MediaSupport
from exeunt.actors.errors import InvalidConfiguration
from exeunt.actors.events import AssistantMessage, Origin
from exeunt.actors.models import ModelRequest, ReasoningBlocks, ToolCall, ToolDefinition
from exeunt.models.responses import ResponsesModel
from exeunt.models.responses.answers import ResponseReader
from exeunt.models.responses.requests import RequestEncoder, legal_id
from tests.actors.media_support import PAPER, PIXEL
from tests.models.openai_support import HELLO, Said, tool
from tests.models.responses_support import calling, message, response, thinking
from tests.models.strict_responses import refusals


def encoder(**settings: Any) -> RequestEncoder:
    chosen: dict[str, Any] = {"options": {}, "developer_role": "developer", "keeper": "k", **settings}
    return RequestEncoder("m", **chosen)


def sent(*messages: Any, **settings: Any) -> list[dict[str, Any]]:
    body = msgspec.json.decode(encoder(**settings).encode(ModelRequest(messages), stream=False))
    return list(body["input"])


def answered(*output: dict[str, Any], keeper: str = "k") -> AssistantMessage:
    """The answer that a session logs of a response with *output*."""
    reader = ResponseReader(keeper=keeper)
    list(reader.feed(msgspec.json.encode(response(*output))))
    answer = reader.result()
    return AssistantMessage(
        Origin.fresh(), 1, 0.0, answer.content, "t", None, answer.tool_calls, answer.reasoning,
        answer.reasoning_blocks,
    )  # fmt: skip


def results(*ids: str) -> list[Said]:
    return [Said("tool", "R", (), call_id) for call_id in ids]


def test_a_whole_request_is_as_the_api_wants_it() -> None:
    messages = [
        Said("system", "S"),
        Said("system", ""),
        Said("system", "T"),
        Said("developer", "D"),
        Said("user", "U"),
        Said("assistant", "I look.", (ToolCall("call_1", "look", '{"a": 1}'),)),
        Said("tool", "R", (), "call_1"),
        Said("system", "L"),
        Said("assistant", "A"),
    ]
    options = {"temperature": 0, "max_output_tokens": 9}
    body = encoder(options=options).encode(ModelRequest(messages, (tool("look"),)), stream=False)
    assert json.loads(body) == {
        "model": "m",
        "store": False,
        "temperature": 0,
        "max_output_tokens": 9,
        "instructions": "S\n\nT",
        "input": [
            {"type": "message", "role": "developer", "content": "D"},
            {"type": "message", "role": "user", "content": "U"},
            {"type": "message", "role": "assistant", "content": "I look."},
            {"type": "function_call", "call_id": "call_1", "name": "look", "arguments": '{"a": 1}'},
            {"type": "function_call_output", "call_id": "call_1", "output": "R"},
            {"type": "message", "role": "system", "content": "L"},
            {"type": "message", "role": "assistant", "content": "A"},
        ],
        "tools": [
            {
                "type": "function",
                "name": "look",
                "description": "The tool look.",
                "parameters": {"type": "object", "properties": {}},
                "strict": False,
            }
        ],
    }
    assert refusals(body) == []


def test_a_stream_is_asked_for_and_nothing_empty_is_sent() -> None:
    body = json.loads(encoder().encode(HELLO, stream=True))
    assert body["stream"] is True
    assert "tools" not in body
    plain = json.loads(encoder().encode(ModelRequest([Said("user", "U")]), stream=False))
    assert sorted(plain) == ["input", "model", "store"]


def test_a_request_in_parts_is_the_same_request() -> None:
    messages = [Said("system", "S"), Said("user", "U"), Said("assistant", "A")]
    request = ModelRequest(messages, (tool("look"),))
    parts = encoder().encode_parts(request)
    whole = parts.head + b',"input":[' + b",".join(parts.items) + b"]" + parts.tail + b"}"
    assert whole == encoder().encode(request, stream=False)


def test_options_may_let_the_server_store_what_it_answers() -> None:
    assert json.loads(encoder(options={"store": True}).encode(HELLO, stream=False))["store"] is True


@pytest.mark.parametrize(
    ("options", "include"),
    [
        ({}, None),
        ({"reasoning": {"effort": "low"}}, ["reasoning.encrypted_content"]),
        ({"reasoning": {"effort": "low"}, "store": True}, None),
        ({"reasoning": {"effort": "low"}, "include": ["x"]}, ["x", "reasoning.encrypted_content"]),
        ({"include": ["reasoning.encrypted_content"]}, ["reasoning.encrypted_content"]),
    ],
)
def test_who_lets_the_model_reason_asks_for_its_reasoning(options: dict[str, Any], include: Any) -> None:
    assert json.loads(encoder(options=options).encode(HELLO, stream=False)).get("include") == include


def test_the_developer_role_can_be_another() -> None:
    assert sent(Said("developer", "D"), developer_role="system")[0]["role"] == "system"


@pytest.mark.parametrize("blank", ["", " \n"])
def test_an_assistant_message_of_nothing_gets_a_text(blank: str) -> None:
    assert sent(Said("assistant", blank))[0]["content"] == "(empty)"
    call = Said("assistant", blank, (ToolCall("a", "t", "{}"),))
    assert [item["type"] for item in sent(call, *results("a"))] == ["function_call", "function_call_output"]


def test_an_id_that_is_too_long_is_another_and_always_the_same() -> None:
    long = "x" * 65
    items = sent(Said("assistant", "", (ToolCall(long, "t", "{}"),)), *results(long))
    assert items[0]["call_id"] == items[1]["call_id"] == legal_id(long)
    assert len(legal_id(long)) <= 64
    assert legal_id(long) != legal_id(long + "x")
    assert legal_id("x" * 64) == "x" * 64


def test_broken_names_and_arguments_are_made_legal() -> None:
    (call,) = sent(Said("assistant", "", (ToolCall("a", "a.b c", "[1"),)))
    assert (call["name"], call["arguments"]) == ("a_b_c", "{}")


def test_lone_surrogates_are_replaced_wherever_they_stand() -> None:
    lone = "x\ud83d"
    call = Said("assistant", lone, (ToolCall(lone, lone, '{"a":"\\ud83d"}'),))
    request = ModelRequest(
        [Said("system", lone), Said("user", lone), call, Said("tool", lone, (), lone)],
        (ToolDefinition("t", lone, {"type": "object", "x": lone}),),
    )
    body = encoder().encode(request, stream=False)
    parts = encoder().encode_parts(request)
    assert refusals(body) == []
    assert json.loads(b"[" + b",".join(parts.items) + b"]") == json.loads(body)["input"]
    assert json.loads(body)["instructions"] == "x\ufffd"


# --- Media ------------------------------------------------------------------------------------------------------


def url(media: Media) -> str:
    return f"data:{media.mime_type};base64,{media.base64}"


def test_images_and_documents_are_parts_of_their_message() -> None:
    assert sent(Said("user", "what is this?", media=(PIXEL, PAPER)))[0]["content"] == [
        {"type": "input_text", "text": "what is this?"},
        {"type": "input_text", "text": "pixel.png"},
        {"type": "input_image", "image_url": url(PIXEL)},
        {"type": "input_file", "filename": "paper.pdf", "file_data": url(PAPER)},
    ]


def test_the_result_of_a_tool_shows_its_image_itself() -> None:
    call = Said("assistant", "", (ToolCall("a", "look", "{}"),))
    messages = [Said("user", "U"), call, Said("tool", "R\ud83d", (), "a", media=(PIXEL,))]
    body = encoder().encode(ModelRequest(messages), stream=False)
    assert refusals(body) == []
    assert json.loads(body)["input"][2]["output"] == [
        {"type": "input_text", "text": "R\ufffd"},
        {"type": "input_text", "text": "pixel.png"},
        {"type": "input_image", "image_url": url(PIXEL)},
    ]


@pytest.mark.parametrize("how", ["the model", "the request"])
def test_what_a_model_does_not_take_is_told_as_text(how: str) -> None:
    none = MediaSupport(images=False)
    request = ModelRequest([Said("user", "U", media=(PIXEL,))], media=none if how == "the request" else None)
    body = encoder(media=none if how == "the model" else None).encode(request, stream=False)
    (item,) = json.loads(body)["input"]
    assert "the model takes no images" in item["content"]


# --- Reasoning ---------------------------------------------------------------------------------------------------


def test_reasoning_goes_back_where_it_stood() -> None:
    output = (
        thinking("hm", "gA1", "rs_1"),
        message("Let me see.", phase="commentary"),
        thinking("", "gA2", "rs_2"),
        calling("look", "{}", "a"),
        calling("find", "{}", "b"),
    )
    items = sent(Said("user", "U"), answered(*output), *results("a", "b"))
    assert items[1:6] == [
        {"type": "reasoning", "id": "rs_1", "encrypted_content": "gA1",
         "summary": [{"type": "summary_text", "text": "hm"}]},
        {"type": "message", "role": "assistant", "content": "Let me see.", "phase": "commentary"},
        {"type": "reasoning", "id": "rs_2", "summary": [], "encrypted_content": "gA2"},
        {"type": "function_call", "call_id": "a", "name": "look", "arguments": "{}"},
        {"type": "function_call", "call_id": "b", "name": "find", "arguments": "{}"},
    ]  # fmt: skip


def test_two_messages_of_one_answer_go_back_as_two() -> None:
    output = (
        thinking("", "gA"),
        message("One.", "a", phase="commentary"),
        message("Two.", "b", phase="final_answer"),
    )
    items = sent(Said("user", "U"), answered(*output))
    assert [(item.get("content"), item.get("phase")) for item in items[2:]] == [
        ("One.", "commentary"),
        ("Two.", "final_answer"),
    ]


def test_reasoning_that_led_to_nothing_is_left_out() -> None:
    items = sent(Said("user", "U"), answered(message("Hi."), thinking("", "gA")))
    assert [item["type"] for item in items] == ["message", "message"]


def test_reasoning_in_the_open_goes_back_too() -> None:
    item = {"type": "reasoning", "id": "rs_1", "content": [{"type": "reasoning_text", "text": "hm"}]}
    items = sent(Said("user", "U"), answered(item, message("Hi.")))
    assert items[1] == {**item, "summary": []}


def test_the_reasoning_of_another_model_does_not_go_out() -> None:
    other = answered(thinking("", "gA"), message("Hi."), keeper="another")
    assert sent(Said("user", "U"), other)[1:] == [{"type": "message", "role": "assistant", "content": "Hi."}]


TEXTS = st.text(st.characters(), max_size=8)
CALLS = st.lists(
    st.builds(ToolCall, TEXTS.filter(bool), TEXTS, TEXTS | st.sampled_from(['{"a":"\\ud83d"}', '{"a":1}'])),
    max_size=3,
    unique_by=lambda call: call.id,
)


def kept_item(kind: str) -> dict[str, Any]:
    """What may be kept of one item of an answer."""
    return {"type": kind, "id": "x", "summary": []} if kind == "reasoning" else {"type": kind, "length": 3}


ITEMS = st.lists(st.sampled_from(["reasoning", "message", "function_call"]).map(kept_item), max_size=5)


class Kept(msgspec.Struct, frozen=True):
    """An answer with something kept, whatever that is."""

    role: str
    content: str
    tool_calls: tuple[ToolCall, ...]
    reasoning_blocks: ReasoningBlocks
    tool_call_id: str | None = None
    media: tuple[Media, ...] = ()


@given(CALLS, TEXTS, ITEMS)
def test_whatever_was_kept_the_request_is_legal_and_complete(
    calls: list[ToolCall], text: str, layout: list[dict[str, Any]]
) -> None:
    blocks = ReasoningBlocks("k", json.dumps(layout))
    messages: list[Any] = [Said("user", text), Kept("assistant", text, tuple(calls), blocks)]
    messages += results(*(call.id for call in calls))
    body = encoder().encode(ModelRequest(messages), stream=False)
    assert refusals(body) == []
    items = json.loads(body)["input"]
    assert len([item for item in items if item["type"] == "function_call"]) == len(calls)
    for item in items:
        if item["type"] == "function_call":
            assert re.fullmatch("[a-zA-Z0-9_-]{1,64}", item["name"])


@pytest.mark.parametrize(
    "settings",
    [
        {"model": " "},
        {"options": {"input": []}},
        {"options": {"previous_response_id": "resp_1"}},
        {"options": {"x": object()}},
        {"api_key": ""},
        {"base_url": "https://user:secret@x/v1"},
    ],
)
def test_a_setting_that_cannot_work_is_refused_without_naming_a_secret(settings: dict[str, Any]) -> None:
    chosen: dict[str, Any] = {"model": "m", "trust_env": False, **settings}
    with pytest.raises(InvalidConfiguration) as caught:
        ResponsesModel(**chosen)
    assert "secret" not in str(caught.value)
