"""Who leaves memory and who stays, and what a session is like while it is away."""

from typing import Any

import pytest
import trio

from exeunt import (
    AbortReceipt,
    HostOptions,
    InvalidConfiguration,
    NoToolCallInFlight,
    SessionClosed,
    SessionExists,
    SessionNotFound,
    SessionPassive,
)
from exeunt.testing import Gate, ScriptedModel, Shielded, call, checked_host, crash_session
from tests.actors.session_support import begin, open_session, plain_tool, reach, settled, watch
from tests.supervisor.passivation_support import (
    AFTER,
    MoodyJournal,
    idle_away,
    numbers,
    passivating,
    take,
    talker,
)

# --- When ----------------------------------------------------------------------------------------------------


async def test_a_session_leaves_after_it_was_idle_for_the_time_and_not_before(autojump_clock: object) -> None:
    async with passivating() as host:
        session = await open_session(host, talker("one"))
        await trio.sleep(AFTER - 1)
        await session.send_and_wait("A")
        await trio.sleep(AFTER - 1)
        assert session.statistics().status == "live"
        await trio.sleep(2)
        assert session.statistics().status == "passive"
        assert host.actors() == []
        assert host.passivation is not None
        assert host.passivation.left == 1


async def test_a_session_that_was_never_used_leaves_too(autojump_clock: object) -> None:
    async with passivating() as host:
        await idle_away(await open_session(host, talker()))


async def test_nobody_leaves_a_host_that_was_not_told_so(autojump_clock: object) -> None:
    async with checked_host() as host:
        session = await open_session(host, talker("one"))
        await session.send_and_wait("A")
        await trio.sleep(1_000 * AFTER)
        assert session.statistics().status == "live"


async def test_a_session_with_a_long_tool_stays_and_leaves_when_that_has_ended(
    autojump_clock: object,
) -> None:
    async def minute() -> str:
        await trio.sleep(60)
        return "done"

    async with passivating() as host:
        session = await open_session(
            host, ScriptedModel([call("minute"), "ok"]), plain_tool("minute", minute)
        )
        await session.send("A")
        await trio.sleep(59)
        assert session.statistics().status == "live"
        await trio.sleep(2)
        await idle_away(session)


async def test_a_session_leaves_after_a_call_of_the_host(autojump_clock: object) -> None:
    gate = Gate()
    async with passivating() as host, trio.open_nursery() as nursery:
        session = await open_session(host, talker(), plain_tool("gate", gate))
        called = begin(nursery, session.call_tool, "gate")
        await trio.sleep(5 * AFTER)
        assert session.statistics().status == "live"
        gate.open()
        assert str((await called.wait()).value.outcome) == "success"
        await idle_away(session)


async def test_a_session_stays_while_a_handler_has_not_come_back(autojump_clock: object) -> None:
    async with passivating() as host:
        stuck = plain_tool("stuck", Shielded(100))
        session = await open_session(host, ScriptedModel([call("stuck")]), stuck)
        await session.send("A")
        await reach(session, "tools")
        await session.abort()
        await settled(session)
        await trio.sleep(5 * AFTER)
        assert session.statistics().status == "live"
        assert host.statistics().stuck_handlers == 1
        await trio.sleep(100)
        assert session.statistics().status == "passive"


async def test_a_session_stays_while_messages_wait_that_nobody_goes_on_with(autojump_clock: object) -> None:
    journal = MoodyJournal()
    async with checked_host(journal=journal, settled=False) as host:
        gate = Gate()
        session = await open_session(host, ScriptedModel([call("gate")]), plain_tool("gate", gate))
        await session.send("A")
        await gate.entered()
        await session.send("B")
        name = session.session_id
    async with passivating(journal=journal) as host:
        model = talker("b", "c")
        session = await host.resume_session(name, model=model)
        await trio.sleep(10 * AFTER)
        assert session.statistics().status == "live"
        assert (await session.send_and_wait("C")).content == "c"
        await idle_away(session)
        model.verify()


async def test_a_failed_session_stays(autojump_clock: object) -> None:
    async with passivating() as host:
        session = await open_session(host, talker())
        for _ in range(4):
            crash_session(session)
        await trio.sleep(5 * AFTER)
        assert session.statistics().status == "failed"


