"""What was said: not in traces unless it is wanted, and then bounded."""

import json
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from exeunt import ToolInvocation, TurnFailed, tool
from exeunt.actors.events import Origin, SystemMessage, ToolExecutionComplete, UserMessage
from exeunt.actors.models import Message
from exeunt.actors.outcomes import Outcome
from exeunt.telemetry.content import conversation, instructions
from exeunt.testing import ScriptedModel, call, checked_host, fail, say
from tests.actors.session_support import open_session, tool_of
from tests.telemetry.traced import Traces, about, happened

SECRET = "the rest is silence"


@tool(skip_permission=True)
async def echo(text: str) -> str:
    """Say it again."""
    await trio.lowlevel.checkpoint()
    return f"{text}!"


@tool(skip_permission=True)
async def stumble(text: str) -> str:
    """Fail."""
    raise RuntimeError(text)


async def _clear(invocation: ToolInvocation) -> str:
    await invocation.session.history.clear_context(SECRET)
    return SECRET


def _script() -> ScriptedModel:
    return ScriptedModel(
        [call("echo", text=SECRET), call("stumble", text=SECRET), call("clear"), say(SECRET)]
    )


async def test_without_being_asked_for_nothing_that_was_said_is_in_any_span(
    autojump_clock: MockClock,
) -> None:
    traces = Traces()
    async with checked_host(telemetry=traces.telemetry()) as host:
        clear = tool_of("clear", _clear)
        session = await open_session(host, _script(), echo, stumble, clear, system_message=SECRET)
        await session.send_and_wait(SECRET)
    traces.check()
    assert len(traces.calls) == 3
    assert [span.to_json() for span in traces.spans if SECRET in (span.to_json() or "")] == []


async def test_captured_content_has_the_shape_of_the_conventions(autojump_clock: MockClock) -> None:
    traces = Traces()
    async with checked_host(telemetry=traces.telemetry(capture_content=True)) as host:
        model = ScriptedModel([call("echo", text="hm"), say("They leave.")])
        session = await open_session(host, model, echo, system_message="You are terse.")
        await session.send_and_wait("What is exeunt?")
    first, last = (about(chat) for chat in traces.chats)
    asked = {"role": "user", "parts": [{"type": "text", "content": "What is exeunt?"}]}
    calls = {
        "role": "assistant",
        "parts": [{"type": "tool_call", "id": "call_1", "name": "echo", "arguments": {"text": "hm"}}],
    }
    response = {
        "role": "tool",
        "parts": [{"type": "tool_call_response", "id": "call_1", "response": "hm!"}],
    }
    answer = {"role": "assistant", "parts": [{"type": "text", "content": "They leave."}]}
    assert json.loads(first["gen_ai.system_instructions"]) == [{"type": "text", "content": "You are terse."}]
    assert json.loads(first["gen_ai.input.messages"]) == [asked]
    assert json.loads(first["gen_ai.output.messages"]) == [{**calls, "finish_reason": "tool_call"}]
    assert json.loads(last["gen_ai.input.messages"]) == [asked, calls, response]
    assert json.loads(last["gen_ai.output.messages"]) == [{**answer, "finish_reason": "stop"}]
    (turn,), (tool_call,) = traces.turns, traces.calls
    assert json.loads(about(turn)["gen_ai.input.messages"]) == [asked]
    assert json.loads(about(turn)["gen_ai.output.messages"]) == [answer]
    assert about(tool_call)["gen_ai.tool.call.arguments"] == '{"text":"hm"}'
    assert about(tool_call)["gen_ai.tool.call.result"] == "hm!"


async def test_the_error_of_a_tool_is_told_with_the_content(autojump_clock: MockClock) -> None:
    traces = Traces()
    async with checked_host(telemetry=traces.telemetry(capture_content=True)) as host:
        model = ScriptedModel([call("stumble", text="over a ghost"), say("oh")])
        await (await open_session(host, model, stumble)).send_and_wait("go")
    (tool_call,) = traces.calls
    assert "over a ghost" in (tool_call.status.description or "")


@pytest.mark.parametrize("captured", [False, True])
async def test_what_a_provider_says_of_a_call_that_failed_is_told_with_the_content(
    captured: bool, autojump_clock: MockClock
) -> None:
    traces = Traces()
    async with checked_host(telemetry=traces.telemetry(capture_content=captured)) as host:
        model = ScriptedModel([fail("content_filtered", "I refuse 'a ghost'", status=400)])
        session = await open_session(host, model)
        with pytest.raises(TurnFailed):
            await session.send_and_wait("a ghost")
    (chat,) = traces.chats
    ((_, told),) = happened(chat)
    assert ("exception.message" in told, "ghost" in (chat.status.description or "")) == (captured, captured)
    assert told["error.type"] == about(chat)["error.type"] == "content_filtered"


async def test_what_is_long_is_cut_and_the_oldest_messages_are_left_out(autojump_clock: MockClock) -> None:
    traces = Traces()
    async with checked_host(telemetry=traces.telemetry(capture_content=True, content_limit=200)) as host:
        model = ScriptedModel([call("echo", text="x" * 1000), say("y" * 1000), say("z")])
        session = await open_session(host, model, echo, system_message="s" * 1000)
        await session.send_and_wait("first")
        await session.send_and_wait("second")
    last = about(traces.chats[-1])
    told = json.loads(last["gen_ai.input.messages"])
    assert [message["role"] for message in told] == ["user"]
    assert last["exeunt.input.messages_omitted"] == 4
    assert about(traces.calls[0])["gen_ai.tool.call.result"] == "x" * 200
    assert json.loads(last["gen_ai.system_instructions"]) == [{"type": "text", "content": "s" * 200}]
    longest = max(len(str(value)) for span in traces.spans for value in about(span).values())
    assert longest < 400


def _messages() -> list[Message]:
    origin = Origin.fresh()
    events: list[Any] = [
        SystemMessage(origin, 2, 0.0, "terse"),
        UserMessage(origin, 4, 0.0, "one", "t"),
        ToolExecutionComplete(origin, 6, 0.0, "c", "echo", Outcome.SUCCESS, "two", "t", 0.1),
        UserMessage(origin, 9, 0.0, "three", "t"),
    ]
    return events


def test_what_came_after_the_request_is_no_part_of_it() -> None:
    told, omitted = conversation(_messages(), 9, 10_000)
    assert [message["role"] for message in json.loads(told)] == ["user", "tool"]
    assert omitted == 0


def test_the_last_message_is_there_however_long_it_is() -> None:
    told, omitted = conversation(_messages(), 100, 3)
    assert json.loads(told) == [{"role": "user", "parts": [{"type": "text", "content": "thr"}]}]
    assert omitted == 2


def test_without_system_messages_there_are_no_instructions() -> None:
    assert instructions(_messages()[1:], 100) is None
