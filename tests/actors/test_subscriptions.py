"""Watching a session: nothing is missing, nothing is twice, and nobody slows it down."""

import uuid
from typing import Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from exeunt import InvalidConfiguration, StreamReset
from exeunt.actors.events import Event
from exeunt.testing import ScriptedModel, checked_host, say
from tests.actors.session_support import open_session, settled, watch
from tests.actors.subscription_support import read, seqs

# --- Callbacks -----------------------------------------------------------------------------------------------


async def test_a_callback_that_raises_is_counted_and_hurts_nobody(
    autojump_clock: object, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(_: Event) -> None:
        raise RuntimeError("a faulty subscriber")

    async with checked_host() as host:
        session = await open_session(host, ScriptedModel([say("hi")]))
        session.on(broken)
        events = watch(session)
        assert (await session.send_and_wait("A")).content == "hi"
        await settled(session)
        assert host.statistics().subscriber_errors == len(events)
        assert session.statistics().restarts == 0
        assert "a faulty subscriber" in caplog.text


async def test_an_observer_that_raises_is_counted_and_hurts_nobody(autojump_clock: object) -> None:
    runs: list[int] = []

    def broken(_: str, events: Any) -> None:
        runs.append(len(events))
        raise RuntimeError("a faulty observer")

    async with checked_host() as host:
        host.observe(broken)
        session = await open_session(host, ScriptedModel([say("hi")]))
        assert (await session.send_and_wait("A")).content == "hi"
        await settled(session)
        assert host.statistics().subscriber_errors == len(runs) > 0
        assert session.statistics().restarts == 0


async def test_unsubscribing_twice_is_once(autojump_clock: object) -> None:
    async with checked_host() as host:
        session = await open_session(host, ScriptedModel([say("one"), say("two")]))
        seen: list[Event] = []
        others = watch(session)
        unsubscribe = session.on(seen.append)
        await session.send_and_wait("A")
        await settled(session)
        unsubscribe()
        unsubscribe()
        known = len(seen)
        await session.send_and_wait("B")
        await settled(session)
        assert len(seen) == known
        assert len(others) == 2 * known
        assert session.statistics().subscribers == 1


async def test_a_callback_that_is_subscribed_twice_is_called_twice(autojump_clock: object) -> None:
    async with checked_host() as host:
        session = await open_session(host, ScriptedModel([say("one"), say("two")]))
        seen: list[Event] = []
        first = session.on(seen.append)
        session.on(seen.append)
        await session.send_and_wait("A")
        await settled(session)
        assert all(seen.count(event) == 2 for event in seen)
        first()
        seen.clear()
        await session.send_and_wait("B")
        await settled(session)
        assert all(seen.count(event) == 1 for event in seen)
        assert seen


async def test_a_callback_that_unsubscribes_itself_gets_no_further_event(autojump_clock: object) -> None:
    async with checked_host() as host:
        session = await open_session(host, ScriptedModel([say("one")]))
        seen: list[Event] = []

        def once(event: Event) -> None:
            seen.append(event)
            unsubscribe()

        unsubscribe = session.on(once)
        await session.send_and_wait("A")
        assert len(seen) == 1


async def test_what_cannot_be_called_is_no_subscriber(autojump_clock: object) -> None:
    async with checked_host() as host:
        session = await open_session(host, ScriptedModel([]))
        with pytest.raises(InvalidConfiguration):
            session.on("print")  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]


# --- Streams -------------------------------------------------------------------------------------------------


async def test_a_stream_begins_with_its_call_and_ends_with_the_session(autojump_clock: object) -> None:
    async with checked_host() as host, trio.open_nursery() as nursery:
        session = await open_session(host, ScriptedModel([say("one"), say("two")]))
        await session.send_and_wait("A")
        await settled(session)
        expected = watch(session)
        seen: list[Event] = []
        nursery.start_soon(read, session, seen)
        await trio.sleep(1)
        await session.send_and_wait("B")
        await settled(session)
        await session.disconnect()
        await wait_all_tasks_blocked()
        assert seen == expected
        assert seen[-1].type == "session.shutdown"


async def test_a_stream_from_a_number_goes_from_the_log_into_what_happens(autojump_clock: object) -> None:
    async with checked_host() as host, trio.open_nursery() as nursery:
        session = await open_session(host, ScriptedModel([say("one"), say("two")]))
        await session.send_and_wait("A")
        await settled(session)
        seen: list[Event] = []
        middle: list[Event] = []

        async def from_three() -> None:
            await read(session, middle, from_seq=3)

        async def from_the_beginning() -> None:
            await read(session, seen, from_seq=1)

        nursery.start_soon(from_the_beginning)
        nursery.start_soon(from_three)
        await session.send_and_wait("B")
        await settled(session)
        await session.disconnect()
        await trio.sleep(1)
        log = list(await session.get_events())
        assert seqs(seen) == [event.seq for event in log]
        assert seqs(middle) == [event.seq for event in log[2:]]
        assert [event for event in seen if not event.ephemeral] == log


