"""Batches: all calls run to their outcomes, whatever the others do, and the model sees them in call order."""

import itertools
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from exeunt import Tool, tool
from exeunt.actors.events import AssistantMessage, ToolExecutionComplete, ToolExecutionStart
from exeunt.testing import Failing, Gate, ScriptedModel, Sleepy, call, checked_host
from tests.actors.turn_support import (
    broken,
    calls_counted,
    ends,
    logged,
    open_session,
    outcomes,
    read,
    submit,
    turns_counted,
)


async def test_s5_siblings_of_a_terminal_success_run_to_their_outcomes(autojump_clock: MockClock) -> None:
    read_slow, write = Sleepy(3, "text"), Sleepy(5, "written")
    tools: list[Tool[..., Any]] = [tool("read_slow")(read_slow), submit, tool("write")(write)]
    model = ScriptedModel([[call("read_slow"), call("submit", answer=42), call("write")]])
    async with checked_host() as host:
        session = await open_session(host, model, *tools)
        reply = await session.send_and_wait("go")

        assert trio.current_time() == 5
        assert (reply.content, reply.reason) == ("accepted 42", "terminal_tool")
        assert model.calls == 1
        assert await outcomes(session) == [
            ("submit", "success"),
            ("read_slow", "success"),
            ("write", "success"),
        ]
        # Settled out of order, and in call order in the context.
        assert [m.content for m in session.history.messages()[2:]] == ["text", "accepted 42", "written"]
        assert [trace.how for trace in (*read_slow.calls, *write.calls)] == ["returned", "returned"]
        assert turns_counted(host) == {"terminal_tool": 1}
    model.verify()


async def test_s5_a_sibling_that_fails_does_not_keep_the_turn_going(autojump_clock: MockClock) -> None:
    write = tool("write")(Failing())
    model = ScriptedModel([[call("read"), call("submit", answer=42), call("write")], "what happened"])
    async with checked_host() as host:
        session = await open_session(host, model, read, submit, write)
        reply = await session.send_and_wait("go")
        await session.send_and_wait("and the write?")

        assert reply.reason == "terminal_tool"
        failed = [e for e in await logged(session, ToolExecutionComplete) if e.outcome == "failure"]
        assert [(e.tool_name, e.error_message) for e in failed] == [("write", "RuntimeError: it broke")]
        assert "it broke" in model.requests[1].results["call_3"]
    model.verify()


ORDERS = list(itertools.permutations(["submit", "read", "broken"]))


@pytest.mark.parametrize("order", ORDERS, ids=["-".join(order) for order in ORDERS])
async def test_a_terminal_success_ends_the_turn_at_every_place_of_a_batch(
    autojump_clock: MockClock, order: tuple[str, ...]
) -> None:
    batch = [call(name, answer=42) if name == "submit" else call(name) for name in order]
    model = ScriptedModel([batch])
    async with checked_host() as host:
        session = await open_session(host, model, submit, read, broken)
        reply = await session.send_and_wait("go")

        assert (reply.content, reply.reason) == ("accepted 42", "terminal_tool")
        assert [m.tool_call_id for m in session.history.messages()[2:]] == ["call_1", "call_2", "call_3"]
        assert sorted(await outcomes(session)) == [
            ("broken", "failure"),
            ("read", "success"),
            ("submit", "success"),
        ]
    model.verify()


async def test_a_terminal_failure_beside_ordinary_successes_lets_the_turn_go_on(
    autojump_clock: MockClock,
) -> None:
    model = ScriptedModel([[call("read"), call("submit", answer=1), call("read")], "again, then"])
    async with checked_host() as host:
        session = await open_session(host, model, submit, read)
        reply = await session.send_and_wait("go")

        assert (reply.content, reply.reason) == ("again, then", "completed")
        assert list(model.requests[1].results) == ["call_1", "call_2", "call_3"]
    model.verify()


async def test_an_invalid_terminal_call_beside_an_ordinary_one_lets_the_turn_go_on(
    autojump_clock: MockClock,
) -> None:
    model = ScriptedModel([[call("submit"), call("read")], "I forgot the answer"])
    async with checked_host() as host:
        session = await open_session(host, model, submit, read)
        reply = await session.send_and_wait("go")

        assert reply.reason == "completed"
        assert model.requests[1].results == {
            "call_1": "The arguments for the tool call 'submit' are not valid: answer: required but missing",
            "call_2": "what was read",
        }
    model.verify()


async def test_of_two_terminal_tools_one_success_is_enough(autojump_clock: MockClock) -> None:
    model = ScriptedModel([[call("submit", answer=1), call("submit", answer=42)]])
    async with checked_host() as host:
        session = await open_session(host, model, submit)
        reply = await session.send_and_wait("go")

        assert (reply.content, reply.reason) == ("accepted 42", "terminal_tool")
        assert calls_counted(host) == {("submit", "failure", "true"): 1, ("submit", "success", "true"): 1}
    model.verify()


