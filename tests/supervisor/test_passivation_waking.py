"""How a session comes back: once, with everything, and in the order in which it is called."""

from collections.abc import Callable
from typing import Any

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from exeunt import (
    ApproveForSession,
    InvalidPrompt,
    JournalError,
    PermissionRequest,
    ReplyTimeout,
    Session,
    SessionClosed,
    SessionHost,
    ToolInvocation,
    WouldDeadlock,
)
from exeunt.actors.events import Event
from exeunt.testing import Gate, ScriptedModel, Shielded, call, crash_session, run_virtual, say
from tests.actors.session_support import (
    Result,
    begin,
    logged,
    open_session,
    plain_tool,
    settled,
    tool_of,
    watch,
)
from tests.supervisor.passivation_support import (
    AFTER,
    MoodyJournal,
    idle_away,
    numbers,
    passivating,
    take,
    talker,
)


async def echo() -> str:
    await trio.lowlevel.checkpoint()
    return "echo"


# --- What wakes, and what comes back -------------------------------------------------------------------------


async def by_send(_: SessionHost, session: Session) -> None:
    await session.send("B")
    await settled(session)


async def by_send_and_wait(_: SessionHost, session: Session) -> None:
    await session.send_and_wait("B")


async def by_call_tool(_: SessionHost, session: Session) -> None:
    outcome = await session.call_tool("echo")
    assert (str(outcome.outcome), outcome.content) == ("success", "echo")


async def by_resume(host: SessionHost, session: Session) -> None:
    again = await host.resume_session(session.session_id)
    assert again.statistics().status == "live"
    assert await logged(session, "session.resume") == []


@pytest.mark.parametrize("wake", [by_send, by_send_and_wait, by_call_tool, by_resume])
async def test_work_wakes_a_session(autojump_clock: object, wake: Callable[..., Any]) -> None:
    async with passivating() as host:
        model = ScriptedModel([say("one"), say("two")])
        session = await open_session(host, model, plain_tool("echo", echo), system_message="Be brief.")
        await session.send_and_wait("A")
        await idle_away(session)
        await wake(host, session)
        assert session.statistics().status == "live"
        if model.calls == 1:
            await session.send_and_wait("B")
        assert model.requests[1].contents == ("Be brief.", "A", "one", "B")
        assert len(await logged(session, "system.message")) == 1
        await idle_away(session)
        model.verify()


async def test_a_message_in_the_very_tick_of_the_leaving_is_answered(autojump_clock: object) -> None:
    rounds = 40
    async with passivating() as host:
        assert host.passivation is not None
        session = await open_session(host, ScriptedModel([], default=say("well")))
        for _ in range(rounds):
            await trio.sleep(AFTER)
            assert (await session.send_and_wait("A")).content == "well"
        # Chance decided who was first: each has been.
        assert 0 < host.passivation.left < rounds


async def test_what_was_approved_for_the_session_and_the_greeting_are_remembered(
    autojump_clock: object,
) -> None:
    asked: list[str] = []
    greeted: list[str] = []

    async def approve(request: PermissionRequest, _: Any) -> ApproveForSession:
        await trio.lowlevel.checkpoint()
        asked.append(request.tool_name)
        return ApproveForSession()

    def greet(event: Any, _: Any) -> None:
        greeted.append(event.source)

    async with passivating() as host:
        model = ScriptedModel([call("echo"), "one", call("echo"), "two"])
        session = await open_session(
            host,
            model,
            plain_tool("echo", echo, skip_permission=False),
            on_permission_request=approve,
            on_session_start=greet,
        )
        await session.send_and_wait("A")
        await idle_away(session)
        assert (await session.send_and_wait("B")).content == "two"
        assert (asked, greeted) == (["echo"], ["new"])


async def test_subscribers_and_streams_see_every_event_once_across_leavings(autojump_clock: object) -> None:
    async with passivating() as host, trio.open_nursery() as nursery:
        session = await open_session(host, talker("one", "two", "three"))
        events = watch(session)
        live = session.events()
        reader = begin(nursery, take, session.events(from_seq=1), 19)
        await session.send_and_wait("A")
        await idle_away(session)
        late = watch(session)
        late_stream = session.events()
        place = events[-2].id
        await session.send_and_wait("B")
        await idle_away(session)
        behind = session.events(after=place)
        await session.send_and_wait("C")
        total = session.statistics().events
        assert total == 19
        assert numbers(events) == numbers(await take(live, total)) == list(range(2, total + 1))
        assert numbers((await reader.wait()).value) == list(range(1, total + 1))
        assert numbers(late) == numbers(await take(late_stream, total)) == list(range(8, total + 1))
        assert numbers(await take(behind, total))[-1] == total
        assert len({event.id for event in events}) == len(events)


async def test_a_subscription_ends_also_while_the_session_is_away(autojump_clock: object) -> None:
    async with passivating() as host:
        session = await open_session(host, talker("one", "two"))
        stays: list[Event] = []
        ends: list[Event] = []
        end = session.on(ends.append)
        session.on(stays.append)
        stream = session.events()
        await idle_away(session)
        assert session.statistics().subscribers == 3
        end()
        end()
        await stream.aclose()
        assert session.statistics().subscribers == 1
        await session.send_and_wait("A")
        assert ends == []
        assert stays != []
        assert session.statistics().subscribers == 1