async def test_a_crash_while_it_is_idle_lets_the_session_leave_after_its_restart(
    autojump_clock: object,
) -> None:
    async with passivating() as host:
        session = await open_session(host, talker("one", "two"))
        await session.send_and_wait("A")
        crash_session(session)
        await trio.sleep(3 * AFTER)
        assert session.statistics().status == "passive"
        assert (await session.send_and_wait("B")).content == "two"
        assert session.statistics().restarts == 1


@pytest.mark.parametrize("options", [{"passivate_after": 0}, {"passivate_after": -1}, {"most_live": 0}])
def test_bounds_that_make_no_sense_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidConfiguration):
        HostOptions(**options)


# --- The most that may be in memory ----------------------------------------------------------------------------


async def test_the_session_used_longest_ago_makes_room(autojump_clock: object) -> None:
    async with passivating(most_live=2) as host:
        first = await open_session(host, talker("one"), session_id="first")
        await open_session(host, talker(), session_id="second")
        await trio.sleep(1)
        await first.send_and_wait("A")
        await open_session(host, talker(), session_id="third")
        await trio.sleep(1)
        assert [actor.id for actor in host.actors()] == ["first", "third"]
        await host.resume_session("second")
        await trio.sleep(1)
        assert [actor.id for actor in host.actors()] == ["third", "second"]
        assert host.statistics().sessions == {"live": 2, "passive": 1}


async def test_sessions_at_work_never_make_room(autojump_clock: object) -> None:
    gate = Gate()
    async with passivating(most_live=1) as host:
        busy = [
            await open_session(host, ScriptedModel([call("gate"), "ok"]), plain_tool("gate", gate))
            for _ in range(3)
        ]
        for session in busy:
            await session.send("A")
        await trio.sleep(100)
        assert len(host.actors()) == 3
        gate.open()
        await trio.sleep(1)
        assert [session.statistics().status for session in busy].count("live") == 1


async def test_a_waking_makes_room_for_itself(autojump_clock: object) -> None:
    async with passivating(most_live=1) as host:
        one = await open_session(host, talker("1", "3"))
        two = await open_session(host, talker("2", "4"))
        replies = [(await each.send_and_wait("A")).content for each in (one, two, one, two)]
        assert replies == ["1", "2", "3", "4"]
        await trio.sleep(1)
        assert len(host.actors()) == 1


# --- While it is away --------------------------------------------------------------------------------------------


async def test_nothing_but_work_wakes_a_session(autojump_clock: object) -> None:
    journal = MoodyJournal()
    async with passivating(journal=journal) as host:
        session = await open_session(host, talker("one"), tenant="mine")
        await session.send_and_wait("A")
        was = session.statistics()
        await idle_away(session)
        now = session.statistics()
        assert (now.events, now.messages, now.generation) == (was.events, 2, 0)
        assert session.tenant == "mine"
        assert len(await session.get_events()) == was.events
        assert numbers(await session.get_events(3)) == list(range(3, was.events + 1))
        assert len(await host.journal.read(session.session_id)) == was.events
        (listed,) = await host.list_sessions()
        assert (listed.live, listed.events) == (False, was.events)
        watch(session)
        async with session.events(from_seq=1) as stream:
            assert numbers(await take(stream, was.events)) == list(range(1, was.events + 1))
        receipt = await session.abort()
        assert receipt == AbortReceipt(None, (), 0)
        with pytest.raises(InvalidConfiguration):
            await session.send("B", mode="later")  # type: ignore[arg-type]
        await trio.sleep(1)
        assert session.statistics().status == "passive"
        assert host.actors() == []
        assert journal.opened == 1  # by this test, for journal.read()
        assert repr(session).endswith(" passive>")


async def test_reading_an_unknown_session_makes_nothing(autojump_clock: object) -> None:
    async with passivating() as host:
        with pytest.raises(SessionNotFound):
            host.get_session("nobody")
        with pytest.raises(SessionNotFound):
            await host.journal.read("nobody")
        with pytest.raises(SessionNotFound):
            await host.resume_session("nobody")
        assert list(await host.list_sessions()) == []
        assert host.actors() == []
        assert host.statistics().sessions == {}
        assert host.journal.statistics().sessions == 0


