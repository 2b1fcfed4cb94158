"""Callers whose own call is over: a clear of theirs is refused, whatever else is in flight."""

import pytest
import trio
from trio.testing import MockClock

from exeunt import (
    NoToolCallInFlight,
    Session,
    ToolInvocation,
    ToolResult,
)
from exeunt.testing import Gate, ScriptedModel, Sleepy, Swallowing, call, checked_host
from tests.actors.clear_support import (
    Attempt,
    attempt,
    clears_counted,
    ends,
    only,
    open_session,
    outcomes,
    plain_tool,
    seeds,
    settled,
    tool_of,
    watch,
)


async def _clear_after(session: Session, seconds: float, attempts: list[Attempt]) -> None:
    await trio.sleep(seconds)
    attempts.append(await attempt(session))


async def test_a_handler_that_has_timed_out_cannot_clear_while_another_call_runs(
    autojump_clock: MockClock,
) -> None:
    attempts: list[Attempt] = []

    async def clear_too_late(invocation: ToolInvocation) -> str:
        with trio.CancelScope(shield=True):
            await trio.sleep(10)
            attempts.append(await attempt(invocation.session))
        return "too late"

    gate = Gate()
    model = ScriptedModel([[call("late"), call("wait")], "hi"])
    async with checked_host() as host:
        session = await open_session(
            host, model, tool_of("late", clear_too_late, timeout=5), plain_tool("wait", gate)
        )
        events = watch(session)
        await session.send("start over")
        await trio.sleep(20)
        assert session.statistics().in_flight == ("wait",)
        gate.open()
        await settled(session)
        assert [tried.refused for tried in attempts] == [NoToolCallInFlight]
        assert await outcomes(session) == [("late", "timeout"), ("wait", "success")]
        assert len(only(events, "tool.result_stale")) == 1
        assert session.statistics().generation == 0
    model.verify()


async def test_a_handler_cannot_clear_in_the_second_that_it_has_to_clean_up(
    autojump_clock: MockClock,
) -> None:
    """Its outcome is not in the log yet, but it is decided: the clear could only be rolled back."""
    attempts: list[Attempt] = []

    async def clear_in_cleanup(invocation: ToolInvocation) -> str:
        try:
            await trio.sleep_forever()
        finally:
            with trio.CancelScope(shield=True):
                attempts.append(await attempt(invocation.session))

    model = ScriptedModel([[call("late"), call("slow")], "hi"])
    async with checked_host() as host:
        session = await open_session(
            host, model, tool_of("late", clear_in_cleanup, timeout=5), plain_tool("slow", Sleepy(10))
        )
        await session.send_and_wait("start over")
        assert [tried.refused for tried in attempts] == [NoToolCallInFlight]
        assert await outcomes(session) == [("late", "timeout"), ("slow", "success")]
    model.verify()


async def test_the_refusal_of_a_cancelled_handler_is_seen_even_if_it_does_not_shield_itself(
    autojump_clock: MockClock,
) -> None:
    seen: list[type[BaseException]] = []

    async def clear_in_cleanup(invocation: ToolInvocation) -> str:
        try:
            await trio.sleep_forever()
        finally:
            try:
                # Not shielded on purpose.
                await invocation.session.history.clear_context("FRESH")  # noqa: ASYNC102
            except NoToolCallInFlight as error:
                seen.append(type(error))

    model = ScriptedModel([call("late"), "hi"])
    async with checked_host() as host:
        session = await open_session(host, model, tool_of("late", clear_in_cleanup, timeout=5))
        await session.send_and_wait("start over")
        assert seen == [NoToolCallInFlight]
        assert clears_counted(host) == {"no_tool_call": 1}
    model.verify()


async def test_an_aborted_handler_cannot_clear_the_next_turn_of_its_session(
    autojump_clock: MockClock,
) -> None:
    attempts: list[Attempt] = []

    async def clear_too_late(invocation: ToolInvocation) -> str:
        with trio.CancelScope(shield=True):
            await trio.sleep(10)
            attempts.append(await attempt(invocation.session))
        return "too late"

    gate = Gate()
    model = ScriptedModel([call("late"), call("wait"), "hi"])
    async with checked_host() as host:
        session = await open_session(host, model, tool_of("late", clear_too_late), plain_tool("wait", gate))
        await session.send("first")
        await trio.sleep(1)
        await session.abort()
        await session.send("second")
        await gate.entered()
        await trio.sleep(20)
        gate.open()
        await settled(session)
        assert [tried.refused for tried in attempts] == [NoToolCallInFlight]
        assert await ends(session) == ["aborted", "completed"]
        assert session.statistics().generation == 0
    model.verify()


@pytest.mark.parametrize("held", [False, True])
async def test_a_task_that_outlives_its_handler_cannot_clear(autojump_clock: MockClock, held: bool) -> None:
    """Neither after the call's outcome, nor while its success is held back for a clear of its own."""
    attempts: list[Attempt] = []
    gate = Gate()

    async def leave_a_task(invocation: ToolInvocation) -> str:
        nursery.start_soon(_clear_after, invocation.session, 5, attempts)
        if held:
            await invocation.session.history.clear_context("OWN")
        return "done"

    model = ScriptedModel([[call("leave"), call("wait")], "hi"])
    async with checked_host() as host, trio.open_nursery() as nursery:
        session = await open_session(host, model, tool_of("leave", leave_a_task), plain_tool("wait", gate))
        await session.send("go")
        await trio.sleep(10)
        assert session.statistics().phase == "tools"
        gate.open()
        await settled(session)
        assert [tried.refused for tried in attempts] == [NoToolCallInFlight]
        assert await seeds(session) == (["OWN"] if held else [])
    model.verify()


async def test_what_a_swallowing_handler_does_after_its_time_out_is_fenced(autojump_clock: MockClock) -> None:
    """It caught its cancellation and goes on as if nothing had happened."""
    attempts: list[Attempt] = []
    swallowing = Swallowing()

    async def clear_afterwards(invocation: ToolInvocation) -> ToolResult:
        text = await swallowing()
        with trio.CancelScope(shield=True):
            attempts.append(await attempt(invocation.session))
        return ToolResult(text)

    model = ScriptedModel([call("swallowing"), "hi"])
    async with checked_host() as host:
        session = await open_session(host, model, tool_of("swallowing", clear_afterwards, timeout=5))
        await session.send_and_wait("go")
        assert swallowing.calls[0].how == "returned"
        assert [tried.refused for tried in attempts] == [NoToolCallInFlight]
        assert await outcomes(session) == [("swallowing", "timeout")]
        assert clears_counted(host) == {"no_tool_call": 1}
    model.verify()
