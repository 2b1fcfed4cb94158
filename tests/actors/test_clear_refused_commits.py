"""Clears whose journal does not take the commit, and clears of sessions that are taken up again."""

from typing import Any

import pytest
import trio
from trio.testing import MockClock

from exeunt import (
    ClearResult,
    ClearRolledBack,
    HookInvocation,
    TurnInterrupted,
)
from exeunt.actors.state import SessionState
from exeunt.testing import Gate, ScriptedModel, call, checked_host
from tests.actors.clear_crash_support import CLEAR, clear_and_sleep
from tests.actors.clear_support import (
    attempt,
    clear_context,
    clears_counted,
    ends,
    logged,
    only,
    open_session,
    outcomes,
    plain_tool,
    seeds,
    settled,
    tool_of,
    watch,
)
from tests.actors.refusing_support import RefusingJournal

# --- A journal that does not take the commit --------------------------------------------------------------------


async def test_a_commit_that_the_journal_refuses_has_not_happened(autojump_clock: MockClock) -> None:
    """Live and logged state agree: no boundary, no seeded turn, and everybody who waits is told the truth."""
    told: list[type[Exception]] = []
    results: list[ClearResult] = []
    gate = Gate()
    model = ScriptedModel([call("wait"), "hi"])

    async def wait_for_it() -> None:
        try:
            await session.send_and_wait("start over", timeout=None)
        except TurnInterrupted as error:
            told.append(type(error))

    async def wait_for_the_clear() -> None:
        try:
            await results[0].settled()
        except ClearRolledBack as error:
            told.append(type(error))

    async with checked_host(journal=RefusingJournal("session.context_cleared")) as host:
        session = await open_session(host, model, plain_tool("wait", gate))
        events = watch(session)
        with trio.fail_after(60):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(wait_for_it)
                await gate.entered()
                result = (await attempt(session)).result
                assert result is not None
                results.append(result)
                nursery.start_soon(wait_for_the_clear)
                await trio.sleep(1)
                gate.open()
        with pytest.raises(ClearRolledBack):
            await results[0].settled()
        assert sorted(error.__name__ for error in told) == ["ClearRolledBack", "TurnInterrupted"]
        assert [e.cause for e in only(events, "session.clear_rolled_back")] == ["interrupted"]
        assert await seeds(session) == []
        assert await outcomes(session) == [("wait", "interrupted")]
        assert await ends(session) == ["interrupted"]

        await session.send_and_wait("hello")
        assert model.requests[1].roles == ("user", "assistant", "tool", "user")
        assert clears_counted(host) == {"rolled_back": 1}
    model.verify()


async def test_a_roll_back_that_the_journal_refuses_is_told_once(autojump_clock: MockClock) -> None:
    async def fail_late() -> str:
        await trio.sleep(5)
        raise RuntimeError("it broke")

    model = ScriptedModel([call("broken"), "hi"])
    async with checked_host(journal=RefusingJournal("tool.execution_complete")) as host:
        session = await open_session(host, model, plain_tool("broken", fail_late))
        events = watch(session)
        await session.send("start over")
        await trio.sleep(1)
        result = (await attempt(session)).result
        assert result is not None
        with pytest.raises(ClearRolledBack, match="interrupted"):
            await result.settled()
        await settled(session)
        assert [e.cause for e in only(events, "session.clear_rolled_back")] == ["interrupted"]
        await session.send_and_wait("hello")
    model.verify()


async def test_who_waits_for_a_turn_whose_end_the_journal_refuses_is_told(autojump_clock: MockClock) -> None:
    model = ScriptedModel(["hi", "hi again"])
    async with checked_host(journal=RefusingJournal("turn.end")) as host:
        session = await open_session(host, model, clear_context)
        with trio.fail_after(60), pytest.raises(TurnInterrupted):
            await session.send_and_wait("hello", timeout=None)
        await settled(session)
        assert (await session.send_and_wait("hello?")).content == "hi again"
    model.verify()


# --- Taken up again (scenario S16) --------------------------------------------------------------------------------


async def test_s16_a_session_taken_up_after_a_clear_has_the_seed_and_what_followed(
    autojump_clock: MockClock,
) -> None:
    model = ScriptedModel(["a secret", CLEAR, "ok", "still ok"])
    async with checked_host() as host:
        session = await open_session(host, model, clear_context, system_message="terse", session_id="one")
        await session.send_and_wait("tell me")
        await session.send_and_wait("start over")
        before = session.history.messages()
        await session.disconnect()

        resumed = await host.resume_session("one")
        assert resumed.history.messages() == before
        assert resumed.statistics().generation == 1
        log = await resumed.get_events()
        assert (log[0].type, [event.seq for event in log]) == ("session.start", list(range(1, len(log) + 1)))
        (boundary,) = await logged(resumed, "session.context_cleared")
        assert boundary.messages_cleared == 4
        assert SessionState.replay(log).summary() == SessionState.replay(log).summary()
        await resumed.send_and_wait("and now?")
        assert model.requests[-1].contents == ("terse", "FRESH", "ok", "and now?")
    model.verify()


@pytest.mark.parametrize("goes_on", [True, False])
async def test_an_unanswered_seed_is_run_by_a_resume_that_is_told_to_go_on(
    autojump_clock: MockClock, goes_on: bool
) -> None:
    looks: list[str] = []

    async def slow(given: Any, _: HookInvocation) -> None:
        looks.append(given.prompt)
        if given.prompt == "FRESH" and looks.count("FRESH") == 1:
            await trio.sleep_forever()

    model = ScriptedModel([CLEAR, "ok", "hi"] if goes_on else [CLEAR, "hi"])
    async with checked_host() as host:
        session = await open_session(
            host, model, clear_context, session_id="one", on_user_prompt_submitted=slow
        )
        await session.send("start over")
        await trio.sleep(1)
        await session.disconnect()
        resumed = await host.resume_session("one", continue_pending_work=goes_on)
        await settled(resumed)
        expected = ["FRESH", "ok"] if goes_on else ["FRESH"]
        assert [m.content for m in resumed.history.messages()] == expected
        await resumed.send_and_wait("hello")
        assert model.requests[-1].contents == (*expected, "hello")
    model.verify()


async def test_a_staged_clear_is_gone_when_the_session_is_taken_up_again(autojump_clock: MockClock) -> None:
    model = ScriptedModel([call("clear"), "hi"])
    async with checked_host() as host:
        session = await open_session(host, model, tool_of("clear", clear_and_sleep), session_id="one")
        await session.send("start over")
        await trio.sleep(1)
        await session.disconnect()
        resumed = await host.resume_session("one", continue_pending_work=True)
        await settled(resumed)
        assert not resumed.statistics().clear_staged
        await resumed.send_and_wait("hello")
        assert model.requests[1].roles == ("user", "assistant", "tool", "user")
        assert await seeds(resumed) == []
    model.verify()
