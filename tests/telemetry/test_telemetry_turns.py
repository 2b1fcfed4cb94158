"""Turns, model calls and tool calls as spans."""

from collections.abc import AsyncIterator

import pytest
import trio
from opentelemetry.trace import SpanKind, StatusCode
from trio.testing import MockClock, wait_all_tasks_blocked

from exeunt import (
    Limits,
    ModelDelta,
    ModelRequest,
    ModelResponse,
    RetryPolicy,
    ToolCall,
    TurnFailed,
    Usage,
)
from exeunt.testing import ScriptedModel, after, call, checked_host, fail, hang, say
from tests.actors.session_support import open_session, plain_tool
from tests.telemetry.traced import Traces, about, happened, parent_id, seconds, span_id, trace_id


async def _look_up() -> str:
    await trio.sleep(2)
    return "to go off stage"


LOOK_UP = plain_tool("look_up", _look_up)


class Counting:
    """A model that counts its tokens."""

    model, provider = "counting", "ours"

    def __init__(self, *answers: ModelResponse) -> None:
        self._answers = list(answers)

    async def complete(self, request: ModelRequest, /) -> ModelResponse:
        await trio.lowlevel.checkpoint()
        return self._answers.pop(0)

    async def stream(self, request: ModelRequest, /) -> AsyncIterator[ModelDelta | ModelResponse]:
        yield await self.complete(request)


async def test_a_turn_is_a_tree_of_its_model_calls_and_tool_calls(autojump_clock: MockClock) -> None:
    traces = Traces()
    model = ScriptedModel([after(1, call("look_up")), after(3, say("They leave."))])
    async with checked_host(telemetry=traces.telemetry()) as host:
        session = await open_session(host, model, LOOK_UP, tenant="globe")
        await session.send_and_wait("What is exeunt?")
    traces.check()
    (turn,) = traces.turns
    assert parent_id(turn) is None
    assert [parent_id(span) for span in (*traces.chats, *traces.calls)] == [span_id(turn)] * 3
    assert {trace_id(span) for span in traces.spans} == {trace_id(turn)}
    assert [seconds(span) for span in (turn, *traces.chats, *traces.calls)] == pytest.approx([6, 1, 3, 2])
    assert [span.kind for span in (turn, traces.chats[0], traces.calls[0])] == [
        SpanKind.INTERNAL,
        SpanKind.CLIENT,
        SpanKind.INTERNAL,
    ]
    assert turn.name == "invoke_agent"
    assert traces.chats[0].name == "chat ScriptedModel"
    told = about(turn)
    assert told["gen_ai.conversation.id"] == session.session_id
    assert told["gen_ai.provider.name"] == "scripted"
    assert told["exeunt.tenant"] == "globe"
    assert (told["exeunt.turn.reason"], told["exeunt.turn.steps"]) == ("completed", 2)
    assert [about(chat)["exeunt.step"] for chat in traces.chats] == [0, 1]
    assert [about(chat)["gen_ai.response.finish_reasons"] for chat in traces.chats] == [
        ("tool_call",),
        ("stop",),
    ]
    (tool_call,) = traces.calls
    assert tool_call.name == "execute_tool look_up"
    assert about(tool_call)["gen_ai.tool.name"] == "look_up"
    assert about(tool_call)["gen_ai.tool.call.id"] == "call_1"
    assert about(tool_call)["exeunt.tool.outcome"] == "success"
    assert {span.status.status_code for span in traces.spans} == {StatusCode.UNSET}


async def test_the_turns_tokens_are_the_sum_of_its_model_calls(autojump_clock: MockClock) -> None:
    traces = Traces()
    model = Counting(
        ModelResponse(tool_calls=(ToolCall("c", "look_up", "{}"),), usage=Usage(100, 20)),
        ModelResponse("done", usage=Usage(130, 7)),
    )
    async with checked_host(telemetry=traces.telemetry()) as host:
        session = await host.create_session(model=model, tools=[LOOK_UP])
        await session.send_and_wait("go")
    tokens = [
        (about(span)["gen_ai.usage.input_tokens"], about(span)["gen_ai.usage.output_tokens"])
        for span in (*traces.chats, *traces.turns)
    ]
    assert tokens == [(100, 20), (130, 7), (230, 27)]


