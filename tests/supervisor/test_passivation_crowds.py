"""Many sessions that leave and come back: bounds, memory, and what is kept of each."""

# These tests look at what stays in memory, which is nobody else's business.
# pyright: reportPrivateUsage=false

import gc
import sys
import tracemalloc
import weakref

import pytest
import trio

from exeunt import HostOptions, Session, SessionOptions, build_options, open_host
from exeunt.supervisor.journal import MemoryJournal, SessionMetadata
from exeunt.testing import ScriptedModel, call, checked_host, say
from tests.actors.session_support import begin, open_session, plain_tool
from tests.supervisor.passivation_support import AFTER, idle_away, passivating, talker

LIMIT = 256
"""Bytes that a passive session may take in memory, its options not counted."""


async def minute() -> str:
    await trio.sleep(60)
    return "done"


def ask_all(nursery: trio.Nursery, sessions: list[Session]) -> None:
    """Send each a message. A function of its own, that no variable of a test keeps the last one."""
    for session in sessions:
        nursery.start_soon(session.send_and_wait, "A")


async def test_s18_passivation_under_load_a_thousand_idle_sessions_leave_and_the_busy_one_stays(
    autojump_clock: object,
) -> None:
    model = ScriptedModel([], default=say("well"))
    async with passivating() as host, trio.open_nursery() as nursery:
        gc.collect()
        objects = len(gc.get_objects())
        sessions = [await open_session(host, model) for _ in range(1_000)]
        ask_all(nursery, sessions)
        busy = await open_session(host, ScriptedModel([call("minute"), "ok"]), plain_tool("minute", minute))
        reply = begin(nursery, busy.send_and_wait, "A", 100)
        actors = weakref.WeakSet(host.actors())
        assert len(actors) == 1_001
        hit = sessions[123]
        # In the very tick in which all the others leave.
        await trio.sleep(AFTER)
        assert (await hit.send_and_wait("B")).content == "well"
        await trio.sleep(1)
        assert {actor.id for actor in host.actors()} == {busy.session_id, hit.session_id}
        assert host.statistics().sessions == {"live": 2, "passive": 999}
        await idle_away(*sessions)
        assert [actor.id for actor in host.actors()] == [busy.session_id]
        assert (await reply.wait()).value.content == "ok"
        await idle_away(*sessions, busy)
        # What reads of sessions that there are and that there are not leave behind: nothing.
        assert all([await session.get_events() for session in sessions[:10]])
        assert host.actors() == []
        names = [session.session_id for session in sessions]
        del sessions, busy, hit, reply
        gc.collect()
        # All that is left of each: its log, and what the checks of this test note.
        assert list(actors) == []
        assert len(gc.get_objects()) - objects < 40 * len(names)


async def test_no_more_are_in_memory_than_may_be(autojump_clock: object) -> None:
    async with passivating(most_live=50) as host:
        model = ScriptedModel([], default=say("well"))
        sessions = [await open_session(host, model) for _ in range(300)]
        await trio.sleep(1)
        assert len(host.actors()) == 50
        most = 0
        for session in sessions:
            await session.send_and_wait("A")
            most = max(most, len(host.actors()))
        assert most <= 51
        assert host.statistics().sessions == {"live": len(host.actors()), "passive": 300 - len(host.actors())}


async def test_a_crowd_leaves_in_parts_so_that_the_loop_goes_on(autojump_clock: object) -> None:
    async with passivating() as host:
        model = talker()
        for _ in range(1_200):
            await open_session(host, model)
        left: list[int] = []
        passivation = host.passivation
        assert passivation is not None
        sweep = passivation._sweep

        def counted() -> float:
            before = passivation.left
            wait = sweep()
            left.append(passivation.left - before)
            return wait

        passivation._sweep = counted  # type: ignore[method-assign]
        # The sweep that waits already is not counted; this one wakes it early.
        await trio.sleep(1)
        passivation.idle(host.actors()[0].id)
        await trio.sleep(2 * AFTER)
        assert host.actors() == []
        assert passivation.left == 1_200
        assert max(left) <= 500


async def test_an_actor_that_has_left_is_freed_without_the_collector(autojump_clock: object) -> None:
    async with passivating() as host:
        session = await open_session(host, talker("one"))
        await session.send_and_wait("A")
        gc.collect()
        gc.disable()
        try:
            actor = weakref.ref(host.actors()[0])
            del session
            await trio.sleep(2 * AFTER)
            assert actor() is None
        finally:
            gc.enable()


@pytest.mark.parametrize("resolved", [False, True], ids=["options", "function"])
async def test_a_passive_session_takes_little(autojump_clock: object, resolved: bool) -> None:
    count = 10_000
    journal = MemoryJournal()
    chosen = build_options(model=talker())

    async def resolve(session_id: str, metadata: SessionMetadata) -> SessionOptions:
        await trio.lowlevel.checkpoint()
        return chosen

    # Not a checked one: the checks remember each session for as long as the host lives.
    options = HostOptions(passivate_after=AFTER)
    async with open_host(
        journal=journal, options=options, session_options=resolve if resolved else None
    ) as host:
        for _ in range(100):
            await host.open_session(chosen)
        await trio.sleep(2 * AFTER)
        journal._logs.clear()
        gc.collect()
        tracemalloc.start()
        try:
            for _ in range(count):
                await host.open_session(chosen)
            await trio.sleep(2 * AFTER)
            assert host.statistics().sessions == {"passive": count + 100}
            journal._logs.clear()
            gc.collect()
            taken = tracemalloc.get_traced_memory()[0] / count
        finally:
            tracemalloc.stop()
        assert taken <= LIMIT
        if resolved:
            # Nothing but its id and its place in a table.
            assert taken <= sys.getsizeof("x" * 36) + 100


async def test_what_is_kept_for_a_session_goes_when_it_comes_back(autojump_clock: object) -> None:
    async with passivating() as host:
        session = await open_session(host, talker("one"))
        session.on(print)
        await idle_away(session)
        assert len(host._passive) == 1
        await host.resume_session(session.session_id)
        assert (len(host._passive), len(host._passive._left), len(host._passive._waking)) == (0, 0, 0)


async def test_leaving_without_a_bound_in_time_happens_only_beyond_the_bound(autojump_clock: object) -> None:
    async with checked_host(options=HostOptions(most_live=3)) as host:
        for _ in range(3):
            await open_session(host, talker())
        await trio.sleep(1_000 * AFTER)
        assert len(host.actors()) == 3