async def test_the_context_of_a_passive_session_is_not_claimed_to_be_known(autojump_clock: object) -> None:
    async with passivating() as host:
        session = await open_session(host, talker("one"))
        history = session.history
        await session.send_and_wait("A")
        await idle_away(session)
        with pytest.raises(SessionPassive, match="resuming it"):
            history.messages()
        with pytest.raises(NoToolCallInFlight):
            await history.clear_context("seed")
        await host.resume_session(session.session_id)
        assert [message.content for message in history.messages()] == ["A", "one"]


async def test_the_id_of_a_passive_session_is_taken(autojump_clock: object) -> None:
    async with passivating() as host:
        session = await open_session(host, talker("one"), session_id="mine")
        await idle_away(session)
        with pytest.raises(SessionExists):
            await open_session(host, talker(), session_id="mine")
        assert (await session.send_and_wait("A")).content == "one"


async def test_the_end_of_a_host_ends_the_handles_and_streams_of_passive_sessions(
    autojump_clock: object,
) -> None:
    async with trio.open_nursery() as nursery:
        async with passivating() as host:
            session = await open_session(host, talker())
            stream = session.events()
            ended = begin(nursery, take, stream, 10**9)
            await idle_away(session)
        assert ((await ended.wait()).value, ended.error) == ([], None)
    assert session.statistics().status == "closed"
    with pytest.raises(SessionClosed):
        await session.send("A")


@pytest.mark.parametrize("waiting", [False, True])
async def test_a_passive_session_can_be_deleted(autojump_clock: object, waiting: bool) -> None:
    async with passivating() as host, trio.open_nursery() as nursery:
        session = await open_session(host, talker(), session_id="mine")
        stream = session.events()
        reader = begin(nursery, take, stream, 10**9) if waiting else None
        await idle_away(session)
        await host.delete_session("mine")
        assert list(await host.list_sessions()) == []
        assert host.statistics().sessions == {}
        with pytest.raises(SessionClosed):
            await session.send("A")
        if reader is None:
            reader = begin(nursery, take, stream, 10**9)
        assert (await reader.wait()).error is None
        other = await open_session(host, talker("one"), session_id="mine")
        assert (await other.send_and_wait("B")).content == "one"
        with pytest.raises(SessionClosed):
            await session.send("A")


async def test_a_passive_session_can_be_disconnected(autojump_clock: object) -> None:
    async with passivating() as host, trio.open_nursery() as nursery:
        session = await open_session(host, talker("one"))
        events = watch(session)
        other = host.get_session(session.session_id)
        await idle_away(session)
        reader = begin(nursery, take, session.events(from_seq=1), 10**9)
        await trio.sleep(1)
        await session.disconnect()
        assert [event.type for event in events] == ["session.shutdown"]
        assert [event.type for event in (await reader.wait()).value] == ["session.start", "session.shutdown"]
        assert host.actors() == []
        assert host.statistics().sessions == {}
        for handle in (session, other):
            assert handle.statistics().status == "closed"
            with pytest.raises(SessionClosed):
                await handle.send("A")
        again = await host.resume_session(session.session_id)
        assert (await again.send_and_wait("A")).content == "one"


async def test_passive_sessions_are_a_metric_of_their_own(autojump_clock: object) -> None:
    async with passivating() as host:
        sessions = [await open_session(host, talker("one")) for _ in range(3)]
        await idle_away(*sessions)
        await sessions[0].send_and_wait("A")
        registry = host.metrics.registry
        shown = {
            s: registry.get_sample_value("exeunt_sessions", {"state": s})
            for s in ("live", "passive", "other")
        }
        assert (shown["live"], shown["passive"], shown["other"] or 0) == (1, 2, 0)


async def test_the_first_session_to_leave_does_not_hide_the_others(autojump_clock: object) -> None:
    async with passivating() as host:
        first = await open_session(host, talker("one"))
        await trio.sleep(4)
        second = await open_session(host, talker())
        await trio.sleep(4)
        await first.send_and_wait("A")
        await trio.sleep(4)
        assert [each.statistics().status for each in (first, second)] == ["live", "live"]
        await trio.sleep(3)
        assert [each.statistics().status for each in (first, second)] == ["live", "passive"]
        await trio.sleep(4)
        assert first.statistics().status == "passive"