async def test_calls_of_one_answer_lie_side_by_side(autojump_clock: MockClock) -> None:
    traces = Traces()
    model = ScriptedModel([[call("look_up"), call("look_up")], say("done")])
    async with checked_host(telemetry=traces.telemetry()) as host:
        await (await open_session(host, model, LOOK_UP)).send_and_wait("go")
    traces.check()
    first, second = traces.calls
    assert first.start_time == second.start_time
    assert about(first)["gen_ai.tool.call.id"] != about(second)["gen_ai.tool.call.id"]


async def test_a_retry_is_an_event_of_the_model_call(autojump_clock: MockClock) -> None:
    traces = Traces()
    model = ScriptedModel([fail("rate_limited", "slow down", status=429, retry=True), say("now")])
    async with checked_host(telemetry=traces.telemetry()) as host:
        session = await open_session(host, model, retries=RetryPolicy(first_delay=2.0, jitter=0.0))
        await session.send_and_wait("go")
    traces.check()
    (chat,) = traces.chats
    (failed, told), (retried, again) = happened(chat)
    assert (failed, retried) == ("exeunt.model_call.failed", "exeunt.model_call.retry")
    assert (told["error.type"], told["http.response.status_code"], told["exeunt.attempt"]) == (
        "rate_limited",
        429,
        1,
    )
    assert (again["exeunt.attempt"], again["exeunt.seconds"]) == (2, 2.0)
    assert chat.status.status_code is StatusCode.UNSET
    assert seconds(chat) == pytest.approx(2.0)


async def test_a_model_that_fails_for_good_fails_the_call_and_the_turn(autojump_clock: MockClock) -> None:
    traces = Traces()
    model = ScriptedModel([fail("authentication", "no key", status=401)])
    async with checked_host(telemetry=traces.telemetry()) as host:
        session = await open_session(host, model)
        with pytest.raises(TurnFailed):
            await session.send_and_wait("go")
    traces.check()
    for span in (*traces.chats, *traces.turns):
        assert span.status.status_code is StatusCode.ERROR
        assert about(span)["error.type"] == "authentication"
    assert about(traces.turns[0])["exeunt.turn.reason"] == "error"


async def test_a_turn_that_spends_its_budget_is_an_error(autojump_clock: MockClock) -> None:
    traces = Traces()
    model = ScriptedModel([call("look_up")])
    async with checked_host(telemetry=traces.telemetry()) as host:
        session = await open_session(host, model, LOOK_UP, limits=Limits(steps=1))
        await session.send_and_wait("go")
    (turn,) = traces.turns
    assert (turn.status.status_code, about(turn)["error.type"]) == (StatusCode.ERROR, "limit")


@pytest.mark.parametrize(
    ("result", "failed"),
    [("failure", True), ("timeout", True), ("denied", False), ("rejected", False)],
)
async def test_what_nobody_wanted_is_an_error_and_somebodys_wish_is_none(
    result: str, failed: bool, autojump_clock: MockClock
) -> None:
    traces = Traces()

    async def says() -> dict[str, str]:
        return {"text_result_for_llm": "so", "result_type": result}

    model = ScriptedModel([call("says"), say("well")])
    async with checked_host(telemetry=traces.telemetry()) as host:
        await (await open_session(host, model, plain_tool("says", says))).send_and_wait("go")
    (tool_call,) = traces.calls
    assert about(tool_call)["exeunt.tool.outcome"] == result
    assert about(tool_call).get("error.type") == (result if failed else None)
    assert (tool_call.status.status_code is StatusCode.ERROR) is failed


async def test_an_abort_ends_the_spans_of_what_runs_and_is_no_error(autojump_clock: MockClock) -> None:
    traces = Traces()
    model = ScriptedModel([call("wait"), hang()])

    async with checked_host(telemetry=traces.telemetry()) as host:
        session = await open_session(host, model, plain_tool("wait", trio.sleep_forever))
        await session.send("go")
        await wait_all_tasks_blocked()
        await session.abort(reason="enough")
        await session.send("again")
        await wait_all_tasks_blocked()
        await session.abort()
    traces.check()
    assert [about(turn)["exeunt.turn.reason"] for turn in traces.turns] == ["aborted", "aborted"]
    assert {span.status.status_code for span in traces.spans} == {StatusCode.UNSET}
    assert about(traces.calls[0])["exeunt.tool.outcome"] == "cancelled"
    assert ("abort", {"exeunt.abort.reason": "enough"}) in happened(traces.turns[0])


