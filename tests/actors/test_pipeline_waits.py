"""Every wait of a call is bounded, and its end names the true cause."""

from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from exeunt import ApproveOnce, HostOptions, Waits, tool
from exeunt.actors.events import HookEnd, PermissionCompleted, PermissionRequested, ToolResultStale
from exeunt.testing import Gate, ScriptedModel, SilentApprover, Sleepy, call, checked_host
from tests.actors.turn_support import calls_counted, logged, open_session, outcomes, read, submit, watch


async def test_a_tool_has_300_seconds_unless_it_says_otherwise(autojump_clock: MockClock) -> None:
    sleepy = Sleepy()
    model = ScriptedModel([call("nap"), "slow"])
    async with checked_host() as host:
        session = await open_session(host, model, tool("nap")(sleepy))
        await session.send_and_wait("go", timeout=None)

        assert (trio.current_time(), sleepy.calls[0].how) == (300, "cancelled")
        assert model.requests[1].results == {"call_1": "The tool 'nap' timed out after 300 s."}
        assert calls_counted(host) == {("nap", "timeout", "false"): 1}
    model.verify()


async def test_each_call_has_the_time_out_of_its_tool(autojump_clock: MockClock) -> None:
    tools = [tool("short", timeout=0.5)(Sleepy()), tool("long", timeout=90)(Sleepy(80, "in time"))]
    model = ScriptedModel([[call("short"), call("long")], "done"])
    async with checked_host() as host:
        session = await open_session(host, model, *tools)
        await session.send_and_wait("go", timeout=None)

        assert model.requests[1].results == {
            "call_1": "The tool 'short' timed out after 0.5 s.",
            "call_2": "in time",
        }
    model.verify()


async def test_s13_an_approval_that_nobody_gives_is_a_denial_with_that_reason(
    autojump_clock: MockClock,
) -> None:
    approver = SilentApprover()
    model = ScriptedModel([call("submit", answer=42), "nobody there"])
    async with checked_host() as host:
        session = await open_session(
            host, model, submit, on_permission_request=approver, waits=Waits(approval=300)
        )
        reply = await session.send_and_wait("go", timeout=None)

        assert trio.current_time() == 300
        assert (reply.content, reply.reason) == ("nobody there", "completed")
        assert model.requests[1].results == {
            "call_1": "Permission denied: nobody answered the request for approval within 300 s."
        }
        assert calls_counted(host) == {("submit", "denied", "true"): 1}
        assert [e.kind for e in await logged(session, PermissionCompleted)] == ["timeout"]
        assert approver.calls[0].how == "cancelled"
    model.verify()


async def test_s13_an_answer_after_the_end_of_the_time_is_too_late(autojump_clock: MockClock) -> None:
    ran: list[str] = []

    @tool(is_terminal=True)
    async def act() -> str:
        ran.append("act")
        return "acted"

    async def late(request: Any, invocation: Any) -> ApproveOnce:
        with trio.CancelScope(shield=True):
            await trio.sleep(310)
        return ApproveOnce()

    model = ScriptedModel([call("act"), "nobody there"])
    async with checked_host() as host:
        session = await open_session(host, model, act, on_permission_request=late, waits=Waits(approval=300))
        stale = watch(session, ToolResultStale)
        reply = await session.send_and_wait("go", timeout=None)
        assert (reply.content, trio.current_time()) == ("nobody there", 301)
        await trio.sleep(60)

        assert ran == []
        assert [e.kind for e in await logged(session, PermissionCompleted)] == ["timeout"]
        assert await outcomes(session) == [("act", "denied")]
        assert len(stale) == 1
    model.verify()


async def test_an_approver_that_swallows_the_end_of_its_time_approves_nothing(
    autojump_clock: MockClock,
) -> None:
    ran: list[str] = []

    @tool(is_terminal=True)
    async def act() -> str:
        ran.append("act")
        return "acted"

    async def swallows(request: Any, invocation: Any) -> ApproveOnce:
        try:  # noqa: SIM105
            await trio.sleep_forever()
        except trio.Cancelled:  # noqa: ASYNC103 - this is the fault
            pass
        return ApproveOnce()  # noqa: ASYNC910

    model = ScriptedModel([call("act"), "nobody there"])
    async with checked_host() as host:
        session = await open_session(
            host, model, act, on_permission_request=swallows, waits=Waits(approval=300)
        )
        await session.send_and_wait("go", timeout=None)

        assert ran == []
        assert trio.current_time() == 300
        assert await outcomes(session) == [("act", "denied")]
        assert [e.kind for e in await logged(session, PermissionCompleted)] == ["timeout"]
    model.verify()


async def test_the_time_for_an_approval_is_not_taken_from_the_tool(autojump_clock: MockClock) -> None:
    async def slow(request: Any, invocation: Any) -> ApproveOnce:
        await trio.sleep(1000)
        return ApproveOnce()

    model = ScriptedModel([call("nap"), "done"])
    async with checked_host() as host:
        session = await open_session(
            host, model, tool("nap", timeout=10)(Sleepy(9)), on_permission_request=slow
        )
        await session.send_and_wait("go", timeout=None)

        assert trio.current_time() == 1009
        assert await outcomes(session) == [("nap", "success")]
    model.verify()


async def test_a_pre_hook_that_raises_denies_the_call(autojump_clock: MockClock) -> None:
    def raises(hook_input: Any, invocation: Any) -> None:
        raise OSError("policy file is gone")

    model = ScriptedModel([call("submit", answer=42), "I may not"])
    async with checked_host() as host:
        session = await open_session(host, model, submit, on_pre_tool_use=raises)
        reply = await session.send_and_wait("go")

        assert reply.reason == "completed"
        assert model.requests[1].results == {
            "call_1": "Denied by preToolUse hook: OSError: policy file is gone"
        }
        assert calls_counted(host) == {("submit", "denied", "true"): 1}
        (end,) = await logged(session, HookEnd)
        assert (end.success, end.error) == (False, "OSError: policy file is gone")
    model.verify()


