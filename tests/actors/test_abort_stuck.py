"""Handlers, hooks and models that do not hear their cancellation: the turn goes on without them, and late is late."""

import threading
from typing import Any

import pytest
import trio

from exeunt import ToolInvocation, TurnAborted, TurnFailed, Waits
from exeunt.testing import (
    Gate,
    ScriptedModel,
    Shielded,
    StubbornModel,
    Swallowing,
    call,
    checked_host,
    say,
)
from tests.actors.session_support import (
    begin,
    count,
    ends,
    logged,
    only,
    open_session,
    outcomes,
    plain_tool,
    reach,
    settled,
    tool_of,
    watch,
)

GRACE = 1.0
"""Seconds after which a turn no longer waits for a handler that was cancelled."""


async def test_s9_abort_absorbed_by_the_tool(autojump_clock: object) -> None:
    model = ScriptedModel([call("swallows"), say("hi")])
    async with checked_host() as host:
        session = await open_session(host, model, plain_tool("swallows", Swallowing(), is_terminal=True))
        await session.send("A")
        await reach(session, "tools")
        receipt = await session.abort()
        assert receipt.tools_cancelled == ("call_1",)
        assert await outcomes(session) == [("swallows", "cancelled")]
        assert await ends(session) == ["aborted"]
        await session.send_and_wait("hello")
        assert "done" not in model.requests[1].contents
    model.verify()


async def test_a_tool_that_swallows_and_raises_something_else_is_cancelled_all_the_same(
    autojump_clock: object,
) -> None:
    async def changes(_: ToolInvocation) -> str:
        try:
            await trio.sleep_forever()
        finally:
            raise RuntimeError("in the clean-up")

    model = ScriptedModel([call("changes"), say("hi")])
    async with checked_host() as host:
        session = await open_session(host, model, tool_of("changes", changes))
        await session.send("A")
        await reach(session, "tools")
        await session.abort()
        assert await outcomes(session) == [("changes", "cancelled")]
        assert await ends(session) == ["aborted"]
        await session.send_and_wait("hello")


async def test_an_abort_waits_for_the_grace_and_no_longer(autojump_clock: object) -> None:
    stuck = Shielded(30)
    model = ScriptedModel([call("stuck"), say("hi")])
    async with checked_host() as host:
        session = await open_session(host, model, plain_tool("stuck", stuck))
        events = watch(session)
        await session.send("A")
        await reach(session, "tools")
        began = trio.current_time()
        receipt = await session.abort()
        assert trio.current_time() - began == pytest.approx(GRACE)
        assert receipt.tools_cancelled == ("call_1",)
        assert host.statistics().stuck_handlers == 1
        assert (await session.send_and_wait("hello")).content == "hi"
        await settled(session)
        assert count(events, "tool.result_stale") == 0
        await trio.sleep(30)
        (stale,) = only(events, "tool.result_stale")
        assert (stale.tool_call_id, stale.tool_name) == ("call_1", "stuck")
        assert host.statistics().stuck_handlers == 0
        assert await outcomes(session) == [("stuck", "cancelled")]
        assert session.history.messages()[-1].content == "hi"
    model.verify()


async def test_a_second_abort_waits_no_longer_than_the_first(autojump_clock: object) -> None:
    async with checked_host() as host, trio.open_nursery() as nursery:
        session = await open_session(host, ScriptedModel([call("stuck")]), plain_tool("stuck", Shielded(30)))
        await session.send("A")
        await reach(session, "tools")
        began = trio.current_time()
        first = begin(nursery, session.abort)
        await trio.sleep(0.9)
        await session.abort()
        await first.wait()
        assert trio.current_time() - began == pytest.approx(GRACE)


async def test_s14_a_late_result_after_a_time_out_reaches_no_other_turn(autojump_clock: object) -> None:
    stuck = Shielded(5)
    gate = Gate()
    model = ScriptedModel([call("stuck"), say("one"), call("wait"), say("two")])
    async with checked_host() as host, trio.open_nursery() as nursery:
        session = await open_session(
            host, model, plain_tool("stuck", stuck, timeout=2), plain_tool("wait", gate)
        )
        events = watch(session)
        assert (await session.send_and_wait("A")).content == "one"
        assert "timed out after 2 s" in model.requests[1].contents[-1]
        second = begin(nursery, session.send_and_wait, "B")
        await gate.entered()
        await trio.sleep(5)
        assert session.statistics().in_flight == ("wait",)
        assert count(events, "tool.result_stale") == 1
        gate.open()
        assert (await second.wait()).value.content == "two"
        assert await outcomes(session) == [("stuck", "timeout"), ("wait", "success")]
        assert "late" not in [m.content for m in session.history.messages()]
        stale = host.metrics.registry.get_sample_value("exeunt_stale_results_total")
        assert stale == 1
    model.verify()


