"""A database that is gone, full, slow or broken: nothing acknowledged is lost, and the journal goes on."""

import logging
from functools import partial

import attrs
import pytest
import trio
import trio.testing

from exeunt.actors.errors import JournalError, JournalUnavailable, SessionExists, SessionNotFound
from exeunt.actors.events import Event
from exeunt.supervisor.journal import Row, StoreDamaged, StoreUnavailable
from exeunt.supervisor.journal.durable import DurableJournal
from exeunt.supervisor.journal.log import DurableLog
from exeunt.testing.faulty_store import FaultyStore
from exeunt.testing.journal_events import same, some_events
from exeunt.testing.journals import running_journal
from tests.supervisor.journal_support import append, begun


async def test_new_work_is_refused_while_the_database_is_unavailable_and_taken_when_it_is_back() -> None:
    store = FaultyStore()
    async with running_journal(store) as journal:
        log, events = await begun(journal)
        store.be_full()
        append(log, events)
        journal.flush(log)
        await store.wait_attempts(3)
        assert not journal.has_room
        assert not log.has_room
        with pytest.raises(JournalUnavailable, match="cannot be written to now"):
            await journal.create("ophelia")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(log.wait_room)
            nursery.start_soon(journal.wait_room)
            nursery.start_soon(log.wait_durable, 2)
            store.heal()
        assert journal.has_room
        await begun(journal, "ophelia")


async def test_what_was_appended_during_an_outage_is_written_in_order_when_it_ends() -> None:
    store = FaultyStore()
    async with running_journal(store) as journal:
        logs = [await begun(journal, name) for name in ("hamlet", "ophelia")]
        store.lose_connection()
        for number in range(5):
            for log, events in logs:
                append(log, events)
                journal.flush(log)
            await store.wait_attempts(3 + number)
        store.heal()
        for log, events in logs:
            await log.wait_durable(6)
            assert same(await journal.read(log.session_id), events)
    assert [row.first_seq for rows in store.transactions for row in rows if row.session_id == "hamlet"] == [
        1,
        2,
        3,
    ]  # the slice that waited, then all that came behind it


async def test_an_outage_is_logged_once_and_so_is_its_end(caplog: pytest.LogCaptureFixture) -> None:
    store = FaultyStore()
    async with running_journal(store) as journal:
        log, events = await begun(journal)
        store.be_full()
        append(log, events)
        journal.flush(log)
        await store.wait_attempts(4)
        store.heal()
        await log.wait_durable(2)
        assert journal.statistics().failures >= 3
    lines = [(record.levelname, record.getMessage()) for record in caplog.records]
    assert [level for level, _ in lines] == ["ERROR", "WARNING"]
    assert "disk is full" in lines[0][1]
    assert "is back" in lines[1][1]


async def test_a_lost_answer_to_a_commit_is_no_other_host() -> None:
    store = FaultyStore()
    async with running_journal(store) as journal:
        log, events = await begun(journal)
        for seq in (2, 3):
            store.lose_answer()
            append(log, events)
            await log.wait_durable(seq)
        new = await journal.create("ophelia")
        store.lose_answer()
        new.append(some_events("ophelia", 2))
        await new.wait_durable(2)
        assert same(await log.read(), events)
        assert len(await new.read()) == 2


async def test_a_wait_during_an_outage_can_be_cancelled_and_the_event_is_written_all_the_same() -> None:
    store = FaultyStore()
    async with running_journal(store) as journal:
        log, events = await begun(journal)
        store.be_full()
        append(log, events)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(log.wait_durable, 2)
            nursery.start_soon(log.read)
            nursery.start_soon(journal.wait_room)
            await store.wait_attempts(2)
            nursery.cancel_scope.cancel()
        store.heal()
        await log.wait_durable(2)
        assert same(await log.read(), events)


