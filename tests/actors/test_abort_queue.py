"""What an abort does with the messages that wait, and what it tells whom."""

from typing import Any

import pytest
import trio
import trio.lowlevel

from exeunt import HostOptions, InvalidConfiguration, ToolInvocation, TurnAborted
from exeunt.testing import Gate, ScriptedModel, call, checked_host, hang, say
from tests.actors.session_support import (
    begin,
    count,
    dropped,
    ends,
    logged,
    only,
    open_session,
    plain_tool,
    reach,
    settled,
    tool_of,
    watch,
)


async def test_an_abort_drops_queued_and_steered_messages_each_with_its_event(autojump_clock: object) -> None:
    model = ScriptedModel([hang(), say("hi")])
    async with checked_host() as host, trio.open_nursery() as nursery:
        session = await open_session(host, model)
        events = watch(session)
        await session.send("A")
        await reach(session, "model")
        queued = [await session.send("B"), await session.send("C")]
        steered = await session.send("D", mode="immediate")
        waiting = begin(nursery, session.send_and_wait, "E")
        calling = begin(nursery, session.call_tool, "anything")
        await trio.sleep(1)
        receipt = await session.abort()
        assert receipt.queued == 4
        gone = await dropped(session)
        assert {cause for _, cause in gone} == {"aborted"}
        assert {message for message, _ in gone} > {*queued, steered}
        assert len(gone) == 4
        for waiter in (waiting, calling):
            assert isinstance((await waiter.wait()).error, TurnAborted)
        assert await ends(session) == ["aborted"]
        order = [e.type for e in only(events, "message.dropped", "turn.end", "session.idle")]
        assert order == [*["message.dropped"] * 4, "turn.end", "session.idle"]
        await session.send_and_wait("hello")
        assert model.requests[1].contents == ("A", "hello")
    model.verify()


async def test_an_abort_that_keeps_the_queue_goes_on_with_it(autojump_clock: object) -> None:
    model = ScriptedModel([hang(), say("to D"), say("to B")])
    async with checked_host() as host, trio.open_nursery() as nursery:
        session = await open_session(host, model)
        events = watch(session)
        first = begin(nursery, session.send_and_wait, "A")
        await reach(session, "model")
        queued = begin(nursery, session.send_and_wait, "B")
        await trio.sleep(1)
        await session.send("D", mode="immediate")
        receipt = await session.abort("keep")
        assert receipt.queued == 2
        assert isinstance((await first.wait()).error, TurnAborted)
        assert (await queued.wait()).value.content == "to B"
        assert await dropped(session) == []
        assert [e.content for e in await logged(session, "user.message")] == ["A", "D", "B"]
        await settled(session)
        assert count(events, "session.idle") == 1
        assert not only(events, "session.idle")[0].aborted
    model.verify()


async def test_a_message_in_the_hand_of_a_turn_that_waits_is_dropped_with_it(autojump_clock: object) -> None:
    async with checked_host(options=HostOptions(running_turns=1)) as host:
        other = await open_session(host, ScriptedModel([say("free", delay=10)]))
        session = await open_session(host, ScriptedModel([say("to B")]))
        await other.send("in the way")
        first = await session.send("A")
        await session.send("B")
        receipt = await session.abort("keep")
        assert receipt.queued == 1
        assert await dropped(session) == [(first, "aborted")]
        await settled(session)
        assert [e.content for e in await logged(session, "user.message")] == ["B"]


async def test_an_abort_of_an_idle_session_does_nothing(autojump_clock: object) -> None:
    async with checked_host() as host:
        session = await open_session(host, ScriptedModel([say("hi")]))
        await session.send_and_wait("A")
        await settled(session)
        events = watch(session)
        before = await session.get_events()
        receipt = await session.abort()
        assert (receipt.turn, receipt.tools_cancelled, receipt.queued) == (None, (), 0)
        assert events == []
        assert await session.get_events() == before


async def test_two_aborts_at_once_are_one(autojump_clock: object) -> None:
    async def cleans_up(_: ToolInvocation) -> str:
        try:
            await trio.sleep_forever()
        finally:
            with trio.CancelScope(shield=True):
                await trio.sleep(0.5)
        return "never"

    model = ScriptedModel([call("slow"), say("hi")])
    async with checked_host() as host, trio.open_nursery() as nursery:
        session = await open_session(host, model, tool_of("slow", cleans_up))
        events = watch(session)
        await session.send("A")
        await reach(session, "tools")
        first = begin(nursery, session.abort)
        await trio.sleep(0.2)
        second = begin(nursery, session.abort)
        await first.wait()
        await second.wait()
        assert first.value == second.value
        assert first.value.tools_cancelled == ("call_1",)
        assert count(events, "abort") == 1
        assert count(events, "turn.end") == 1
        assert count(events, "session.idle") == 1
        await session.send_and_wait("hello")


