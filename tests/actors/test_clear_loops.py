"""The guard against a session that does nothing but clear itself, for ever."""

from typing import Any

import pytest
import trio
from trio.testing import MockClock

from exeunt import ClearLoop, HookInvocation, ToolInvocation
from exeunt.testing import ScriptedModel, call, checked_host
from exeunt.testing.crashes import crash_session
from tests.actors.clear_support import (
    Attempt,
    attempt,
    clear_context,
    clears_counted,
    only,
    open_session,
    outcomes,
    read,
    seeds,
    settled,
    tool_of,
    watch,
)

CLEAR = call("clear_context", prompt="AGAIN")
MOST = 16


async def test_sixteen_turns_of_nothing_but_clears_are_allowed_and_the_next_is_refused(
    autojump_clock: MockClock,
) -> None:
    """The first clear answers a message, so it does not count; the model is told, and recovers."""
    model = ScriptedModel([CLEAR] * (1 + MOST + 1) + ["I stop here"])
    async with checked_host() as host:
        session = await open_session(host, model, clear_context)
        events = watch(session)
        reply = await session.send_and_wait("start over")
        assert reply.content == "I stop here"
        assert len(reply.turns) == 1 + MOST + 1
        assert clears_counted(host) == {"committed": 1 + MOST, "loop": 1}
        assert [e.cause for e in only(events, "session.clear_refused")] == ["loop"]
        assert (await outcomes(session))[-1] == ("clear_context", "failure")
        (told,) = model.requests[-1].results.values()
        assert "the last 16 turns took in no message" in told
        assert model.requests[-1].roles == ("user", "assistant", "tool")
        # The refusal ended the row: the turn went on and ended without a clear.
        assert session.statistics().clears_in_a_row == 0
    model.verify()


async def test_a_model_that_does_not_listen_is_refused_again_in_the_same_turn(
    autojump_clock: MockClock,
) -> None:
    """A refused clear is no work: it must not open the way for the next one."""
    model = ScriptedModel([CLEAR] * 6 + ["I stop here"])
    async with checked_host() as host:
        session = await open_session(host, model, clear_context, max_consecutive_clears=2)
        await session.send_and_wait("start over")
        assert clears_counted(host) == {"committed": 3, "loop": 3}
    model.verify()


@pytest.mark.parametrize("most", [0, 1, 3])
async def test_the_number_of_such_turns_is_an_option(autojump_clock: MockClock, most: int) -> None:
    model = ScriptedModel([CLEAR] * (1 + most + 1) + ["I stop here"])
    async with checked_host() as host:
        session = await open_session(host, model, clear_context, max_consecutive_clears=most)
        await session.send_and_wait("start over")
        assert clears_counted(host) == {"committed": 1 + most, "loop": 1}
    model.verify()


async def test_a_refused_loop_changes_nothing_and_says_so(autojump_clock: MockClock) -> None:
    attempts: list[Attempt] = []

    async def clear(invocation: ToolInvocation) -> str:
        attempts.append(await attempt(invocation.session))
        return "tried"

    model = ScriptedModel([call("clear")] * 3 + ["ok"])
    async with checked_host() as host:
        session = await open_session(host, model, tool_of("clear", clear), max_consecutive_clears=1)
        await session.send_and_wait("start over")
        assert [tried.refused for tried in attempts] == [None, None, ClearLoop]
    model.verify()


@pytest.mark.parametrize("mode", ["immediate", "enqueue"])
async def test_a_message_in_between_begins_the_count_anew(autojump_clock: MockClock, mode: Any) -> None:
    """Steered into the row, or queued behind it: a turn that takes in a message is no part of a loop."""
    calls = 0

    async def clear(invocation: ToolInvocation) -> str:
        nonlocal calls
        calls += 1
        if calls == 3:
            await invocation.session.send("by the way", mode=mode)
        await invocation.session.history.clear_context(f"seed {calls}")
        return "cleared"

    # Two in a row are allowed. The third clear comes in the second turn of the row; what it sends is in the turn
    # behind that, or in one of its own after the model has stopped.
    replies: list[Any] = [call("clear")] * 3
    replies += [call("clear")] * 3 if mode == "immediate" else ["done", *([call("clear")] * 3)]
    model = ScriptedModel([*replies, "ok"])
    async with checked_host() as host:
        session = await open_session(host, model, tool_of("clear", clear), max_consecutive_clears=2)
        await session.send_and_wait("start over")
        await trio.sleep(10)
        assert clears_counted(host) == {"committed": 6}
        assert session.statistics().clears_in_a_row == 0
    model.verify()


