"""Nobody waits for himself: not directly, not through others, and never for long."""

from typing import Any

import pytest
import trio

from exeunt import Session, SessionHost, ToolInvocation, WouldDeadlock
from exeunt.testing import Gate, ScriptedModel, Shielded, call, checked_host, say
from tests.actors.session_support import begin, ends, open_session, outcomes, plain_tool, settled, tool_of

BOUND = 1.0
"""Seconds of virtual time in which a refused wait must be over."""


async def test_a_tool_that_waits_for_its_own_session_gets_an_error(autojump_clock: object) -> None:
    refused: list[WouldDeadlock] = []

    async def ask(invocation: ToolInvocation) -> str:
        session = invocation.session
        for waiting in (session.send_and_wait("B"), session.call_tool("ask")):
            with pytest.raises(WouldDeadlock) as caught:
                await waiting
            refused.append(caught.value)
        return "asked"

    model = ScriptedModel([call("ask"), say("done")])
    async with checked_host() as host:
        session = await open_session(host, model, tool_of("ask", ask))
        with trio.fail_after(BOUND):
            assert (await session.send_and_wait("A")).content == "done"
        assert len(refused) == 2
        assert refused[0].session_id == session.session_id
        assert len(await session.get_events()) > 0
        assert session.statistics().queued == 0
    model.verify()


@pytest.mark.parametrize(
    "hook",
    [
        "on_session_start",
        "on_user_prompt_submitted",
        "on_pre_tool_use",
        "on_post_tool_use",
        "on_post_tool_use_failure",
        "on_error_occurred",
        "on_session_end",
    ],
)
async def test_a_hook_that_waits_for_its_own_session_gets_an_error(autojump_clock: object, hook: str) -> None:
    caught: list[Exception] = []

    async def asks(_: Any, invocation: Any) -> None:
        try:
            await invocation.session.send_and_wait("B")
        except WouldDeadlock as error:
            caught.append(error)

    async def fails(_: ToolInvocation) -> str:
        await trio.lowlevel.checkpoint()
        raise RuntimeError("it broke")

    async def works(_: ToolInvocation) -> str:
        await trio.lowlevel.checkpoint()
        return "worked"

    model = ScriptedModel([[call("works"), call("fails")], say("done")])
    async with checked_host() as host:
        tools = [tool_of("works", works), tool_of("fails", fails)]
        session = await open_session(host, model, *tools, **{hook: asks})
        with trio.fail_after(BOUND):
            assert (await session.send_and_wait("A")).content == "done"
            await settled(session)
        assert caught
        assert await ends(session) == ["completed"]
    model.verify()


async def test_a_permission_handler_that_waits_for_its_own_session_gets_an_error(
    autojump_clock: object,
) -> None:
    caught: list[Exception] = []

    async def approve(_: Any, invocation: Any) -> str:
        try:
            await invocation.session.send_and_wait("B")
        except WouldDeadlock as error:
            caught.append(error)
        return "approve-once"

    async def work(_: ToolInvocation) -> str:
        await trio.lowlevel.checkpoint()
        return "worked"

    model = ScriptedModel([call("work"), say("done")])
    async with checked_host() as host:
        work_tool = tool_of("work", work, skip_permission=False)
        session = await open_session(host, model, work_tool, on_permission_request=approve)
        with trio.fail_after(BOUND):
            await session.send_and_wait("A")
        assert len(caught) == 1
        assert await outcomes(session) == [("work", "success")]


async def chain(host: SessionHost, length: int, last: Any) -> tuple[list[Session], list[Any]]:
    """Sessions of which each asks the next one, from a tool; the last one's tool does *last* with the first."""
    sessions: list[Session] = []
    seen: list[Any] = []

    def ask(number: int) -> Any:
        async def handler(_: ToolInvocation) -> str:
            if number + 1 < length:
                return (await sessions[number + 1].send_and_wait("go on")).content
            seen.append(await last(sessions[0]))
            return "the end"

        return handler

    for number in range(length):
        model = ScriptedModel([call("ask"), say(f"{number} done")], default=say("ok"))
        sessions.append(await open_session(host, model, tool_of("ask", ask(number))))
    return sessions, seen


async def refused(session: Session) -> bool:
    try:
        await session.send_and_wait("back to the first")
    except WouldDeadlock:
        return True
    return False


@pytest.mark.parametrize("length", [2, 3, 5])
async def test_a_circle_of_waiting_sessions_is_refused_where_it_would_close(
    autojump_clock: object, length: int
) -> None:
    async with checked_host() as host:
        sessions, seen = await chain(host, length, refused)
        with trio.fail_after(BOUND):
            assert (await sessions[0].send_and_wait("begin")).content == "0 done"
        assert seen == [True]


async def test_in_a_circle_an_abort_returns_at_once_as_a_request(autojump_clock: object) -> None:
    async def abort(session: Session) -> Any:
        return await session.abort()

    async with checked_host() as host, trio.open_nursery() as nursery:
        sessions, seen = await chain(host, 3, abort)
        first = begin(nursery, sessions[0].send_and_wait, "begin")
        with trio.fail_after(BOUND):
            await first.wait()
        assert type(first.error).__name__ == "TurnAborted"
        assert seen[0].turn is not None
        for session in sessions:
            await settled(session)