async def test_a_message_that_comes_while_the_abort_is_under_way_is_answered(autojump_clock: object) -> None:
    async def cleans_up(_: ToolInvocation) -> str:
        try:
            await trio.sleep_forever()
        finally:
            with trio.CancelScope(shield=True):
                await trio.sleep(0.5)
        return "never"

    model = ScriptedModel([call("slow"), say("to B")])
    async with checked_host() as host, trio.open_nursery() as nursery:
        session = await open_session(host, model, tool_of("slow", cleans_up))
        await session.send("A")
        await reach(session, "tools")
        begin(nursery, session.abort)
        await trio.sleep(0.2)
        steered = begin(nursery, session.send_and_wait, "B")
        assert (await steered.wait()).value.content == "to B"
        assert await ends(session) == ["aborted", "completed"]
    model.verify()


async def test_an_abort_from_the_own_tool_returns_at_once(autojump_clock: object) -> None:
    after: list[object] = []

    async def gives_up(invocation: ToolInvocation) -> str:
        await gate.entered()
        began = trio.current_time()
        receipt = await invocation.session.abort()
        after.append((receipt.turn, receipt.tools_cancelled, trio.current_time() - began))
        await trio.lowlevel.checkpoint()
        after.append("not reached")
        return "gave up"

    gate = Gate()
    model = ScriptedModel([[call("gives_up"), call("other")], say("hi")])
    async with checked_host() as host:
        session = await open_session(host, model, tool_of("gives_up", gives_up), plain_tool("other", gate))
        events = watch(session)
        with pytest.raises(TurnAborted) as caught:
            await session.send_and_wait("A")
        assert after == [(caught.value.turn_id, (), 0.0)]
        assert gate.calls[0].how == "cancelled"
        assert [str(e.outcome) for e in only(events, "tool.execution_complete")] == ["cancelled"] * 2
        assert await ends(session) == ["aborted"]
        await session.send_and_wait("hello")
    model.verify()


@pytest.mark.parametrize("hook", ["on_user_prompt_submitted", "on_pre_tool_use", "on_post_tool_use"])
async def test_an_abort_from_a_hook_returns_at_once(autojump_clock: object, hook: str) -> None:
    turns: list[Any] = []

    async def stop(_: Any, invocation: Any) -> None:
        if not turns:
            turns.append((await invocation.session.abort()).turn)

    async def work(_: ToolInvocation) -> str:
        await trio.lowlevel.checkpoint()
        return "worked"

    model = ScriptedModel([call("work")], default=say("hi"))
    async with checked_host() as host:
        session = await open_session(host, model, tool_of("work", work), **{hook: stop})
        events = watch(session)
        with trio.fail_after(0.5), pytest.raises(TurnAborted):
            await session.send_and_wait("A")
        assert turns == [only(events, "turn.end")[0].turn_id]
        assert await ends(session) == ["aborted"]
        await session.send_and_wait("hello")


async def test_an_abort_from_a_permission_handler_returns_at_once(autojump_clock: object) -> None:
    async def stop(_: Any, invocation: Any) -> str:
        await invocation.session.abort()
        return "approve-once"

    ran = Gate()
    model = ScriptedModel([call("work"), say("hi")])
    async with checked_host() as host:
        work = plain_tool("work", ran, skip_permission=False)
        session = await open_session(host, model, work, on_permission_request=stop)
        with trio.fail_after(0.5), pytest.raises(TurnAborted):
            await session.send_and_wait("A")
        assert ran.calls == []
        assert await ends(session) == ["aborted"]
        (asked,) = await logged(session, "permission.requested")
        (answered,) = await logged(session, "permission.completed")
        assert answered.request_id == asked.request_id
        await session.send_and_wait("hello")


async def test_an_unknown_way_to_treat_the_queue_is_refused(autojump_clock: object) -> None:
    async with checked_host() as host:
        session = await open_session(host, ScriptedModel([hang()]))
        await session.send("A")
        with pytest.raises(InvalidConfiguration, match="maybe"):
            await session.abort("maybe")  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
        assert session.statistics().turn_id is not None
        await session.abort()


async def test_who_asks_for_an_abort_and_is_cancelled_has_asked(autojump_clock: object) -> None:
    async with checked_host() as host:
        session = await open_session(host, ScriptedModel([hang()]))
        await session.send("A")
        await reach(session, "model")
        with trio.CancelScope() as scope:
            scope.cancel()
            await session.abort()
        await settled(session)
        assert await ends(session) == ["aborted"]


async def test_the_reason_of_an_abort_is_in_the_log(autojump_clock: object) -> None:
    async with checked_host() as host:
        session = await open_session(host, ScriptedModel([hang()]))
        await session.send("A")
        await reach(session, "model")
        receipt = await session.abort(reason="remote_command")
        (event,) = await logged(session, "abort")
        assert (event.reason, event.turn_id) == ("remote_command", receipt.turn)