async def test_a_subscription_made_while_the_session_comes_back_is_not_lost(autojump_clock: object) -> None:
    journal = MoodyJournal()
    async with passivating(journal=journal) as host, trio.open_nursery() as nursery:
        session = await open_session(host, talker("one"))
        await idle_away(session)
        journal.seconds = 2.0
        reply = begin(nursery, session.send_and_wait, "A")
        await trio.sleep(1)
        events = watch(session)
        await reply.wait()
        assert numbers(events) == [2, 3, 4, 5, 6, 7]


async def test_every_handle_works_after_any_number_of_leavings(autojump_clock: object) -> None:
    async with passivating() as host:
        session = await open_session(host, ScriptedModel([], default=say("well")))
        handles = [session]
        for _ in range(3):
            await handles[-1].send_and_wait("A")
            handles.append(await host.resume_session(session.session_id))
            await idle_away(session)
        first, last = handles[0].statistics(), handles[-1].statistics()
        assert first == last
        for handle in handles:
            assert (await handle.send_and_wait("B")).content == "well"
            await idle_away(handle)
        assert len(host.actors()) == 0


# --- Several at once -----------------------------------------------------------------------------------------------


async def answered(order: list[int], slow: float) -> tuple[list[str], int, int]:
    """Send messages to a passive session at once; return what the model heard, the openings, and the actors."""
    journal = MoodyJournal()
    async with passivating(journal=journal) as host, trio.open_nursery() as nursery:
        model = ScriptedModel([], default=say("well"))
        session = await open_session(host, model)
        await idle_away(session)
        journal.seconds = slow
        results: list[Result] = []
        for number in order:
            # As tasks that run now, in this order, up to their first wait.
            results.append(begin(nursery, session.send_and_wait, f"message {number}"))
            await trio.sleep(0.01)
        for result in results:
            assert (await result.wait()).value.content == "well"
        actors = len(host.actors())
    return [request.contents[-1] for request in model.requests], journal.opened, actors


@given(st.permutations(range(8)), st.sampled_from([0.0, 0.02, 5.0]))
def test_eight_messages_at_once_make_one_actor_and_are_answered_in_order(
    order: list[int], slow: float
) -> None:
    heard, opened, actors = run_virtual(answered, order, slow)
    assert heard == [f"message {number}" for number in order]
    assert (opened, actors) == (1, 1)


async def test_messages_and_a_resume_at_once_make_one_actor(autojump_clock: object) -> None:
    journal = MoodyJournal()
    async with passivating(journal=journal) as host, trio.open_nursery() as nursery:
        session = await open_session(host, ScriptedModel([], default=say("well")))
        await idle_away(session)
        journal.seconds = 1.0
        begun = [
            begin(nursery, session.send_and_wait, "A"),
            begin(nursery, host.resume_session, session.session_id),
        ]
        begun += [begin(nursery, session.send_and_wait, "B"), begin(nursery, session.call_tool, "none")]
        for result in begun:
            assert (await result.wait()).error is None
        assert journal.opened == 1
        assert len(host.actors()) == 1


async def test_a_waker_that_is_cancelled_hurts_nobody_and_sends_nothing(autojump_clock: object) -> None:
    journal = MoodyJournal()
    async with passivating(journal=journal) as host, trio.open_nursery() as nursery:
        model = ScriptedModel([], default=say("well"))
        session = await open_session(host, model)
        await idle_away(session)
        journal.seconds = 5.0
        with trio.move_on_after(1):
            await session.send("never")
        replies = [begin(nursery, session.send_and_wait, text) for text in "AB"]
        with trio.move_on_after(1):
            await session.send_and_wait("never")
        for reply in replies:
            assert (await reply.wait()).error is None
        assert sorted(request.contents[-1] for request in model.requests) == ["A", "B"]
        assert journal.opened == 1


async def test_a_session_comes_back_also_when_nobody_waits_for_it_any_more(autojump_clock: object) -> None:
    journal = MoodyJournal()
    async with passivating(journal=journal) as host:
        session = await open_session(host, talker("one"))
        await idle_away(session)
        journal.seconds = 5.0
        with trio.move_on_after(1):
            await session.send("never")
        await trio.sleep(5)
        assert (await session.send_and_wait("A")).content == "one"
        await idle_away(session)


async def test_the_time_of_a_waking_counts_for_the_time_out(autojump_clock: object) -> None:
    journal = MoodyJournal()
    async with passivating(journal=journal) as host:
        model = ScriptedModel([], default=say("well"))
        session = await open_session(host, model)
        await idle_away(session)
        journal.seconds = 30.0
        began = trio.current_time()
        with pytest.raises(ReplyTimeout) as caught:
            await session.send_and_wait("never", timeout=20)
        assert (trio.current_time() - began, caught.value.phase) == (20, "waking")
        assert (await session.send_and_wait("A", timeout=20)).content == "well"
        assert model.calls == 1


