"""What people are asked outlives the process, where the session is taken up with its pending work."""

from typing import Any

import pytest
import trio
import trio.testing

from exeunt import (
    RequestNotPending,
    SessionClosed,
    Tool,
    ToolInvocation,
    UserInputRequest,
    UserInputResponse,
    approve_all,
    ask_user_tool,
    leave_pending,
    tool,
)
from exeunt.actors.state import SessionState
from exeunt.actors.state.snapshot import dump, load
from exeunt.testing import ScriptedModel, call
from exeunt.testing.faulty_store import FaultyStore, MemoryStore
from exeunt.testing.journals import running_journal
from tests.actors.pending_support import paint, pending, told, write
from tests.actors.session_support import begin, ends, logged, outcomes, settled, tool_of
from tests.durability.resume_support import SESSION, checked, create, doomed, durable, resume

ASK = ask_user_tool()

OPEN: dict[str, Any] = {"on_permission_request": leave_pending, "on_user_input_request": leave_pending}


async def killed(
    *calls: Any, tools: tuple[Tool[..., Any], ...], open_requests: int = 1, **others: Any
) -> MemoryStore:
    """Return what is left when the process is killed while people are asked."""
    store = MemoryStore()
    async with doomed(store) as host:
        session = await create(host, ScriptedModel([list(calls)]), *tools, **{**OPEN, **others})
        await session.send("begin")
        await pending(session, open_requests)
        await durable(session)
        return store.copy()


async def test_an_approval_waits_on_under_its_id() -> None:
    left = await killed(call("write", path="a"), tools=(write,))
    model = ScriptedModel(["done"])
    async with checked(left) as host:
        session = await resume(host, model, write, go_on=True, **OPEN)
        (request,) = session.pending_requests()
        (asked,) = await logged(session, "permission.requested")
        assert (request.request_id, request.deadline is None) == (asked.request_id, False)
        assert request.deadline is not None
        assert request.deadline.timestamp() == pytest.approx(asked.deadline)
        await session.answer(request.request_id, "approved")
        await settled(session)
        assert await outcomes(session) == [("write", "success")]
        assert await told(session) == [("permission", "approved")]
        assert await ends(session) == ["completed"]
        with pytest.raises(RequestNotPending):
            await session.answer(request.request_id, "approved")
    model.verify()


async def test_the_new_handler_is_asked_under_the_old_id() -> None:
    left = await killed(call("write", path="a"), tools=(write,))
    seen: list[Any] = []

    async def approve(request: Any, invocation: Any) -> str:
        seen.append(request.request_id)
        return "approved"

    async with checked(left) as host:
        session = await resume(
            host, ScriptedModel(["done"]), write, go_on=True, on_permission_request=approve
        )
        await settled(session)
        (asked,) = await logged(session, "permission.requested")
        assert seen == [asked.request_id]
        assert await outcomes(session) == [("write", "success")]


@pytest.mark.parametrize(
    ("handler", "outcome", "kind"), [(approve_all, "success", "approved"), (None, "denied", "unavailable")]
)
async def test_the_new_options_decide_where_they_leave_no_question(
    handler: Any, outcome: str, kind: str
) -> None:
    left = await killed(call("write", path="a"), tools=(write,))
    async with checked(left) as host:
        session = await resume(
            host, ScriptedModel(["done"]), write, go_on=True, on_permission_request=handler
        )
        await settled(session)
        assert await outcomes(session) == [("write", outcome)]
        assert await told(session) == [("permission", kind)]


async def test_a_tool_that_skips_permission_now_runs() -> None:
    @tool("write", skip_permission=True)
    async def free(path: str) -> str:
        """Write a file."""
        return f"wrote {path} freely"

    left = await killed(call("write", path="a"), tools=(write,))
    model = ScriptedModel(["done"])
    async with checked(left) as host:
        session = await resume(host, model, free, go_on=True, **OPEN)
        await settled(session)
        assert model.requests[0].results == {"call_1": "wrote a freely"}


