"""What is written together, what makes room, what is counted."""

import pytest
import trio
import trio.testing

from exeunt.actors.errors import JournalError, SessionOwnedElsewhere
from exeunt.actors.events import Origin
from exeunt.supervisor.journal.durable import DurableJournal
from exeunt.testing.faulty_store import FaultyStore
from exeunt.testing.journal_events import same, some_events
from exeunt.testing.journals import running_journal
from tests.supervisor.journal_support import append, begun, sessions_of


async def test_what_sessions_give_while_the_writer_is_busy_is_one_transaction() -> None:
    store = FaultyStore()
    async with running_journal(store) as journal:
        logs = [await begun(journal, f"session {number:02}") for number in range(20)]
        before = len(store.transactions)
        store.hang()
        append(*logs[0])
        journal.flush(logs[0][0])
        await store.wait_attempts(21)
        for _ in range(3):
            for log, events in logs[1:]:
                append(log, events)
                journal.flush(log)
        store.heal()
        for log, _ in logs[1:]:
            await log.wait_durable(4)
    alone, together = sessions_of(store)[before:]
    assert alone == ["session 00"]
    assert sorted(together) == [f"session {number:02}" for number in range(1, 20)]
    assert {(row.first_seq, row.last_seq) for row in store.transactions[-1]} == {(2, 4)}


async def test_events_that_nobody_waits_for_are_written_soon() -> None:
    store = FaultyStore()
    async with running_journal(store) as journal:
        log, events = await begun(journal)
        append(log, events, 5)
        await store.wait_attempts(2)
    (row,) = store.transactions[-1]
    assert (row.first_seq, row.last_seq) == (2, 6)


async def test_each_activation_has_a_slice_of_its_own() -> None:
    store = FaultyStore()
    async with running_journal(store) as journal:
        log = await journal.create("hamlet")
        events = some_events("hamlet", 2, tenant="elsinore")
        events += some_events("hamlet", 5, first_seq=3, origin=Origin.fresh(events[-1].id, 3))
        log.append(events)
        assert same(await log.read(), events)
    (rows,) = store.transactions
    assert [(row.first_seq, row.last_seq, row.tenant) for row in rows] == [(1, 2, "elsinore"), (3, 5, None)]


async def test_with_as_many_pending_events_as_the_bound_new_work_waits() -> None:
    store = FaultyStore()
    async with running_journal(store, bound=10) as journal:
        log, events = await begun(journal)
        store.hang()
        append(log, events, 9)
        assert journal.has_room
        append(log, events, 1)
        assert not journal.has_room
        with pytest.raises(JournalError, match="does not keep up"):
            await journal.create("ophelia")
        append(log, events, 20)  # events of work that runs are always taken
        assert journal.statistics().pending_events == 30
        async with trio.open_nursery() as nursery:
            nursery.start_soon(log.wait_room)
            store.heal()
        assert journal.has_room
        assert same(await log.read(), events)


async def test_a_journal_counts_what_it_does() -> None:
    store = FaultyStore()
    async with running_journal(store, bound=77) as journal:
        seen: list[tuple[bool, int]] = []
        journal.on_commit = lambda seconds, events: seen.append((seconds >= 0, events))
        log, events = await begun(journal)
        append(log, events, 4)
        await log.wait_durable(5)
        statistics = journal.statistics()
        assert statistics.store == store.name
        assert statistics.available
        assert statistics.pending_events == 0
        assert statistics.bound == 77
        assert (statistics.commits, statistics.written_events, statistics.failures) == (2, 5, 0)
        assert seen == [(True, 1), (True, 4)]


async def test_what_a_fenced_log_still_has_on_its_way_is_never_written_and_makes_room() -> None:
    store = FaultyStore()
    async with running_journal(store) as one, running_journal(store.inner) as other:
        loser, events = await begun(one)
        winner = await other.open("hamlet")
        theirs = [*events, *some_events("hamlet", 2, first_seq=2, text="of the winner")]
        winner.append(theirs[1:])
        await winner.wait_durable(2)
        told: list[Exception] = []
        loser.watch(told.append)
        store.hang()
        for _ in range(3):  # one is in the database's hands, one in the queue, one only collected
            append(loser, events)
            if events[-1].seq < 4:
                one.flush(loser)
        waits: list[Exception] = []

        async def wait(seq: int) -> None:
            try:
                await loser.wait_durable(seq)
            except SessionOwnedElsewhere as error:
                waits.append(error)

        async with trio.open_nursery() as nursery:
            for seq in (2, 3, 4):
                nursery.start_soon(wait, seq)
            await trio.testing.wait_all_tasks_blocked()
            store.heal()
        assert len(waits) == 3
        assert len(told) == 1
        await begun(one, "ophelia")  # everything before it has been settled
        assert one.statistics().pending_events == 0
        assert one.statistics().written_events == 2
        assert same(await other.read("hamlet"), theirs)


async def test_two_logs_of_one_session_in_one_journal_are_told_apart() -> None:
    store = FaultyStore()
    async with running_journal(store) as journal:
        first, events = await begun(journal)
        second = await journal.open("hamlet")
        store.hang()
        append(first, events)
        journal.flush(first)
        second.append(some_events("hamlet", 2, first_seq=2, text="too late"))
        journal.flush(second)
        append(first, events)
        journal.flush(first)
        store.heal()
        await first.wait_durable(3)
        with pytest.raises(SessionOwnedElsewhere):
            await second.wait_durable(2)
        assert same(await journal.read("hamlet"), events)


async def test_a_log_that_was_deleted_takes_nothing_more() -> None:
    async with running_journal(FaultyStore()) as journal:
        log, events = await begun(journal)
        await journal.delete("hamlet")
        append(log, events)
        with pytest.raises(SessionOwnedElsewhere, match="or deleted"):
            await log.wait_durable(2)


async def test_a_snapshot_is_kept_once_its_event_is_durable() -> None:
    store = FaultyStore()
    async with running_journal(store) as journal:
        log, events = await begun(journal)
        store.hang()
        append(log, events)
        log.snapshot(2, b"two")
        journal.flush(log)
        await store.wait_attempts(2)
        assert store.read_snapshot("hamlet") is None
        store.heal()
        await log.wait_durable(2)
    async with running_journal(store) as journal:
        assert await (await journal.open("hamlet")).load() == (b"two", [])


async def test_a_cancelled_journal_writes_what_it_has_before_it_ends() -> None:
    store = FaultyStore()
    journal = DurableJournal(store)
    async with trio.open_nursery() as nursery:
        await nursery.start(journal.run)
        log, events = await begun(journal)
        append(log, events, 3)
        nursery.cancel_scope.cancel()
    assert [row.last_seq for rows in store.transactions for row in rows] == [1, 4]
    assert log.durable_seq == 1 or log.durable_seq == 4
