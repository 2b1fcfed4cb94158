"""What was spent, and what a turn has asked people, outlive the process."""

from typing import Any

import pytest

from exeunt import CreditsExhausted, LimitDecision, leave_pending
from exeunt.actors.state import SessionState
from exeunt.actors.state.snapshot import dump, load
from exeunt.testing import ScriptedModel, fail
from exeunt.testing.faulty_store import MemoryStore
from tests.actors.pending_support import pending
from tests.actors.session_support import ends, logged, settled
from tests.durability.resume_support import checked, create, doomed, durable, resume

LIMITED: dict[str, Any] = {"prices": {"*": {"request": 10}}, "limits": {"credits": 15}}


def a_hundred_more(request: Any, invocation: Any) -> LimitDecision:
    return LimitDecision("add", 100)


async def spent(*, open_question: bool = False) -> MemoryStore:
    """What a killed process leaves whose session has spent 20 of its 15 credits."""
    store = MemoryStore()
    async with doomed(store) as host:
        handler = leave_pending if open_question else None
        session = await create(
            host, ScriptedModel(["a", "b"]), on_session_limits_exhausted=handler, **LIMITED
        )
        await session.send_and_wait("one")
        await session.send_and_wait("two")
        if open_question:
            await session.send("three")
            await pending(session)
        await durable(session)
        return store.copy()


async def test_a_session_that_is_taken_up_goes_on_counting() -> None:
    async with checked(await spent()) as host:
        session = await resume(host, ScriptedModel([]), **LIMITED)
        now = session.statistics()
        assert (now.credits_spent, now.credit_limit) == (20.0, 15.0)
        with pytest.raises(CreditsExhausted):
            await session.send_and_wait("three")


async def test_a_limit_that_nobody_names_again_holds_as_the_log_has_it() -> None:
    async with checked(await spent()) as host:
        session = await resume(host, ScriptedModel([]), prices=LIMITED["prices"])
        with pytest.raises(CreditsExhausted):
            await session.send_and_wait("three")


async def test_a_limit_that_is_named_anew_holds() -> None:
    async with checked(await spent()) as host:
        options: dict[str, Any] = {**LIMITED, "limits": {"credits": 40}}
        session = await resume(host, ScriptedModel(["c"]), **options)
        await session.send_and_wait("three")
        assert session.statistics().credits_spent == 30.0
        assert [e.max_ai_credits for e in await logged(session, "session.session_limits_changed")] == [15, 40]


async def test_what_somebody_gave_outlives_leaving_memory() -> None:
    store = MemoryStore()
    async with checked(store) as host:
        options: dict[str, Any] = {**LIMITED, "on_session_limits_exhausted": a_hundred_more}
        session = await create(host, ScriptedModel(["a", "b", "c"]), **options)
        for prompt in ("one", "two", "three"):
            await session.send_and_wait(prompt)
        assert session.statistics().credit_limit == 115.0
        state = SessionState.replay(await session.get_events())
        assert state.last_id is not None
        loaded = load(dump(state, state.last_id))
        assert loaded is not None
        assert loaded.account == state.account


async def test_a_question_waits_on_under_its_id() -> None:
    async with checked(await spent(open_question=True)) as host:
        model = ScriptedModel(["c"])
        session = await resume(host, model, go_on=True, on_session_limits_exhausted=leave_pending, **LIMITED)
        (request,) = await pending(session)
        (asked,) = await logged(session, "session_limits_exhausted.requested")
        assert request.request_id == asked.request_id
        await session.answer(request.request_id, {"action": "add", "ai_credits": 100})
        await settled(session)
        assert model.calls == 1
        assert await ends(session) == ["completed"] * 3


async def test_a_snapshot_holds_the_question() -> None:
    async with checked(await spent(open_question=True)) as host:
        session = await resume(
            host, ScriptedModel([]), go_on=True, on_session_limits_exhausted=leave_pending, **LIMITED
        )
        await pending(session)
        state = SessionState.replay(await session.get_events())
        assert state.last_id is not None
        loaded = load(dump(state, state.last_id))
        assert loaded is not None
        assert loaded.question == state.question is not None
        await session.abort()


async def test_a_question_ends_where_nobody_goes_on_with_its_turn() -> None:
    async with checked(await spent(open_question=True)) as host:
        session = await resume(host, ScriptedModel([]), **LIMITED)
        (ended,) = await logged(session, "session_limits_exhausted.completed")
        assert (ended.kind, ended.action) == ("cancelled", "cancel")
        assert await ends(session) == ["completed", "completed", "interrupted"]


async def test_a_host_that_ends_leaves_the_question_open() -> None:
    store = MemoryStore()
    weekly = fail("rate_limited", code="user_weekly_rate_limited")
    switches: dict[str, Any] = {"auto_model": ScriptedModel([]), "on_auto_mode_switch_request": leave_pending}
    async with checked(store, settled=False) as host:
        session = await create(host, ScriptedModel([weekly]), **switches)
        await session.send("hi")
        await pending(session)
    auto = ScriptedModel(["hello"])
    async with checked(store) as host:
        session = await resume(host, ScriptedModel([]), go_on=True, **{**switches, "auto_model": auto})
        (request,) = await pending(session)
        await session.answer(request.request_id, "yes")
        await settled(session)
        assert auto.calls == 1
        assert await ends(session) == ["completed"]


async def test_a_question_is_moot_where_the_session_comes_back_with_more() -> None:
    async with checked(await spent(open_question=True)) as host:
        options: dict[str, Any] = {**LIMITED, "limits": {"credits": 100}}
        session = await resume(host, ScriptedModel(["c"]), go_on=True, **options)
        await settled(session)
        (ended,) = await logged(session, "session_limits_exhausted.completed")
        assert ended.kind == "cancelled"
        assert await ends(session) == ["completed"] * 3
