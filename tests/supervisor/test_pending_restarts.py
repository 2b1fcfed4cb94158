"""What people are asked outlives a crash of the actor, where nothing of the call has run or it may run again."""

from typing import Any

import pytest
import trio
from trio.testing import MockClock

from exeunt import (
    Session,
    SessionFailed,
    ToolInvocation,
    TurnInterrupted,
    ask_user_tool,
    leave_pending,
)
from exeunt.testing import Gate, ScriptedModel, call, checked_host, crash_session, say
from tests.actors.pending_support import open_session, paint, pending, told, write
from tests.actors.session_support import begin, ends, logged, outcomes, plain_tool, settled, tool_of

ASK = ask_user_tool()


async def crash(session: Session) -> None:
    """Crash the actor and wait until it is back."""
    crash_session(session)
    with trio.fail_after(60):
        await trio.lowlevel.checkpoint()
        while session.statistics().status == "restarting":  # noqa: ASYNC110
            await trio.sleep(0.1)
    await trio.testing.wait_all_tasks_blocked()


async def test_an_approval_waits_on_under_its_id_and_its_waiter_gets_the_reply(
    autojump_clock: MockClock,
) -> None:
    model = ScriptedModel([call("write", path="a"), say("done")])
    async with checked_host() as host, trio.open_nursery() as nursery:
        session = await open_session(host, model, write)
        turn = begin(nursery, session.send_and_wait, "go", None)
        before = await pending(session)
        await trio.sleep(60)
        await crash(session)
        assert session.pending_requests() == before
        await session.answer(before[0].request_id, "approved")
        assert (await turn.wait()).value.content == "done"
        assert await outcomes(session) == [("write", "success")]
        assert await ends(session) == ["completed"]
        assert len(await logged(session, "permission.requested")) == 1
        assert len(await logged(session, "session.restarted")) == 1
    model.verify()


async def test_an_approval_s_time_goes_on_through_restarts(autojump_clock: MockClock) -> None:
    model = ScriptedModel([call("write", path="a"), say("done")])
    async with checked_host() as host, trio.open_nursery() as nursery:
        session = await open_session(host, model, write, waits={"approval": 100})
        began = trio.current_time()
        turn = begin(nursery, session.send_and_wait, "go", None)
        for _ in range(3):
            await pending(session)
            await trio.sleep(25)
            await crash(session)
        await turn.wait()
        assert trio.current_time() - began == pytest.approx(100, abs=1)
        assert await outcomes(session) == [("write", "denied")]
        assert "within 100 s" in model.requests[1].results["call_1"]
        assert await told(session) == [("permission", "timeout")]


async def test_an_answer_that_comes_during_the_back_off_is_not_lost(autojump_clock: MockClock) -> None:
    model = ScriptedModel([call("write", path="a"), say("done")])
    async with checked_host() as host, trio.open_nursery() as nursery:
        session = await open_session(host, model, write)
        turn = begin(nursery, session.send_and_wait, "go", None)
        (request,) = await pending(session)
        crash_session(session)
        assert session.statistics().status == "restarting"
        await session.answer(request.request_id, "approved")
        assert (await turn.wait()).value.content == "done"


async def test_siblings_that_ran_are_interrupted_and_the_turn_goes_on(autojump_clock: MockClock) -> None:
    gate = Gate()
    model = ScriptedModel([[call("slow"), call("write", path="a"), call("paint")], say("done")])
    async with checked_host() as host, trio.open_nursery() as nursery:
        session = await open_session(host, model, plain_tool("slow", gate), write, paint)
        turn = begin(nursery, session.send_and_wait, "go", None)
        await gate.entered()
        requests = await pending(session, 2)
        await crash(session)
        (left,) = session.pending_requests()
        assert left in requests
        assert left.kind == "permission"
        assert sorted(await outcomes(session)) == [("paint", "interrupted"), ("slow", "interrupted")]
        assert await told(session) == [("user_input", "cancelled")]
        await session.answer(left.request_id, "reject")
        assert (await turn.wait()).value.content == "done"
        assert [m.role for m in model.requests[1].messages] == ["user", "assistant", "tool", "tool", "tool"]


