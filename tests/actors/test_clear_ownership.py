"""Which tool call a clear belongs to: the caller's own, or from elsewhere one of those in flight."""

from typing import Any

import pytest
import trio
from trio.testing import MockClock

from exeunt import (
    ApproveOnce,
    ClearAlreadyStaged,
    ClearRolledBack,
    HookInvocation,
    HostOptions,
    NoToolCallInFlight,
    Session,
    ToolInvocation,
    tool,
)
from exeunt.testing import Gate, ScriptedModel, Sleepy, call, checked_host
from tests.actors.clear_support import (
    Attempt,
    attempt,
    clear_context,
    clear_softly,
    clears_counted,
    ends,
    only,
    open_session,
    outcomes,
    plain_tool,
    read,
    seeds,
    settled,
    tool_of,
    watch,
)


async def _fail() -> str:
    await trio.lowlevel.checkpoint()
    raise RuntimeError("it broke")


# --- From the handler ------------------------------------------------------------------------------------------


async def test_a_handlers_own_call_owns_the_clear_whatever_else_is_in_flight(
    autojump_clock: MockClock,
) -> None:
    """A terminal sibling that fails later does not matter: the clear belongs to the call that asked for it."""

    async def fail_late() -> str:
        await trio.sleep(5)
        raise RuntimeError("it broke")

    model = ScriptedModel([[call("clear_softly", prompt="FRESH"), call("submit_badly")], "ok"])
    async with checked_host() as host:
        session = await open_session(
            host, model, clear_softly, plain_tool("submit_badly", fail_late, is_terminal=True)
        )
        assert (await session.send_and_wait("start over")).content == "ok"
        assert await ends(session) == ["context_cleared", "completed"]
        assert clears_counted(host) == {"committed": 1}
    model.verify()


async def test_a_child_task_of_a_handler_clears_as_the_handler(autojump_clock: MockClock) -> None:
    async def clear(invocation: ToolInvocation) -> str:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(invocation.session.history.clear_context, "FRESH")
            nursery.start_soon(trio.lowlevel.checkpoint)
        raise RuntimeError("changed my mind")

    model = ScriptedModel([[call("clear"), call("read")], "never mind"])
    async with checked_host() as host:
        session = await open_session(host, model, tool_of("clear", clear), read)
        events = watch(session)
        await session.send_and_wait("start over")
        (rolled_back,) = only(events, "session.clear_rolled_back")
        assert (rolled_back.cause, rolled_back.call_id) == ("failure", "call_1")
    model.verify()


async def test_a_synchronous_handler_clears_through_its_invocation() -> None:
    """In real time: a worker thread's work is not seen by a virtual clock."""

    @tool(skip_permission=True, is_terminal=True)
    def clear(invocation: ToolInvocation) -> str:
        """Clear, from a thread."""
        result = invocation.run(invocation.session.history.clear_context, "FRESH")
        return f"Cleared {result.messages_cleared} messages."

    model = ScriptedModel([[call("clear"), call("read")], "ok"])
    async with checked_host() as host:
        session = await open_session(host, model, clear, read)
        reply = await session.send_and_wait("start over")
        assert [record.content for record in reply.turns] == ["Cleared 2 messages.", "ok"]
        assert model.requests[1].contents == ("FRESH",)
        assert clears_counted(host) == {"committed": 1}
    model.verify()


async def test_a_handler_may_clear_a_second_time_only_after_a_roll_back(autojump_clock: MockClock) -> None:
    attempts: list[Attempt] = []

    async def clear(invocation: ToolInvocation) -> str:
        attempts.append(await attempt(invocation.session, "FIRST"))
        attempts.append(await attempt(invocation.session, "SECOND"))
        return "cleared"

    model = ScriptedModel([call("clear"), "ok"])
    async with checked_host() as host:
        session = await open_session(host, model, tool_of("clear", clear))
        await session.send_and_wait("start over")
        assert [tried.refused for tried in attempts] == [None, ClearAlreadyStaged]
        assert await seeds(session) == ["FIRST"]
        assert clears_counted(host) == {"already_staged": 1, "committed": 1}
    model.verify()


