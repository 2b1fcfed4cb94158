"""What a crash of a session's actor leaves: its log, its queue, its subscribers, and nobody who waits for ever."""

from typing import Any

import pytest
import trio

from exeunt import (
    HostOptions,
    MailboxFull,
    SessionNotFound,
    ToolInvocation,
    TurnInterrupted,
)
from exeunt.testing import (
    Gate,
    ScriptedModel,
    Shielded,
    SilentApprover,
    Sleepy,
    call,
    checked_host,
    hang,
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
from tests.supervisor.restart_support import INTERRUPTED, crash


async def test_a_crash_of_an_idle_session(autojump_clock: object) -> None:
    async with checked_host() as host:
        session = await open_session(host, ScriptedModel([say("one"), say("two")]))
        await session.send_and_wait("A")
        await settled(session)
        events = watch(session)
        before = session.history.messages()
        crash(host, session)
        assert session.statistics().status == "restarting"
        assert host.statistics().sessions == {"restarting": 1}
        await settled(session)
        assert [e.type for e in events] == ["session.restarted"]
        assert events[0].data.cause == "RuntimeError: boom"  # type: ignore[attr-defined]
        assert session.history.messages() == before
        assert (await session.send_and_wait("B")).content == "two"
        assert session.statistics().restarts == 1


async def test_a_crash_in_a_model_call(autojump_clock: object) -> None:
    async with checked_host() as host, trio.open_nursery() as nursery:
        model = ScriptedModel([hang(), say("two")])
        session = await open_session(host, model)
        events = watch(session)
        turn = begin(nursery, session.send_and_wait, "A")
        await reach(session, "model")
        crash(host, session)
        await settled(session)
        assert isinstance((await turn.wait()).error, TurnInterrupted)
        assert await ends(session) == ["interrupted"]
        (end,) = await logged(session, "turn.end")
        assert end.steps == 1
        assert model.in_flight == 0
        assert count(events, "session.idle") == 1
        await session.send_and_wait("B")
        assert model.requests[1].contents == ("A", "B")


async def test_a_crash_while_tools_run(autojump_clock: object) -> None:
    gate, quick = Gate(), Sleepy(0, "quick")
    async with checked_host() as host, trio.open_nursery() as nursery:
        model = ScriptedModel([[call("wait"), call("quick"), call("wait")], say("two")])
        session = await open_session(host, model, plain_tool("wait", gate), plain_tool("quick", quick))
        events = watch(session)
        turn = begin(nursery, session.send_and_wait, "A")
        await gate.entered(2)
        await reach(session, "tools")
        crash(host, session)
        await settled(session)
        assert isinstance((await turn.wait()).error, TurnInterrupted)
        assert await outcomes(session) == [
            ("quick", "success"),
            ("wait", "interrupted"),
            ("wait", "interrupted"),
        ]
        assert [trace.how for trace in gate.calls] == ["cancelled", "cancelled"]
        assert await ends(session) == ["interrupted"]
        assert count(events, "session.idle") == 1
        assert len(gate.calls) == 2, "nothing is run again"
        await session.send_and_wait("B")
        assert model.requests[1].contents == ("A", "", INTERRUPTED, "quick", INTERRUPTED, "B")


async def test_a_crash_while_an_approval_is_asked_for(autojump_clock: object) -> None:
    approver = SilentApprover()
    async with checked_host() as host:
        model = ScriptedModel([call("asks"), say("two")])
        asks = plain_tool("asks", Gate(), skip_permission=False)
        session = await open_session(host, model, asks, on_permission_request=approver)
        await session.send("A")
        await reach(session, "tools")
        crash(host, session)
        await trio.sleep(1)
        assert approver.running == 1, "the handler of before is cancelled, and asked again"
        (requested,) = await logged(session, "permission.requested")
        assert [request.request_id for request in session.pending_requests()] == [requested.request_id]
        await session.abort()
        (completed,) = await logged(session, "permission.completed")
        assert (completed.request_id, completed.kind) == (requested.request_id, "cancelled")
        assert await outcomes(session) == [("asks", "cancelled")]
        assert approver.running == 0
        await session.send_and_wait("B")


async def test_a_crash_while_a_turn_waits_for_a_slot_or_its_hooks_begins_it_again(
    autojump_clock: object,
) -> None:
    async with checked_host(options=HostOptions(running_turns=1)) as host, trio.open_nursery() as nursery:
        other = await open_session(host, ScriptedModel([say("free", delay=30)]))
        session = await open_session(host, ScriptedModel([say("hi")]))
        await other.send("in the way")
        waiting = begin(nursery, session.send_and_wait, "A")
        await reach(session, "waiting")
        crash(host, session)
        await trio.sleep(5)
        assert session.statistics().phase == "waiting"
        assert host.statistics().turns.waiting == 1
        assert (await waiting.wait()).value.content == "hi"
        assert await ends(session) == ["completed"]
        await settled(other)


async def test_a_crash_while_a_clear_is_staged_rolls_it_back(autojump_clock: object) -> None:
    async def clears(invocation: ToolInvocation) -> str:
        await invocation.session.history.clear_context("FRESH")
        await trio.sleep_forever()
        return "never"

    async with checked_host() as host, trio.open_nursery() as nursery:
        model = ScriptedModel([call("clears"), say("two")])
        session = await open_session(host, model, tool_of("clears", clears, is_terminal=True))
        events = watch(session)
        turn = begin(nursery, session.send_and_wait, "A")
        await reach(session, "tools")
        assert session.statistics().clear_staged
        crash(host, session)
        await settled(session)
        assert isinstance((await turn.wait()).error, TurnInterrupted)
        now = session.statistics()
        assert (now.clear_staged, now.generation) == (False, 0)
        assert [e.cause for e in only(events, "session.clear_rolled_back")] == ["interrupted"]
        assert await logged(session, "session.context_cleared") == []
        await session.send_and_wait("B")
        assert model.requests[1].contents == ("A", "", INTERRUPTED, "B")


@pytest.mark.parametrize("hooked", [False, True])
async def test_a_crash_in_a_seeded_turn_keeps_the_clear(autojump_clock: object, hooked: bool) -> None:
    held: list[str] = []

    async def hold(hook_input: Any, _: object) -> None:
        if hooked and hook_input.prompt == "FRESH" and not held:
            held.append(hook_input.prompt)
            await trio.sleep_forever()

    async def clear(invocation: ToolInvocation) -> str:
        await invocation.session.history.clear_context("FRESH")
        return "cleared"

    async with checked_host() as host, trio.open_nursery() as nursery:
        answers = [say("on the seed")] if hooked else [hang()]
        model = ScriptedModel([call("clear"), *answers, say("later")])
        session = await open_session(
            host, model, tool_of("clear", clear, is_terminal=True), on_user_prompt_submitted=hold
        )
        events = watch(session)
        turn = begin(nursery, session.send_and_wait, "A")
        await trio.sleep(1)
        crash(host, session)
        await settled(session)
        assert isinstance((await turn.wait()).error, TurnInterrupted)
        assert session.statistics().generation == 1
        assert len(await logged(session, "session.context_cleared")) == 1
        last = "completed" if hooked else "interrupted"
        assert await ends(session) == ["terminal_tool", last]
        assert count(events, "session.idle") == 1
        await session.send_and_wait("B")
        expected = ("FRESH", "on the seed", "B") if hooked else ("FRESH", "B")
        assert model.requests[-1].contents == expected
    model.verify()


async def test_a_crash_in_a_call_of_the_host(autojump_clock: object) -> None:
    gate = Gate()
    async with checked_host() as host, trio.open_nursery() as nursery:
        session = await open_session(host, ScriptedModel([say("hi")]), plain_tool("wait", gate))
        calling = begin(nursery, session.call_tool, "wait")
        await gate.entered()
        next_call = begin(nursery, session.call_tool, "wait")
        await trio.sleep(0.01)
        crash(host, session)
        assert isinstance((await calling.wait()).error, TurnInterrupted)
        gate.open()
        assert (await next_call.wait()).value.outcome == "success"
        assert await outcomes(session) == [("wait", "interrupted"), ("wait", "success")]
        assert (await session.send_and_wait("A")).content == "hi"


async def test_queue_and_steering_survive_a_crash(autojump_clock: object) -> None:
    async with checked_host() as host, trio.open_nursery() as nursery:
        model = ScriptedModel([hang(), say("to S"), say("to B"), say("to C")])
        session = await open_session(host, model)
        events = watch(session)
        first = begin(nursery, session.send_and_wait, "A")
        await reach(session, "model")
        queued = begin(nursery, session.send_and_wait, "B")
        await trio.sleep(0.1)
        await session.send("S", mode="immediate")
        crash(host, session)
        assert session.statistics().status == "restarting"
        during = begin(nursery, session.send_and_wait, "C")
        assert isinstance((await first.wait()).error, TurnInterrupted)
        assert (await queued.wait()).value.content == "to B"
        assert (await during.wait()).value.content == "to C"
        assert [e.content for e in await logged(session, "user.message")] == ["A", "S", "B", "C"]
        assert count(events, "session.idle") == 1
        assert await ends(session) == ["interrupted", *["completed"] * 3]
    model.verify()


async def test_a_message_that_comes_during_the_back_off_puts_the_idle_off(autojump_clock: object) -> None:
    async with checked_host() as host:
        session = await open_session(host, ScriptedModel([hang(), say("to B", delay=1)]))
        events = watch(session)
        await session.send("A")
        await reach(session, "model")
        crash(host, session)
        assert (await session.send_and_wait("B")).content == "to B"
        await settled(session)
        assert count(events, "session.idle") == 1


async def test_the_mailbox_is_bounded_during_the_back_off_too(autojump_clock: object) -> None:
    async with checked_host() as host:
        session = await open_session(host, ScriptedModel([], default=say("ok")), mailbox_size=3)
        crash(host, session)
        for _ in range(3):
            await session.send("A")
        with pytest.raises(MailboxFull):
            await session.send("A")
        await settled(session)
        assert len(await logged(session, "user.message")) == 3


async def test_an_abort_and_a_disconnect_during_the_back_off_are_heard(autojump_clock: object) -> None:
    async with checked_host() as host, trio.open_nursery() as nursery:
        session = await open_session(host, ScriptedModel([hang(), say("hi")]))
        turn = begin(nursery, session.send_and_wait, "A")
        await reach(session, "model")
        await session.send("B")
        crash(host, session)
        receipt = await session.abort()
        assert (receipt.turn, receipt.queued) == (None, 1)
        assert isinstance((await turn.wait()).error, TurnInterrupted)
        await session.send_and_wait("C")
        crash(host, session)
        await session.disconnect()
        assert session.statistics().status == "closed"
        with pytest.raises(SessionNotFound):
            host.get_session(session.session_id)


async def test_a_crash_during_a_disconnect_does_not_keep_the_session_alive(autojump_clock: object) -> None:
    async with checked_host() as host, trio.open_nursery() as nursery:
        session = await open_session(host, ScriptedModel([call("stuck")]), plain_tool("stuck", Shielded(30)))
        await session.send("A")
        await reach(session, "tools")
        leaving = begin(nursery, session.disconnect)
        await trio.sleep(0.5)
        crash(host, session)
        with trio.fail_after(5):
            await leaving.wait()
        assert leaving.error is None
        assert session.statistics().status == "closed"
        assert await ends(session) == ["interrupted"]
        await trio.sleep(40)


async def test_an_abort_that_a_crash_overtakes_is_answered(autojump_clock: object) -> None:
    async with checked_host() as host, trio.open_nursery() as nursery:
        session = await open_session(host, ScriptedModel([call("stuck")]), plain_tool("stuck", Shielded(30)))
        await session.send("A")
        await reach(session, "tools")
        turn_id = session.statistics().turn_id
        aborting = begin(nursery, session.abort)
        await trio.sleep(0.5)
        crash(host, session)
        with trio.fail_after(5):
            await aborting.wait()
        assert aborting.value.turn == turn_id
        await trio.sleep(40)


async def test_what_a_handler_of_before_returns_is_stale(autojump_clock: object) -> None:
    async with checked_host() as host:
        model = ScriptedModel([call("stuck"), say("two")])
        session = await open_session(host, model, plain_tool("stuck", Shielded(30)))
        events = watch(session)
        await session.send("A")
        await reach(session, "tools")
        crash(host, session)
        await settled(session)
        assert host.statistics().stuck_handlers == 1
        await session.send_and_wait("B")
        assert count(events, "tool.result_stale") == 0
        await trio.sleep(40)
        assert count(events, "tool.result_stale") == 1
        assert host.statistics().stuck_handlers == 0
        assert await outcomes(session) == [("stuck", "interrupted")]
        assert "late" not in [m.content for m in session.history.messages()]
