"""Traces that come in with a message, and go on in what tools and models do."""

import asyncio

import pytest
import trio
from opentelemetry import trace
from opentelemetry.trace import get_current_span
from trio.testing import MockClock

from exeunt import HostOptions, ModelRequest, Reply, ToolInvocation, tool
from exeunt.actors.events import MessageAccepted
from exeunt.embed import asyncio as on_asyncio
from exeunt.embed import threads as in_threads
from exeunt.testing import ScriptedModel, after, call, checked_host, say
from tests.actors.session_support import open_session, tool_of
from tests.telemetry.traced import Traces, parent_id, span_id, trace_id, trace_state

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


async def test_the_span_that_is_current_for_the_sender_is_the_turns_parent(
    autojump_clock: MockClock,
) -> None:
    traces = Traces()
    async with checked_host(telemetry=traces.telemetry()) as host:
        session = await open_session(host, ScriptedModel([after(5, say("one")), say("two")]))
        with traces.tracer.start_as_current_span("first request") as first:
            await session.send("one")
        with traces.tracer.start_as_current_span("second request") as second:
            await session.send("two")
        await trio.sleep(10)
    traces.check()
    assert [parent_id(turn) for turn in traces.turns] == [
        span.get_span_context().span_id for span in (first, second)
    ]


async def test_the_note_of_a_message_may_name_the_parent(autojump_clock: MockClock) -> None:
    traces = Traces()
    async with checked_host(telemetry=traces.telemetry()) as host:
        session = await open_session(host, ScriptedModel(["hi"]))
        with traces.tracer.start_as_current_span("another"):
            await session.send_and_wait("go", note={"traceparent": PARENT, "tracestate": "vendor=1"})
    (turn,) = traces.turns
    assert f"{trace_id(turn):032x}" == PARENT[3:35]
    assert f"{parent_id(turn):016x}" == PARENT[36:52]
    assert trace_state(turn, "vendor") == "1"


@pytest.mark.parametrize("note", [{"traceparent": "nonsense"}, {"traceparent": 5}, {"tracestate": "a=1"}, {}])
async def test_a_parent_that_makes_no_sense_is_none(
    note: dict[str, object], autojump_clock: MockClock
) -> None:
    traces = Traces()
    async with checked_host(telemetry=traces.telemetry()) as host:
        await (await open_session(host, ScriptedModel(["hi"]))).send_and_wait("go", note=note)
    traces.check()
    assert parent_id(traces.turns[0]) is None


async def test_without_telemetry_a_message_is_logged_as_it_was_sent(autojump_clock: MockClock) -> None:
    traces = Traces()
    async with checked_host() as host:
        session = await open_session(host, ScriptedModel(["hi"]))
        with traces.tracer.start_as_current_span("request"):
            await session.send_and_wait("go")
        notes = [event.note for event in await session.get_events() if isinstance(event, MessageAccepted)]
    assert notes == [None]


async def test_what_a_tool_does_is_a_part_of_its_span() -> None:
    traces = Traces()

    async def work(_: ToolInvocation) -> str:
        with traces.tracer.start_as_current_span("query"):
            await trio.lowlevel.checkpoint()
        return "done"

    @tool(skip_permission=True)
    def in_a_thread() -> str:
        """Work in a thread."""
        traces.tracer.start_span("query in a thread").end()
        return "done"

    model = ScriptedModel([[call("work"), call("in_a_thread")], say("done")])
    async with checked_host(telemetry=traces.telemetry()) as host:
        session = await open_session(host, model, tool_of("work", work), in_a_thread)
        await session.send_and_wait("go")
    traces.check()
    parents = {span.name: parent_id(span) for span in traces.spans}
    ids = {span.name: span_id(span) for span in traces.spans}
    assert parents["query"] == ids["execute_tool work"]
    assert parents["query in a thread"] == ids["execute_tool in_a_thread"]


async def test_what_a_model_does_is_a_part_of_its_span(autojump_clock: MockClock) -> None:
    traces = Traces()

    def answer(_: ModelRequest) -> str:
        traces.tracer.start_span("POST").end()
        return "hi"

    async with checked_host(telemetry=traces.telemetry()) as host:
        await (await open_session(host, ScriptedModel([answer]))).send_and_wait("go")
        assert not get_current_span().get_span_context().is_valid
    traces.check()
    (post,) = (span for span in traces.spans if span.name == "POST")
    assert parent_id(post) == span_id(traces.chats[0])


