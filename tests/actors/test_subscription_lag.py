"""Subscribers that are slower than their session, and the ids by which they find their way back."""

import itertools
import uuid

import trio
from hypothesis import given
from hypothesis import strategies as st

from exeunt import StreamLagged
from exeunt.actors.events import Event
from exeunt.testing import Gate, ScriptedModel, SlowSubscriber, call, checked_host, run_virtual, say
from tests.actors.session_support import count, open_session, plain_tool, settled, watch
from tests.actors.subscription_support import seqs

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
