"""What a host does between turns: in order with what waits, alone while it is at work, given up with the rest."""

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from exeunt import HostOptions, Session, SessionClosed, SessionHost, TurnAborted
from exeunt.actors.turn import errands, host_calls
from exeunt.actors.turn.actor import SessionActor
from exeunt.actors.turn.errands import Errand
from exeunt.testing import ScriptedModel, after, checked_host
from tests.actors.turn_support import open_session, read


def actor_of(host: SessionHost, session: Session) -> SessionActor:
    """The actor behind a handle."""
    actor = host.find(session.session_id)
    assert actor is not None
    return actor


def sent(actor: SessionActor, text: str = "/errand") -> Errand:
    """Give a session an errand."""
    errand = Errand(actor.new_id(), text)
    actor.put(host_calls.accept, errand)
    return errand


def done(actor: SessionActor, errand: Errand, *, halt: bool = False) -> None:
    """Finish an errand."""
    actor.put(errands.finish, errand, halt)


async def kinds(session: Session) -> list[str]:
    """What has happened, as far as it matters here."""
    wanted = ("user.message", "turn.end")
    found = [event for event in await session.get_events() if event.type in wanted]
    return [getattr(event, "content", "end") for event in found]


async def test_an_errand_has_its_place_in_the_queue_and_nothing_begins_while_it_is_at_work(
    autojump_clock: MockClock,
) -> None:
    model = ScriptedModel([after(10, "1"), "2", "3", "4"])
    async with checked_host() as host:
        session = await open_session(host, model, read)
        actor = actor_of(host, session)
        idles: list[str] = []
        session.on(lambda event: idles.append(event.type) if event.type == "session.idle" else None)
        await session.send("first")
        await session.send("second")
        errand = sent(actor)
        await session.send("third")
        assert [waiting.name for waiting in errands.waiting(actor)] == ["/errand"]
        await errand.waiter.wait()
        assert errands.waiting(actor) == []
        assert await kinds(session) == ["first", "end", "second", "end"]
        assert session.statistics().phase == "errand"
        await session.send("before all others", first=True)
        called = trio.Event()

        async def call_tool() -> None:
            await session.call_tool("read")
            called.set()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(call_tool)
            await trio.sleep(3600)
            assert not called.is_set()
            assert await kinds(session) == ["first", "end", "second", "end"]
            assert idles == []
            done(actor, errand)
        await wait_all_tasks_blocked()
        assert await kinds(session) == [
            "first", "end", "second", "end", "before all others", "end", "third", "end",
        ]  # fmt: skip
        assert idles == ["session.idle"]
        assert session.statistics().phase == "idle"


async def test_an_errand_of_an_idle_session_begins_at_once_and_no_idle_follows_it(
    autojump_clock: MockClock,
) -> None:
    async with checked_host() as host:
        session = await open_session(host, ScriptedModel([]))
        actor = actor_of(host, session)
        logged = actor.state.seq
        first, second = sent(actor), sent(actor)
        assert (first.at_work, second.at_work) == (True, False)
        done(actor, first)
        done(actor, first)
        assert second.at_work
        done(actor, second)
        await first.over.wait()
        assert actor.state.seq == logged
        assert actor.quiescent


async def test_an_errand_may_keep_what_waits_from_beginning_until_something_comes_in(
    autojump_clock: MockClock,
) -> None:
    model = ScriptedModel(["1", "2", "3"])
    async with checked_host() as host:
        session = await open_session(host, model)
        actor = actor_of(host, session)
        errand = sent(actor)
        await session.send("waits")
        behind = sent(actor)
        done(actor, errand, halt=True)
        await trio.sleep(60)
        assert await kinds(session) == []
        assert not behind.at_work
        await session.send("comes in")
        await behind.waiter.wait()
        assert await kinds(session) == ["waits", "end"]
        done(actor, behind)
        await wait_all_tasks_blocked()
        assert await kinds(session) == ["waits", "end", "comes in", "end"]