@pytest.mark.parametrize("how", ["hangs", "swallows", "shields"])
async def test_a_pre_hook_that_runs_out_of_time_denies_the_call(autojump_clock: MockClock, how: str) -> None:
    ran: list[str] = []

    @tool
    async def act() -> None:
        ran.append("act")

    async def allow_late(hook_input: Any, invocation: Any) -> dict[str, str]:
        try:
            with trio.CancelScope(shield=how == "shields"):
                await trio.sleep(100 if how == "shields" else 1e6)
        except trio.Cancelled:  # noqa: ASYNC103 - this is the fault
            if how != "swallows":
                raise
        return {"permission_decision": "allow"}  # noqa: ASYNC910

    model = ScriptedModel([call("act"), "I may not"])
    async with checked_host() as host:
        session = await open_session(host, model, act, on_pre_tool_use=allow_late, waits=Waits(hook=30))
        await session.send_and_wait("go", timeout=None)

        assert ran == []
        assert (
            model.requests[1]
            .results["call_1"]
            .startswith("Denied by preToolUse hook: the hook did not return within 30 s")
        )
        assert trio.current_time() == (32 if how == "shields" else 30)
        assert await outcomes(session) == [("act", "denied")]
        await trio.sleep(200)
        assert ran == []
    model.verify()


@pytest.mark.parametrize("how", ["hangs", "shields"])
async def test_a_stuck_post_hook_does_not_take_the_success_away(autojump_clock: MockClock, how: str) -> None:
    async def stuck(hook_input: Any, invocation: Any) -> None:
        with trio.CancelScope(shield=how == "shields"):
            await trio.sleep(1000)

    model = ScriptedModel([call("submit", answer=42)])
    async with checked_host() as host:
        session = await open_session(host, model, submit, on_post_tool_use=stuck, waits=Waits(hook=30))
        reply = await session.send_and_wait("go", timeout=None)

        assert (reply.content, reply.reason) == ("accepted 42", "terminal_tool")
        assert trio.current_time() == (32 if how == "shields" else 30)
        await trio.sleep(1000)
    model.verify()


@pytest.mark.parametrize("how", ["hangs", "shields"])
async def test_a_stuck_error_hook_does_not_make_a_time_out_of_a_failure(
    autojump_clock: MockClock, how: str
) -> None:
    async def stuck(hook_input: Any, invocation: Any) -> None:
        with trio.CancelScope(shield=how == "shields"):
            await trio.sleep(1000)

    model = ScriptedModel([call("submit", answer=41), "wrong, then"])
    async with checked_host() as host:
        session = await open_session(host, model, submit, on_error_occurred=stuck, waits=Waits(hook=30))
        await session.send_and_wait("go", timeout=None)

        assert await outcomes(session) == [("submit", "failure")]
        assert model.requests[1].results["call_1"].endswith("due to error: ValueError: 41 is wrong")
        await trio.sleep(1000)
    model.verify()


async def test_a_call_that_waits_too_long_for_a_slot_says_so(autojump_clock: MockClock) -> None:
    gate = Gate()
    waits = Waits(slot=60)
    model = ScriptedModel.per_session(
        lambda session_id: [call("gate" if session_id == "first" else "read"), f"end of {session_id}"]
    )
    async with checked_host(options=HostOptions(tool_slots=1)) as host:
        tools = (tool("gate")(gate), read)
        first = await open_session(host, model, *tools, session_id="first", waits=waits)
        second = await open_session(host, model, *tools, session_id="second", waits=waits)
        await first.send("go")
        await gate.entered()
        reply = await second.send_and_wait("go", timeout=None)

        assert trio.current_time() == 60
        assert reply.content == "end of second"
        assert model.requests[2].results == {
            "call_2": "The tool 'read' timed out after 60 s: it waited for a slot and did not run."
        }
        assert await outcomes(second) == [("read", "timeout")]
        gate.open()
        await wait_all_tasks_blocked()
        assert await outcomes(first) == [("gate", "success")]
        assert host.statistics().tools.running == 0
    model.verify()


async def test_the_wait_for_a_slot_is_not_taken_from_the_tool(autojump_clock: MockClock) -> None:
    naps = tool("nap", timeout=10)(Sleepy(8))
    model = ScriptedModel([[call("nap"), call("nap"), call("nap")], "done"])
    async with checked_host(options=HostOptions(tool_slots=1)) as host:
        session = await open_session(host, model, naps)
        await session.send_and_wait("go", timeout=None)

        assert trio.current_time() == 24
        assert await outcomes(session) == [("nap", "success")] * 3
    model.verify()


async def test_an_approved_call_asks_before_it_waits_for_a_slot(autojump_clock: MockClock) -> None:
    gate = Gate()
    model = ScriptedModel([[call("gate"), call("read")], "done"])

    def approve(request: Any, invocation: Any) -> str:
        return "approve-once"

    async with checked_host(options=HostOptions(tool_slots=1)) as host:
        session = await open_session(host, model, tool("gate")(gate), read, on_permission_request=approve)
        await session.send("go")
        await gate.entered()
        await wait_all_tasks_blocked()

        assert [e.tool_name for e in await logged(session, PermissionRequested)] == ["gate", "read"]
        gate.open()
        await wait_all_tasks_blocked()
    model.verify()