async def test_a_circle_through_a_call_of_the_host_is_refused(autojump_clock: object) -> None:
    """A's tool has B run a tool, and that asks A."""
    seen: list[bool] = []

    async def back(_: ToolInvocation) -> str:
        seen.append(await refused(first))
        return "asked"

    async def run(_: ToolInvocation) -> str:
        return (await second.call_tool("back")).content

    async with checked_host() as host:
        first = await open_session(host, ScriptedModel([call("run"), say("done")]), tool_of("run", run))
        second = await open_session(host, ScriptedModel([]), tool_of("back", back))
        with trio.fail_after(BOUND):
            assert (await first.send_and_wait("A")).content == "done"
        assert seen == [True]


async def test_a_circle_through_a_clear_is_refused(autojump_clock: object) -> None:
    """A's tool waits for a clear of B, whose owner asks A."""
    seen: list[bool] = []
    gate = Gate()

    async def owner(_: ToolInvocation) -> str:
        await gate()
        seen.append(await refused(first))
        return "asked"

    async def clear(_: ToolInvocation) -> str:
        result = await second.history.clear_context("FRESH")
        gate.open()
        await result.settled()
        return "cleared"

    async with checked_host() as host:
        first = await open_session(host, ScriptedModel([call("clear"), say("done")]), tool_of("clear", clear))
        second = await open_session(
            host, ScriptedModel([call("owner"), say("on the seed")]), tool_of("owner", owner)
        )
        await second.send("B")
        await gate.entered()
        with trio.fail_after(BOUND):
            assert (await first.send_and_wait("A")).content == "done"
        await settled(second)
        assert seen == [True]


async def test_a_tool_may_wait_for_another_session(autojump_clock: object) -> None:
    async def ask(_: ToolInvocation) -> str:
        return (await other.send_and_wait("B")).content

    async with checked_host() as host:
        other = await open_session(host, ScriptedModel([say("from the other", delay=5)]))
        model = ScriptedModel([call("ask"), say("done")])
        session = await open_session(host, model, tool_of("ask", ask))
        await session.send_and_wait("A")
        assert model.requests[1].contents[-1] == "from the other"


async def test_who_was_only_sent_a_message_may_wait_for_the_sender(autojump_clock: object) -> None:
    """A's tool sends to B and does not wait: B may ask A from a hook, and waits for A's turn to end."""
    replies: list[str] = []

    async def tell(_: ToolInvocation) -> str:
        await second.send("B")
        return "told"

    async def ask(*_: object) -> None:
        replies.append((await first.send_and_wait("from B")).content)

    async with checked_host() as host:
        model = ScriptedModel([call("tell"), say("done", delay=5), say("to B")])
        first = await open_session(host, model, tool_of("tell", tell))
        second = await open_session(host, ScriptedModel([say("ok")]), on_user_prompt_submitted=ask)
        await first.send_and_wait("A")
        await settled(second)
        assert replies == ["to B"]


async def test_a_handler_whose_call_has_timed_out_is_an_ordinary_sender(autojump_clock: object) -> None:
    replies: list[str] = []

    async def late(invocation: ToolInvocation) -> str:
        with trio.CancelScope(shield=True):
            await trio.sleep(5)
            replies.append((await invocation.session.send_and_wait("late")).content)
        return "late"

    model = ScriptedModel([call("late"), say("done"), say("to the late one")])
    async with checked_host() as host:
        session = await open_session(host, model, tool_of("late", late, timeout=2))
        assert (await session.send_and_wait("A")).content == "done"
        await trio.sleep(10)
        assert replies == ["to the late one"]
        assert await outcomes(session) == [("late", "timeout")]
    model.verify()


async def test_a_task_that_a_hook_left_behind_is_an_ordinary_sender(autojump_clock: object) -> None:
    replies: list[str] = []

    async def later(session: Session) -> None:
        await trio.sleep(5)
        replies.append((await session.send_and_wait("later")).content)

    async with checked_host() as host, trio.open_nursery() as nursery:

        async def leave(hook_input: Any, invocation: Any) -> None:
            await trio.lowlevel.checkpoint()
            if hook_input.prompt == "A":
                nursery.start_soon(later, invocation.session)

        model = ScriptedModel([say("done"), say("to the task")])
        session = await open_session(host, model, on_user_prompt_submitted=leave)
        await session.send_and_wait("A")
        await trio.sleep(10)
        assert replies == ["to the task"]
    model.verify()


async def test_a_task_that_a_tool_started_counts_as_the_tool_while_that_runs(autojump_clock: object) -> None:
    seen: list[bool] = []

    async def spawn(invocation: ToolInvocation) -> str:
        async def child() -> None:
            seen.append(await refused(invocation.session))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(child)
            nursery.start_soon(child)
        return "spawned"

    async with checked_host() as host:
        session = await open_session(
            host, ScriptedModel([call("spawn"), say("done")]), tool_of("spawn", spawn)
        )
        with trio.fail_after(BOUND):
            await session.send_and_wait("A")
        assert seen == [True, True]


async def test_a_stuck_tool_does_not_keep_others_from_waiting(autojump_clock: object) -> None:
    model = ScriptedModel([call("stuck"), say("done"), say("again")])
    async with checked_host() as host:
        stuck = Shielded(30)
        session = await open_session(host, model, plain_tool("stuck", stuck, timeout=1))
        began = trio.current_time()
        assert (await session.send_and_wait("A")).content == "done"
        assert (await session.send_and_wait("B")).content == "again"
        assert trio.current_time() - began == pytest.approx(2)
    model.verify()