async def test_a_tool_that_is_gone_ends_its_request() -> None:
    left = await killed(call("write", path="a"), tools=(write,))
    async with checked(left) as host:
        session = await resume(host, ScriptedModel(["done"]), go_on=True, **OPEN)
        await settled(session)
        assert await outcomes(session) == [("write", "failure")]
        assert await told(session) == [("permission", "cancelled")]


async def test_without_its_pending_work_a_session_asks_nothing_any_more() -> None:
    left = await killed(
        call("write", path="a"), call("ask_user", question="Why?"), tools=(write, ASK), open_requests=2
    )
    async with checked(left) as host:
        session = await resume(host, ScriptedModel([]), write, ASK, **OPEN)
        assert session.pending_requests() == ()
        assert sorted(await told(session)) == [("permission", "cancelled"), ("user_input", "cancelled")]
        assert sorted(await outcomes(session)) == [("ask_user", "interrupted"), ("write", "interrupted")]
        await settled(session)


async def test_a_question_waits_on_where_its_tool_may_run_again() -> None:
    left = await killed(call("ask_user", question="Why?"), call("paint"), tools=(ASK, paint), open_requests=2)
    model = ScriptedModel(["done"])
    async with checked(left) as host:
        session = await resume(host, model, ASK, paint, go_on=True, **OPEN)
        (request,) = session.pending_requests()
        assert request.tool_name == "ask_user"
        assert await outcomes(session) == [("paint", "interrupted")]
        await session.answer(request.request_id, "because")
        await settled(session)
        assert model.requests[0].results["call_1"] == "User responded: because"
        asked = await logged(session, "user_input.requested")
        assert [event.tool_name for event in asked].count("ask_user") == 1


async def test_an_answer_that_was_durable_is_not_asked_for_again() -> None:
    async def plan(invocation: ToolInvocation) -> str:
        first = await invocation.ask_user("Which?", ["red"])
        second = await invocation.ask_user("And then?")
        return f"{first.text}, {second.text}"

    planner = tool_of("plan", plan, idempotent=True)
    store = MemoryStore()
    async with doomed(store) as host:
        session = await create(host, ScriptedModel([call("plan")]), planner, **OPEN)
        await session.send("begin")
        (request,) = await pending(session)
        await session.answer(request.request_id, "red")
        await pending(session)
        await durable(session)
        left = store.copy()
    model = ScriptedModel(["done"])
    async with checked(left) as host:
        session = await resume(host, model, planner, go_on=True, **OPEN)
        (request,) = await pending(session)
        assert request.request == UserInputRequest("And then?")
        await session.answer(request.request_id, UserInputResponse("blue"))
        await settled(session)
        assert model.requests[0].results == {"call_1": "User selected: red, User responded: blue"}
        assert len(await logged(session, "user_input.requested")) == 2


async def test_a_time_that_ran_out_while_nobody_was_there_ends_at_once() -> None:
    left = await killed(call("write", path="a"), tools=(write,), waits={"approval": 0.05})
    await trio.sleep(0.06)
    model = ScriptedModel(["done"])
    async with checked(left) as host:
        session = await resume(host, model, write, go_on=True, **OPEN)
        await settled(session)
        assert await told(session) == [("permission", "timeout")]
        assert "within 0.05 s" in model.requests[0].results["call_1"]