async def test_a_deadlock_through_a_session_that_was_away_is_found(autojump_clock: object) -> None:
    async with passivating() as host:

        async def ask(_: ToolInvocation) -> str:
            return (await other.send_and_wait("and you?")).content

        async def ask_back(_: ToolInvocation) -> str:
            with pytest.raises(WouldDeadlock):
                await session.send_and_wait("no, you?")
            return "refused"

        session = await open_session(host, ScriptedModel([call("ask"), "fine"]), tool_of("ask", ask))
        other = await open_session(host, ScriptedModel([call("back"), "well"]), tool_of("back", ask_back))
        await idle_away(session, other)
        assert (await session.send_and_wait("ask")).content == "fine"


# --- When it goes wrong -----------------------------------------------------------------------------------------


async def test_a_log_that_cannot_be_read_leaves_the_session_passive(autojump_clock: object) -> None:
    journal = MoodyJournal()
    async with passivating(journal=journal) as host, trio.open_nursery() as nursery:
        session = await open_session(host, talker("one"))
        await idle_away(session)
        journal.error, journal.seconds = JournalError("the disk is gone"), 1.0
        calls: list[tuple[Any, Any]] = [
            (session.send, "A"),
            (session.send_and_wait, "B"),
            (session.call_tool, "t"),
        ]
        failed = [begin(nursery, function, argument) for function, argument in calls]
        errors = [(await result.wait()).error for result in failed]
        assert [type(error) for error in errors] == [JournalError] * 3
        assert len({id(error) for error in errors}) == 3
        assert session.statistics().status == "passive"
        assert host.statistics().sessions == {"passive": 1}
        journal.error = None
        assert (await session.send_and_wait("C")).content == "one"
        assert [event.prompt for event in await logged(session, "message.accepted")] == ["C"]


@pytest.mark.parametrize("prompt", [7, "\ud800"])
async def test_what_cannot_be_sent_wakes_nobody(autojump_clock: object, prompt: Any) -> None:
    journal = MoodyJournal()
    async with passivating(journal=journal) as host:
        session = await open_session(host, talker())
        await idle_away(session)
        for function in (session.send, session.send_and_wait):
            with pytest.raises(InvalidPrompt):
                await function(prompt)
        assert (session.statistics().status, journal.opened) == ("passive", 0)


async def test_a_crash_right_after_a_waking_loses_nothing(autojump_clock: object) -> None:
    async with passivating() as host:
        session = await open_session(host, talker("one", "two"))
        events = watch(session)
        await session.send_and_wait("A")
        await idle_away(session)
        await host.resume_session(session.session_id)
        crash_session(session)
        assert (await session.send_and_wait("B")).content == "two"
        assert numbers(events) == list(range(2, session.statistics().events + 1))
        await idle_away(session)


async def test_what_was_sent_while_the_host_ends_is_refused(autojump_clock: object) -> None:
    journal = MoodyJournal()
    async with trio.open_nursery() as nursery:
        async with passivating(journal=journal) as host:
            session = await open_session(host, talker())
            await idle_away(session)
            journal.seconds = 1.0
            results = [begin(nursery, session.send, "A"), begin(nursery, session.send_and_wait, "B")]
            await trio.sleep(0.5)
        for result in results:
            assert isinstance((await result.wait()).error, SessionClosed)


async def test_a_session_that_is_back_while_the_host_ends_takes_nothing(autojump_clock: object) -> None:
    journal = MoodyJournal()
    async with trio.open_nursery() as nursery:
        async with passivating(journal=journal, settled=False) as host:
            session = await open_session(host, talker())
            await idle_away(session)
            # The end of the host takes a second: so long has this handler to clean up.
            busy = await open_session(host, ScriptedModel([call("stuck")]), plain_tool("stuck", Shielded(3)))
            await busy.send("A")
            await trio.sleep(0.1)
            journal.seconds = 0.5
            sent = begin(nursery, session.send, "B")
            await trio.sleep(0.1)
        assert isinstance((await sent.wait()).error, SessionClosed)
        assert [event.type for event in await journal.read(session.session_id)] == ["session.start"]


async def test_a_session_that_is_deleted_while_it_comes_back_is_gone(autojump_clock: object) -> None:
    journal = MoodyJournal()
    async with passivating(journal=journal) as host, trio.open_nursery() as nursery:
        session = await open_session(host, ScriptedModel([], default=say("well")))
        await idle_away(session)
        journal.seconds = 1.0
        sent = begin(nursery, session.send_and_wait, "A")
        await trio.sleep(0.5)
        await host.delete_session(session.session_id)
        await sent.wait()
        assert host.statistics().sessions == {}
        assert list(await host.list_sessions()) == []


async def test_a_disconnect_of_a_session_that_is_at_work_after_waking(autojump_clock: object) -> None:
    gate = Gate()
    async with passivating() as host:
        session = await open_session(host, ScriptedModel([call("gate")]), plain_tool("gate", gate))
        await idle_away(session)
        await session.send("A")
        await gate.entered()
        await session.disconnect()
        assert host.statistics().sessions == {}
