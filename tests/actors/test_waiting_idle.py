"""`session.idle`: exactly once when nothing is left to do, on every path, and never before."""

from typing import Any

import pytest
import trio

from exeunt import (
    PromptBlocked,
    RetryPolicy,
    Session,
    SessionHost,
    ToolInvocation,
    TurnAborted,
    TurnFailed,
    TurnInterrupted,
)
from exeunt.actors.events import Event
from exeunt.testing import Gate, ScriptedModel, call, checked_host, fail, hang, say
from tests.actors.session_support import (
    begin,
    count,
    ends,
    only,
    open_session,
    outcomes,
    plain_tool,
    reach,
    settled,
    tool_of,
    watch,
)

NO_RETRIES = RetryPolicy(attempts=0)


def idle_once_at_the_end(events: list[Event]) -> bool:
    """Whether the session said once that it is idle, and nothing after that."""
    return count(events, "session.idle") == 1 and events[-1].type == "session.idle"


async def test_s12_a_model_that_raises(autojump_clock: object) -> None:
    async with checked_host() as host:
        session = await open_session(host, ScriptedModel([fail("overloaded")]), retries=NO_RETRIES)
        events = watch(session)
        with pytest.raises(TurnFailed):
            await session.send_and_wait("A")
        order = [e.type for e in only(events, "session.error", "turn.end", "session.idle")]
        assert order == ["session.error", "turn.end", "session.idle"]
        assert idle_once_at_the_end(events)


async def test_s12_a_model_client_with_a_fault(autojump_clock: object) -> None:
    async with checked_host() as host:
        session = await open_session(
            host, ScriptedModel([fail(ZeroDivisionError("oops"))]), retries=NO_RETRIES
        )
        events = watch(session)
        with pytest.raises(TurnFailed, match="oops"):
            await session.send_and_wait("A")
        assert idle_once_at_the_end(events)
        assert session.statistics().restarts == 0


@pytest.mark.parametrize(
    "hook",
    ["on_session_start", "on_user_prompt_submitted", "on_pre_tool_use", "on_post_tool_use", "on_session_end"],
)
async def test_s12_a_hook_that_raises(autojump_clock: object, hook: str) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("a faulty hook")

    async def work(_: ToolInvocation) -> str:
        await trio.lowlevel.checkpoint()
        return "worked"

    async with checked_host() as host:
        model = ScriptedModel([call("work"), say("done")])
        session = await open_session(host, model, tool_of("work", work), **{hook: broken})
        events = watch(session)
        assert (await session.send_and_wait("A")).content == "done"
        await settled(session)
        assert idle_once_at_the_end(events)
        assert any("a faulty hook" in str(e.error) for e in only(events, "hook.end"))
        denied = hook == "on_pre_tool_use"
        assert await outcomes(session) == [("work", "denied" if denied else "success")]


async def test_s12_a_task_group_of_a_tool_that_raises(autojump_clock: object) -> None:
    async def bursts(_: ToolInvocation) -> str:
        async def fails(text: str) -> None:
            await trio.lowlevel.checkpoint()
            raise RuntimeError(text)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(fails, "first")
            nursery.start_soon(fails, "second")
        return "never"

    async with checked_host() as host:
        model = ScriptedModel([call("bursts"), say("done")])
        session = await open_session(host, model, tool_of("bursts", bursts))
        events = watch(session)
        assert (await session.send_and_wait("A")).content == "done"
        assert await outcomes(session) == [("bursts", "failure")]
        assert idle_once_at_the_end(events)


async def test_s12_input_without_work(autojump_clock: object) -> None:
    def block(*_: object) -> Any:
        return {"decision": "block", "reason": "no"}

    async with checked_host() as host:
        model = ScriptedModel([])
        session = await open_session(host, model, on_user_prompt_submitted=block)
        events = watch(session)
        with pytest.raises(PromptBlocked):
            await session.send_and_wait("A")
        assert idle_once_at_the_end(events)
        assert [e.cause for e in only(events, "message.dropped")] == ["blocked"]
        assert model.requests == []


async def test_s12_an_answer_without_a_word(autojump_clock: object) -> None:
    async with checked_host() as host:
        model = ScriptedModel([say(""), say("hi")])
        session = await open_session(host, model)
        events = watch(session)
        assert (await session.send_and_wait("A")).content == ""
        assert idle_once_at_the_end(events)
        await session.send_and_wait("B")
        assert model.requests[1].contents == ("A", "B")


