"""Answers that real servers gave and that no server should give, end to end through a session.

`test_openai_dirty` looks at what the door alone makes of them. Here the session must do what is right
with them, and stay usable: each is followed by plain answers, and every request is one that a strict server takes.
"""

import re
from typing import Any

import pytest

from exeunt import Outcome, TurnFailed
from exeunt.actors.events import (
    AssistantMessage,
    AssistantMessageDelta,
    AssistantTurnRetry,
    ModelCallFailure,
    SessionError,
    ToolExecutionComplete,
    ToolExecutionStart,
)
from exeunt.actors.models import ModelError
from exeunt.testing.http_double import open_http_double
from tests.models.dirty_api import CHAT, MESSAGES, RESPONSES, Api
from tests.models.dirty_cases import CASES, MESSAGES_CASES, RESPONSES_CASES, packet, read, reply_of
from tests.models.openai_session_support import DEFAULTS, KEY, Toolbox, Watched, talking_to
from tests.models.strict_server import RECOVERED

FASTER = 50.0
"""A pause of a case, up to 8 s, is made shorter by this: the clock is real, and all that counts is the order."""
NAMES = {tool.name for tool in Toolbox().tools()}


def status_of(case: dict[str, Any]) -> int | None:
    """The status that a bad answer reports, in its head or in its body."""
    if case.get("status", 200) >= 300:
        return int(case["status"])
    sent = b"".join(each for each in map(packet, case["packets"]) if isinstance(each, bytes))
    told = re.match(rb"HTTP/1\.1 ([345]\d\d) ", sent) or re.search(rb'"code": ?"?([45]\d\d)\b', sent)
    return int(told[1]) if told else None


def check_text(watched: Watched, expected: dict[str, Any], said: str) -> None:
    assert said == expected["text"]
    (message,) = watched.seen(AssistantMessage)
    assert message.tool_calls == ()
    assert message.reasoning == expected.get("reasoning", message.reasoning)
    assert not watched.seen(ModelCallFailure)


def check_calls(
    watched: Watched, expected: dict[str, Any], box: Toolbox, results: list[tuple[str, str]]
) -> None:
    wanted = [
        (call["name"], DEFAULTS.get(call["name"], {}) | call["arguments"]) for call in expected["tool_calls"]
    ]
    assert sorted(box.calls, key=repr) == sorted(wanted, key=repr)
    started = watched.seen(ToolExecutionStart)
    assert [event.tool_name for event in started] == [name for name, _ in wanted]
    for event, call in zip(started, expected["tool_calls"], strict=True):
        assert event.tool_call_id == call["id"] or not call["id"]
    done = watched.seen(ToolExecutionComplete)
    assert {event.outcome for event in done} == {Outcome.SUCCESS}
    message = watched.seen(AssistantMessage)[0]
    assert message.content == expected.get("text", message.content)
    assert message.reasoning == expected.get("reasoning", message.reasoning)
    # Each result goes back under the id of its call, in call order.
    texts = {event.tool_call_id: event.content for event in done}
    assert results == [(event.tool_call_id, texts[event.tool_call_id]) for event in started]
    assert not watched.seen(ModelCallFailure)


def check_invalid(
    watched: Watched, expected: dict[str, Any], box: Toolbox, results: list[tuple[str, str]]
) -> None:
    assert box.calls == []
    done = watched.seen(ToolExecutionComplete)
    assert [event.tool_call_id for event in done] == [call["id"] for call in expected["invalid"]]
    for event, call in zip(done, expected["invalid"], strict=True):
        assert event.tool_name.startswith(call["name"])
        # There is nothing to be said about the arguments of a tool that there is not.
        assert event.outcome is (Outcome.INVALID if event.tool_name in NAMES else Outcome.FAILURE)
    assert [content for _, content in results] == [event.content for event in done]
    assert all(event.content.strip() for event in done)


def check_retried(watched: Watched, case: dict[str, Any]) -> None:
    error = case["expected"]["error"]
    (failure,) = watched.seen(ModelCallFailure)
    assert (failure.error_type, failure.attempt) == (error["kind"], 1)
    assert failure.status_code == status_of(case)
    (retry,) = watched.seen(AssistantTurnRetry)
    assert (retry.reason, retry.attempt) == (error["kind"], 2)
    assert not watched.seen(SessionError)


def check_failed(watched: Watched, case: dict[str, Any], caught: TurnFailed) -> None:
    kind = case["expected"]["error"]["kind"]
    assert isinstance(caught.__cause__, ModelError)
    assert caught.__cause__.kind == kind
    assert KEY not in str(caught)
    (event,) = watched.seen(SessionError)
    assert (event.error_type, event.status_code) == (kind, status_of(case))
    assert not watched.seen(AssistantTurnRetry)


@pytest.mark.parametrize(
    ("api", "case"),
    [
        pytest.param(api, read(path), id=path.stem)
        for api, paths in ((CHAT, CASES), (MESSAGES, MESSAGES_CASES), (RESPONSES, RESPONSES_CASES))
        for path in paths
    ],
)
async def test_a_session_does_what_is_right_with_a_dirty_answer_and_goes_on(
    api: Api, case: dict[str, Any]
) -> None:
    expected = case["expected"]
    outcome = expected["outcome"]
    box = Toolbox()
    async with (
        open_http_double(reply_of(case, faster=FASTER)) as double,
        talking_to(double, api=api, tools=box.tools(), streaming=case["stream"]) as watched,
    ):
        if outcome == "error" and not expected["error"]["retry"]:
            with pytest.raises(TurnFailed) as caught:
                await watched.ask()
            check_failed(watched, case, caught.value)
            assert len(double.requests) == 1
        else:
            reply = await watched.ask()
            assert reply.reason == "completed"
            if outcome == "final_text":
                check_text(watched, expected, reply.content)
                assert len(double.requests) == 1
            else:
                assert reply.content == RECOVERED
                assert len(double.requests) == 2
            if outcome == "tool_calls":
                check_calls(watched, expected, box, api.results(double.requests[1].json))
            elif outcome == "invalid_call":
                check_invalid(watched, expected, box, api.results(double.requests[1].json))
            elif outcome == "error":
                check_retried(watched, case)
        if outcome == "error":
            assert box.calls == []
        if "text_seen" in expected:
            deltas = watched.seen(AssistantMessageDelta)
            first = [each.delta_content for each in deltas if each.message_id == deltas[0].message_id]
            assert "".join(first) == expected["text_seen"]
        before = len(double.requests)
        assert (await watched.ask("And now?")).content == RECOVERED
        assert len(double.requests) == before + 1
