"""`ClearResult.settled()`: hosts wait for the end of a clear that they staged, and are told which it was."""

from typing import Any

import pytest
import trio
from trio.testing import MockClock

from exeunt import ClearResult, ClearRolledBack, Session, SessionError, ToolInvocation, WouldDeadlock
from exeunt.testing import Gate, ScriptedModel, call, checked_host, say
from exeunt.testing.crashes import crash_session
from tests.actors.clear_support import (
    attempt,
    clears_counted,
    open_session,
    plain_tool,
    seeds,
    settled,
    tool_of,
)


async def _staged(session: Session) -> ClearResult:
    result = (await attempt(session)).result
    assert result is not None
    return result


async def test_settled_returns_at_the_commit_before_the_seeded_answer(autojump_clock: MockClock) -> None:
    gate = Gate()
    model = ScriptedModel([call("wait"), say("ok", delay=60)])
    async with checked_host() as host:
        session = await open_session(host, model, plain_tool("wait", gate))
        await session.send("start over")
        await gate.entered()
        result = await _staged(session)
        gate.open()
        await result.settled()
        assert await seeds(session) == ["FRESH"]
        assert session.statistics().phase == "model"
        await settled(session)
    model.verify()


@pytest.mark.parametrize("committed", [True, False])
async def test_settled_may_be_awaited_by_many_often_and_late(
    autojump_clock: MockClock, committed: bool
) -> None:
    ends: list[str] = []
    gate = Gate()

    async def wait_and_maybe_fail() -> str:
        await gate()
        if not committed:
            raise RuntimeError("it broke")
        return "waited"

    async def note(result: ClearResult) -> None:
        try:
            await result.settled()
        except ClearRolledBack:
            ends.append("rolled back")
        else:
            ends.append("committed")

    model = ScriptedModel([call("wait"), "ok"])
    async with checked_host() as host:
        session = await open_session(host, model, plain_tool("wait", wait_and_maybe_fail))
        await session.send("start over")
        await gate.entered()
        result = await _staged(session)
        async with trio.open_nursery() as nursery:
            for _ in range(3):
                nursery.start_soon(note, result)
            await trio.sleep(1)
            gate.open()
        await settled(session)
        await note(result)
        await note(result)
        assert ends == ["committed" if committed else "rolled back"] * 5
    model.verify()


async def test_a_rolled_back_clear_names_session_and_cause(autojump_clock: MockClock) -> None:
    model = ScriptedModel([call("slow"), "never mind"])
    async with checked_host() as host:
        session = await open_session(host, model, plain_tool("slow", trio.sleep_forever, timeout=5))
        await session.send("start over")
        await trio.sleep(1)
        result = await _staged(session)
        with pytest.raises(ClearRolledBack, match="timeout") as caught:
            await result.settled()
        assert isinstance(caught.value, SessionError)
        assert caught.value.session_id == session.session_id
        await settled(session)
    model.verify()


@pytest.mark.parametrize("how", ["abort", "disconnect", "crash", "crash loop"])
async def test_settled_is_never_left_waiting(autojump_clock: MockClock, how: str) -> None:
    """Whatever ends the clear, those who wait for it and those who ask afterwards are told that it did not happen."""
    gate = Gate()
    told: list[str] = []
    model = ScriptedModel([call("wait")])

    async def note(result: ClearResult) -> None:
        with pytest.raises(ClearRolledBack) as caught:
            await result.settled()
        told.append(str(caught.value))

    async with checked_host() as host:
        session = await open_session(host, model, plain_tool("wait", gate))
        await session.send("start over")
        await gate.entered()
        result = await _staged(session)
        with trio.fail_after(60):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(note, result)
                await trio.sleep(1)
                if how == "abort":
                    await session.abort()
                elif how == "disconnect":
                    await session.disconnect()
                else:
                    for _ in range(1 if how == "crash" else 4):
                        crash_session(session)
                        await trio.sleep(0.5)
            await note(result)
        cause = {"abort": "aborted", "disconnect": "stopped"}.get(how, "interrupted")
        assert told == [f"the clear was rolled back: {cause}"] * 2
        assert clears_counted(host) == {"rolled_back": 1}
    model.verify()


