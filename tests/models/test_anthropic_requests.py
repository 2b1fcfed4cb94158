"""What is sent to the Messages API: legal for a strict server, whatever the conversation holds."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exeunt.actors.errors import InvalidConfiguration
from exeunt.actors.limit_status import with_status
from exeunt.actors.models import (
    Role,
    ToolCall,
)
from exeunt.actors.state.account import Account
from exeunt.models.anthropic import AnthropicModel
from tests.models.anthropic_support import EPHEMERAL, Result, called, sent
from tests.models.openai_support import Said, tool


def test_a_conversation_has_the_shape_of_the_api() -> None:
    body = sent(
        Said("system", "Be brief."),
        Said("developer", "No jokes."),
        Said("user", "Look."),
        called("c1", "c2"),
        Said("tool", "one", tool_call_id="c1"),
        Said("tool", "two", tool_call_id="c2"),
        Said("user", "And?"),
        tools=(tool("look"),),
        stream=True,
    )
    assert body == {
        "model": "claude-sonnet-4-5",
        "max_tokens": 32_000,
        "tools": [
            {
                "name": "look",
                "description": "The tool look.",
                "input_schema": {"type": "object", "properties": {}},
            }
        ],
        "system": [{"type": "text", "text": "Be brief."}, {"type": "text", "text": "No jokes."}],
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "Look."}]},
            {
                "role": "assistant",
                "content": [
                    {"type": "tool_use", "id": "c1", "name": "look", "input": {"at": 1}},
                    {"type": "tool_use", "id": "c2", "name": "look", "input": {"at": 1}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "c1", "content": "one"},
                    {"type": "tool_result", "tool_use_id": "c2", "content": "two"},
                    {"type": "text", "text": "And?"},
                ],
            },
        ],
        "stream": True,
    }


def test_messages_of_one_side_in_a_row_are_one_message() -> None:
    body = sent(
        Said("user", "One."),
        Said("user", "Two."),
        Said("assistant", "a"),
        Said("assistant", "b"),
        Said("user", "c"),
    )
    roles = [(each["role"], [block["text"] for block in each["content"]]) for each in body["messages"]]
    assert roles == [("user", ["One.", "Two."]), ("assistant", ["a", "b"]), ("user", ["c"])]


@pytest.mark.parametrize("blank", ["", " \n\t"])
def test_blank_texts_are_left_out_or_replaced(blank: str) -> None:
    body = sent(
        Said("system", blank),
        Said("user", blank),
        called("c1"),
        Said("tool", blank, tool_call_id="c1"),
        Said("assistant", blank),
        Said("user", "x"),
    )
    assert "system" not in body
    assert [each["content"][0].get("text") for each in body["messages"]] == [
        "(empty)",
        None,
        None,
        "(empty)",
        "x",
    ]
    assert body["messages"][2]["content"][0]["content"] == "(empty)"


def test_a_conversation_begins_and_ends_with_the_user() -> None:
    body = sent(Said("assistant", "I was here."))
    assert [each["role"] for each in body["messages"]] == ["user", "assistant", "user"]
    assert [each["role"] for each in sent(Said("system", "s"))["messages"]] == ["user"]


def test_ids_and_names_of_other_providers_are_made_legal_and_stay_apart() -> None:
    ids = ("call:1|fc", "call:1.fc", "plain_1", "")
    body = sent(
        Said("user", "x"),
        Said("assistant", "", tuple(ToolCall(each, "a tool!", "{}") for each in ids)),
        *(Said("tool", each, tool_call_id=each) for each in ids),
    )
    calls, results = (body["messages"][at]["content"] for at in (1, 2))
    assert [each["id"] for each in calls] == [each["tool_use_id"] for each in results]
    assert len({each["id"] for each in calls}) == 4
    assert calls[2]["id"] == "plain_1"
    assert {each["name"] for each in calls} == {"a_tool_"}


@pytest.mark.parametrize("arguments", ["", "[]", "{broken", '{"a": "\\ud83d"}', "{" * 5000])
def test_arguments_that_are_no_object_do_not_spoil_the_history(arguments: str) -> None:
    sent(
        Said("user", "x"),
        Said("assistant", "", (ToolCall("c", "look", arguments),)),
        Said("tool", "no", tool_call_id="c"),
    )


def test_a_failed_call_is_told_as_one() -> None:
    body = sent(
        Said("user", "x"),
        called("c", "d"),
        Result("tool", "no", tool_call_id="c", success=False),
        Result("tool", "yes", tool_call_id="d"),
    )
    results = body["messages"][2]["content"]
    assert [each.get("is_error") for each in results] == [True, None]


def marks(body: dict[str, Any]) -> list[str]:
    """The texts of the blocks that end what is to be cached."""
    blocks = [*body.get("tools", ()), *body.get("system", ())]
    for message in body["messages"]:
        blocks += message["content"]
    return [
        each.get("text") or each.get("content") or each["name"]
        for each in blocks
        if each.get("cache_control") == EPHEMERAL
    ]


def test_what_stands_in_one_request_only_is_not_marked_for_the_cache() -> None:
    conversation = (Said("user", "a"), called("c1"), Said("tool", "r", tool_call_id="c1"))
    account = Account(limit=10**9)
    assert marks(sent(*with_status(conversation, account), prompt_cache=True)) == ["a", "r"]
    assert marks(sent(*with_status(conversation[:1], account), prompt_cache=True)) == ["a"]
    # With nothing else to keep there is nothing to mark.
    assert marks(sent(*with_status((), account), prompt_cache=True)) == []


def test_the_cache_is_marked_behind_the_preamble_and_this_and_the_last_request() -> None:
    conversation = (
        Said("system", "one"),
        Said("system", "two"),
        Said("user", "a"),
        Said("assistant", "b"),
        Said("user", "c"),
        called("c1"),
        Said("tool", "r", tool_call_id="c1"),
    )
    tools = (tool("look"), tool("see"))
    assert marks(sent(*conversation, tools=tools, prompt_cache=True)) == ["two", "c", "r"]
    assert marks(sent(*conversation[2:], tools=tools, prompt_cache=True)) == ["see", "c", "r"]
    assert marks(sent(*conversation, tools=tools, prompt_cache=False)) == []


# --- How much ---


@pytest.mark.parametrize(
    ("model", "effort", "fields"),
    [
        ("claude-sonnet-4-5-20250929", "high", {"thinking": {"type": "enabled", "budget_tokens": 16_384}}),
        ("claude-3-7-sonnet-latest", "minimal", {"thinking": {"type": "enabled", "budget_tokens": 1024}}),
        ("claude-sonnet-4-20250514", "max", {"thinking": {"type": "enabled", "budget_tokens": 30_976}}),
        ("claude-3-5-haiku-latest", "high", {}),
        ("glm-9", "low", {"thinking": {"type": "enabled", "budget_tokens": 2048}}),
        ("claude-opus-4-6", "xhigh", {"thinking": {"type": "adaptive"}, "output_config": {"effort": "high"}}),
        (
            "anthropic.claude-sonnet-4-6-v1:0",
            "minimal",
            {"thinking": {"type": "adaptive"}, "output_config": {"effort": "low"}},
        ),
        (
            "claude-opus-4.7",
            "xhigh",
            {"thinking": {"type": "adaptive", "display": "summarized"}, "output_config": {"effort": "xhigh"}},
        ),
        (
            "claude-opus-5",
            "max",
            {"thinking": {"type": "adaptive", "display": "summarized"}, "output_config": {"effort": "max"}},
        ),
        ("claude-sonnet-4-5", "none", {}),
    ],
)
def test_an_effort_is_asked_for_as_the_model_understands_it(
    model: str, effort: str, fields: dict[str, Any]
) -> None:
    body = sent(Said("user", "x"), model=model, effort=effort)
    assert {name: body[name] for name in body if name in ("thinking", "output_config")} == fields


@pytest.mark.parametrize(("most", "budget"), [(4096, 3072), (2048, 1024), (2047, None), (100, None)])
def test_a_budget_leaves_room_for_the_answer(most: int, budget: int | None) -> None:
    body = sent(Said("user", "x"), effort="high", max_tokens=most)
    assert body["max_tokens"] == most
    assert body.get("thinking", {}).get("budget_tokens") == budget


@pytest.mark.parametrize(
    ("model", "most"),
    [
        ("claude-3-haiku-20240307", 4096),
        ("claude-3-5-sonnet-20241022", 8192),
        ("claude-opus-4-1", 32_000),
        ("glm", 32_000),
    ],
)
def test_an_answer_may_be_as_long_as_every_model_of_the_version_can(model: str, most: int) -> None:
    assert sent(Said("user", "x"), model=model)["max_tokens"] == most


def test_options_win() -> None:
    body = sent(
        Said("user", "x"),
        options={"max_tokens": 7, "temperature": 0, "thinking": {"type": "disabled"}},
        effort="high",
    )
    assert (body["max_tokens"], body["temperature"], body["thinking"]) == (7, 0, {"type": "disabled"})


@pytest.mark.parametrize(
    "settings",
    [
        {"model": " "},
        {"options": {"messages": []}},
        {"options": {1: 2}},
        {"options": {"x": object()}},
        {"max_tokens": 0},
        {"max_tokens": True},
        {"options": {"max_tokens": "many"}},
        {"effort": "heroic"},
        {"api_key": ""},
        {"api_key": "ключ"},
        {"auth_token": " "},
        {"betas": "one"},
        {"betas": [""]},
        {"base_url": "ftp://x"},
        {"base_url": "http://[x"},
        {"headers": {"a b": "c"}},
        {"max_response_bytes": 0},
        {"media": {"images": False}},
    ],
)
def test_what_cannot_be_sent_is_refused_at_once(settings: dict[str, Any]) -> None:
    chosen: dict[str, Any] = {"model": "m", **settings}
    with pytest.raises(InvalidConfiguration):
        AnthropicModel(**chosen)


WORDS = st.text(alphabet=st.sampled_from("ab \n\ud83d\ude00é"), max_size=6)
CALLS = st.lists(st.builds(ToolCall, WORDS, WORDS, WORDS | st.just('{"a": 1}')), max_size=3)


@st.composite
def conversations(draw: st.DrawFn) -> list[Said]:
    """Messages as a session may have them: each call with its result."""
    found: list[Said] = [Said("system", draw(WORDS))]
    used: set[str] = set()
    for _ in range(draw(st.integers(0, 5))):
        role: Role = draw(st.sampled_from(["user", "assistant", "developer"]))
        calls = tuple(call for call in draw(CALLS) if call.id not in used) if role == "assistant" else ()
        calls = tuple({call.id: call for call in calls}.values())
        used |= {call.id for call in calls}
        found.append(Said(role, draw(WORDS), calls))
        found += (Said("tool", draw(WORDS), tool_call_id=call.id) for call in calls)
    return found


@given(conversations(), st.booleans(), st.sampled_from([None, "high"]))
def test_any_conversation_is_legal(messages: list[Said], cached: bool, effort: str | None) -> None:
    sent(*messages, prompt_cache=cached, effort=effort)
