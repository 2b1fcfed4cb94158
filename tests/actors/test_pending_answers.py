"""Requests that are left open, and answered from anywhere."""

import threading
from datetime import timedelta
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from exeunt import (
    ApproveForSession,
    ApproveOnce,
    InvalidAnswer,
    PermissionRequest,
    Reject,
    RequestNotPending,
    SessionClosed,
    UserInputRequest,
    UserInputResponse,
    WouldDeadlock,
    open_host,
    tool,
)
from exeunt.testing import ScriptedModel, SilentApprover, call, checked_host, say
from tests.actors.pending_support import open_session, paint, pending, told, write
from tests.actors.session_support import begin, outcomes


async def test_an_approval_that_is_left_open_is_listed_and_answered_a_minute_later(
    autojump_clock: MockClock,
) -> None:
    model = ScriptedModel([call("write", path="a.txt"), say("done")])
    async with checked_host() as host, trio.open_nursery() as nursery:
        session = await open_session(host, model, write, tenant="ada")
        turn = begin(nursery, session.send_and_wait, "go", None)
        (request,) = await pending(session)
        assert request.request == PermissionRequest("call_1", "write", {"path": "a.txt"}, "Write a file.")
        assert request.request.request_id == request.request_id
        assert (request.kind, request.tool_call_id, request.tool_name) == ("permission", "call_1", "write")
        assert (request.session_id, request.tenant) == (session.session_id, "ada")
        assert request.deadline is not None
        assert request.deadline - request.asked_at == pytest.approx(
            timedelta(seconds=3600), abs=timedelta(seconds=1)
        )
        assert host.pending_requests() == [request] == host.pending_requests(tenant="ada")
        assert host.pending_requests(tenant="bob") == []
        assert session.statistics().pending_requests == host.statistics().pending_requests == 1

        await trio.sleep(60)
        await session.answer(request.request_id, ApproveOnce())
        assert session.pending_requests() == ()
        assert (await turn.wait()).value.content == "done"
        assert model.requests[1].results == {"call_1": "wrote a.txt"}
        assert await told(session) == [("permission", "approved")]
    model.verify()


async def test_a_question_of_a_handler_is_listed_and_answered(autojump_clock: MockClock) -> None:
    model = ScriptedModel([call("paint"), say("done")])
    async with checked_host() as host, trio.open_nursery() as nursery:
        session = await open_session(host, model, paint)
        turn = begin(nursery, session.send_and_wait, "go", None)
        (request,) = await pending(session)
        assert request.request == UserInputRequest("Which colour?", ("red", "blue"))
        assert (request.kind, request.tool_name) == ("user_input", "paint")
        # Longer than a handler may take: its time does not run while a person thinks.
        await trio.sleep(3_000)
        await session.answer(request.request_id, "blue")
        await turn.wait()
        assert model.requests[1].results == {"call_1": "User selected: blue"}
        assert await told(session) == [("user_input", "answered")]
    model.verify()


@pytest.mark.parametrize(
    ("answer", "result"),
    [
        ("red", "User selected: red"),
        ("green", "User responded: green"),
        ({"answer": "green"}, "User responded: green"),
        ({"answer": "red", "was_freeform": True}, "User responded: red"),
        ({"answer": "red", "wasFreeform": False}, "User selected: red"),
        (UserInputResponse("red", was_freeform=False), "User selected: red"),
    ],
)
async def test_an_answer_to_a_question_takes_many_forms(
    autojump_clock: MockClock, answer: Any, result: str
) -> None:
    model = ScriptedModel([call("paint"), say("done")])
    async with checked_host() as host, trio.open_nursery() as nursery:
        session = await open_session(host, model, paint)
        turn = begin(nursery, session.send_and_wait, "go", None)
        (request,) = await pending(session)
        await session.answer(request.request_id, answer)
        await turn.wait()
        assert model.requests[1].results == {"call_1": result}


