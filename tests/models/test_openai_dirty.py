"""Answers that real servers gave and that no server should give: each ends as it must."""

import json
from collections.abc import Callable
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from exeunt.actors.models import ModelDelta, ModelError, ModelRequest, ModelResponse
from exeunt.models.door import HttpModel
from exeunt.testing.http_double import HttpDouble, open_http_double
from tests.models.anthropic_support import claude_at
from tests.models.dirty_cases import CASES, MESSAGES_CASES, RESPONSES_CASES, packet, read, reply_of
from tests.models.openai_support import Said, model_at, tool
from tests.models.responses_support import responses_at

TOOLS = tuple(
    map(tool, ("get_weather", "read_file", "write_file", "list_files", "set_level", "set_todos", "get_row"))
)
REQUEST = ModelRequest([Said("user", "Go.")], TOOLS)


def check_answer(expected: dict[str, Any], answer: ModelResponse) -> None:
    if expected["outcome"] == "final_text":
        assert answer.tool_calls == ()
    if "text" in expected:
        assert answer.content == expected["text"]
    if "reasoning" in expected:
        assert answer.reasoning == expected["reasoning"]
    if "usage" in expected:
        assert answer.usage is not None
        assert expected["usage"] == {"input": answer.usage.input_tokens, "output": answer.usage.output_tokens}
    if expected["outcome"] == "tool_calls":
        wanted = [(call["name"], call["arguments"]) for call in expected["tool_calls"]]
        assert [(call.name, call.arguments) for call in answer.tool_calls] == wanted
        # Where an id must be another one, that is for the session to see to.
        for call, one in zip(answer.tool_calls, expected["tool_calls"], strict=True):
            assert call.id == one["id"] or not one["id"]


def check_invalid(case: dict[str, Any], expected: list[dict[str, Any]], answer: ModelResponse) -> None:
    """The session refuses these calls; the door must hand them on as the model wrote them."""
    sent = "".join(each.decode("utf-8") for each in map(packet, case["packets"]) if isinstance(each, bytes))
    assert [call.id for call in answer.tool_calls] == [each["id"] for each in expected]
    for call, wanted in zip(answer.tool_calls, expected, strict=True):
        assert call.name.startswith(wanted["name"])
        # Written once more as JSON, the arguments are what was sent, character for character.
        assert json.dumps(call.arguments_json, ensure_ascii=False) in sent or not isinstance(
            call.arguments, dict
        )


@pytest.mark.parametrize(
    ("door", "case"),
    [
        pytest.param(door, read(path), id=path.stem)
        for door, paths in ((model_at, CASES), (claude_at, MESSAGES_CASES), (responses_at, RESPONSES_CASES))
        for path in paths
    ],
)
async def test_a_dirty_answer_ends_as_it_must(
    door: Callable[[HttpDouble], HttpModel], case: dict[str, Any], autojump_clock: MockClock
) -> None:
    # Real seconds for the bytes to cross the socket before the clock may jump.
    autojump_clock.autojump_threshold = 0.02
    expected = case["expected"]
    seen: list[ModelDelta] = []
    answer: ModelResponse | None = None
    failure: ModelError | None = None
    async with open_http_double(reply_of(case)) as double:
        model = door(double)
        try:
            with trio.fail_after(15):
                if case["stream"]:
                    async for piece in model.stream(REQUEST):
                        if isinstance(piece, ModelDelta):
                            seen.append(piece)
                        else:
                            answer = piece
                else:
                    answer = await model.complete(REQUEST)
        except ModelError as error:
            failure = error
        await model.aclose()
        assert len(double.requests) == 1
    if expected["outcome"] == "error":
        assert failure is not None, answer
        assert (failure.kind, failure.retry) == (expected["error"]["kind"], expected["error"]["retry"])
    else:
        assert failure is None
        assert answer is not None
        check_answer(expected, answer)
        if expected["outcome"] == "invalid_call":
            check_invalid(case, expected["invalid"], answer)
    if "text_seen" in expected:
        assert "".join(delta.text for delta in seen) == expected["text_seen"]
    assert (model.statistics().in_flight, model.statistics().pool.in_use) == (0, 0)


def test_no_case_is_missing() -> None:
    assert (len(CASES), len(MESSAGES_CASES), len(RESPONSES_CASES)) == (73, 13, 7)