async def test_a_stream_behind_an_event_goes_on_after_it(autojump_clock: object) -> None:
    async with checked_host() as host, trio.open_nursery() as nursery:
        session = await open_session(host, ScriptedModel([say("one")]))
        await session.send_and_wait("A")
        log = await session.get_events()
        seen: list[Event] = []

        async def after() -> None:
            await read(session, seen, after=log[3].id)

        nursery.start_soon(after)
        await trio.sleep(1)
        await session.disconnect()
        await trio.sleep(1)
        assert seqs(seen)[: len(log) - 4] == [event.seq for event in log[4:]]
        assert not any(isinstance(event, StreamReset) for event in seen)


async def test_a_stream_behind_an_unknown_event_begins_anew_and_says_so(autojump_clock: object) -> None:
    async with checked_host() as host, trio.open_nursery() as nursery:
        session = await open_session(host, ScriptedModel([say("one")]))
        await session.send_and_wait("A")
        seen: list[Event] = []

        async def after() -> None:
            await read(session, seen, after=str(uuid.uuid4()), buffer=1)

        nursery.start_soon(after)
        await trio.sleep(1)
        await session.disconnect()
        await trio.sleep(1)
        assert isinstance(seen[0], StreamReset)
        assert seen[0].from_seq == 1
        assert seqs(seen[1:]) == list(range(1, len(await session.get_events()) + 1))


@pytest.mark.parametrize(
    "options",
    [
        {"from_seq": 0},
        {"from_seq": -1},
        {"from_seq": "1"},
        {"buffer": 0},
        {"buffer": 1.5},
        {"from_seq": 1, "after": "an id"},
    ],
)
async def test_a_stream_that_cannot_be_is_refused(autojump_clock: object, options: dict[str, Any]) -> None:
    async with checked_host() as host:
        session = await open_session(host, ScriptedModel([]))
        with pytest.raises(InvalidConfiguration):
            session.events(**options)
        assert session.statistics().subscribers == 0
        if "from_seq" in options and "after" not in options:
            with pytest.raises(InvalidConfiguration):
                await session.get_events(options["from_seq"])


async def test_a_cancelled_read_loses_nothing(autojump_clock: object) -> None:
    async with checked_host() as host:
        session = await open_session(host, ScriptedModel([], default=say("ok", delay=0.3)))
        expected = watch(session)
        stream = session.events()
        seen: list[Event] = []
        for _ in range(10):
            await session.send("A")
        while session.statistics().phase != "idle" or session.statistics().queued:
            with trio.move_on_after(0.1):
                while True:
                    seen.append(await anext(stream))
        with trio.CancelScope() as scope:
            scope.cancel()
            while True:
                seen.append(await anext(stream))
        with trio.move_on_after(1):
            while True:
                seen.append(await anext(stream))
        assert seen == expected
        await stream.aclose()


async def test_two_tasks_cannot_read_one_stream(autojump_clock: object) -> None:
    async with checked_host() as host, trio.open_nursery() as nursery:
        session = await open_session(host, ScriptedModel([]))
        stream = session.events()
        nursery.start_soon(anext, stream)
        await trio.sleep(1)
        with pytest.raises(trio.BusyResourceError):
            await anext(stream)
        await session.send("wakes the first")
        await settled(session)


async def test_closing_a_stream_ends_its_reader_and_twice_is_once(autojump_clock: object) -> None:
    async with checked_host() as host, trio.open_nursery() as nursery:
        session = await open_session(host, ScriptedModel([]))
        stream = session.events()
        seen: list[Event] = []

        async def reader() -> None:
            async for event in stream:
                seen.append(event)
            seen.clear()

        nursery.start_soon(reader)
        await trio.sleep(1)
        await stream.aclose()
        await stream.aclose()
        assert session.statistics().subscribers == 0


async def test_a_stream_of_a_session_that_is_gone_gives_the_log_and_ends(autojump_clock: object) -> None:
    async with checked_host() as host:
        session = await open_session(host, ScriptedModel([say("one")]))
        await session.send_and_wait("A")
        await session.disconnect()
        seen: list[Event] = []
        with trio.fail_after(1):
            await read(session, seen, from_seq=1)
        assert seen == list(await session.get_events())
