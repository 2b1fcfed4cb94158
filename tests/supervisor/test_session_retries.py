"""What is tried again after a crash of a session, and who does not notice."""

from typing import Any

import pytest
import trio

from exeunt.actors.events import SessionWarning, UserMessage
from exeunt.actors.turn.actor import SessionActor
from exeunt.testing import (
    ScriptedModel,
    Sleepy,
    call,
    checked_host,
    hang,
    say,
)
from tests.actors.session_support import (
    begin,
    ends,
    only,
    open_session,
    plain_tool,
    reach,
    settled,
    watch,
)
from tests.supervisor.restart_support import EXACT, actor_of, crash, fails


async def test_the_entry_that_raised_is_tried_again_after_each_back_off(autojump_clock: object) -> None:
    times: list[float] = []

    def handler(actor: SessionActor) -> None:
        times.append(trio.current_time())
        if len(times) < 4:
            raise RuntimeError(f"crash {len(times)}")

    async with checked_host(options=EXACT) as host:
        session = await open_session(host, ScriptedModel([say("hi")]))
        events = watch(session)
        actor_of(host, session).put(handler)
        await trio.sleep(10)
        assert times == pytest.approx([0, 1, 3, 7])
        assert [e.epoch for e in only(events, "session.restarted")] == [1, 2, 3]
        assert session.statistics().status == "live"
        assert (await session.send_and_wait("A")).content == "hi"


async def test_a_handler_that_raises_writes_nothing_and_shows_nothing(autojump_clock: object) -> None:
    async with checked_host() as host:
        session = await open_session(host, ScriptedModel([say("hi")]))
        events = watch(session)
        before = list(await session.get_events())

        def half_done(actor: SessionActor) -> None:
            if actor.epoch == 0:
                actor.emit(UserMessage, "never", "a turn", None, "idle")
                actor.emit(SessionWarning, "test", "never")
                raise RuntimeError("in the middle")

        actor_of(host, session).put(half_done)
        await settled(session)
        assert [e.type for e in events] == ["session.restarted"]
        assert list(await session.get_events())[: len(before)] == before
        assert session.history.messages() == ()
        await session.send_and_wait("A")


async def test_a_crash_never_reaches_who_put_the_entry(autojump_clock: object) -> None:
    async with checked_host() as host:
        session = await open_session(host, ScriptedModel([say("hi")]))
        actor_of(host, session).put(fails(1))
        assert (await session.send_and_wait("A")).content == "hi"


async def test_restarts_that_are_far_apart_never_exceed_the_intensity(autojump_clock: object) -> None:
    async with checked_host() as host:
        session = await open_session(host, ScriptedModel([], default=say("ok")))
        for _ in range(12):
            crash(host, session)
            await trio.sleep(10)
        assert session.statistics().status == "live"
        assert session.statistics().restarts == 12
        await session.send_and_wait("A")


async def test_subscribers_and_streams_survive_a_crash(autojump_clock: object) -> None:
    async with checked_host() as host, trio.open_nursery() as nursery:
        session = await open_session(host, ScriptedModel([hang(), say("two")]))
        stream: list[Any] = []

        async def read() -> None:
            stream.extend([event async for event in session.events()])

        nursery.start_soon(read)
        await trio.sleep(0.1)
        expected = watch(session)
        await session.send("A")
        await reach(session, "model")
        crash(host, session)
        await session.send_and_wait("B")
        await settled(session)
        await session.disconnect()
        await trio.sleep(1)
        assert stream == expected
        assert "session.restarted" in [event.type for event in stream]


async def test_other_sessions_do_not_notice(autojump_clock: object) -> None:
    async with checked_host() as host, trio.open_nursery() as nursery:
        others = [
            await open_session(
                host, ScriptedModel([call("wait"), say("fine")]), plain_tool("wait", Sleepy(5))
            )
            for _ in range(3)
        ]
        session = await open_session(host, ScriptedModel([hang()]))
        waiting = [begin(nursery, other.send_and_wait, "A") for other in others]
        await session.send("A")
        await reach(session, "model")
        crash(host, session)
        for other, result in zip(others, waiting, strict=True):
            assert (await result.wait()).value.content == "fine"
            assert other.statistics().restarts == 0
            assert await ends(other) == ["completed"]
        await settled(session)