@pytest.mark.parametrize(
    ("decision", "outcome", "kind"),
    [
        ("approved", "success", "approved"),
        (ApproveForSession(), "success", "approved-for-session"),
        (Reject("not today"), "rejected", "rejected"),
        ({"kind": "reject"}, "rejected", "rejected"),
        ("user-not-available", "denied", "unavailable"),
    ],
)
async def test_a_decision_from_outside_counts_as_one_of_the_handler(
    autojump_clock: MockClock, decision: Any, outcome: str, kind: str
) -> None:
    model = ScriptedModel([call("write", path="a"), say("done")])
    async with checked_host() as host, trio.open_nursery() as nursery:
        session = await open_session(host, model, write)
        turn = begin(nursery, session.send_and_wait, "go", None)
        (request,) = await pending(session)
        await session.answer(request.request_id, decision)
        await turn.wait()
        assert await outcomes(session) == [("write", outcome)]
        assert await told(session) == [("permission", kind)]


async def test_an_approval_for_the_session_from_outside_is_not_asked_for_again(
    autojump_clock: MockClock,
) -> None:
    model = ScriptedModel([call("write", path="a"), call("write", path="b"), say("done")])
    async with checked_host() as host, trio.open_nursery() as nursery:
        session = await open_session(host, model, write)
        turn = begin(nursery, session.send_and_wait, "go", None)
        (request,) = await pending(session)
        await session.answer(request.request_id, "approve-for-session")
        assert (await turn.wait()).value.content == "done"
        assert len(await told(session)) == 1


@pytest.mark.parametrize("wrong", [None, 7, "maybe", {"kind": "perhaps"}, "no-result"])
async def test_what_is_no_decision_is_refused_and_the_request_stays_open(
    autojump_clock: MockClock, wrong: Any
) -> None:
    model = ScriptedModel([call("write", path="a"), say("done")])
    async with checked_host() as host, trio.open_nursery() as nursery:
        session = await open_session(host, model, write)
        turn = begin(nursery, session.send_and_wait, "go", None)
        (request,) = await pending(session)
        with pytest.raises(InvalidAnswer, match="approve-once"):
            await session.answer(request.request_id, wrong)
        assert session.pending_requests() == (request,)
        await session.answer(request.request_id, "approved")
        assert (await turn.wait()).value.content == "done"


@pytest.mark.parametrize("wrong", [None, 7, {}, {"answer": 7}, ApproveOnce(), "green"])
async def test_what_is_no_answer_to_a_question_is_refused_and_the_request_stays_open(
    autojump_clock: MockClock, wrong: Any
) -> None:
    @tool(skip_permission=True)
    async def choose() -> str:
        """Choose."""
        return (await session.ask_user("Which?", ["red", "blue"], allow_freeform=False)).text

    model = ScriptedModel([call("choose"), say("done")])
    async with checked_host() as host, trio.open_nursery() as nursery:
        session = await open_session(host, model, choose)
        turn = begin(nursery, session.send_and_wait, "go", None)
        (request,) = await pending(session)
        with pytest.raises(InvalidAnswer):
            await session.answer(request.request_id, wrong)
        assert session.pending_requests() == (request,)
        await session.answer(request.request_id, "red")
        await turn.wait()
        assert model.requests[1].results == {"call_1": "User selected: red"}


async def test_the_first_answer_counts_and_every_later_one_is_refused(autojump_clock: MockClock) -> None:
    model = ScriptedModel([call("write", path="a"), say("done")])
    async with checked_host() as host, trio.open_nursery() as nursery:
        session = await open_session(host, model, write)
        turn = begin(nursery, session.send_and_wait, "go", None)
        (request,) = await pending(session)
        await session.answer(request.request_id, "reject")
        with pytest.raises(RequestNotPending, match="was answered"):
            await session.answer(request.request_id, "approved")
        await turn.wait()
        for unknown in (request.request_id, "", "no such thing", 7):
            with pytest.raises(RequestNotPending) as refused:
                await session.answer(unknown, "approved")  # type: ignore[arg-type]
            assert refused.value.session_id == session.session_id
        assert await outcomes(session) == [("write", "rejected")]
        assert await told(session) == [("permission", "rejected")]
        await session.disconnect()
        with pytest.raises(SessionClosed):
            await session.answer(request.request_id, "approved")


