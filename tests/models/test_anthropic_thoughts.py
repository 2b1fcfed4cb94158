"""Thoughts in requests to the Messages API: given back where they stood, and to nobody else."""

import json
from typing import Any

import pytest

from exeunt.actors.models import Message, ReasoningBlocks
from tests.models.anthropic_support import TAG, Answered, called, sent
from tests.models.openai_support import Said

THOUGHT = {"type": "thinking", "thinking": "Hm.", "signature": "s1"}
SECRET = {"type": "redacted_thinking", "data": "xyz"}


def thoughtful(blocks: list[dict[str, Any]], *, tag: str = TAG, text: str = "") -> Answered:
    kept = ReasoningBlocks(tag, json.dumps(blocks))
    return Answered("assistant", text, called("c").tool_calls, reasoning_blocks=kept)


def answer_of(message: Message, **settings: Any) -> list[dict[str, Any]]:
    body = sent(Said("user", "x"), message, Said("tool", "r", tool_call_id="c"), **settings)
    content: list[dict[str, Any]] = body["messages"][1]["content"]
    return content


def test_thoughts_are_given_back_where_they_stood() -> None:
    layout: list[dict[str, Any]] = [
        THOUGHT,
        {"type": "text", "length": 2},
        SECRET,
        {"type": "text", "length": 2},
        THOUGHT,
    ]
    content = answer_of(thoughtful(layout, text="onTwo"))
    call = {"type": "tool_use", "id": "c", "name": "look", "input": {"at": 1}}
    assert content == [
        THOUGHT,
        {"type": "text", "text": "on"},
        SECRET,
        {"type": "text", "text": "Tw"},
        THOUGHT,
        {"type": "text", "text": "o"},
        call,
    ]


def test_thoughts_behind_a_call_stay_there() -> None:
    content = answer_of(thoughtful([{"type": "tool_use"}, THOUGHT], text="t"))
    assert [each["type"] for each in content] == ["text", "tool_use", "thinking"]


@pytest.mark.parametrize(
    "tag",
    [
        "anthropic api.anthropic.com claude-opus-4-1",
        "anthropic example.com claude-sonnet-4-5",
        "responses api.anthropic.com claude-sonnet-4-5",
    ],
)
def test_thoughts_of_another_model_or_server_are_not_given_back(tag: str) -> None:
    content = answer_of(thoughtful([THOUGHT], tag=tag, text="t"))
    assert [each["type"] for each in content] == ["text", "tool_use"]


@pytest.mark.parametrize("blocks", ["", "{}", "[1]", "[{}]", "nonsense"])
def test_kept_thoughts_that_cannot_be_read_are_none(blocks: str) -> None:
    kept = ReasoningBlocks(TAG, blocks)
    content = answer_of(Answered("assistant", "t", called("c").tool_calls, reasoning_blocks=kept))
    assert sorted(each["type"] for each in content) == ["text", "tool_use"]


def test_a_run_of_calls_that_began_without_thoughts_goes_on_without() -> None:
    run = (called("c"), Said("tool", "r", tool_call_id="c"))
    body = sent(Said("user", "x"), *run, effort="high")
    assert "thinking" not in body
    begun = (
        thoughtful([THOUGHT]),
        Said("tool", "r", tool_call_id="c"),
        called("d"),
        Said("tool", "r", tool_call_id="d"),
    )
    assert sent(Said("user", "x"), *begun, effort="high")["thinking"]["type"] == "enabled"
    # The next prompt begins anew.
    assert "thinking" in sent(
        Said("user", "x"), *run, Said("assistant", "t"), Said("user", "y"), effort="high"
    )