async def test_of_two_calls_in_a_batch_that_clear_the_first_wins(autojump_clock: MockClock) -> None:
    """The other one is told why, and its failure does not touch the clear of the first."""
    model = ScriptedModel(
        [[call("clear_context", prompt="FIRST"), call("clear_context", prompt="SECOND")], "ok"]
    )
    async with checked_host() as host:
        session = await open_session(host, model, clear_context)
        events = watch(session)
        assert (await session.send_and_wait("start over")).content == "ok"
        (seed,) = await seeds(session)
        assert seed in ("FIRST", "SECOND")
        # The owner settles last, so the refused call comes first in the log.
        assert [o for _, o in await outcomes(session)] == ["failure", "success"]
        assert [e.cause for e in only(events, "session.clear_refused")] == ["already_staged"]
        assert clears_counted(host) == {"already_staged": 1, "committed": 1}
        assert len(model.requests[1].messages) == 1
    model.verify()


async def test_when_the_first_of_two_is_rolled_back_the_second_may_still_clear(
    autojump_clock: MockClock,
) -> None:
    async def clear_and_fail(invocation: ToolInvocation) -> str:
        await invocation.session.history.clear_context("FIRST")
        await trio.sleep(1)
        raise RuntimeError("it broke")

    async def clear_later(invocation: ToolInvocation) -> str:
        await trio.sleep(2)
        await invocation.session.history.clear_context("SECOND")
        return "cleared"

    model = ScriptedModel([[call("first"), call("second")], "ok"])
    async with checked_host() as host:
        session = await open_session(
            host, model, tool_of("first", clear_and_fail), tool_of("second", clear_later)
        )
        await session.send_and_wait("start over")
        assert await seeds(session) == ["SECOND"]
        assert await outcomes(session) == [("first", "failure"), ("second", "success")]
        assert clears_counted(host) == {"rolled_back": 1, "committed": 1}
    model.verify()


# --- From hooks and permission handlers ------------------------------------------------------------------------


@pytest.mark.parametrize("hook", ["on_pre_tool_use", "on_post_tool_use"])
async def test_a_hook_of_a_call_clears_as_that_call(autojump_clock: MockClock, hook: str) -> None:
    async def clear_in_hook(given: Any, invocation: HookInvocation) -> None:
        if given.tool_name == "read":
            await invocation.session.history.clear_context("FRESH")

    model = ScriptedModel([[call("wait"), call("read")], "ok"])
    gate = Gate()
    async with checked_host() as host:
        session = await open_session(host, model, read, plain_tool("wait", gate), **{hook: clear_in_hook})
        await session.send("start over")
        await trio.sleep(1)
        assert session.statistics().clear_staged
        gate.open()
        await settled(session)
        # The other call has an outcome first: the one whose hook cleared is the owner.
        assert await outcomes(session) == [("wait", "success"), ("read", "success")]
        assert await ends(session) == ["context_cleared", "completed"]
        assert model.requests[1].contents == ("FRESH",)
        assert clears_counted(host) == {"committed": 1}
    model.verify()


@pytest.mark.parametrize("hook", ["on_post_tool_use_failure", "on_error_occurred"])
async def test_a_clear_by_a_hook_of_a_failed_call_is_rolled_back_with_it(
    autojump_clock: MockClock, hook: str
) -> None:
    async def clear_in_hook(_: Any, invocation: HookInvocation) -> None:
        await invocation.session.history.clear_context("FRESH")

    model = ScriptedModel([call("broken"), "never mind"])
    async with checked_host() as host:
        session = await open_session(host, model, plain_tool("broken", _fail), **{hook: clear_in_hook})
        await session.send_and_wait("go")
        assert await outcomes(session) == [("broken", "failure")]
        assert clears_counted(host) == {"rolled_back": 1}
        assert session.statistics().generation == 0
    model.verify()


async def test_a_permission_handler_clears_as_the_call_that_it_decides_on(autojump_clock: MockClock) -> None:
    async def decide(_: Any, invocation: HookInvocation) -> ApproveOnce:
        await invocation.session.history.clear_context("FRESH")
        return ApproveOnce()

    model = ScriptedModel([call("ask"), "ok"])
    async with checked_host() as host:
        session = await open_session(
            host,
            model,
            plain_tool("ask", Sleepy(1), skip_permission=False),
            on_permission_request=decide,
        )
        await session.send_and_wait("start over")
        assert await outcomes(session) == [("ask", "success")]
        assert model.requests[1].contents == ("FRESH",)
        assert clears_counted(host) == {"committed": 1}
    model.verify()


# --- From elsewhere --------------------------------------------------------------------------------------------


async def _clear_after(session: Session, seconds: float, attempts: list[Attempt]) -> None:
    await trio.sleep(seconds)
    attempts.append(await attempt(session))


