"""A turn leaves no cycles behind, however it ends: so a host may let the garbage collector look rarely."""

import gc
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from exeunt import (
    Session,
    SessionHost,
    ToolInvocation,
    TurnAborted,
    approve_all,
    ask_user_tool,
    leave_pending,
    tool,
)
from exeunt.testing import ScriptedModel, call, say
from exeunt.testing.checked_host import checked_host
from exeunt.testing.replies import Reply

TURNS = 20
"""Enough that what one turn leaves is not taken for what a first use leaves."""


@tool
async def look_up(word: str) -> str:
    """Look a word up."""
    return f"{word}: a way out"


@tool
async def fail() -> str:
    """Fail."""
    raise RuntimeError("no such page")


@tool(timeout=1.0)
async def hang() -> str:
    """Take for ever."""
    await trio.sleep_forever()
    return "never"


@tool(is_terminal=True)
async def clear(invocation: ToolInvocation) -> str:
    """Clear the context."""
    await invocation.session.history.clear_context("Go on.")
    return "cleared"


@tool(is_terminal=True)
async def submit(answer: int) -> str:
    """Hand in the answer."""
    return f"accepted {answer}"


ENDINGS: dict[str, list[Reply]] = {
    "plain": [say("hi")],
    "a tool call": [call("look_up", word="exit"), say("found")],
    "parallel calls": [[call("look_up", word="exit"), call("look_up", word="exeunt")], say("found")],
    "a terminal call": [call("submit", answer=42)],
    "a failing tool": [call("fail"), say("sorry")],
    "wrong arguments": [call("look_up", word=7), say("sorry")],
    "an unknown tool": [call("no_such_tool"), say("sorry")],
    "a time-out": [call("hang"), say("sorry")],
    "a clear": [call("clear"), say("went on")],
}
"""What the model answers to one message, by how the turn ends."""


@asynccontextmanager
async def collector_off() -> AsyncGenerator[Callable[[], list[str]]]:
    """Keep the collector from running in the body; yield what names the objects in cycles since then."""
    # What other tests have left behind may take several rounds: its finalizers leave more.
    rounds = range(10)
    assert any(gc.collect() == 0 for _ in rounds)
    gc.disable()
    try:
        yield unreachable_types
    finally:
        gc.enable()


def unreachable_types() -> list[str]:
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        gc.collect()
        return sorted(type(each).__qualname__ for each in gc.garbage)
    finally:
        gc.set_debug(0)
        gc.garbage.clear()


async def open_session(host: SessionHost, model: ScriptedModel) -> Session:
    tools = [look_up, fail, hang, clear, submit]
    return await host.create_session(model=model, tools=tools, on_permission_request=approve_all)


@pytest.mark.parametrize("replies", ENDINGS.values(), ids=ENDINGS)
async def test_a_turn_leaves_no_cyclic_garbage(replies: list[Reply], autojump_clock: MockClock) -> None:
    model = ScriptedModel(replies * (TURNS + 1))
    async with checked_host() as host:
        session = await open_session(host, model)
        await session.send_and_wait("the first turn fills caches")
        async with collector_off() as unreachable:
            for _ in range(TURNS):
                await session.send_and_wait("again")
            assert unreachable() == []
    model.verify()


async def test_an_aborted_turn_leaves_no_cyclic_garbage(autojump_clock: MockClock) -> None:
    model = ScriptedModel([call("hang")] * (TURNS + 1))
    async with checked_host() as host:
        session = await open_session(host, model)
        await begin_and_abort(session)
        async with collector_off() as unreachable:
            for _ in range(TURNS):
                await begin_and_abort(session)
            assert unreachable() == []
    model.verify()


async def begin_and_abort(session: Session) -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(expect_abort, session)
        await wait_all_tasks_blocked()
        await session.abort()


async def expect_abort(session: Session) -> None:
    with pytest.raises(TurnAborted):
        await session.send_and_wait("begin")


async def test_a_session_that_came_and_went_leaves_no_cyclic_garbage(autojump_clock: MockClock) -> None:
    model = ScriptedModel([say("hi")] * (TURNS + 1))
    async with checked_host() as host:
        await come_and_go(host, model)
        async with collector_off() as unreachable:
            for _ in range(TURNS):
                await come_and_go(host, model)
            assert unreachable() == []
    model.verify()


async def come_and_go(host: SessionHost, model: ScriptedModel) -> None:
    session = await open_session(host, model)
    await session.send_and_wait("hello")
    await host.delete_session(session.session_id)


ASKING: dict[str, tuple[Reply, object]] = {
    "an approval from elsewhere": (call("merge"), "approved"),
    "a rejection from elsewhere": (call("merge"), "reject"),
    "an approval that nobody gives": (call("merge"), None),
    "an answer": (call("ask_user", question="Which?"), "red"),
    "an answer that nobody gives": (call("ask_user", question="Which?"), None),
}


@tool(approval_timeout=5.0)
async def merge() -> str:
    """Merge it."""
    return "merged"


@pytest.mark.parametrize(("asks", "answer"), ASKING.values(), ids=ASKING)
async def test_what_people_are_asked_leaves_no_cyclic_garbage(
    asks: Reply, answer: object, autojump_clock: MockClock
) -> None:
    model = ScriptedModel([asks, say("done")] * (TURNS + 1))
    async with checked_host() as host:
        session = await host.create_session(
            model=model,
            tools=[merge, ask_user_tool(timeout=5.0)],
            on_permission_request=leave_pending,
            on_user_input_request=leave_pending,
        )
        await ask_and_answer(session, answer)
        async with collector_off() as unreachable:
            for _ in range(TURNS):
                await ask_and_answer(session, answer)
            assert unreachable() == []
    model.verify()


async def ask_and_answer(session: Session, answer: object) -> None:
    await session.send("go")
    await wait_all_tasks_blocked()
    (request,) = session.pending_requests()
    if answer is not None:
        await session.answer(request.request_id, answer)
        await wait_all_tasks_blocked()
    else:
        await trio.sleep(6)
    assert session.statistics().phase == "idle"
