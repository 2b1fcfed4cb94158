"""Handlers that do not hear their cancellation: the turn goes on without them, and what they do later is stale."""

from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from exeunt import NoToolCallInFlight, ToolInvocation, TurnAborted, tool
from exeunt.actors.events import PermissionCompleted, ToolResultStale, UserMessage
from exeunt.testing import Gate, ScriptedModel, Shielded, Sleepy, Swallowing, after, call, checked_host
from tests.actors.turn_support import (
    answering,
    calls_counted,
    counted,
    ends,
    logged,
    noting,
    open_session,
    outcomes,
    turns_counted,
    watch,
)

INTERRUPTED = "The execution of this tool, or a previous tool was interrupted."


async def test_s14_a_late_result_reaches_no_turn(autojump_clock: MockClock) -> None:
    stuck = Shielded(5)
    model = ScriptedModel([call("stuck"), "it timed out", after(4, "turn 2")])
    async with checked_host() as host:
        session = await open_session(host, model, tool("stuck", timeout=2, is_terminal=True)(stuck))
        stale = watch(session, ToolResultStale)
        first = await session.send_and_wait("go")

        # 2 s of its own, 1 s of grace, and then without it.
        assert (first.content, trio.current_time()) == ("it timed out", 3)
        assert model.requests[1].results == {"call_1": "The tool 'stuck' timed out after 2 s."}
        assert host.statistics().stuck_handlers == 1

        second = await session.send_and_wait("next")
        assert (second.content, second.reason, trio.current_time()) == ("turn 2", "completed", 7)
        assert (stuck.calls[0].ended, stuck.calls[0].how) == (5, "returned")
        assert [(e.tool_call_id, e.tool_name, e.turn_id) for e in stale] == [
            ("call_1", "stuck", first.turns[0].turn_id)
        ]
        assert counted(host, "exeunt_stale_results_total") == {(): 1}
        assert host.statistics().stuck_handlers == 0
        assert await outcomes(session) == [("stuck", "timeout")]
        assert "late" not in [message.content for message in session.history.messages()]
    model.verify()


async def test_s9_an_abort_that_the_tool_absorbs_is_still_an_abort(autojump_clock: MockClock) -> None:
    swallowing = Swallowing()
    model = ScriptedModel([call("swallow"), "hi"])
    async with checked_host() as host:
        session = await open_session(host, model, tool("swallow", is_terminal=True)(swallowing))
        async with trio.open_nursery() as nursery:

            @nursery.start_soon
            async def wait() -> None:
                with pytest.raises(TurnAborted):
                    await session.send_and_wait("go")

            await swallowing.entered()
            await trio.sleep(1)
            receipt = await session.abort()

        assert receipt.tools_cancelled == ("call_1",)
        assert await outcomes(session) == [("swallow", "cancelled")]
        assert turns_counted(host) == {"aborted": 1}
        await session.send_and_wait("hello")
        assert model.requests[1].results == {"call_1": INTERRUPTED}
    model.verify()


@pytest.mark.parametrize("where", ["on_pre_tool_use", "on_permission_request"])
async def test_s9_nothing_starts_after_an_abort_that_a_hook_or_an_approver_absorbs(
    autojump_clock: MockClock, where: str
) -> None:
    started: list[str] = []
    waiting = trio.Event()

    async def absorb(first: Any, invocation: Any) -> Any:
        try:
            waiting.set()
            await trio.sleep_forever()
        except trio.Cancelled:  # noqa: ASYNC103 - this is the fault
            pass
        return {"kind": "approved", "permission_decision": "ask"}  # noqa: ASYNC910

    def approve(request: Any, invocation: Any) -> str:
        started.append("approval")
        return "approved"

    @tool(skip_permission=True)
    async def act() -> None:
        started.append("handler")

    options: dict[str, Any] = {"on_permission_request": approve, where: absorb}
    if where == "on_permission_request":
        options["on_pre_tool_use"] = answering({"permission_decision": "ask"})
    model = ScriptedModel([call("act"), "hi"])
    async with checked_host() as host:
        session = await open_session(host, model, act, **options)
        await session.send("go")
        await waiting.wait()
        await session.abort()

        assert started == []
        assert await outcomes(session) == [("act", "cancelled")]
        asked = await logged(session, PermissionCompleted)
        assert [event.kind for event in asked] == (["cancelled"] if where == "on_permission_request" else [])
        assert (await session.send_and_wait("hello")).content == "hi"
    model.verify()


async def test_a_time_out_that_the_tool_absorbs_is_still_a_time_out(autojump_clock: MockClock) -> None:
    model = ScriptedModel([call("swallow"), "too slow"])
    async with checked_host() as host:
        session = await open_session(host, model, tool("swallow", timeout=2, is_terminal=True)(Swallowing()))
        stale = watch(session, ToolResultStale)
        reply = await session.send_and_wait("go")

        assert (reply.reason, trio.current_time()) == ("completed", 2)
        assert calls_counted(host) == {("swallow", "timeout", "true"): 1}
        assert stale == []
    model.verify()