async def test_a_question_of_a_tool_that_may_run_again_waits_on(autojump_clock: MockClock) -> None:
    model = ScriptedModel([call("ask_user", question="Which?", choices=["red"]), say("done")])
    async with checked_host() as host, trio.open_nursery() as nursery:
        session = await open_session(host, model, ASK)
        turn = begin(nursery, session.send_and_wait, "go", None)
        before = await pending(session)
        await crash(session)
        assert session.pending_requests() == before
        await session.answer(before[0].request_id, "red")
        assert (await turn.wait()).value.content == "done"
        assert model.requests[1].results == {"call_1": "User selected: red"}
        assert len(await logged(session, "user_input.requested")) == 1


async def test_a_question_of_a_tool_that_may_not_run_again_ends_with_its_turn(
    autojump_clock: MockClock,
) -> None:
    model = ScriptedModel([call("paint"), say("done")])
    async with checked_host() as host, trio.open_nursery() as nursery:
        session = await open_session(host, model, paint)
        turn = begin(nursery, session.send_and_wait, "go", None)
        await pending(session)
        await crash(session)
        assert isinstance((await turn.wait()).error, TurnInterrupted)
        assert session.pending_requests() == ()
        assert await told(session) == [("user_input", "cancelled")]
        assert await outcomes(session) == [("paint", "interrupted")]
        await settled(session)


async def test_what_was_answered_before_a_crash_is_not_asked_again(autojump_clock: MockClock) -> None:
    gate = Gate()

    async def plan(invocation: ToolInvocation) -> str:
        first = await invocation.ask_user("Which?")
        second = await invocation.ask_user("Which?")
        await gate()
        return f"{first.answer}, {second.answer}"

    model = ScriptedModel([call("plan"), say("done")])
    async with checked_host() as host, trio.open_nursery() as nursery:
        session = await open_session(host, model, tool_of("plan", plan, idempotent=True), write)
        turn = begin(nursery, session.send_and_wait, "go", None)
        for answer in ("red", "blue"):
            (request,) = await pending(session)
            await session.answer(request.request_id, answer)
        await gate.entered()
        await crash(session)
        gate.open()
        await turn.wait()
        assert model.requests[1].results == {"call_1": "red, blue"}
        assert len(await logged(session, "user_input.requested")) == 2
        assert await told(session) == [("user_input", "answered")] * 2


async def test_answers_are_kept_for_a_tool_that_asks_several_times(autojump_clock: MockClock) -> None:
    async def plan(invocation: ToolInvocation) -> str:
        answers = [(await invocation.ask_user("Which?")).answer for _ in range(3)]
        return ", ".join(answers)

    model = ScriptedModel([call("plan"), say("done")])
    async with checked_host() as host, trio.open_nursery() as nursery:
        session = await open_session(host, model, tool_of("plan", plan, idempotent=True))
        turn = begin(nursery, session.send_and_wait, "go", None)
        for answer in ("red", "blue", "green"):
            (request,) = await pending(session)
            await crash(session)
            assert session.pending_requests() == (request,)
            await session.answer(request.request_id, answer)
        await turn.wait()
        assert model.requests[1].results == {"call_1": "red, blue, green"}
        assert len(await logged(session, "user_input.requested")) == 3


async def test_what_a_hook_found_is_not_lost(autojump_clock: MockClock) -> None:
    calls: list[str] = []

    def change(hook_input: Any, invocation: Any) -> dict[str, Any]:
        calls.append(hook_input.tool_name)
        return {"modified_args": {"path": "b"}, "additional_context": "Mind the gap."}

    model = ScriptedModel([call("write", path="a"), say("done")])
    async with checked_host() as host, trio.open_nursery() as nursery:
        session = await open_session(host, model, write, on_pre_tool_use=change)
        turn = begin(nursery, session.send_and_wait, "go", None)
        (request,) = await pending(session)
        await crash(session)
        await session.answer(request.request_id, "approved")
        await turn.wait()
        assert calls == ["write"], "the hook is not asked again"
        assert model.requests[1].results == {"call_1": "wrote b"}
        assert "Mind the gap." in model.requests[1].contents[-1]


