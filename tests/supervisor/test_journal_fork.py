"""A log as the beginning of another session's."""

from collections.abc import Sequence

import pytest
import trio

from exeunt.actors.errors import JournalError, SessionNotFound
from exeunt.actors.events import Event, SessionStart
from exeunt.supervisor.journal import MemoryJournal, StoreDamaged, fork_log
from exeunt.supervisor.journal.fork import PART
from exeunt.testing.faulty_store import FaultyStore
from exeunt.testing.journal_events import same, some_events
from exeunt.testing.journals import running_journal
from tests.supervisor.journal_support import append, begun


async def test_a_long_log_is_forked_in_parts() -> None:
    store = FaultyStore()
    async with running_journal(store) as journal:
        log, events = await begun(journal)
        append(log, events, 2 * PART + 7)
        await log.wait_durable(events[-1].seq)
        await fork_log(journal, "hamlet", "fortinbras")
        found = await journal.read("fortinbras")
        assert isinstance(found[0], SessionStart)
        assert found[0].session_id == "fortinbras"
        assert same(found[1:], events[1:])
        assert [event.id for event in found] == [event.id for event in events]
    assert max(row.last_seq - row.first_seq for row in store.transactions[-1]) < PART


async def test_a_fork_sees_what_was_appended_a_moment_ago_and_the_source_goes_on() -> None:
    async with running_journal(FaultyStore()) as journal:
        log, events = await begun(journal)
        append(log, events, 3)
        await fork_log(journal, "hamlet", "fortinbras")
        append(log, events)
        await log.wait_durable(5)
        assert len(await journal.read("fortinbras")) == 4
        assert same(await journal.read("hamlet"), events)


async def test_a_fork_that_is_cancelled_or_fails_leaves_no_session() -> None:
    store = FaultyStore()
    async with running_journal(store) as journal:
        log, events = await begun(journal)
        append(log, events, PART)
        await log.wait_durable(events[-1].seq)
        store.hang()
        attempts = store.attempts
        async with trio.open_nursery() as nursery:
            nursery.start_soon(fork_log, journal, "hamlet", "fortinbras")
            await store.wait_attempts(attempts + 1)
            nursery.cancel_scope.cancel()
            store.heal()
        with pytest.raises(SessionNotFound):
            await journal.metadata("fortinbras")
        store.change("hamlet", lambda slices: slices.__delitem__(-1))
        with pytest.raises((JournalError, StoreDamaged)):
            await fork_log(journal, "hamlet", "fortinbras")
        with pytest.raises(SessionNotFound):
            await journal.metadata("fortinbras")


async def test_a_log_in_memory_can_be_forked_and_its_events_stay_what_they_are() -> None:
    journal = MemoryJournal()
    log = await journal.create("hamlet")
    events: Sequence[Event] = some_events("hamlet", 3)
    log.append(events)
    await fork_log(journal, "hamlet", "fortinbras", 2)
    assert same(await journal.read("hamlet"), events)
    assert [event.seq for event in await journal.read("fortinbras")] == [1, 2]