async def test_another_task_clears_as_the_only_call_in_flight(autojump_clock: MockClock) -> None:
    gate = Gate()
    model = ScriptedModel([call("wait"), "ok"])
    async with checked_host() as host:
        session = await open_session(host, model, plain_tool("wait", gate))
        await session.send("start over")
        await gate.entered()
        staged = await attempt(session)
        assert staged.result is not None
        assert staged.result.messages_cleared == 2
        assert session.statistics().clear_staged
        gate.open()
        await staged.result.settled()
        await settled(session)
        assert await ends(session) == ["context_cleared", "completed"]
        assert model.requests[1].contents == ("FRESH",)
    model.verify()


async def test_the_clear_of_another_task_falls_with_the_only_call_in_flight(
    autojump_clock: MockClock,
) -> None:
    async def fail_late() -> str:
        await trio.sleep(5)
        raise RuntimeError("it broke")

    model = ScriptedModel([call("broken"), "never mind"])
    attempts: list[Attempt] = []
    async with checked_host() as host, trio.open_nursery() as nursery:
        session = await open_session(host, model, plain_tool("broken", fail_late))
        nursery.start_soon(_clear_after, session, 1, attempts)
        await session.send_and_wait("start over")
        assert attempts[0].result is not None
        with pytest.raises(ClearRolledBack, match="failure"):
            await attempts[0].result.settled()
        assert model.requests[1].roles == ("user", "assistant", "tool")
        assert clears_counted(host) == {"rolled_back": 1}
    model.verify()


@pytest.mark.parametrize("terminal_succeeds", [True, False])
async def test_of_several_calls_in_flight_the_terminal_one_is_the_owner(
    autojump_clock: MockClock, terminal_succeeds: bool
) -> None:
    async def finish() -> str:
        await trio.sleep(5)
        if not terminal_succeeds:
            raise RuntimeError("it broke")
        return "handed in"

    replies: list[Any] = [[call("slow"), call("submit"), call("slow")]]
    model = ScriptedModel([*replies, "next"])
    attempts: list[Attempt] = []
    async with checked_host() as host, trio.open_nursery() as nursery:
        session = await open_session(
            host, model, plain_tool("slow", Sleepy(10)), plain_tool("submit", finish, is_terminal=True)
        )
        nursery.start_soon(_clear_after, session, 1, attempts)
        await session.send_and_wait("start over")
        if terminal_succeeds:
            assert (await outcomes(session))[-1] == ("submit", "success")
            assert model.requests[1].contents == ("FRESH",)
            assert clears_counted(host) == {"committed": 1}
        else:
            # The plain calls succeeded, but the clear was not theirs.
            assert [o for _, o in await outcomes(session)] == ["failure", "success", "success"]
            assert clears_counted(host) == {"rolled_back": 1}
    model.verify()


async def test_a_terminal_call_that_has_its_outcome_is_no_candidate(autojump_clock: MockClock) -> None:
    """It failed before the clear was asked for; the calls that still run are the candidates."""
    model = ScriptedModel([[call("submit"), call("slow")], "ok"])
    attempts: list[Attempt] = []
    async with checked_host() as host, trio.open_nursery() as nursery:
        session = await open_session(
            host, model, plain_tool("submit", _fail, is_terminal=True), plain_tool("slow", Sleepy(5))
        )
        nursery.start_soon(_clear_after, session, 1, attempts)
        await session.send_and_wait("start over")
        assert await outcomes(session) == [("submit", "failure"), ("slow", "success")]
        assert await ends(session) == ["context_cleared", "completed"]
        assert clears_counted(host) == {"committed": 1}
    model.verify()


async def test_several_plain_calls_in_flight_own_the_clear_together(autojump_clock: MockClock) -> None:
    """One success is enough, whichever it is and whenever it comes."""

    async def fail_at_once() -> str:
        await trio.sleep(2)
        raise RuntimeError("it broke")

    model = ScriptedModel([[call("broken"), call("slow"), call("broken")], "ok"])
    attempts: list[Attempt] = []
    async with checked_host() as host, trio.open_nursery() as nursery:
        session = await open_session(
            host, model, plain_tool("broken", fail_at_once), plain_tool("slow", Sleepy(5))
        )
        nursery.start_soon(_clear_after, session, 1, attempts)
        await session.send_and_wait("start over")
        assert [o for _, o in await outcomes(session)] == ["failure", "failure", "success"]
        assert model.requests[1].contents == ("FRESH",)
        assert clears_counted(host) == {"committed": 1}
    model.verify()