async def test_s12_a_permission_handler_that_raises(autojump_clock: object) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("a faulty approver")

    async with checked_host() as host:
        model = ScriptedModel([call("work"), say("done")])
        work = plain_tool("work", Gate(), skip_permission=False)
        session = await open_session(host, model, work, on_permission_request=broken)
        events = watch(session)
        await session.send_and_wait("A")
        assert idle_once_at_the_end(events)
        assert await outcomes(session) == [("work", "denied")]


async def abort(session: Session, host: SessionHost) -> None:
    await session.abort()


async def crash(session: Session, host: SessionHost) -> None:
    host.actors()[0].crash("test", RuntimeError("boom"))
    await trio.sleep(1)
    assert session.statistics().restarts == 1


@pytest.mark.parametrize(
    ("end", "error"), [(abort, TurnAborted), (crash, TurnInterrupted)], ids=["abort", "crash"]
)
@pytest.mark.parametrize("phase", ["prompt_hooks", "model", "tools"])
async def test_an_end_from_outside_is_followed_by_one_idle(
    autojump_clock: object, phase: str, end: Any, error: type[Exception]
) -> None:
    async def never(*_: object) -> None:
        if phase == "prompt_hooks":
            await trio.sleep_forever()

    async with checked_host() as host, trio.open_nursery() as nursery:
        model = ScriptedModel([call("wait") if phase == "tools" else hang()], default=say("hi"))
        session = await open_session(host, model, plain_tool("wait", Gate()), on_user_prompt_submitted=never)
        events = watch(session)
        waiting = begin(nursery, session.send_and_wait, "A")
        await reach(session, phase)
        await end(session, host)
        if phase == "prompt_hooks" and end is crash:
            # The message was not in the context: its turn begins again, and hangs in the hook again.
            assert not waiting.done
            await session.abort()
            error = TurnAborted
        assert isinstance((await waiting.wait()).error, error)
        assert idle_once_at_the_end(events)


async def test_no_idle_comes_between_turns_that_follow_each_other(autojump_clock: object) -> None:
    async def at_end(*_: object) -> None:
        await trio.sleep(1)

    async with checked_host() as host:
        model = ScriptedModel([say("one", delay=1), say("two", delay=1), say("three", delay=1)])
        session = await open_session(host, model, on_session_end=at_end)
        events = watch(session)
        await session.send("A")
        await session.send("B")
        await session.send_and_wait("C")
        assert count(events, "session.idle") == 0, "the hook after the last turn has not returned"
        await settled(session)
        assert idle_once_at_the_end(events)
        assert await ends(session) == ["completed"] * 3


async def test_a_message_that_comes_during_the_hook_after_the_turn_puts_the_idle_off(
    autojump_clock: object,
) -> None:
    async def at_end(*_: object) -> None:
        await trio.sleep(1)

    async with checked_host() as host:
        session = await open_session(host, ScriptedModel([say("one"), say("two")]), on_session_end=at_end)
        events = watch(session)
        await session.send("A")
        await reach(session, "session_end_hook")
        await session.send("B")
        await settled(session)
        assert idle_once_at_the_end(events)
        assert await ends(session) == ["completed"] * 2


async def test_a_hook_after_the_turn_that_never_returns_is_left(autojump_clock: object) -> None:
    async def never(*_: object) -> None:
        with trio.CancelScope(shield=True):
            await trio.sleep(500)

    async with checked_host() as host:
        session = await open_session(host, ScriptedModel([say("one")]), on_session_end=never)
        events = watch(session)
        await session.send_and_wait("A")
        await settled(session)
        assert trio.current_time() == pytest.approx(62, abs=0.5)
        assert idle_once_at_the_end(events)
        await trio.sleep(500)


async def test_no_idle_is_said_while_messages_wait_for_another_activation(autojump_clock: object) -> None:
    async with checked_host(settled=False) as host:
        session = await open_session(host, ScriptedModel([hang()]))
        events = watch(session)
        await session.send("A")
        await session.send("B")
        await reach(session, "model")
        await session.disconnect()
        assert count(events, "session.idle") == 0
        assert events[-1].type == "session.shutdown"
