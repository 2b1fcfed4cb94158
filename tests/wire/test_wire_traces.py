"""Traces that clients are a part of: their spans come with messages, and the host's go with calls of their tools."""

import pytest
from opentelemetry.trace import get_current_span
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from trio.testing import MockClock

from exeunt.actors.events import MessageAccepted
from exeunt.testing import ScriptedModel, after, call, say
from tests.telemetry.traced import Traces, about, parent_id, span_id, trace_id, trace_state
from tests.wire.wire_client import WireFailure, open_wire, tool

ONE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
TWO = "00-1bf7651916cd43dd8448eb211c80319c-c7ad6b7169203331-01"


def _parent(traces: Traces, number: int = 0) -> str | None:
    turn = traces.turns[number]
    return None if turn.parent is None else f"00-{trace_id(turn):032x}-{parent_id(turn):016x}-01"


async def test_a_message_names_the_parent_of_its_turn(autojump_clock: MockClock) -> None:
    traces = Traces()
    async with open_wire(ScriptedModel(["hi"]), telemetry=traces.telemetry()) as wire:
        client = await wire.connect()
        await client.create()
        await client.say(traceparent=ONE, tracestate="vendor=1")
        await client.event("session.idle")
    traces.check()
    assert _parent(traces) == ONE
    assert trace_state(traces.turns[0], "vendor") == "1"
    assert about(traces.turns[0])["gen_ai.conversation.id"] == "s"


async def test_several_messages_name_it_once(autojump_clock: MockClock) -> None:
    traces = Traces()
    async with open_wire(ScriptedModel(["one", "two"]), telemetry=traces.telemetry()) as wire:
        client = await wire.connect()
        await client.create()
        messages = [{"prompt": "one"}, {"prompt": "two"}]
        await client.call("session.sendMessages", sessionId="s", messages=messages, traceparent=ONE)
        await client.event("session.idle")
    assert [_parent(traces, 0), _parent(traces, 1)] == [ONE, ONE]


async def test_a_session_names_it_for_messages_that_do_not(autojump_clock: MockClock) -> None:
    traces = Traces()
    async with open_wire(ScriptedModel(["one", "two", "three"]), telemetry=traces.telemetry()) as wire:
        client = await wire.connect()
        await client.create(traceparent=ONE, tracestate="vendor=1")
        await client.say()
        await client.event("session.idle", 1)
        await client.say(traceparent=TWO)
        await client.event("session.idle", 2)
        await client.call("session.resume", sessionId="s", traceparent=TWO)
        await client.say()
        await client.event("session.idle", 3)
    assert [_parent(traces, number) for number in range(3)] == [ONE, TWO, TWO]
    states = [trace_state(turn, "vendor") for turn in traces.turns]
    assert states == ["1", None, None]


@pytest.mark.parametrize("traceparent", ["", "nonsense", ONE + "-" + "0" * 600])
async def test_a_parent_that_makes_no_sense_is_left_out(traceparent: str, autojump_clock: MockClock) -> None:
    traces = Traces()
    async with open_wire(ScriptedModel(["hi"]), telemetry=traces.telemetry()) as wire:
        client = await wire.connect()
        await client.create()
        await client.say(traceparent=traceparent, tracestate="vendor=1")
        await client.event("session.idle")
    assert _parent(traces) is None


async def test_a_parent_that_is_no_text_is_refused(autojump_clock: MockClock) -> None:
    async with open_wire(ScriptedModel([])) as wire:
        client = await wire.connect()
        await client.create()
        with pytest.raises(WireFailure, match="traceparent") as refused:
            await client.say(traceparent=5)
        assert refused.value.code == -32602


async def test_the_client_that_runs_a_tool_is_told_its_span(autojump_clock: MockClock) -> None:
    traces = Traces()
    model = ScriptedModel([call("double"), "done"])
    async with open_wire(model, telemetry=traces.telemetry()) as wire:
        client = await wire.connect()
        await client.create(tools=[tool("double")])
        await client.say(traceparent=ONE, tracestate="vendor=1")
        asked = (await client.event("external_tool.requested"))["data"]
        await client.give(asked["requestId"], result="8")
        await client.event("session.idle")
    (span,) = traces.calls
    carrier = {"traceparent": asked["traceparent"], "tracestate": asked["tracestate"]}
    told = get_current_span(TraceContextTextMapPropagator().extract(carrier)).get_span_context()
    assert (told.trace_id, told.span_id) == (trace_id(span), span_id(span))
    assert asked["tracestate"] == "vendor=1"
    assert f"{told.trace_id:032x}" == ONE[3:35]


async def test_a_client_that_comes_in_the_middle_of_a_turn_leaves_its_span_alone(
    autojump_clock: MockClock,
) -> None:
    traces = Traces()
    async with open_wire(ScriptedModel([after(10, say("hi"))]), telemetry=traces.telemetry()) as wire:
        first = await wire.connect()
        await first.create()
        await first.say()
        await first.leave()
        second = await wire.connect()
        await second.call("session.resume", sessionId="s")
        await second.event("session.idle")
    traces.check()
    (turn,) = traces.turns
    assert about(turn)["exeunt.turn.reason"] == "completed"
    assert "exeunt.turn.left_open" not in about(turn)


async def test_without_telemetry_nothing_of_a_trace_is_told_or_kept(autojump_clock: MockClock) -> None:
    model = ScriptedModel([call("double"), "done"])
    async with open_wire(model) as wire:
        client = await wire.connect()
        await client.create(tools=[tool("double")], traceparent=TWO)
        await client.say(traceparent=ONE, tracestate="vendor=1")
        asked = (await client.event("external_tool.requested"))["data"]
        await client.give(asked["requestId"], result="8")
        await client.event("session.idle")
        actor = wire.host.find("s")
        assert actor is not None
        notes = [event.note for event in await actor.log.read() if isinstance(event, MessageAccepted)]
    assert {"traceparent", "tracestate"}.isdisjoint(asked)
    assert notes == [None]


async def test_what_is_kept_for_traces_is_not_shown_with_the_message(autojump_clock: MockClock) -> None:
    traces = Traces()
    async with open_wire(ScriptedModel(["hi"]), telemetry=traces.telemetry()) as wire:
        client = await wire.connect()
        await client.create()
        await client.say(traceparent=ONE, displayPrompt="Go!")
        await client.event("session.idle")
        shown = client.events("user.message")[0]["data"]
    assert shown["content"] == "Go!"
    assert "traceparent" not in shown
