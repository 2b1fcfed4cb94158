"""Which requests a model would take."""

from typing import cast

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exeunt.actors.errors import InvariantViolation
from exeunt.actors.media import Media
from exeunt.actors.models import Message, ModelRequest, Role, ToolCall
from exeunt.testing import check_request, describe_messages


class Text(msgspec.Struct, frozen=True):
    role: Role
    content: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    media: tuple[Media, ...] = ()


def calls(*ids: str) -> Text:
    return Text("assistant", tool_calls=tuple(ToolCall(i, "f", "{}") for i in ids))


def result(call_id: str | None) -> Text:
    return Text("tool", "done", tool_call_id=call_id)


USER = Text("user", "hi")


@pytest.mark.parametrize(
    "messages",
    [
        [USER],
        [Text("system", "s"), Text("developer", "d"), USER],
        [USER, calls("1", "2"), result("1"), result("2"), USER, Text("assistant", "ok"), USER],
        [Text("user", "caf\u00e9 \U0001f600")],
        [USER, USER, calls("1"), result("1"), calls("2"), result("2")],
    ],
)
def test_a_request_that_every_model_takes_passes(messages: list[Message]) -> None:
    check_request(ModelRequest(messages))


@pytest.mark.parametrize(
    ("messages", "problem"),
    [
        ([], "the conversation is empty"),
        ([Text("system", "s")], "the conversation is empty"),
        ([Text("assistant", "hi"), USER], "message 0: the conversation begins with role 'assistant'"),
        ([result("1"), USER], "message 0: result of call '1', which does not exist"),
        ([USER, Text("system", "s")], "message 1: system message inside the conversation"),
        ([USER, calls("1")], "at the end: calls \\['1'\\] have no result"),
        ([USER, calls("1"), USER, result("1")], "message 2: calls \\['1'\\] have no result before it"),
        ([USER, calls("1"), USER, result("1")], "message 3: result of call '1', which .* comes too late"),
        (
            [USER, calls("1"), result("1"), result("1")],
            "message 3: result of call '1', which has one already",
        ),
        ([USER, calls("1", "2"), result("2"), result("1")], "message 2: not in call order"),
        ([USER, calls("1"), result("2"), result("1")], "message 2: result of call '2', which does not exist"),
        ([USER, calls("1"), result(None), result("1")], "message 2: result of call None"),
        ([USER, calls("1", "1"), result("1"), result("1")], "message 1: call id '1' is empty or used before"),
        ([USER, calls("1"), result("1"), calls("1"), result("1")], "message 3: call id '1' is empty or used"),
        ([USER, calls(""), result("")], "message 1: call id '' is empty"),
        ([Text("user", "hi", (ToolCall("1", "f", "{}"),))], "message 0: role 'user' with tool calls"),
        ([Text("user", "\ud83d")], "message 0: its content is no text"),
        ([Text("user", cast(str, None))], "message 0: its content is no text"),
    ],
)
def test_a_request_that_some_model_refuses_is_a_violation(messages: list[Message], problem: str) -> None:
    with pytest.raises(InvariantViolation, match=problem):
        check_request(ModelRequest(messages))


def test_all_problems_are_told_with_the_messages() -> None:
    messages = [USER, calls("1"), calls("1")]

    with pytest.raises(InvariantViolation) as caught:
        check_request(ModelRequest(messages))

    assert str(caught.value).splitlines() == [
        "A model would refuse this request:",
        "  - message 2: calls ['1'] have no result before it",
        "  - message 2: call id '1' is empty or used before",
        "  - at the end: calls ['1'] have no result",
        "  [0] user 'hi'",
        "  [1] assistant f({})#1",
        "  [2] assistant f({})#1",
    ]


def test_a_long_text_is_shortened_in_the_dump() -> None:
    dump = describe_messages([Text("user", "x" * 1000), result("1")])

    assert dump == f"  [0] user '{'x' * 199}... (1000 characters)\n  [1] tool result of '1': 'done'"


def rounds() -> st.SearchStrategy[list[int]]:
    """How many calls each assistant message of a conversation makes."""
    return st.lists(st.integers(0, 3), min_size=1, max_size=6)


def conversation(batches: list[int]) -> list[Text]:
    messages = [Text("system", "s"), USER]
    number = 0
    for batch in batches:
        ids = [str(number := number + 1) for _ in range(batch)]
        messages += [calls(*ids), *map(result, ids)] if ids else [Text("assistant", "ok"), USER]
    return messages


@given(rounds())
def test_a_conversation_of_whole_batches_passes(batches: list[int]) -> None:
    check_request(ModelRequest(conversation(batches)))


@given(rounds().filter(any), st.data())
def test_no_call_and_no_result_can_be_taken_away_or_doubled(batches: list[int], data: st.DataObject) -> None:
    messages = conversation(batches)
    places = [i for i, m in enumerate(messages) if m.tool_calls or m.tool_call_id]
    place = data.draw(st.sampled_from(places))
    messages[place : place + 1] = [messages[place]] * data.draw(st.sampled_from([0, 2]))

    with pytest.raises(InvariantViolation):
        check_request(ModelRequest(messages))
