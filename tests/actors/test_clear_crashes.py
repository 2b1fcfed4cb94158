"""A crash around a clear: the context is cleared whole or not at all, and nobody is left waiting."""

from typing import Any

import pytest
import trio
from trio.testing import MockClock

from exeunt import (
    HookInvocation,
    HostOptions,
    NoToolCallInFlight,
    SessionFailed,
    ToolInvocation,
    TurnInterrupted,
)
from exeunt.actors.events import Event
from exeunt.testing import Gate, ScriptedModel, Sleepy, call, checked_host, crash_session, hang
from tests.actors.clear_crash_support import CLEAR, INTERRUPTED, clear_and_sleep
from tests.actors.clear_support import (
    Attempt,
    attempt,
    clear_context,
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


@pytest.mark.parametrize("held", [False, True])
async def test_s20_a_crash_while_a_clear_is_staged_leaves_the_old_context_whole(
    autojump_clock: MockClock, held: bool
) -> None:
    """While the owner's handler runs, and while its success is held back for a sibling."""
    slow = tool_of("clear", clear_and_sleep, is_terminal=True)
    replies: list[Any] = [[CLEAR, call("slow")]] if held else [call("clear")]
    model = ScriptedModel([*replies, "hi"])
    async with checked_host() as host:
        session = await open_session(
            host, model, clear_context, plain_tool("slow", Sleepy()), slow, system_message="terse"
        )
        events = watch(session)
        await session.send("start over")
        await trio.sleep(1)
        assert session.statistics().clear_staged
        crash_session(session)
        await settled(session)

        assert not session.statistics().clear_staged
        assert {outcome for _, outcome in await outcomes(session)} == {"interrupted"}
        assert await ends(session) == ["interrupted"]
        assert await seeds(session) == []
        assert [e.cause for e in only(events, "session.clear_rolled_back")] == ["interrupted"]
        assert clears_counted(host) == {"rolled_back": 1}
        assert len(only(events, "session.idle")) == 1

        await session.send_and_wait("hello")
        assert model.requests[1].contents[:2] == ("terse", "start over")
        assert set(model.requests[1].results.values()) == {INTERRUPTED}
    model.verify()


async def test_after_the_restart_the_context_can_be_cleared_again(autojump_clock: MockClock) -> None:
    model = ScriptedModel([call("clear"), CLEAR, "ok"])
    async with checked_host() as host:
        session = await open_session(host, model, clear_context, tool_of("clear", clear_and_sleep))
        await session.send("start over")
        await trio.sleep(1)
        crash_session(session)
        assert (await session.send_and_wait("once more")).content == "ok"
        assert await seeds(session) == ["FRESH"]
        assert clears_counted(host) == {"rolled_back": 1, "committed": 1}
    model.verify()


async def test_a_handler_from_before_the_crash_cannot_clear_afterwards(autojump_clock: MockClock) -> None:
    attempts: list[Attempt] = []
    gate = Gate()

    async def clear_too_late(invocation: ToolInvocation) -> str:
        with trio.CancelScope(shield=True):
            await trio.sleep(10)
            attempts.append(await attempt(invocation.session))
        return "too late"

    model = ScriptedModel([call("late"), call("wait"), "hi"])
    async with checked_host() as host:
        session = await open_session(host, model, tool_of("late", clear_too_late), plain_tool("wait", gate))
        await session.send("first")
        await trio.sleep(1)
        crash_session(session)
        await session.send("second")
        await trio.sleep(20)
        assert session.statistics().in_flight == ("wait",)
        gate.open()
        await settled(session)
        assert [tried.refused for tried in attempts] == [NoToolCallInFlight]
        assert session.statistics().generation == 0
    model.verify()


async def test_a_crash_while_the_seeded_turn_waits_for_its_hooks_runs_it_after_the_restart(
    autojump_clock: MockClock,
) -> None:
    """The clear is committed and whole. Who waited is told of the crash; the turn runs all the same."""
    looks: list[str] = []

    async def slow(given: Any, _: HookInvocation) -> None:
        looks.append(given.prompt)
        if given.prompt == "FRESH" and looks.count("FRESH") == 1:
            await trio.sleep_forever()

    model = ScriptedModel([CLEAR, "ok"])
    async with checked_host() as host, trio.open_nursery() as nursery:
        session = await open_session(host, model, clear_context, on_user_prompt_submitted=slow)
        events = watch(session)

        async def wait_for_it() -> None:
            with pytest.raises(TurnInterrupted):
                await session.send_and_wait("start over")

        nursery.start_soon(wait_for_it)
        await trio.sleep(1)
        assert await seeds(session) == ["FRESH"]
        crash_session(session)
        await settled(session)
        assert looks == ["start over", "FRESH", "FRESH"]
        assert model.requests[1].contents == ("FRESH",)
        assert await ends(session) == ["terminal_tool", "completed"]
        assert len(only(events, "session.idle")) == 1
        assert clears_counted(host) == {"committed": 1}
    model.verify()


async def test_a_crash_while_the_seeded_turn_waits_for_a_slot_runs_it_after_the_restart(
    autojump_clock: MockClock,
) -> None:
    gate = Gate()
    model = ScriptedModel.per_session(lambda name: ["ok"] if name == "one" else [call("wait"), "done"])
    async with checked_host(options=HostOptions(running_turns=1)) as host:
        one = await open_session(host, model, clear_context, session_id="one")
        two = await open_session(host, model, plain_tool("wait", gate), session_id="two")
        await two.send("take the slot")
        await gate.entered()
        await one.call_tool("clear_context", {"prompt": "FRESH"})
        assert one.statistics().phase == "waiting"
        crash_session(one)
        await trio.sleep(10)
        assert one.statistics().phase == "waiting"
        gate.open()
        await settled(one)
        await settled(two)
        assert [m.content for m in one.history.messages()] == ["FRESH", "ok"]
        assert await ends(one) == ["completed"]
    model.verify()


async def test_a_crash_in_the_seeded_turn_interrupts_it_like_any_other(autojump_clock: MockClock) -> None:
    model = ScriptedModel([CLEAR, hang(), "hi"])
    async with checked_host() as host:
        session = await open_session(host, model, clear_context)
        await session.send("start over")
        await trio.sleep(1)
        crash_session(session)
        await settled(session)
        assert await ends(session) == ["terminal_tool", "interrupted"]
        assert await seeds(session) == ["FRESH"]
        await session.send_and_wait("hello")
        assert model.requests[2].contents == ("FRESH", "hello")
    model.verify()


async def test_a_crash_long_after_an_aborted_seeded_turn_does_not_run_its_seed(
    autojump_clock: MockClock,
) -> None:
    """It was ended by somebody's will: the seed stands unanswered, also after a restart."""

    async def slow(given: Any, _: HookInvocation) -> None:
        await trio.sleep(10 if given.prompt == "FRESH" else 0)

    model = ScriptedModel([CLEAR])
    async with checked_host() as host:
        session = await open_session(host, model, clear_context, on_user_prompt_submitted=slow)
        await session.send("start over")
        await trio.sleep(1)
        await session.abort()
        crash_session(session)
        await settled(session)
        await trio.sleep(60)
        assert len(model.requests) == 1
        assert [m.content for m in session.history.messages()] == ["FRESH"]
    model.verify()


async def test_messages_that_wait_survive_a_crash_with_a_staged_clear(autojump_clock: MockClock) -> None:
    model = ScriptedModel([call("clear"), "on the steered one", "on the queued one"])
    async with checked_host() as host:
        session = await open_session(host, model, tool_of("clear", clear_and_sleep))
        await session.send("start over")
        await trio.sleep(1)
        await session.send("queued")
        await session.send("steered", mode="immediate")
        crash_session(session)
        await settled(session)
        assert [request.contents[-1] for request in model.requests[1:]] == ["steered", "queued"]
    model.verify()


async def test_a_crash_interrupts_a_clearing_call_of_the_host_and_does_not_run_it_again(
    autojump_clock: MockClock,
) -> None:
    model = ScriptedModel([])
    async with checked_host() as host, trio.open_nursery() as nursery:
        session = await open_session(host, model, tool_of("clear", clear_and_sleep))

        async def run_clear() -> None:
            with pytest.raises(TurnInterrupted):
                await session.call_tool("clear")

        nursery.start_soon(run_clear)
        await trio.sleep(1)
        crash_session(session)
        await settled(session)
        assert await outcomes(session) == [("clear", "interrupted")]
        assert clears_counted(host) == {"rolled_back": 1}
    model.verify()


async def test_a_session_that_is_given_up_says_that_its_clear_was_rolled_back(
    autojump_clock: MockClock,
) -> None:
    model = ScriptedModel([call("clear")])
    async with checked_host() as host:
        session = await open_session(host, model, tool_of("clear", clear_and_sleep))
        events = watch(session)
        for _ in range(3):
            crash_session(session)
            await trio.sleep(0.5)
        await session.send("start over")
        await trio.sleep(0.5)
        assert session.statistics().clear_staged
        crash_session(session)
        assert session.statistics().status == "failed"
        assert [e.cause for e in only(events, "session.clear_rolled_back")] == ["interrupted"]
        assert await seeds(session) == []
        with pytest.raises(SessionFailed):
            await session.send("hello")
    model.verify()


async def test_a_subscriber_that_raises_at_the_boundary_does_not_undo_it(autojump_clock: MockClock) -> None:
    def raise_at_boundary(event: Event) -> None:
        if event.type == "session.context_cleared":
            raise RuntimeError("it broke")

    model = ScriptedModel([CLEAR, "ok"])
    async with checked_host() as host:
        session = await open_session(host, model, clear_context)
        session.on(raise_at_boundary)
        assert (await session.send_and_wait("start over")).content == "ok"
        assert session.statistics().restarts == 0
    model.verify()
