"""Watching a session: nothing is missing, nothing is twice, and nobody slows it down."""

import itertools
import uuid
from typing import Any

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import wait_all_tasks_blocked

from exeunt import InvalidConfiguration, Session, StreamLagged, StreamReset
from exeunt.actors.events import Event
from exeunt.testing import Gate, ScriptedModel, SlowSubscriber, call, checked_host, run_virtual, say
from tests.actors.session_support import count, open_session, plain_tool, settled, watch


async def read(session: Session, seen: list[Event], **options: Any) -> None:
    async with session.events(**options) as stream:
        async for event in stream:
            seen.append(event)


def seqs(events: list[Event]) -> list[int]:
    """Numbers of the persisted ones."""
    return [event.seq for event in events if not event.ephemeral]


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


# --- Lag -----------------------------------------------------------------------------------------------------


async def test_a_slow_subscriber_with_a_buffer_of_16_is_told_where_to_resume_and_has_no_gap(
    autojump_clock: object,
) -> None:
    async with checked_host() as host, trio.open_nursery() as nursery:
        session = await open_session(host, ScriptedModel([], default=say("ok")))
        seen: list[Event] = []
        lags: list[StreamLagged] = []

        async def reader() -> None:
            from_seq: int | None = None
            while True:
                async with session.events(from_seq, buffer=16) as stream:
                    async for event in stream:
                        if isinstance(event, StreamLagged):
                            lags.append(event)
                            from_seq = event.from_seq
                            break
                        seen.append(event)
                        await trio.sleep(1)
                    else:
                        return

        first = session.statistics().events + 1
        nursery.start_soon(reader)
        await trio.sleep(0.5)
        for _ in range(20):
            await session.send_and_wait("A")
        assert trio.current_time() < 1, "the reader has slowed the session"
        await trio.sleep(500)
        await session.disconnect()
        await trio.sleep(100)
        assert len(lags) >= 1
        assert host.statistics().subscriber_lag >= 1
        assert seqs(seen) == list(range(first, session.statistics().events + 1))


async def test_a_stream_that_lagged_says_how_much_it_misses_and_goes_on(autojump_clock: object) -> None:
    async with checked_host() as host:
        session = await open_session(host, ScriptedModel([], default=say("ok")))
        expected = watch(session)
        stream = session.events(buffer=16)
        for _ in range(5):
            await session.send_and_wait("A")
        await settled(session)
        first = await anext(stream)
        assert isinstance(first, StreamLagged)
        rest: list[Event] = []
        with trio.move_on_after(1):
            while True:
                rest.append(await anext(stream))
        assert first.missed + len(rest) == len(expected)
        assert rest == expected[first.missed :]
        assert len(rest) <= 16
        assert first.from_seq == seqs(expected)[0]
        await stream.aclose()


async def test_a_reader_that_is_still_in_the_log_is_sent_back_to_where_it_was(autojump_clock: object) -> None:
    gate = Gate()
    async with checked_host() as host:
        model = ScriptedModel([call("wait")], default=say("a b c d e f g h i j k l m n o p q r s t"))
        session = await open_session(host, model, plain_tool("wait", gate), streaming=True)
        await session.send("A")
        await gate.entered()
        stream = session.events(from_seq=1, buffer=4)
        assert (await anext(stream)).seq == 1
        gate.open()
        await settled(session)
        lagged = await anext(stream)
        assert isinstance(lagged, StreamLagged)
        assert lagged.from_seq == 2
        assert (await anext(stream)).seq == 2
        await stream.aclose()


async def test_events_that_are_not_logged_keep_their_place(autojump_clock: object) -> None:
    async with checked_host() as host:
        session = await open_session(host, ScriptedModel([say("one"), say("two")]))
        expected = watch(session)
        stream = session.events(from_seq=session.statistics().events + 1)
        await session.send_and_wait("A")
        await session.send_and_wait("B")
        await settled(session)
        seen: list[Event] = []
        with trio.move_on_after(1):
            while True:
                seen.append(await anext(stream))
        assert seen == expected
        await stream.aclose()


async def test_a_slow_reader_in_the_background_slows_nobody(autojump_clock: object) -> None:
    async with checked_host() as host, trio.open_nursery() as nursery:
        session = await open_session(host, ScriptedModel([], default=say("ok")))
        slow: SlowSubscriber[Event] = SlowSubscriber(10)
        nursery.start_soon(slow.read, session.events(buffer=2))
        for _ in range(10):
            await session.send_and_wait("A")
        assert trio.current_time() == 0
        await session.disconnect()


@given(
    st.lists(st.sampled_from(["send", "read", "steer", "rest"]), max_size=40),
    st.integers(min_value=1, max_value=20),
    st.booleans(),
)
def test_who_follows_the_hints_reads_every_logged_event_once_and_in_order(
    moves: list[str], buffer: int, streaming: bool
) -> None:
    async def program() -> None:
        async with checked_host() as host:
            session = await open_session(
                host, ScriptedModel([], default=say("one two three", gap=0.1)), streaming=streaming
            )
            seen: list[int] = []
            stream = session.events(1, buffer=buffer)

            async def take() -> None:
                nonlocal stream
                event = await anext(stream)
                if isinstance(event, StreamLagged):
                    await stream.aclose()
                    stream = session.events(event.from_seq, buffer=buffer)
                elif not event.ephemeral:
                    seen.append(event.seq)

            for move in moves:
                if move == "read":
                    with trio.move_on_after(0.01):
                        await take()
                elif move == "rest":
                    await trio.sleep(0.15)
                else:
                    await session.send("A", mode="immediate" if move == "steer" else "enqueue")
            await settled(session)
            with trio.move_on_after(1):
                while True:
                    await take()
            assert seen == list(range(1, session.statistics().events + 1))
            await stream.aclose()

    run_virtual(program)


# --- Ids -----------------------------------------------------------------------------------------------------


async def test_ids_are_unique_and_shaped_like_uuids_and_form_one_chain(autojump_clock: object) -> None:
    async with checked_host() as host:
        session = await open_session(host, ScriptedModel([], default=say("ok")))
        events = [*await session.get_events(), *watch(session)]
        live = watch(session)
        await session.send_and_wait("A")
        host.actors()[0].crash("test", RuntimeError("boom"))
        await settled(session)
        await session.send_and_wait("B")
        await session.disconnect()
        session = await host.resume_session(session.session_id)
        more = watch(session)
        await session.send_and_wait("C")
        await settled(session)
        log = await session.get_events()
        assert [event.seq for event in log] == list(range(1, len(log) + 1))
        everything = {id(event): event for event in [*events, *log, *live, *more]}.values()
        assert len({event.id for event in everything}) == len(everything)
        for event in everything:
            assert str(uuid.UUID(event.id)) == event.id
        assert log[0].parent_id is None
        for before, event in itertools.pairwise(log):
            assert event.parent_id == before.id
        by_seq = {event.seq: event.id for event in log}
        for event in everything:
            if event.ephemeral:
                assert event.parent_id == by_seq[event.seq]
        assert count(list(log), "session.restarted") == 1