async def test_an_idle_that_is_owed_comes_also_where_the_rest_is_kept_from_beginning(
    autojump_clock: MockClock,
) -> None:
    async with checked_host() as host:
        session = await open_session(host, ScriptedModel([after(5, "1")]))
        actor = actor_of(host, session)
        idles: list[str] = []
        session.on(lambda event: idles.append(event.type) if event.type == "session.idle" else None)
        await session.send("first")
        errand, behind = sent(actor), sent(actor)
        await errand.waiter.wait()
        assert idles == []
        done(actor, errand, halt=True)
        assert idles == ["session.idle"]
        assert not behind.at_work
        done_with: list[bool] = []
        actor.put(errands.withdraw, behind.errand_id, done_with)
        assert done_with == [True]


async def test_an_abort_gives_up_what_is_at_work_and_drops_what_waits(autojump_clock: MockClock) -> None:
    async with checked_host() as host:
        session = await open_session(host, ScriptedModel(["never", "said"]))
        actor = actor_of(host, session)
        errand, behind = sent(actor), sent(actor)
        await session.send("dropped")
        await session.abort()
        for waiter in (errand.over, behind.waiter):
            with pytest.raises(TurnAborted):
                await waiter.wait()
        done(actor, errand)
        assert await kinds(session) == []
        assert actor.quiescent


async def test_an_abort_that_keeps_the_queue_goes_on_with_it(autojump_clock: MockClock) -> None:
    async with checked_host() as host:
        session = await open_session(host, ScriptedModel(["1"]))
        actor = actor_of(host, session)
        errand, behind = sent(actor), sent(actor)
        await session.send("kept")
        await session.abort("keep")
        with pytest.raises(TurnAborted):
            await errand.over.wait()
        await behind.waiter.wait()
        done(actor, errand)
        assert behind.at_work
        done(actor, behind)
        await wait_all_tasks_blocked()
        assert await kinds(session) == ["kept", "end"]


async def test_who_waits_with_an_errand_is_told_that_the_session_has_left(autojump_clock: MockClock) -> None:
    async with checked_host() as host:
        session = await open_session(host, ScriptedModel([]))
        actor = actor_of(host, session)
        errand, behind = sent(actor), sent(actor)
        await session.disconnect()
        for waiter in (errand.over, behind.waiter):
            with pytest.raises(SessionClosed):
                await waiter.wait()
        done(actor, errand)


async def test_an_errand_at_work_stands_through_a_crash(autojump_clock: MockClock) -> None:
    async with checked_host() as host:
        session = await open_session(host, ScriptedModel(["1"]))
        actor = actor_of(host, session)
        errand = sent(actor)
        await session.send("behind")
        actor.crash("a test", RuntimeError("on purpose"))
        assert actor.status == "restarting"
        await trio.sleep(60)
        assert await kinds(session) == []
        done(actor, errand)
        await wait_all_tasks_blocked()
        assert await kinds(session) == ["behind", "end"]


async def test_an_errand_keeps_its_session_in_memory(autojump_clock: MockClock) -> None:
    async with checked_host(options=HostOptions(passivate_after=5)) as host:
        session = await open_session(host, ScriptedModel([]))
        actor = actor_of(host, session)
        errand = sent(actor)
        await trio.sleep(60)
        assert host.find(session.session_id) is actor
        done(actor, errand)
        await trio.sleep(60)
        assert host.find(session.session_id) is None


async def test_only_an_errand_that_waits_can_be_withdrawn(autojump_clock: MockClock) -> None:
    async with checked_host() as host:
        session = await open_session(host, ScriptedModel([]))
        actor = actor_of(host, session)
        errand, behind = sent(actor), sent(actor)
        withdrawn: list[bool] = []
        for each in (errand.errand_id, behind.errand_id, behind.errand_id, "nothing"):
            actor.put(errands.withdraw, each, withdrawn)
        assert withdrawn == [False, True, False, False]
        with pytest.raises(TurnAborted, match="withdrawn"):
            await behind.waiter.wait()
        done(actor, errand)