@pytest.mark.parametrize("error", [RuntimeError("could not clean up"), ExceptionGroup("two", [OSError("a")])])
async def test_an_error_that_the_cancellation_causes_does_not_hide_the_time_out(
    autojump_clock: MockClock, error: Exception
) -> None:
    noticed: list[Any] = []

    @tool(timeout=2)
    async def untidy() -> None:
        try:
            await trio.sleep_forever()
        finally:
            raise error

    model = ScriptedModel([call("untidy"), "too slow"])
    async with checked_host() as host:
        session = await open_session(host, model, untidy, on_error_occurred=noting(noticed))
        await session.send_and_wait("go")

        assert model.requests[1].results == {"call_1": "The tool 'untidy' timed out after 2 s."}
        assert noticed == []
    model.verify()


async def test_an_abort_ends_after_the_grace_at_the_latest(autojump_clock: MockClock) -> None:
    stuck = Shielded(30)
    model = ScriptedModel([[call("stuck"), call("nap")], "hi"])
    async with checked_host() as host:
        session = await open_session(host, model, tool("stuck")(stuck), tool("nap")(Sleepy()))
        await session.send("go")
        await stuck.entered()
        await trio.sleep(5)
        receipt = await session.abort()

        assert trio.current_time() == 6
        assert set(receipt.tools_cancelled) == {"call_1", "call_2"}
        assert await ends(session) == ["aborted"]
        assert (await session.send_and_wait("hello")).content == "hi"
        assert trio.current_time() == 6
        await trio.sleep(30)
        assert counted(host, "exeunt_stale_results_total") == {(): 1}
    model.verify()


async def test_the_grace_is_enough_to_clean_up(autojump_clock: MockClock) -> None:
    closed: list[float] = []

    @tool(timeout=2)
    async def careful() -> None:
        try:
            await trio.sleep_forever()
        finally:
            with trio.move_on_after(5) as scope:
                scope.shield = True
                await trio.sleep(0.9)
                closed.append(trio.current_time())

    model = ScriptedModel([call("careful"), "too slow"])
    async with checked_host() as host:
        session = await open_session(host, model, careful)
        stale = watch(session, ToolResultStale)
        await session.send_and_wait("go")

        assert closed == [2.9]
        assert (await outcomes(session), stale) == ([("careful", "timeout")], [])
    model.verify()


async def test_what_a_fenced_handler_sends_is_an_ordinary_message(autojump_clock: MockClock) -> None:
    done = trio.Event()

    @tool(timeout=2)
    async def stuck(invocation: ToolInvocation) -> str:
        with trio.CancelScope(shield=True):
            await trio.sleep(5)
            await invocation.session.send("finished after all")
            done.set()
        return "late"

    model = ScriptedModel([call("stuck"), "it timed out", "thank you"])
    async with checked_host() as host:
        session = await open_session(host, model, stuck)
        await session.send_and_wait("go")
        await done.wait()
        await wait_all_tasks_blocked()

        assert model.requests[2].contents[-1] == "finished after all"
        assert [message.delivery for message in await logged(session, UserMessage)] == ["idle", "idle"]
    model.verify()


async def test_a_fenced_handler_may_wait_for_a_reply_like_anybody(autojump_clock: MockClock) -> None:
    replies: list[str] = []

    @tool(timeout=2)
    async def stuck(invocation: ToolInvocation) -> None:
        with trio.CancelScope(shield=True):
            await trio.sleep(5)
            replies.append((await invocation.session.send_and_wait("finished")).content)

    model = ScriptedModel([call("stuck"), "it timed out", "thank you"])
    async with checked_host() as host:
        session = await open_session(host, model, stuck)
        await session.send_and_wait("go")
        await trio.sleep(10)

        assert replies == ["thank you"]
    model.verify()


async def test_a_fenced_handler_may_not_clear_even_while_another_call_is_in_flight(
    autojump_clock: MockClock,
) -> None:
    refused: list[Exception] = []

    @tool(timeout=2)
    async def stuck(invocation: ToolInvocation) -> None:
        with trio.CancelScope(shield=True):
            await trio.sleep(5)
            try:
                await invocation.session.history.clear_context("start over")
            except NoToolCallInFlight as error:
                refused.append(error)

    gate = Gate()
    model = ScriptedModel([call("stuck"), call("gate"), "done"])
    async with checked_host() as host:
        session = await open_session(host, model, stuck, tool("gate")(gate))
        await session.send("go")
        await trio.sleep(6)
        assert session.statistics().in_flight == ("gate",)
        gate.open()
        await wait_all_tasks_blocked()

        assert len(refused) == 1
        assert session.statistics().generation == 0
        assert counted(host, "exeunt_context_clears_total") == {("no_tool_call",): 1}
    model.verify()


async def test_a_stuck_handler_keeps_its_slot_until_it_ends(autojump_clock: MockClock) -> None:
    model = ScriptedModel([call("stuck"), "it timed out"])
    async with checked_host() as host:
        session = await open_session(host, model, tool("stuck", timeout=2)(Shielded(10)))
        await session.send_and_wait("go")

        assert host.statistics().tools.running == 1
        await trio.sleep(10)
        assert host.statistics().tools.running == 0
    model.verify()