async def test_a_handler_that_waits_for_its_own_clear_gets_an_error_instead_of_a_dead_lock(
    autojump_clock: MockClock,
) -> None:
    errors: list[Exception] = []

    async def clear(invocation: ToolInvocation) -> str:
        result = await invocation.session.history.clear_context("FRESH")
        with pytest.raises(WouldDeadlock, match="settled") as caught:
            await result.settled()
        errors.append(caught.value)
        return "cleared"

    model = ScriptedModel([call("clear"), "ok"])
    async with checked_host() as host:
        session = await open_session(host, model, tool_of("clear", clear))
        assert (await session.send_and_wait("start over")).content == "ok"
        assert len(errors) == 1
    model.verify()


async def test_a_sibling_that_the_clear_waits_for_cannot_wait_for_the_clear(
    autojump_clock: MockClock,
) -> None:
    results: list[ClearResult] = []
    errors: list[Exception] = []

    async def clear(invocation: ToolInvocation) -> str:
        results.append(await invocation.session.history.clear_context("FRESH"))
        return "cleared"

    async def wait_for_it(_: ToolInvocation) -> str:
        await trio.sleep(1)
        with pytest.raises(WouldDeadlock) as caught:
            await results[0].settled()
        errors.append(caught.value)
        return "went on"

    model = ScriptedModel([[call("clear"), call("wait_for_it")], "ok"])
    async with checked_host() as host:
        session = await open_session(
            host, model, tool_of("clear", clear), tool_of("wait_for_it", wait_for_it)
        )
        await session.send_and_wait("start over")
        assert len(errors) == 1
        assert clears_counted(host) == {"committed": 1}
    model.verify()


async def test_a_handler_that_is_over_may_wait_for_the_clear_of_its_session(
    autojump_clock: MockClock,
) -> None:
    """The clear does not wait for a task that the handler has left behind."""
    gate = Gate()
    done: list[str] = []

    async def clear(invocation: ToolInvocation) -> str:
        result = await invocation.session.history.clear_context("FRESH")
        nursery.start_soon(note_end, result)
        return "cleared"

    async def note_end(result: ClearResult) -> None:
        await trio.sleep(1)
        await result.settled()
        done.append("settled")

    model = ScriptedModel([[call("clear"), call("wait")], "ok"])
    async with checked_host() as host, trio.open_nursery() as nursery:
        session = await open_session(host, model, tool_of("clear", clear), plain_tool("wait", gate))
        await session.send("start over")
        await trio.sleep(2)
        assert done == []
        gate.open()
        await settled(session)
        assert done == ["settled"]
    model.verify()


async def test_a_cancelled_wait_leaves_the_clear_as_it_is(autojump_clock: MockClock) -> None:
    gate = Gate()
    model = ScriptedModel([call("wait"), "ok"])
    async with checked_host() as host:
        session = await open_session(host, model, plain_tool("wait", gate))
        await session.send("start over")
        await gate.entered()
        result = await _staged(session)
        with trio.move_on_after(5) as scope:
            await result.settled()
        assert scope.cancelled_caught
        assert session.statistics().clear_staged
        gate.open()
        await result.settled()
        await settled(session)
        assert clears_counted(host) == {"committed": 1}
    model.verify()


async def test_several_senders_of_one_clearing_turn_all_get_the_reply(autojump_clock: MockClock) -> None:
    """One result for each: a turn may have taken in the messages of any number of waiting tasks."""
    gate = Gate()
    contents: list[str] = []
    model = ScriptedModel([call("wait"), "ok"])

    async def ask(session: Session, prompt: str, mode: Any) -> None:
        contents.append((await session.send_and_wait(prompt, mode=mode)).content)

    async with checked_host() as host:
        session = await open_session(host, model, plain_tool("wait", gate))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask, session, "start over", "enqueue")
            await gate.entered()
            for number in range(3):
                nursery.start_soon(ask, session, f"by the way {number}", "immediate")
            await trio.testing.wait_all_tasks_blocked()
            await _staged(session)
            gate.open()
        assert contents == ["ok"] * 4
    model.verify()