async def test_an_answer_from_outside_ends_a_handler_that_still_asks(autojump_clock: MockClock) -> None:
    approver = SilentApprover()
    model = ScriptedModel([call("write", path="a"), say("done")])
    async with checked_host() as host, trio.open_nursery() as nursery:
        session = await open_session(host, model, write, on_permission_request=approver)
        turn = begin(nursery, session.send_and_wait, "go", None)
        await approver.entered()
        (request,) = session.pending_requests()
        await session.answer(request.request_id, "approved")
        assert (await turn.wait()).value.content == "done"
        assert approver.running == 0
        assert await told(session) == [("permission", "approved")]


async def test_a_handler_that_does_not_end_after_an_answer_from_outside_is_left_behind(
    autojump_clock: MockClock,
) -> None:
    ended = trio.Event()

    async def stubborn(request: Any, invocation: Any) -> str:
        with trio.CancelScope(shield=True):
            await trio.sleep(30)
        ended.set()
        return "approved"

    model = ScriptedModel([call("write", path="a"), say("done")])
    async with checked_host() as host, trio.open_nursery() as nursery:
        session = await open_session(host, model, write, on_permission_request=stubborn)
        turn = begin(nursery, session.send_and_wait, "go", None)
        (request,) = await pending(session)
        began = trio.current_time()
        await session.answer(request.request_id, "approved")
        assert (await turn.wait()).value.content == "done"
        assert trio.current_time() - began == pytest.approx(2, abs=0.1)
        assert await outcomes(session) == [("write", "denied")]
        assert "did not return after another answer" in model.requests[1].results["call_1"]
        await ended.wait()


async def test_a_handler_may_leave_some_requests_open_and_answer_others(autojump_clock: MockClock) -> None:
    def only_small(request: PermissionRequest, invocation: Any) -> str:
        return "approved" if request.arguments["path"] == "small" else "no-result"

    model = ScriptedModel([[call("write", path="small"), call("write", path="large")], say("done")])
    async with checked_host() as host, trio.open_nursery() as nursery:
        session = await open_session(host, model, write, on_permission_request=only_small)
        turn = begin(nursery, session.send_and_wait, "go", None)
        (request,) = await pending(session)
        assert request.tool_call_id == "call_2"
        await session.answer(request.request_id, "approved")
        await turn.wait()
        assert await outcomes(session) == [("write", "success"), ("write", "success")]


async def test_another_thread_answers_by_way_of_the_host() -> None:
    model = ScriptedModel([call("write", path="a"), say("done")])
    errors: list[Exception] = []
    async with open_host() as host, trio.open_nursery() as nursery:
        session = await open_session(host, model, write)
        turn = begin(nursery, session.send_and_wait, "go", None)
        (request,) = await pending(session)

        def answer_twice() -> None:
            for _ in range(2):
                try:
                    host.run_from_thread(session.answer, request.request_id, "approved")
                except RequestNotPending as error:
                    errors.append(error)

        thread = threading.Thread(target=answer_twice)
        thread.start()
        assert (await turn.wait()).value.content == "done"
        await trio.to_thread.run_sync(thread.join)
        assert len(errors) == 1
        with pytest.raises(WouldDeadlock):
            host.run_from_thread(session.answer, request.request_id, "approved")


def test_a_thread_that_answers_when_the_loop_has_ended_is_told_so() -> None:
    async def main() -> tuple[Any, Any]:
        async with open_host() as host:
            return host, await open_session(host, ScriptedModel([]))

    host, session = trio.run(main)
    with pytest.raises(SessionClosed, match="loop has ended"):
        host.run_from_thread(session.answer, "any", "approved")