async def test_a_session_with_unwritten_events_is_not_opened_or_deleted_during_an_outage() -> None:
    store = FaultyStore()
    async with running_journal(store) as journal:
        log, events = await begun(journal)
        store.be_full()
        append(log, events)
        journal.flush(log)
        await store.wait_attempts(3)
        for call in (journal.open, journal.delete, journal.metadata):
            with pytest.raises(JournalUnavailable, match="events that it does not have yet"):
                await call("hamlet")
        store.heal()
        await log.wait_durable(2)
        assert (await journal.open("hamlet")).durable_seq == 2


async def test_a_session_that_is_opened_while_its_last_events_are_written_begins_behind_them() -> None:
    store = FaultyStore()
    async with running_journal(store) as journal:
        log, events = await begun(journal)
        store.hang()
        append(log, events, 3)
        journal.flush(log)
        await store.wait_attempts(2)
        opened: list[int] = []

        async def reopen() -> None:
            opened.append((await journal.open("hamlet")).durable_seq)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(reopen)
            await trio.testing.wait_all_tasks_blocked(0.01)
            assert opened == []
            store.heal()
        assert opened == [4]


async def test_an_end_in_order_writes_everything_and_closes_the_database_once() -> None:
    store = FaultyStore()
    expected: dict[str, list[Event]] = {}
    async with running_journal(store) as journal:
        for name in ("hamlet", "ophelia", "yorick"):
            log, events = await begun(journal, name)
            append(log, events, 10)
            expected[name] = events
    assert (store.opened, store.closed) == (1, 1)
    async with running_journal(store) as journal:
        for name, events in expected.items():
            assert same(await journal.read(name), events)


async def test_an_end_during_an_outage_says_how_much_is_lost_and_tells_who_waits(
    caplog: pytest.LogCaptureFixture,
) -> None:
    store = FaultyStore()
    told: list[Exception] = []
    async with trio.open_nursery() as outer:

        async def wait(log: DurableLog) -> None:
            try:
                await log.wait_durable(2)
            except JournalUnavailable as error:
                told.append(error)

        async with running_journal(store) as journal:
            logs = [await begun(journal, name) for name in ("hamlet", "ophelia")]
            store.be_full()
            for log, events in logs:
                append(log, events, 4)
                outer.start_soon(wait, log)
            await store.wait_attempts(5)
            append(*logs[0])
    assert len(told) == 2
    assert store.closed == 1
    (line,) = [record.getMessage() for record in caplog.records if record.levelno == logging.CRITICAL]
    assert line.startswith("9 events could not be written")
    assert journal.statistics().pending_events == 0


async def test_an_ended_journal_takes_nothing_and_says_so() -> None:
    async with running_journal(FaultyStore()) as journal:
        log, events = await begun(journal)
    with pytest.raises(JournalUnavailable, match="has ended"):
        append(log, events)
    assert not journal.has_room
    with pytest.raises(JournalUnavailable):
        await journal.create("ophelia")


async def test_a_database_that_cannot_be_opened_ends_the_journal_before_it_begins() -> None:
    store = FaultyStore()
    store.lose_connection()
    with pytest.raises(StoreUnavailable, match="connection lost"):
        await DurableJournal(store).run()
    assert store.closed == 1


async def test_a_journal_that_ended_can_run_again() -> None:
    store = FaultyStore()
    journal = DurableJournal(store)
    for name in ("hamlet", "ophelia"):
        async with trio.open_nursery() as nursery:
            await nursery.start(journal.run)
            await begun(journal, name)
            nursery.cancel_scope.cancel()
    assert (store.opened, store.closed) == (2, 2)


