"""A turn that does nothing but wait for somebody gives its slot to others."""

from typing import Any

import pytest
import trio

from exeunt import HostOptions, Session, ToolInvocation
from exeunt.testing import Gate, ScriptedModel, SilentApprover, Sleepy, call, checked_host, hang, say
from tests.actors.session_support import (
    begin,
    ends,
    open_session,
    outcomes,
    plain_tool,
    reach,
    settled,
    tool_of,
)

ONE = HostOptions(running_turns=1)


async def test_with_one_slot_a_tool_can_ask_another_session(autojump_clock: object) -> None:
    async def ask(_: ToolInvocation) -> str:
        return (await other.send_and_wait("B")).content

    async with checked_host(options=ONE) as host:
        other = await open_session(host, ScriptedModel([say("from the other", delay=5)]))
        model = ScriptedModel([call("ask"), say("done")])
        session = await open_session(host, model, tool_of("ask", ask))
        with trio.fail_after(20):
            assert (await session.send_and_wait("A")).content == "done"
        assert model.requests[1].contents[-1] == "from the other"
        assert host.statistics().turns.running == 0


@pytest.mark.parametrize("depth", [3, 8])
async def test_with_one_slot_a_chain_of_sessions_gets_to_its_end(autojump_clock: object, depth: int) -> None:
    sessions: list[Session] = []

    def ask(number: int) -> Any:
        async def handler(_: ToolInvocation) -> str:
            return (await sessions[number + 1].send_and_wait("go on")).content

        return handler

    async with checked_host(options=ONE) as host:
        for number in range(depth):
            last = number + 1 == depth
            model = ScriptedModel([say("the end")] if last else [call("ask"), say(f"back in {number}")])
            sessions.append(await open_session(host, model, tool_of("ask", ask(number))))
        with trio.fail_after(20):
            assert (await sessions[0].send_and_wait("begin")).content == "back in 0"


async def test_with_one_slot_a_tool_can_have_another_session_run_a_tool(autojump_clock: object) -> None:
    async def ask(_: ToolInvocation) -> str:
        await other.send("B")
        return (await other.call_tool("work")).content

    async with checked_host(options=ONE) as host:
        other = await open_session(
            host, ScriptedModel([say("ok", delay=1)]), plain_tool("work", Sleepy(1, "worked"))
        )
        model = ScriptedModel([call("ask"), say("done")])
        session = await open_session(host, model, tool_of("ask", ask))
        with trio.fail_after(20):
            assert (await session.send_and_wait("A")).content == "done"
        assert model.requests[1].contents[-1] == "worked"


async def test_a_turn_that_waits_for_approval_lets_others_run_and_comes_back_in_front(
    autojump_clock: object,
) -> None:
    answer = trio.Event()
    order: list[str] = []

    async def approve(*_: object) -> str:
        await answer.wait()
        return "approve-once"

    def noting(name: str, delay: float) -> Any:
        def reply(_: object) -> Any:
            order.append(name)
            return say(name, delay=delay)

        return reply

    async with checked_host(options=ONE) as host:
        model = ScriptedModel([call("work"), noting("first again", 1)])
        work = plain_tool("work", Sleepy(0, "worked"), skip_permission=False)
        session = await open_session(host, model, work, on_permission_request=approve)
        others = [await open_session(host, ScriptedModel([noting(f"other {n}", 10)])) for n in range(3)]
        await session.send("A")
        await reach(session, "tools")
        for other in others:
            await other.send("B")
        assert host.statistics().turns.running == 1
        await trio.sleep(5)
        assert order == ["other 0"]
        answer.set()
        for one in (session, *others):
            await settled(one)
        assert order == ["other 0", "first again", "other 1", "other 2"]
        assert await outcomes(session) == [("work", "success")]


async def test_a_turn_keeps_its_slot_while_one_of_its_calls_is_at_work(autojump_clock: object) -> None:
    gate = Gate()
    approver = SilentApprover()
    async with checked_host(options=ONE) as host:
        model = ScriptedModel([[call("asks"), call("works")], say("done")])
        tools = [
            plain_tool("asks", Sleepy(0), skip_permission=False),
            plain_tool("works", gate),
        ]
        session = await open_session(host, model, *tools, on_permission_request=approver)
        other = await open_session(host, ScriptedModel([say("ok")]))
        await session.send("A")
        await gate.entered()
        await other.send("B")
        await trio.sleep(1)
        assert other.statistics().phase == "waiting"
        gate.open()
        with trio.fail_after(1):
            await settled(other)
        assert session.statistics().in_flight == ("asks",)
        await session.abort()
        assert await ends(session) == ["aborted"]


async def test_an_approval_that_nobody_gives_comes_back_for_a_slot(autojump_clock: object) -> None:
    async with checked_host(options=ONE) as host:
        model = ScriptedModel([call("asks"), say("done")])
        asks = plain_tool("asks", Sleepy(0), skip_permission=False)
        session = await open_session(host, model, asks, on_permission_request=SilentApprover())
        other = await open_session(host, ScriptedModel([say("late", delay=500)]))
        await session.send("A")
        await reach(session, "tools")
        await trio.sleep(3500)
        await other.send("B")
        await trio.sleep(200)
        assert session.statistics().in_flight == ()
        assert session.statistics().phase == "tools"
        assert len(model.requests) == 1
        await settled(session)
        assert await ends(session) == ["completed"]
        assert await outcomes(session) == [("asks", "denied")]
        await settled(other)


@pytest.mark.parametrize("ending", ["abort", "disconnect", "crash"])
async def test_a_parked_turn_that_is_ended_holds_and_wants_no_slot(
    autojump_clock: object, ending: str
) -> None:
    async with checked_host(options=ONE, settled=ending != "disconnect") as host:
        asks = plain_tool("asks", Sleepy(0), skip_permission=False)
        session = await open_session(
            host, ScriptedModel([call("asks")]), asks, on_permission_request=SilentApprover()
        )
        await session.send("A")
        await reach(session, "tools")
        assert host.statistics().turns.running == 0
        if ending == "abort":
            await session.abort()
        elif ending == "disconnect":
            await session.disconnect()
        else:
            host.actors()[0].crash("test", RuntimeError("boom"))
            await settled(session)
        turns = host.statistics().turns
        assert (turns.running, turns.waiting) == (0, 0)


async def test_a_slot_that_is_free_again_is_given_to_who_waits_when_a_turn_is_aborted(
    autojump_clock: object,
) -> None:
    async with checked_host(options=ONE) as host:
        first = await open_session(host, ScriptedModel([hang()]))
        second = await open_session(host, ScriptedModel([say("hi")]))
        await first.send("A")
        await reach(first, "model")
        async with trio.open_nursery() as nursery:
            waiting = begin(nursery, second.send_and_wait, "B")
            await trio.sleep(1)
            assert not waiting.done
            await first.abort()
            with trio.fail_after(1):
                await waiting.wait()


async def test_with_one_tool_slot_a_tool_can_ask_a_session_that_uses_tools(autojump_clock: object) -> None:
    async def ask(_: ToolInvocation) -> str:
        return (await other.send_and_wait("B")).content

    async with checked_host(options=HostOptions(tool_slots=1)) as host:
        work = plain_tool("work", Sleepy(1, "worked"))
        other = await open_session(host, ScriptedModel([call("work"), say("from the other")]), work)
        model = ScriptedModel([call("ask"), say("done")])
        session = await open_session(host, model, tool_of("ask", ask))
        with trio.fail_after(20):
            assert (await session.send_and_wait("A")).content == "done"
        assert await outcomes(other) == [("work", "success")]
        assert host.statistics().tools.running == 0