async def test_a_clear_that_several_calls_own_is_rolled_back_once_with_the_last(
    autojump_clock: MockClock,
) -> None:
    async def fail_at_once() -> str:
        await trio.sleep(2)
        raise RuntimeError("it broke")

    model = ScriptedModel([[call("broken"), call("slow")], "never mind"])
    attempts: list[Attempt] = []
    async with checked_host() as host, trio.open_nursery() as nursery:
        session = await open_session(
            host, model, plain_tool("broken", fail_at_once), plain_tool("slow", Sleepy(), timeout=5)
        )
        events = watch(session)
        nursery.start_soon(_clear_after, session, 1, attempts)
        await session.send_and_wait("start over")
        (rolled_back,) = only(events, "session.clear_rolled_back")
        assert (rolled_back.cause, rolled_back.call_id) == ("timeout", "call_2")
        assert clears_counted(host) == {"rolled_back": 1}
    model.verify()


async def test_another_task_may_clear_while_a_pre_hook_runs(autojump_clock: MockClock) -> None:
    """A call is in flight from its start event on, also before its handler runs."""

    async def think(_: Any, __: HookInvocation) -> None:
        await trio.sleep(5)

    model = ScriptedModel([call("read"), "ok"])
    attempts: list[Attempt] = []
    async with checked_host() as host, trio.open_nursery() as nursery:
        session = await open_session(host, model, read, on_pre_tool_use=think)
        nursery.start_soon(_clear_after, session, 1, attempts)
        await session.send_and_wait("start over")
        assert attempts[0].error is None
        assert model.requests[1].contents == ("FRESH",)
    model.verify()


async def test_another_task_may_clear_while_a_permission_is_waited_for(autojump_clock: MockClock) -> None:
    async def decide(_: Any, __: HookInvocation) -> ApproveOnce:
        await trio.sleep(600)
        return ApproveOnce()

    model = ScriptedModel([call("ask"), "ok"])
    attempts: list[Attempt] = []
    async with checked_host() as host, trio.open_nursery() as nursery:
        session = await open_session(
            host, model, plain_tool("ask", Sleepy(1), skip_permission=False), on_permission_request=decide
        )
        nursery.start_soon(_clear_after, session, 1, attempts)
        await session.send_and_wait("start over", timeout=None)
        assert attempts[0].error is None
        assert model.requests[1].contents == ("FRESH",)
        assert clears_counted(host) == {"committed": 1}
    model.verify()


async def test_another_task_may_clear_while_a_call_waits_for_a_slot(autojump_clock: MockClock) -> None:
    gate = Gate()
    model = ScriptedModel.per_session(lambda name: [call("wait"), f"{name} is done"])
    async with checked_host(options=HostOptions(tool_slots=1)) as host:
        other = await open_session(host, model, plain_tool("wait", gate), session_id="other")
        session = await open_session(host, model, plain_tool("wait", gate), session_id="one")
        await other.send("hold the slot")
        await gate.entered()
        await session.send("start over")
        await trio.sleep(1)
        assert (await attempt(session)).error is None
        gate.open()
        await settled(session)
        await settled(other)
        assert await ends(session) == ["context_cleared", "completed"]
        assert await ends(other) == ["completed"]
    model.verify()


async def test_a_tool_of_another_session_clears_from_outside(autojump_clock: MockClock) -> None:
    """The handler's own call is in flight in its own session only; here it is anybody."""
    gate = Gate()
    sessions: dict[str, Session] = {}
    attempts: list[Attempt] = []

    async def clear_the_other(_: ToolInvocation) -> str:
        attempts.append(await attempt(sessions["one"]))
        await gate.entered()
        attempts.append(await attempt(sessions["one"]))
        return "done"

    model = ScriptedModel.per_session(
        lambda name: [call("wait"), "ok"] if name == "one" else [call("clear_the_other"), "told it"]
    )
    async with checked_host() as host:
        sessions["one"] = await open_session(host, model, plain_tool("wait", gate), session_id="one")
        two = await open_session(host, model, tool_of("clear_the_other", clear_the_other), session_id="two")
        await two.send("tell the other one to start over")
        await trio.sleep(1)
        await sessions["one"].send("work")
        await settled(two)
        assert two.statistics().generation == 0
        gate.open()
        await settled(sessions["one"])
        assert [tried.refused for tried in attempts] == [NoToolCallInFlight, None]
        assert sessions["one"].statistics().generation == 1
        assert clears_counted(host) == {"no_tool_call": 1, "committed": 1}
    model.verify()