async def test_what_follows_a_call_is_no_part_of_its_span(autojump_clock: MockClock) -> None:
    traces = Traces()
    seen: list[bool] = []

    async def ended(*_: object) -> None:
        await trio.lowlevel.checkpoint()
        seen.append(get_current_span().get_span_context().is_valid)

    async def work(_: ToolInvocation) -> str:
        await trio.lowlevel.checkpoint()
        return "done"

    async with checked_host(telemetry=traces.telemetry()) as host:
        tools = tool_of("work", work, is_terminal=True)
        session = await open_session(host, ScriptedModel([call("work")]), tools, on_session_end=ended)
        await session.send_and_wait("go")
        await trio.sleep(1)
    assert seen == [False]


async def test_a_tool_that_asks_another_session_has_its_turn_below_it(autojump_clock: MockClock) -> None:
    traces = Traces()
    async with checked_host(telemetry=traces.telemetry()) as host:
        other = await open_session(host, ScriptedModel(["ask Horatio"]))

        async def ask(_: ToolInvocation) -> str:
            reply: Reply = await other.send_and_wait("What now?")
            return reply.content

        session = await open_session(host, ScriptedModel([call("ask"), say("done")]), tool_of("ask", ask))
        await session.send_and_wait("go")
    traces.check()
    inner, outer = traces.turns
    assert parent_id(inner) == span_id(traces.calls[0])
    assert trace_id(inner) == trace_id(outer)


async def test_a_message_that_wakes_a_session_keeps_its_senders_span(autojump_clock: MockClock) -> None:
    traces = Traces()
    options = HostOptions(passivate_after=10.0)
    async with checked_host(telemetry=traces.telemetry(), options=options) as host:
        session = await open_session(host, ScriptedModel(["one", "two", "three"]))
        await session.send_and_wait("go")
        await trio.sleep(60)
        assert session.statistics().status == "passive"
        spans: list[int] = []

        async def ask(name: str) -> None:
            with traces.tracer.start_as_current_span(name) as span:
                spans.append(span.get_span_context().span_id)
                await session.send_and_wait(name)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask, "Rosencrantz")
            nursery.start_soon(ask, "Guildenstern")
    traces.check()
    assert sorted(parent_id(turn) or 0 for turn in traces.turns[1:]) == sorted(spans)


def test_traces_cross_into_a_host_of_threads() -> None:
    traces = Traces()

    @in_threads.tool(skip_permission=True)
    def query() -> str:
        """Ask."""
        traces.tracer.start_span("query").end()
        return "done"

    with in_threads.open_host(telemetry=traces.telemetry()) as host:
        session = host.create_session(model=ScriptedModel([call("query"), say("hi")]), tools=[query])
        with traces.tracer.start_as_current_span("request") as request:
            session.send_and_wait("go")
    traces.check()
    assert parent_id(traces.turns[0]) == request.get_span_context().span_id
    (asked,) = (span for span in traces.spans if span.name == "query")
    assert parent_id(asked) == span_id(traces.calls[0])


def test_traces_cross_into_a_host_on_asyncio() -> None:
    traces = Traces()

    @on_asyncio.tool(skip_permission=True)
    async def query() -> str:
        """Ask."""
        with traces.tracer.start_as_current_span("query"):
            await asyncio.sleep(0)
        return "done"

    async def main() -> int:
        async with on_asyncio.open_host(telemetry=traces.telemetry()) as host:
            model = ScriptedModel([call("query"), say("hi")])
            session = await host.create_session(model=model, tools=[query])
            with traces.tracer.start_as_current_span("request") as request:
                await session.send_and_wait("go")
            return request.get_span_context().span_id

    request = asyncio.run(main())
    traces.check()
    assert parent_id(traces.turns[0]) == request
    (asked,) = (span for span in traces.spans if span.name == "query")
    assert parent_id(asked) == span_id(traces.calls[0])


async def test_a_trace_that_is_not_sampled_goes_on_unsampled(autojump_clock: MockClock) -> None:
    traces = Traces()
    seen: list[trace.SpanContext] = []

    async def look(_: ToolInvocation) -> str:
        await trio.lowlevel.checkpoint()
        seen.append(get_current_span().get_span_context())
        return "done"

    async with checked_host(telemetry=traces.telemetry(capture_content=True)) as host:
        model = ScriptedModel([call("look"), say("hi")])
        session = await open_session(host, model, tool_of("look", look))
        await session.send_and_wait("go", note={"traceparent": PARENT[:-1] + "0"})
    assert traces.spans == []
    assert [f"{context.trace_id:032x}" for context in seen] == [PARENT[3:35]]
    assert not seen[0].trace_flags.sampled
