"""What a turn leaves behind: nothing that only the cycle collector could find."""

import gc
import logging
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from typing import Any

import pytest
import trio

from exeunt import (
    ReplyTimeout,
    RetryPolicy,
    Session,
    SessionHost,
    ToolInvocation,
    TurnAborted,
    TurnFailed,
    TurnInterrupted,
)
from exeunt.testing import Gate, ScriptedModel, Sleepy, call, checked_host, fail, hang, say
from tests.actors.session_support import begin, open_session, plain_tool, reach, settled, tool_of


@contextmanager
def no_cycles() -> Generator[None]:
    """Fail if the block makes garbage of ours that only the collector finds."""
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        yield
        gc.collect()
        found = [item for item in gc.garbage if _is_ours(item)]
        assert not found, f"{len(found)} objects: {sorted({_name(item) for item in found})}"
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()
        gc.collect()


def _name(item: object) -> str:
    code = getattr(item, "f_code", None) or getattr(getattr(item, "tb_frame", None), "f_code", None)
    where = "" if code is None else f" {code.co_qualname} of {code.co_filename.rpartition('/')[2]}"
    return f"{type(item).__module__}.{type(item).__qualname__}{where}"


def _is_ours(item: object) -> bool:
    name = _name(item)
    return name.startswith("exeunt") or "frame " in name or "Error" in name


async def succeed(session: Session) -> None:
    await session.send_and_wait("A")


async def model_error(session: Session) -> None:
    with pytest.raises(TurnFailed):
        await session.send_and_wait("fail")


async def tool_error(session: Session) -> None:
    await session.send_and_wait("broken")


async def tool_timeout(session: Session) -> None:
    await session.send_and_wait("slow")


async def reply_timeout(session: Session) -> None:
    with pytest.raises(ReplyTimeout):
        await session.send_and_wait("hang", timeout=1)
    await session.abort()


async def abort(session: Session) -> None:
    await session.send("wait")
    await reach(session, "tools")
    await session.abort()


async def abort_with_a_waiter(session: Session) -> None:
    async def wait() -> None:
        with pytest.raises(TurnAborted):
            await session.send_and_wait("wait")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait)
        await reach(session, "tools")
        await session.abort()


async def clear(session: Session) -> None:
    await session.send_and_wait("clear")


async def clear_rolled_back(session: Session) -> None:
    await session.send_and_wait("clear_and_fail")


async def call_tool(session: Session) -> None:
    await session.call_tool("quick")


async def cancelled_waiter(session: Session) -> None:
    with trio.move_on_after(1):
        await session.send_and_wait("hang")
    await session.abort()


def reply(request: Any) -> Any:
    last = request.messages[-1]
    if last.role != "user":
        return say("ok")
    if last.content == "fail":
        return fail("bad_request")
    if last.content == "hang":
        return hang()
    names = ("wait", "clear", "clear_and_fail", "broken", "slow")
    return call(last.content) if last.content in names else [call("quick"), call("quick")]


async def clearing(invocation: ToolInvocation) -> str:
    await invocation.session.history.clear_context("FRESH")
    return "cleared"


async def clearing_and_failing(invocation: ToolInvocation) -> str:
    await invocation.session.history.clear_context("FRESH")
    raise RuntimeError("not after all")


async def raising(_: ToolInvocation) -> str:
    await trio.lowlevel.checkpoint()
    raise RuntimeError("it broke")


async def make(host: SessionHost, **options: Any) -> Session:
    return await open_session(
        host,
        ScriptedModel([], default=reply, record=False),
        plain_tool("quick", Sleepy(0.1, "quick")),
        plain_tool("wait", Gate()),
        plain_tool("slow", Sleepy(), timeout=1),
        tool_of("clear", clearing, is_terminal=True),
        tool_of("clear_and_fail", clearing_and_failing),
        tool_of("broken", raising),
        retries=RetryPolicy(attempts=0),
        **options,
    )


TURNS: list[Callable[[Session], Awaitable[None]]] = [
    succeed,
    model_error,
    tool_error,
    tool_timeout,
    reply_timeout,
    abort,
    abort_with_a_waiter,
    clear,
    clear_rolled_back,
    call_tool,
    cancelled_waiter,
]


@pytest.mark.parametrize("streaming", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("turn", TURNS, ids=lambda turn: turn.__name__)
async def test_a_turn_leaves_no_cyclic_garbage(
    autojump_clock: object, turn: Callable[[Session], Awaitable[None]], streaming: bool
) -> None:
    async with checked_host() as host:
        session = await make(host, streaming=streaming)
        await turn(session)
        await settled(session)
        with no_cycles():
            for _ in range(3):
                await turn(session)
                await settled(session)


async def come_and_go(host: SessionHost, number: int) -> None:
    session = await make(host)
    await session.send_and_wait("A")
    if number % 5 == 0:
        with trio.move_on_after(0.01):
            await session.send_and_wait("hang")
        await session.abort()
    if number % 2:
        await session.disconnect()
    await host.delete_session(session.session_id)


async def test_sessions_that_are_gone_leave_nothing(autojump_clock: object) -> None:
    async with checked_host() as host:
        for number in range(50):
            await come_and_go(host, number)
        gc.collect()
        actors = [item for item in gc.get_objects() if type(item).__name__ == "SessionActor"]
        assert [actor for actor in actors if actor.host is host] == []
        assert len(host.timers) == 0
        statistics = host.statistics()
        assert dict(statistics.sessions) == {}
        assert statistics.turns.running == statistics.turns.waiting == 0
        assert statistics.turns.tenants == {}
        assert statistics.tools.running == 0


async def test_a_session_that_crashed_leaves_nothing_of_before(
    autojump_clock: object, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL, "exeunt.actors")  # a record keeps the traceback of its error
    async with checked_host() as host:
        session = await make(host)
        for _ in range(3):
            async with trio.open_nursery() as nursery:
                waiting = begin(nursery, session.send_and_wait, "wait")
                await reach(session, "tools")
                host.actors()[0].crash("test", RuntimeError("boom"))
                await waiting.wait()
            assert isinstance(waiting.error, TurnInterrupted)
            del waiting
            await trio.sleep(10)
        gc.collect()
        turns = [item for item in gc.get_objects() if type(item).__name__ in ("Turn", "Batch", "Call")]
        ours = [item for item in turns if type(item).__module__.startswith("exeunt.actors.turn")]
        assert [item for item in ours if getattr(item, "actor", None) is host.actors()[0]] == []
        assert len(host.timers) == 0
        await settled(session)