async def test_an_approved_call_starts_only_when_the_approval_is_durable() -> None:
    ran: list[list[str]] = []
    store = FaultyStore()

    @tool
    async def deploy() -> str:
        """Deploy."""
        async with running_journal(store.inner) as journal:
            ran.append([event.type for event in await journal.read(SESSION)])
        return "deployed"

    async with checked(store) as host:
        session = await create(host, ScriptedModel([call("deploy"), "done"]), deploy, **OPEN)
        await session.send("begin")
        (request,) = await pending(session)
        await durable(session)
        store.hang()
        async with trio.open_nursery() as nursery:
            answered = begin(nursery, session.answer, request.request_id, "approved")
            await store.wait_attempts(store.attempts + 1)
            await trio.testing.wait_all_tasks_blocked()
            assert session.pending_requests() == ()
            assert not ran
            assert not answered.done
            store.heal()
        await settled(session)
        assert answered.done
        assert len(ran) == 1
        assert "permission.completed" in ran[0]


async def test_the_end_of_the_host_leaves_what_only_waits_for_people_as_it_stands() -> None:
    store = MemoryStore()
    async with checked(store, settled=False) as host:
        session = await create(
            host,
            ScriptedModel([[call("write", path="a"), call("ask_user", question="Why?")]]),
            write,
            ASK,
            **OPEN,
        )
        async with trio.open_nursery() as nursery:
            turn = begin(nursery, session.send_and_wait, "begin", None)
            requests = await pending(session, 2)
            await host.close()
            assert isinstance((await turn.wait()).error, SessionClosed)
    model = ScriptedModel(["done"])
    async with checked(store) as host:
        session = await resume(host, model, write, ASK, go_on=True, **OPEN)
        again = await pending(session, 2)
        assert {r.request_id for r in again} == {r.request_id for r in requests}
        await session.answer(again[0].request_id, "approved" if again[0].kind == "permission" else "so")
        await session.answer(again[1].request_id, "approved" if again[1].kind == "permission" else "so")
        await settled(session)
        assert sorted(await outcomes(session)) == [("ask_user", "success"), ("write", "success")]
    model.verify()


@pytest.mark.parametrize("what", ["running", "disconnect"])
async def test_the_end_of_the_host_aborts_a_turn_that_does_more_than_wait(what: str) -> None:
    store = MemoryStore()
    calls = [call("write", path="a"), call("paint")] if what == "running" else [call("write", path="a")]
    async with checked(store) as host:
        session = await create(host, ScriptedModel([calls]), write, paint, **OPEN)
        await session.send("begin")
        await pending(session, len(calls))
        if what == "running":
            await host.close()
        else:
            await session.disconnect()
    async with checked(store) as host:
        session = await resume(host, ScriptedModel([]), write, paint, go_on=True, **OPEN)
        assert session.pending_requests() == ()
        assert await ends(session) == ["aborted"]


async def test_a_snapshot_holds_what_is_asked_and_what_was_answered() -> None:
    left = await killed(
        call("write", path="a"), call("ask_user", question="Why?"), tools=(write, ASK), open_requests=2
    )
    async with doomed(left) as host:
        session = await resume(host, ScriptedModel([]), write, ASK, go_on=True, **OPEN)
        question = next(r for r in await pending(session, 2) if r.kind == "user_input")
        await session.answer(question.request_id, "so")
        events = await session.get_events()
        for end in range(1, len(events) + 1):
            state = SessionState.replay(events[:end])
            loaded = load(dump(state, events[end - 1].id))
            assert loaded is not None
            assert loaded.summary() == state.summary()


async def test_a_fork_waits_for_an_approval_of_its_own() -> None:
    left = await killed(call("write", path="a"), tools=(write,))
    async with checked(left) as host:
        session = await resume(host, ScriptedModel(["one"]), write, go_on=True, **OPEN)
        (request,) = session.pending_requests()
        fork = await host.fork_session(
            session.session_id,
            continue_pending_work=True,
            model=ScriptedModel(["two"]),
            tools=[write],
            **OPEN,
        )
        (forked,) = await pending(fork)
        assert forked.request_id == request.request_id
        await session.answer(request.request_id, "approved")
        await fork.answer(request.request_id, "reject")
        await settled(session)
        await settled(fork)
        assert await outcomes(session) == [("write", "success")]
        assert await outcomes(fork) == [("write", "rejected")]