async def test_of_two_terminal_successes_the_first_in_call_order_is_the_reply(
    autojump_clock: MockClock,
) -> None:
    slow = tool("slow", is_terminal=True)(Sleepy(5, "slow, but first"))
    fast = tool("fast", is_terminal=True)(Sleepy(1, "fast, but second"))
    model = ScriptedModel([[call("slow"), call("fast")]])
    async with checked_host() as host:
        session = await open_session(host, model, slow, fast)
        reply = await session.send_and_wait("go")

        assert await outcomes(session) == [("fast", "success"), ("slow", "success")]
        assert (reply.content, reply.reason) == ("slow, but first", "terminal_tool")
        assert model.calls == 1
    model.verify()


async def test_s10_one_of_three_parallel_tools_raises_and_the_others_finish(
    autojump_clock: MockClock,
) -> None:
    first, last = Sleepy(2, "first"), Sleepy(4, "last")
    tools = [tool("first")(first), tool("middle")(Failing()), tool("last")(last)]
    model = ScriptedModel([[call("first"), call("middle"), call("last")], "all seen"])
    async with checked_host() as host:
        session = await open_session(host, model, *tools)
        reply = await session.send_and_wait("go")

        assert reply.content == "all seen"
        assert trio.current_time() == 4
        assert model.calls == 2
        assert model.requests[1].results == {
            "call_1": "first",
            "call_2": "Failed to execute `middle` tool with arguments: {} due to error: RuntimeError: it broke",
            "call_3": "last",
        }
        assert session.statistics().restarts == 0
    model.verify()


async def test_results_that_settle_out_of_order_are_sent_in_call_order(autojump_clock: MockClock) -> None:
    tools = [tool(f"t{seconds}")(Sleepy(seconds, f"after {seconds}")) for seconds in (5, 3, 4, 1)]
    model = ScriptedModel([[call(each.name) for each in tools], "done"])
    async with checked_host() as host:
        session = await open_session(host, model, *tools)
        await session.send_and_wait("go")

        settled = [event.tool_call_id for event in await logged(session, ToolExecutionComplete)]
        assert settled == ["call_4", "call_2", "call_3", "call_1"]
        assert list(model.requests[1].results.items()) == [
            ("call_1", "after 5"),
            ("call_2", "after 3"),
            ("call_3", "after 4"),
            ("call_4", "after 1"),
        ]
    model.verify()


async def test_a_result_is_logged_when_it_settles_not_when_the_batch_does(autojump_clock: MockClock) -> None:
    gate = Gate()
    model = ScriptedModel([[call("gate"), call("read")], "done"])
    async with checked_host() as host:
        session = await open_session(host, model, tool("gate")(gate), read)
        await session.send("go")
        await gate.entered()
        await wait_all_tasks_blocked()

        assert await outcomes(session) == [("read", "success")]
        assert session.statistics().in_flight == ("gate",)
        gate.open()
        await wait_all_tasks_blocked()
    model.verify()


async def test_every_call_is_in_flight_before_any_of_them_runs(autojump_clock: MockClock) -> None:
    model = ScriptedModel([[call("read"), call("nothing"), call("submit", answer=42)]])
    async with checked_host() as host:
        session = await open_session(host, model, submit, read)
        await session.send_and_wait("go")

        events = [type(event) for event in await session.get_events()]
        first = events.index(AssistantMessage)
        assert events[first + 1 : first + 4] == [ToolExecutionStart] * 3
        assert [(e.tool_name, e.terminal) for e in await logged(session, ToolExecutionStart)] == [
            ("read", False),
            ("nothing", False),
            ("submit", True),
        ]
    model.verify()


async def test_an_abort_beats_a_terminal_success_whose_siblings_still_run(autojump_clock: MockClock) -> None:
    sleepy = Sleepy()
    model = ScriptedModel([[call("submit", answer=42), call("nap")], "hi"])
    async with checked_host() as host:
        session = await open_session(host, model, submit, tool("nap")(sleepy))
        await session.send("go")
        await sleepy.entered()
        await wait_all_tasks_blocked()
        await session.abort()

        assert await outcomes(session) == [("submit", "success"), ("nap", "cancelled")]
        assert turns_counted(host) == {"aborted": 1}
        # What was done is done: the model reads of it in the next turn.
        await session.send_and_wait("hello")
        assert model.requests[1].results["call_1"] == "accepted 42"
    model.verify()


async def test_a_batch_of_a_hundred_calls_runs_at_once(autojump_clock: MockClock) -> None:
    sleepy = Sleepy(10)
    model = ScriptedModel([[call("nap")] * 100, "rested"])
    async with checked_host() as host:
        session = await open_session(host, model, tool("nap")(sleepy))
        await session.send_and_wait("go")

        assert trio.current_time() == 10
        assert len(model.requests[1].results) == 100
        assert await ends(session) == ["completed"]
    model.verify()