async def test_what_a_late_handler_does_to_its_session_is_that_of_a_stranger(autojump_clock: object) -> None:
    from exeunt import NoToolCallInFlight

    seen: list[object] = []

    async def late(invocation: ToolInvocation) -> str:
        with trio.CancelScope(shield=True):
            await trio.sleep(5)
            try:
                await invocation.session.history.clear_context("FRESH")
            except NoToolCallInFlight as error:
                seen.append(error)
            seen.append(await invocation.session.send("from the late one"))
        return "late"

    gate = Gate()
    model = ScriptedModel([call("late"), say("hi"), call("wait"), say("ok"), say("to the late one")])
    async with checked_host() as host:
        session = await open_session(host, model, tool_of("late", late), plain_tool("wait", gate))
        await session.send("A")
        await reach(session, "tools")
        await session.abort()
        await session.send_and_wait("B")
        await session.send("C")
        await trio.sleep(5)
        assert isinstance(seen[0], NoToolCallInFlight)
        gate.open()
        await settled(session)
        assert [e.content for e in await logged(session, "user.message")][-1] == "from the late one"
        assert session.statistics().generation == 0
    model.verify()


async def test_a_stuck_prompt_hook_is_left_after_the_grace(autojump_clock: object) -> None:
    async def stuck(hook_input: Any, _: object) -> None:
        if hook_input.prompt == "A":
            with trio.CancelScope(shield=True):
                await trio.sleep(30)

    async with checked_host() as host:
        model = ScriptedModel([say("hi")])
        session = await open_session(host, model, on_user_prompt_submitted=stuck)
        await session.send("A")
        await reach(session, "prompt_hooks")
        began = trio.current_time()
        receipt = await session.abort()
        assert trio.current_time() - began == pytest.approx(GRACE)
        assert receipt.turn is not None
        await session.send_and_wait("hello")
        await trio.sleep(30)
        assert model.requests[0].contents == ("hello",)
    model.verify()


async def test_a_stuck_model_is_left_after_the_grace(autojump_clock: object) -> None:
    model = StubbornModel(30)
    async with checked_host() as host:
        session = await host.create_session(model=model)
        events = watch(session)
        await session.send("A")
        await reach(session, "model")
        began = trio.current_time()
        await session.abort()
        assert trio.current_time() - began == pytest.approx(GRACE)
        await trio.sleep(40)
        assert only(events, "assistant.message") == []
        assert await ends(session) == ["aborted"]


async def test_a_stuck_model_that_is_too_slow_ends_its_turn_with_an_error(autojump_clock: object) -> None:
    async with checked_host() as host:
        session = await host.create_session(model=StubbornModel(30), waits=Waits(model_total=5))
        began = trio.current_time()
        with pytest.raises(TurnFailed, match="within 5 s"):
            await session.send_and_wait("A")
        assert trio.current_time() - began == pytest.approx(5 + GRACE)
        await trio.sleep(40)
        assert await ends(session) == ["error"]


async def test_a_synchronous_handler_is_left_in_its_thread(autojump_clock: object) -> None:
    released = threading.Event()
    polled: list[bool] = []

    from exeunt import tool

    @tool(skip_permission=True)
    def blocks(invocation: ToolInvocation) -> str:
        """Block."""
        released.wait(10)
        polled.append(invocation.cancelled)
        return "late"

    model = ScriptedModel([call("blocks"), say("hi")])
    async with checked_host() as host:
        session = await open_session(host, model, blocks)
        events = watch(session)
        try:
            await session.send("A")
            await reach(session, "tools")
            receipt = await session.abort()
            assert receipt.tools_cancelled == ("call_1",)
            await session.send_and_wait("hello")
        finally:
            released.set()
        while not only(events, "tool.result_stale"):  # noqa: ASYNC110 - a real thread ends here
            await trio.sleep(0.01)
        assert polled == [True]
        assert await outcomes(session) == [("blocks", "cancelled")]


async def test_stuck_siblings_are_left_together(autojump_clock: object) -> None:
    model = ScriptedModel([[call("stuck"), call("stuck"), call("quick")], say("hi")])
    async with checked_host() as host, trio.open_nursery() as nursery:
        tools = [plain_tool("stuck", Shielded(30)), plain_tool("quick", Gate())]
        session = await open_session(host, model, *tools)
        waiting = begin(nursery, session.send_and_wait, "A")
        await reach(session, "tools")
        began = trio.current_time()
        receipt = await session.abort()
        assert trio.current_time() - began == pytest.approx(GRACE)
        assert set(receipt.tools_cancelled) == {"call_1", "call_2", "call_3"}
        assert isinstance((await waiting.wait()).error, TurnAborted)
        assert host.statistics().stuck_handlers == 2
        await session.send_and_wait("hello")
        await trio.sleep(40)