@pytest.mark.parametrize("where", ["same batch", "earlier step"])
async def test_a_turn_that_also_works_is_no_part_of_a_loop(autojump_clock: MockClock, where: str) -> None:
    turn: list[Any] = [[CLEAR, call("read")]] if where == "same batch" else [call("read"), CLEAR]
    model = ScriptedModel([CLEAR, *(turn * 4), "ok"])
    async with checked_host() as host:
        session = await open_session(host, model, clear_context, read, max_consecutive_clears=1)
        await session.send_and_wait("start over")
        assert clears_counted(host) == {"committed": 5}
    model.verify()


async def test_a_clear_that_was_rolled_back_is_no_work(autojump_clock: MockClock) -> None:
    """A turn that fails to clear and then clears has done nothing else: it counts like any other of the row."""

    async def clear_and_fail(invocation: ToolInvocation) -> str:
        await invocation.session.history.clear_context("LOST")
        raise RuntimeError("it broke")

    turn = [call("clear_and_fail"), CLEAR]
    model = ScriptedModel([CLEAR, *(turn * 2), *turn, "I stop here"])
    async with checked_host() as host:
        session = await open_session(
            host, model, clear_context, tool_of("clear_and_fail", clear_and_fail), max_consecutive_clears=2
        )
        await session.send_and_wait("start over")
        # In the third turn of the row already the one that would fail is refused.
        assert clears_counted(host) == {"committed": 3, "rolled_back": 2, "loop": 2}
        assert await seeds(session) == ["AGAIN"] * 3
    model.verify()


async def test_two_clears_in_one_batch_are_one_turn_of_the_row(autojump_clock: MockClock) -> None:
    """The refused one of each pair is no work either."""
    model = ScriptedModel([[CLEAR, CLEAR]] * 3 + ["I stop here"])
    async with checked_host() as host:
        session = await open_session(host, model, clear_context, max_consecutive_clears=1)
        await session.send_and_wait("start over")
        assert clears_counted(host) == {"committed": 2, "already_staged": 2, "loop": 2}
    model.verify()


async def test_the_row_outlives_a_crash_of_the_actor(autojump_clock: MockClock) -> None:
    """It is read from the log, so a loop cannot go on by crashing in between."""
    seen: list[str] = []

    async def crash_once(given: Any, invocation: HookInvocation) -> None:
        seen.append(given.prompt)
        if len(seen) == 3:
            crash_session(invocation.session)
            await trio.sleep_forever()

    model = ScriptedModel([CLEAR] * 4 + ["I stop here"])
    async with checked_host() as host:
        session = await open_session(
            host, model, clear_context, max_consecutive_clears=2, on_user_prompt_submitted=crash_once
        )
        await session.send("start over")
        await settled(session)
        assert session.statistics().restarts == 1
        assert seen == ["start over", "AGAIN", "AGAIN", "AGAIN", "AGAIN"]
        assert clears_counted(host) == {"committed": 3, "loop": 1}
    model.verify()


async def test_a_clear_by_the_hosts_own_call_is_never_a_loop(autojump_clock: MockClock) -> None:
    model = ScriptedModel(["ok"] * 5)
    async with checked_host() as host:
        session = await open_session(host, model, clear_context, max_consecutive_clears=1)
        for _ in range(5):
            await session.call_tool("clear_context", {"prompt": "FRESH"})
            await trio.sleep(1)
        assert clears_counted(host) == {"committed": 5}
    model.verify()
