"""Clears of the context in traces: an event of the turn that clears, and a link of the turn that follows."""

import pytest
import trio
from trio.testing import MockClock

from exeunt import NoToolCallInFlight, ToolInvocation
from exeunt.testing import ScriptedModel, after, call, checked_host, say
from tests.actors.session_support import open_session, tool_of
from tests.telemetry.traced import Traces, about, happened, linked, parent_id, span_id, trace_id


async def _clear(invocation: ToolInvocation) -> str:
    await invocation.session.history.clear_context("Continue with step 2")
    return "cleared"


async def _clear_and_fail(invocation: ToolInvocation) -> str:
    await invocation.session.history.clear_context("Continue with step 2")
    raise RuntimeError("no")


CLEAR = tool_of("clear", _clear, is_terminal=True)


async def test_the_turn_that_clears_has_the_counts_and_the_seeded_turn_a_link_to_it(
    autojump_clock: MockClock,
) -> None:
    traces = Traces()
    model = ScriptedModel([call("clear"), after(2, say("on step 2"))])
    async with checked_host(telemetry=traces.telemetry()) as host:
        await (await open_session(host, model, CLEAR)).send_and_wait("start over")
    traces.check()
    clearing, seeded = traces.turns
    assert happened(clearing) == [
        ("session.context_cleared", {"exeunt.clear.messages_cleared": 2, "exeunt.generation": 1})
    ]
    assert about(clearing)["exeunt.turn.reason"] == "terminal_tool"
    assert linked(seeded) == [(span_id(clearing), {"exeunt.link": "context_cleared"})]
    assert (parent_id(seeded), about(seeded)["exeunt.turn.delivery"]) == (None, "seed")
    assert trace_id(seeded) != trace_id(clearing)
    assert seeded.start_time == clearing.end_time


async def test_who_waits_for_the_clearing_turn_has_both_turns_in_his_trace(autojump_clock: MockClock) -> None:
    traces = Traces()
    async with checked_host(telemetry=traces.telemetry()) as host:
        session = await open_session(host, ScriptedModel([call("clear"), say("done"), say("now")]), CLEAR)
        with traces.tracer.start_as_current_span("request") as request:
            await session.send_and_wait("start over")
        await session.send_and_wait("and now?")
    traces.check()
    clearing, seeded, later = traces.turns
    expected = request.get_span_context()
    assert [parent_id(turn) for turn in (clearing, seeded, later)] == [
        expected.span_id,
        expected.span_id,
        None,
    ]
    assert linked(later) == []


async def test_a_clear_by_a_call_of_the_host_is_an_event_of_that_call(autojump_clock: MockClock) -> None:
    traces = Traces()
    async with checked_host(telemetry=traces.telemetry()) as host:
        session = await open_session(host, ScriptedModel(["fresh"]), CLEAR)
        await session.call_tool("clear", {})
        await trio.sleep(1)
    traces.check()
    (tool_call,), (seeded,) = traces.calls, traces.turns
    assert [name for name, _ in happened(tool_call)] == ["session.context_cleared"]
    assert linked(seeded) == [(span_id(tool_call), {"exeunt.link": "context_cleared"})]


async def test_a_clear_that_did_not_happen_is_told_as_that(autojump_clock: MockClock) -> None:
    traces = Traces()
    model = ScriptedModel([call("clear"), say("well")])
    async with checked_host(telemetry=traces.telemetry()) as host:
        await (await open_session(host, model, tool_of("clear", _clear_and_fail))).send_and_wait("start over")
    traces.check()
    (turn,) = traces.turns
    assert happened(turn) == [
        (
            "session.clear_rolled_back",
            {"exeunt.clear.cause": "failure", "gen_ai.tool.call.id": "call_1"},
        )
    ]


async def test_a_clear_that_was_refused_in_a_turn_is_an_event_of_it(autojump_clock: MockClock) -> None:
    traces = Traces()
    async with checked_host(telemetry=traces.telemetry()) as host:
        session = await open_session(host, ScriptedModel([after(5, say("hi"))]))
        await session.send("go")
        await trio.sleep(1)
        with pytest.raises(NoToolCallInFlight):
            await session.history.clear_context("again")
        await trio.sleep(10)
    assert happened(traces.turns[0]) == [("session.clear_refused", {"exeunt.clear.cause": "no_tool_call"})]