async def test_a_session_that_cannot_be_written_does_not_hold_up_the_others(
    caplog: pytest.LogCaptureFixture,
) -> None:
    store = FaultyStore()
    async with running_journal(store) as journal:
        logs = {name: await begun(journal, name) for name in ("hamlet", "ophelia", "yorick")}
        told: list[Exception] = []
        logs["yorick"][0].watch(told.append)
        damage = StoreDamaged("a page is torn")
        store.fail_for(lambda rows: damage if any(row.session_id == "yorick" for row in rows) else None)
        store.hang()
        for log, events in logs.values():
            append(log, events)
            journal.flush(log)
        store.resume()
        for name in ("hamlet", "ophelia"):
            log, events = logs[name]
            await log.wait_durable(2)
            assert same(await log.read(), events)
        log, events = logs["yorick"]
        with pytest.raises(
            JournalError, match=r"session yorick cannot be written: StoreDamaged: a page is torn"
        ):
            await log.wait_durable(2)
        with pytest.raises(JournalError, match="yorick"):
            append(log, events)
        assert [type(error) for error in told] == [JournalError]
        assert journal.has_room
        assert journal.statistics().pending_events == 0
    assert [record.levelname for record in caplog.records] == ["ERROR"]


async def test_an_event_that_cannot_be_encoded_ends_its_own_session_only() -> None:
    async with running_journal(FaultyStore()) as journal:
        good, events = await begun(journal)
        bad = await journal.create("ophelia")
        bad.append(some_events("ophelia", 2, text="half a pair: \ud83d"))
        append(good, events)
        with pytest.raises(JournalError, match="session ophelia cannot be written"):
            await bad.wait_durable(2)
        await good.wait_durable(2)
        with pytest.raises(SessionNotFound):
            await journal.open("ophelia")


async def test_readers_are_told_of_an_outage_and_of_damage_by_the_name_of_the_session() -> None:
    store = FaultyStore()
    async with running_journal(store) as journal:
        await begun(journal)
        store.lose_connection()
        for call in (
            partial(journal.read, "hamlet"),
            partial(journal.open, "hamlet"),
            partial(journal.list),
            partial(journal.delete, "hamlet"),
        ):
            with pytest.raises(StoreUnavailable):
                await call()
        store.heal()
        store.change("hamlet", flip_the_last_bit)
        with pytest.raises(StoreDamaged, match=r"session hamlet .* checksum"):
            await journal.read("hamlet")


def flip_the_last_bit(slices: list[Row]) -> None:
    data = slices[-1].data
    slices[-1] = attrs.evolve(slices[-1], data=data[:-1] + bytes([data[-1] ^ 1]))


async def test_a_slice_that_is_missing_is_damage_not_the_end_of_the_log() -> None:
    store = FaultyStore()
    async with running_journal(store) as journal:
        log, events = await begun(journal)
        for seq in (2, 3, 4):
            append(log, events)
            await log.wait_durable(seq)
        gone: list[Row] = []
        store.change("hamlet", lambda slices: gone.append(slices.pop(1)))
        with pytest.raises(StoreDamaged, match="event 2 is missing"):
            await log.read()
        with pytest.raises(StoreDamaged, match="event 2 is missing"):
            await log.load()
        assert [event.seq for event in await log.read(3)] == [3, 4]
        store.change("hamlet", lambda slices: slices.insert(1, gone[0]))
        store.change("hamlet", lambda slices: gone.append(slices.pop()))
        with pytest.raises(StoreDamaged, match="event 4 is missing"):
            await (await journal.open("hamlet")).load()


async def test_a_damaged_snapshot_is_not_used(caplog: pytest.LogCaptureFixture) -> None:
    store = FaultyStore()
    async with running_journal(store) as journal:
        log, events = await begun(journal)
        append(log, events, 3)
        await log.wait_durable(4)
        store.write_snapshot("hamlet", 3, b"torn")
        snapshot, tail = await log.load()
        assert snapshot is None
        assert same(tail, events)
    assert "the snapshot of session hamlet is not used" in caplog.text


async def test_a_create_that_fails_leaves_the_id_free() -> None:
    store = FaultyStore()
    async with running_journal(store) as journal:
        store.lose_connection(times=1)
        with pytest.raises(StoreUnavailable):
            await journal.create("hamlet")
        log = await journal.create("hamlet")
        with pytest.raises(SessionExists):
            await journal.create("hamlet")
        del log
        await begun(journal)
