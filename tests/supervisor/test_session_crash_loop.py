"""A session that crashes again and again fails alone: everybody is told, nothing is left behind."""

from typing import Any

import pytest
import trio

from exeunt import HostOptions, Session, SessionFailed, SessionHost, ToolInvocation, TurnInterrupted
from exeunt.actors.turn.actor import SessionActor
from exeunt.supervisor import Backoff, RestartIntensity
from exeunt.testing import Gate, ScriptedModel, call, checked_host, hang, say
from tests.actors.session_support import (
    begin,
    count,
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

EXACT = HostOptions(backoff=Backoff(first=0.1, factor=2.0, jitter=0.0), intensity=RestartIntensity(3, 5.0))
GIVEN_UP_AFTER = 0.1 + 0.2 + 0.4


def broken(actor: SessionActor) -> None:
    """A handler that always raises."""
    raise RuntimeError("boom")


def break_down(host: SessionHost, session: Session) -> None:
    """Let the actor of *session* crash for ever."""
    (actor,) = (a for a in host.actors() if a.id == session.session_id)
    actor.put(broken)


async def test_s20_crash_loop(autojump_clock: object) -> None:
    async with checked_host(options=EXACT) as host, trio.open_nursery() as nursery:
        model = ScriptedModel([hang()])
        session = await open_session(host, model)
        other = await open_session(host, ScriptedModel([say("fine", delay=2)]))
        untouched = begin(nursery, other.send_and_wait, "A")
        events = watch(session)
        running = begin(nursery, session.send_and_wait, "A")
        await reach(session, "model")
        queued = begin(nursery, session.send_and_wait, "B")
        await trio.sleep(0.1)
        calling = begin(nursery, session.call_tool, "anything")
        await trio.sleep(0.1)
        began = trio.current_time()
        break_down(host, session)
        during = begin(nursery, session.send_and_wait, "C")
        await during.wait()
        assert trio.current_time() - began == pytest.approx(GIVEN_UP_AFTER)
        restarted = only(events, "session.restarted")
        assert [e.epoch for e in restarted] == [1, 2, 3]
        assert isinstance((await running.wait()).error, TurnInterrupted)
        for result in (queued, calling, during):
            assert isinstance((await result.wait()).error, SessionFailed)
        letters = [(e.entry, e.cause) for e in only(events, "session.dead_letter")]
        assert letters[0] == ("broken", "crash")
        assert [entry for entry, _ in letters].count("accept") == 1
        assert session.statistics().status == "failed"
        assert host.statistics().sessions == {"failed": 1, "live": 1}
        assert count(events, "session.failed") == 1
        assert (await logged(session, "session.failed"))[0].cause == "RuntimeError: boom"
        dropped = [(e.message_id, e.cause) for e in await logged(session, "message.dropped")]
        assert [cause for _, cause in dropped] == ["session_failed"] * 2
        assert session.statistics().mailbox_depth == 0
        assert host.statistics().turns.running == 1
        assert (await untouched.wait()).value.content == "fine"
        assert await ends(other) == ["completed"]
        assert other.statistics().restarts == 0
        metric = host.metrics.registry.get_sample_value
        assert metric("exeunt_actor_restarts_total", {"reason": "crash"}) == 3
    model.verify()


async def test_s20_crash_while_a_clear_is_staged(autojump_clock: object) -> None:
    async def clears(invocation: ToolInvocation) -> str:
        result = await invocation.session.history.clear_context("FRESH")
        staged.append(result)
        await trio.sleep_forever()
        return "never"

    staged: list[Any] = []
    async with checked_host(options=EXACT) as host, trio.open_nursery() as nursery:
        session = await open_session(host, ScriptedModel([call("clears")]), tool_of("clears", clears))
        events = watch(session)
        turn = begin(nursery, session.send_and_wait, "A")
        await reach(session, "tools")
        settling = begin(nursery, staged[0].settled)
        await trio.sleep(0.1)
        break_down(host, session)
        await turn.wait()
        assert isinstance(turn.error, TurnInterrupted)
        assert (await settling.wait()).error is not None
        await trio.sleep(5)
        assert session.statistics().status == "failed"
        assert session.statistics().generation == 0
        assert count(events, "session.clear_rolled_back") == 1
        assert await logged(session, "session.context_cleared") == []


async def test_a_handler_that_raises_at_once_beyond_the_intensity_is_not_restarted(
    autojump_clock: object,
) -> None:
    async with checked_host(options=HostOptions(intensity=RestartIntensity(0, 5.0))) as host:
        session = await open_session(host, ScriptedModel([]))
        events = watch(session)
        break_down(host, session)
        assert session.statistics().status == "failed"
        assert [e.type for e in events] == ["session.dead_letter", "session.failed"]


async def test_the_turn_of_a_session_that_fails_at_once_ends_interrupted_and_its_waiters_are_told(
    autojump_clock: object,
) -> None:
    options = HostOptions(intensity=RestartIntensity(0, 5.0))
    async with checked_host(options=options) as host, trio.open_nursery() as nursery:
        gate = Gate()
        session = await open_session(host, ScriptedModel([call("wait")]), plain_tool("wait", gate))
        turn = begin(nursery, session.send_and_wait, "A")
        await gate.entered()
        aborting = begin(nursery, session.abort)
        break_down(host, session)
        await turn.wait()
        await aborting.wait()
        assert isinstance(turn.error, SessionFailed)
        assert await ends(session) in (["interrupted"], ["aborted"])
        assert gate.running == 0


async def test_everything_asked_of_a_failed_session_is_refused_or_done(autojump_clock: object) -> None:
    async with checked_host(options=HostOptions(intensity=RestartIntensity(0, 5.0))) as host:
        session = await open_session(host, ScriptedModel([say("hi")]))
        await session.send_and_wait("A")
        await settled(session)
        break_down(host, session)
        before = await session.get_events()
        for refused in (session.send, session.send_and_wait, session.call_tool):
            with pytest.raises(SessionFailed) as caught:
                await refused("A")
            assert caught.value.session_id == session.session_id
        receipt = await session.abort()
        assert (receipt.turn, receipt.queued) == (None, 0)
        assert [m.content for m in session.history.messages()] == ["A", "hi"]
        assert await session.get_events() == before
        assert host.get_session(session.session_id).statistics().status == "failed"
        await session.disconnect()
        await session.disconnect()


async def test_a_disconnect_that_waits_while_the_session_fails_returns(autojump_clock: object) -> None:
    async with checked_host(options=EXACT) as host, trio.open_nursery() as nursery:
        session = await open_session(host, ScriptedModel([]))
        break_down(host, session)
        leaving = begin(nursery, session.disconnect)
        aborting = begin(nursery, session.abort)
        await leaving.wait()
        await aborting.wait()
        assert session.statistics().status == "failed"
        assert leaving.error is None
        assert aborting.value.turn is None


async def test_a_failed_session_can_be_taken_up_again(autojump_clock: object) -> None:
    async with checked_host(options=HostOptions(intensity=RestartIntensity(0, 5.0))) as host:
        model = ScriptedModel([say("one"), say("two")])
        session = await open_session(host, model)
        await session.send_and_wait("A")
        break_down(host, session)
        again = await host.resume_session(session.session_id)
        assert again.statistics().status == "live"
        assert (await again.send_and_wait("B")).content == "two"
        assert model.requests[1].contents == ("A", "one", "B")


async def test_a_failed_session_can_be_deleted(autojump_clock: object) -> None:
    async with checked_host(options=HostOptions(intensity=RestartIntensity(0, 5.0))) as host:
        session = await open_session(host, ScriptedModel([]))
        break_down(host, session)
        await host.delete_session(session.session_id)
        assert list(await host.list_sessions()) == []
        assert host.actors() == []


async def test_a_stream_of_a_session_that_fails_ends(autojump_clock: object) -> None:
    async with checked_host(options=EXACT) as host, trio.open_nursery() as nursery:
        session = await open_session(host, ScriptedModel([]))
        seen: list[Any] = []

        async def read() -> None:
            seen.extend([event.type async for event in session.events()])

        nursery.start_soon(read)
        await trio.sleep(0.1)
        break_down(host, session)
        await trio.sleep(5)
        assert seen[-1] == "session.failed"


async def test_a_host_that_ends_during_a_crash_loop_tells_everybody(autojump_clock: object) -> None:
    slow = HostOptions(backoff=Backoff(first=100.0, maximum=1000.0), intensity=RestartIntensity(50, 1e6))
    async with trio.open_nursery() as nursery:
        async with checked_host(options=slow, settled=False) as host:
            session = await open_session(host, ScriptedModel([hang()]))
            running = begin(nursery, session.send_and_wait, "A")
            await reach(session, "model")
            break_down(host, session)
            waiting = begin(nursery, session.send_and_wait, "B")
            calling = begin(nursery, session.call_tool, "anything")
            await trio.sleep(1)
        with trio.fail_after(10):
            for result in (running, waiting, calling):
                await result.wait()
        assert isinstance(running.error, TurnInterrupted)
        assert isinstance(waiting.error, SessionFailed)
        assert isinstance(calling.error, SessionFailed)


async def test_a_host_that_ends_during_a_back_off_does_not_wait_for_it(autojump_clock: object) -> None:
    slow = HostOptions(backoff=Backoff(first=100.0, maximum=1000.0))
    async with trio.open_nursery() as nursery:
        async with checked_host(options=slow, settled=False) as host:
            session = await open_session(host, ScriptedModel([hang()]))
            running = begin(nursery, session.send_and_wait, "A")
            await reach(session, "model")
            host.actors()[0].crash("test", RuntimeError("boom"))
            await trio.sleep(1)
            began = trio.current_time()
        assert trio.current_time() - began < 1
        assert isinstance((await running.wait()).error, TurnInterrupted)
        assert session.statistics().status == "closed"
