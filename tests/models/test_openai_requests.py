"""What is sent is legal, whatever stands in the history."""

import json
import re
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exeunt.actors.errors import InvalidConfiguration
from exeunt.actors.models import ModelRequest, ToolCall, ToolDefinition
from exeunt.models.openai import OpenAIModel
from exeunt.models.openai.requests import RequestEncoder
from tests.models.openai_support import HELLO, Said, tool


def encoder(**settings: Any) -> RequestEncoder:
    chosen: dict[str, Any] = {"options": {}, "developer_role": "system", "stream_usage": True, **settings}
    return RequestEncoder("m", **chosen)


def sent(*messages: Said) -> list[dict[str, Any]]:
    body = msgspec.json.decode(encoder().encode(ModelRequest(messages), stream=False))
    return list(body["messages"])


def calling(name: str = "t", arguments: str = "{}", content: str = "") -> Said:
    return Said("assistant", content, (ToolCall("call_1", name, arguments),))


def test_a_whole_request_is_as_the_api_wants_it() -> None:
    messages = [
        Said("system", "S"),
        Said("developer", "D"),
        Said("user", "U"),
        calling("look", '{"a": 1}'),
        Said("tool", "R", (), "call_1"),
        Said("assistant", "A"),
    ]
    body = encoder(options={"temperature": 0}).encode(ModelRequest(messages, (tool("look"),)), stream=False)
    assert json.loads(body) == {
        "model": "m",
        "temperature": 0,
        "messages": [
            {"role": "system", "content": "S"},
            {"role": "system", "content": "D"},
            {"role": "user", "content": "U"},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {
                        "id": "call_1",
                        "type": "function",
                        "function": {"name": "look", "arguments": '{"a": 1}'},
                    }
                ],
            },
            {"role": "tool", "tool_call_id": "call_1", "content": "R"},
            {"role": "assistant", "content": "A"},
        ],
        "tools": [
            {
                "type": "function",
                "function": {
                    "name": "look",
                    "description": "The tool look.",
                    "parameters": {"type": "object", "properties": {}},
                },
            }
        ],
    }


def test_a_streaming_request_asks_for_the_usage_unless_told_not_to() -> None:
    assert json.loads(encoder().encode(HELLO, stream=True))["stream_options"] == {"include_usage": True}
    plain = json.loads(encoder(stream_usage=False).encode(HELLO, stream=True))
    assert plain["stream"] is True
    assert "stream_options" not in plain


def test_the_developer_role_can_be_kept() -> None:
    body = encoder(developer_role="developer").encode(ModelRequest([Said("developer", "D")]), stream=False)
    assert json.loads(body)["messages"] == [{"role": "developer", "content": "D"}]


def test_no_empty_lists_are_sent() -> None:
    body = json.loads(encoder().encode(ModelRequest([Said("assistant", "A")]), stream=False))
    assert "tools" not in body
    assert "tool_calls" not in body["messages"][0]


@pytest.mark.parametrize("blank", ["", " \n"])
def test_an_assistant_message_of_nothing_gets_a_text(blank: str) -> None:
    assert sent(Said("assistant", blank)) == [{"role": "assistant", "content": "(empty)"}]
    assert sent(calling(content=blank))[0]["content"] is None


@pytest.mark.parametrize(
    ("name", "legal"),
    [
        ("get_weather", "get_weather"),
        ("a.b c", "a_b_c"),
        ("\u5929", "_"),
        ("", "unknown_tool"),
        ("x" * 65, "x" * 64),
        ("a\n", "a_"),
    ],
)
def test_a_name_that_the_model_made_up_is_made_legal(name: str, legal: str) -> None:
    assert sent(calling(name))[0]["tool_calls"][0]["function"]["name"] == legal


@pytest.mark.parametrize(
    "broken",
    [
        "",
        "{",
        "[1]",
        "null",
        '{"a":1,}',
        '{"a":1}{"a":1}',
        '{"a":NaN}',
        '{"a":1e999}',
        "[" * 100_000,
        '{"a":' * 100_000,
    ],
)
def test_broken_arguments_are_sent_as_an_empty_object(broken: str) -> None:
    assert sent(calling(arguments=broken))[0]["tool_calls"][0]["function"]["arguments"] == "{}"


def test_arguments_keep_their_text() -> None:
    text = '{ "id": 2512292042121000001, "s": "\\ud83d\\ude00" }'
    assert sent(calling(arguments=text))[0]["tool_calls"][0]["function"]["arguments"] == text


def test_lone_surrogates_are_replaced_wherever_they_stand() -> None:
    lone = "x\ud83d"
    call = Said("assistant", lone, (ToolCall(lone, lone, '{"a":"\\ud83d \\\\ud83d"}'),))
    request = ModelRequest(
        [Said("user", lone), call, Said("tool", lone, (), lone)],
        (ToolDefinition("t", lone, {"type": "object", "x": lone}),),
    )
    body = json.loads(encoder().encode(request, stream=False))
    assert "\ud83d" not in json.dumps(body, ensure_ascii=False)
    assert [message["content"] for message in body["messages"]] == ["x\ufffd"] * 3
    assert body["messages"][1]["tool_calls"][0]["function"]["arguments"] == '{"a":"\ufffd \\\\ud83d"}'
    assert body["tools"][0]["function"]["description"] == "x\ufffd"


TEXTS = st.text(st.characters(), max_size=8)


@given(
    st.lists(
        st.builds(ToolCall, TEXTS, TEXTS, TEXTS | st.sampled_from(['{"a":"\\ud83d"}', '{"a":1}'])), max_size=3
    ),
    TEXTS,
    TEXTS,
)
def test_whatever_a_model_wrote_the_request_is_legal(calls: list[ToolCall], text: str, result: str) -> None:
    messages = sent(Said("user", text), Said("assistant", text, tuple(calls)), Said("tool", result, (), text))
    assistant = messages[1]
    assert assistant["content"] or assistant.get("tool_calls")
    assert assistant.get("tool_calls") != []
    for call in assistant.get("tool_calls", ()):
        assert re.fullmatch("[a-zA-Z0-9_-]{1,64}", call["function"]["name"])
        assert isinstance(json.loads(call["function"]["arguments"]), dict)


@pytest.mark.parametrize(
    "settings",
    [
        {"model": ""},
        {"model": " "},
        {"base_url": "ftp://x/v1"},
        {"base_url": "https:///v1"},
        {"base_url": "https://x:99999/v1"},
        {"base_url": "https://user:secret@x/v1"},
        {"base_url": "https://x/v1#part"},
        {"base_url": "https://x/v 1"},
        {"base_url": ""},
        {"api_key": ""},
        {"api_key": "a\nb"},
        {"headers": {"a b": "c"}},
        {"headers": {"a": "b\r\nc: d"}},
        {"headers": {"Content-Length": "1"}},
        {"proxy": "socks5://x:1"},
        {"options": {"messages": []}},
        {"options": {"x": object()}},
        {"max_response_bytes": 0},
    ],
)
def test_a_setting_that_cannot_work_is_refused_without_naming_a_secret(settings: dict[str, Any]) -> None:
    chosen: dict[str, Any] = {"model": "m", "trust_env": False, **settings}
    with pytest.raises(InvalidConfiguration) as caught:
        OpenAIModel(**chosen)
    assert "secret" not in str(caught.value)


def test_a_tool_without_a_description_is_sent_without_one() -> None:
    tools = (ToolDefinition("bare", "", {"type": "object", "properties": {}}),)
    (described,) = json.loads(encoder().encode(ModelRequest((), tools), stream=False))["tools"]
    assert "description" not in described["function"]