async def test_a_streamed_answer_tells_when_its_first_piece_came(autojump_clock: MockClock) -> None:
    traces = Traces()
    model = ScriptedModel([after(4, say("They leave."))])
    async with checked_host(telemetry=traces.telemetry()) as host:
        await (await open_session(host, model, streaming=True)).send_and_wait("go")
    (chat,) = traces.chats
    assert about(chat)["gen_ai.request.stream"] is True
    assert about(chat)["gen_ai.response.time_to_first_chunk"] == pytest.approx(4.0)


async def test_a_queued_message_waits_before_its_turn_and_not_in_it(autojump_clock: MockClock) -> None:
    traces = Traces()
    model = ScriptedModel([after(5, say("one")), after(1, say("two"))])
    async with checked_host(telemetry=traces.telemetry()) as host:
        session = await open_session(host, model)
        await session.send("first")
        await trio.sleep(2)
        await session.send_and_wait("second")
    traces.check()
    first, second = traces.turns
    assert [seconds(first), seconds(second)] == pytest.approx([5, 1])
    assert about(second)["exeunt.message.queued_seconds"] == pytest.approx(3.0)
    assert about(second)["exeunt.turn.delivery"] == "queued"


async def test_a_message_that_steers_is_an_event_of_the_turn(autojump_clock: MockClock) -> None:
    traces = Traces()
    model = ScriptedModel([call("look_up"), say("done")])
    async with checked_host(telemetry=traces.telemetry()) as host:
        session = await open_session(host, model, LOOK_UP)
        await session.send("first")
        await trio.sleep(1)
        message_id = await session.send("and hurry", mode="immediate")
        await trio.sleep(5)
    (turn,) = traces.turns
    assert happened(turn) == [("exeunt.message.steered", {"exeunt.message.id": message_id})]


async def test_a_call_of_the_host_is_a_trace_of_its_own(autojump_clock: MockClock) -> None:
    traces = Traces()
    async with checked_host(telemetry=traces.telemetry()) as host:
        session = await open_session(host, ScriptedModel([]), LOOK_UP)
        await session.call_tool("look_up", {})
    traces.check()
    (tool_call,) = traces.spans
    assert (parent_id(tool_call), about(tool_call)["exeunt.tool.outcome"]) == (None, "success")


async def test_a_tool_that_comes_back_too_late_is_an_event_of_the_turn(autojump_clock: MockClock) -> None:
    traces = Traces()

    async def stubborn() -> str:
        with trio.CancelScope(shield=True):
            await trio.sleep(10)
        return "late"

    model = ScriptedModel([call("stubborn"), after(20, say("done"))])
    async with checked_host(telemetry=traces.telemetry()) as host:
        session = await open_session(host, model, plain_tool("stubborn", stubborn, timeout=1.0))
        await session.send_and_wait("go")
    traces.check()
    assert [name for name, _ in happened(traces.turns[0])] == ["tool.result_stale"]
    assert seconds(traces.calls[0]) == pytest.approx(2.0)


async def test_a_clock_that_is_set_back_ends_no_span_before_it_began(autojump_clock: MockClock) -> None:
    traces = Traces()

    back = [0.0]

    async def set_back() -> str:
        back[0] = 1000.0
        return "done"

    async with checked_host(telemetry=traces.telemetry()) as host:
        wall = host.clock.wall
        host.clock.wall = lambda: wall() - back[0]
        model = ScriptedModel([call("set_back"), say("done")])
        await (await open_session(host, model, plain_tool("set_back", set_back))).send_and_wait("go")
    traces.check()


async def test_the_agent_and_the_instrumentation_may_have_names(autojump_clock: MockClock) -> None:
    traces = Traces()
    telemetry = traces.telemetry(agent_name="prompter", source_name="theatre")
    async with checked_host(telemetry=telemetry) as host:
        await (await open_session(host, ScriptedModel(["hi"]))).send_and_wait("go")
    (turn,) = traces.turns
    assert (turn.name, about(turn)["gen_ai.agent.name"]) == ("invoke_agent prompter", "prompter")
    assert turn.instrumentation_scope is not None
    assert turn.instrumentation_scope.name == "theatre"


async def test_a_session_at_rest_takes_no_memory(autojump_clock: MockClock) -> None:
    traces = Traces()
    telemetry = traces.telemetry()
    async with checked_host(telemetry=telemetry) as host:
        session = await open_session(host, ScriptedModel([call("look_up"), say("hi")]), LOOK_UP)
        await session.send_and_wait("go")
        assert telemetry.statistics().open_sessions == 0
        assert telemetry.statistics().turns == 1