async def test_a_turn_that_was_being_aborted_is_not_taken_up(autojump_clock: MockClock) -> None:
    async def swallow(invocation: ToolInvocation) -> str:
        with trio.CancelScope(shield=True):
            await trio.sleep(30)
        return "late"

    model = ScriptedModel([[call("write", path="a"), call("swallow")]])
    async with checked_host() as host, trio.open_nursery() as nursery:
        session = await open_session(host, model, write, tool_of("swallow", swallow))
        await session.send("go")
        await pending(session)
        abort = begin(nursery, session.abort)
        await trio.sleep(0.5)
        await crash(session)
        assert (await abort.wait()).error is None
        assert session.pending_requests() == ()
        assert await ends(session) == ["interrupted"]
        await settled(session)


async def test_a_session_that_is_given_up_asks_nothing_any_more(autojump_clock: MockClock) -> None:
    model = ScriptedModel([call("write", path="a")])
    async with checked_host() as host, trio.open_nursery() as nursery:
        session = await open_session(host, model, write)
        turn = begin(nursery, session.send_and_wait, "go", None)
        (request,) = await pending(session)
        for _ in range(4):
            await crash(session)
        assert isinstance((await turn.wait()).error, SessionFailed)
        with pytest.raises(SessionFailed):
            await session.answer(request.request_id, "approved")
        assert await told(session) == [("permission", "cancelled")]
        assert list(session.pending_requests()) == host.pending_requests() == []


async def test_a_call_of_the_host_that_waits_for_approval_ends_with_a_crash(
    autojump_clock: MockClock,
) -> None:
    async with checked_host() as host, trio.open_nursery() as nursery:
        session = await open_session(host, ScriptedModel([]), write)
        ended = begin(nursery, session.call_tool, "write", {"path": "a"})
        (request,) = await pending(session)
        await crash(session)
        assert isinstance((await ended.wait()).error, TurnInterrupted)
        assert session.pending_requests() == ()
        assert await told(session) == [("permission", "cancelled")]
        assert request.kind == "permission"


async def test_a_clear_that_a_permission_handler_staged_is_rolled_back_and_asked_for_again(
    autojump_clock: MockClock,
) -> None:
    async def clears(request: Any, invocation: Any) -> str:
        await invocation.session.history.clear_context("FRESH")
        return "no-result"

    model = ScriptedModel([call("write", path="a"), say("fresh")])
    async with checked_host() as host, trio.open_nursery() as nursery:
        session = await open_session(host, model, write, on_permission_request=clears)
        turn = begin(nursery, session.send_and_wait, "go", None)
        (request,) = await pending(session)
        await trio.sleep(1)
        await crash(session)
        await session.answer(request.request_id, "approved")
        assert (await turn.wait()).value.content == "fresh"
        assert host.metrics.value("exeunt_context_clears_total", outcome="rolled_back") == 1
        assert host.metrics.value("exeunt_context_clears_total", outcome="committed") == 1


async def test_steering_and_queue_wait_on_with_the_turn(autojump_clock: MockClock) -> None:
    model = ScriptedModel([call("write", path="a"), say("done"), say("two")])
    async with checked_host() as host, trio.open_nursery() as nursery:
        session = await open_session(host, model, write)
        turn = begin(nursery, session.send_and_wait, "go", None)
        (request,) = await pending(session)
        await session.send("and quickly", "immediate")
        queued = begin(nursery, session.send_and_wait, "next", None)
        await crash(session)
        await session.answer(request.request_id, "approved")
        assert (await turn.wait()).value.content == "done"
        assert model.requests[1].contents[-1] == "and quickly"
        assert (await queued.wait()).value.content == "two"


async def test_the_reply_of_a_seeded_turn_still_tells_of_the_turns_before_it(
    autojump_clock: MockClock,
) -> None:
    async def clear(invocation: ToolInvocation) -> str:
        await invocation.session.history.clear_context("FRESH")
        return "cleared"

    model = ScriptedModel([call("clear"), call("write", path="a"), say("done")])
    async with checked_host() as host, trio.open_nursery() as nursery:
        session = await open_session(host, model, tool_of("clear", clear), write)
        turn = begin(nursery, session.send_and_wait, "go", None)
        (request,) = await pending(session)
        await crash(session)
        await session.answer(request.request_id, "approved")
        reply = (await turn.wait()).value
        assert [(record.generation, record.reason) for record in reply.turns] == [
            (0, "context_cleared"),
            (1, "completed"),
        ]


def test_leave_pending_is_one_handler_for_both() -> None:
    assert leave_pending(None, None).kind == "no-result"
