"""Writing and reading the log of one session."""

from functools import partial

import attrs
import trio

from exeunt.actors.errors import (
    InvalidConfiguration,
    JournalError,
    SessionExists,
    SessionNotFound,
)
from exeunt.actors.events import Origin
from exeunt.actors.ports import SessionLog
from exeunt.testing.journal_conformance.frame import Checks, fresh_id, write
from exeunt.testing.journal_events import every_event, some_events
from exeunt.testing.journal_verdicts import expect, expect_equal, expect_error, expect_load, expect_same

BIG = 1_000_000
"""Characters of a big event: a document that somebody pasted."""


@attrs.frozen
class LogChecks(Checks):
    """What a log takes, gives back and refuses."""

    async def a_new_log_is_empty_and_takes_events_in_order(self) -> None:
        """Nothing is there; then exactly what was appended."""
        async with self.open_journal() as journal:
            session_id = fresh_id()
            log = await journal.create(session_id)
            expect_equal(log.durable_seq, 0, "the durable_seq of a new log")
            expect(log.has_room, "a journal without work has room")
            await log.wait_room()
            events = some_events(session_id, 7)
            for event in events:
                log.append([event])
            await log.wait_durable(7)
            expect_equal(log.durable_seq, 7, "the durable_seq after wait_durable")
            expect_same(await log.read(), events, "read through the log")
            expect_same(await journal.read(session_id), events, "read through the journal")

    async def a_session_is_made_once(self) -> None:
        """A second `create` is refused, before and after the first event is durable, and changes nothing."""
        async with self.open_journal() as journal:
            session_id = fresh_id()
            log = await journal.create(session_id)
            await expect_error(SessionExists, partial(journal.create, session_id))
            events = await write(log, some_events(session_id, 3))
            await expect_error(SessionExists, partial(journal.create, session_id))
            expect_same(await journal.read(session_id), events, "the log after a refused create")

    async def a_session_of_eight_creates_at_once_is_made_once(self) -> None:
        """One of them gets it."""
        async with self.open_journal() as journal:
            session_id, logs, refused = fresh_id(), list[SessionLog](), list[Exception]()

            async def create() -> None:
                try:
                    logs.append(await journal.create(session_id))
                except SessionExists as error:
                    refused.append(error)

            async with trio.open_nursery() as nursery:
                for _ in range(8):
                    nursery.start_soon(create)
            expect_equal((len(logs), len(refused)), (1, 7), "logs and refusals of eight creates at once")

    async def an_unknown_session_is_not_found_and_not_made(self) -> None:
        """Whatever is asked of it."""
        async with self.open_journal() as journal:
            session_id = fresh_id()
            for call in (journal.open, journal.read, journal.metadata, journal.delete):
                await expect_error(SessionNotFound, partial(call, session_id))
            await expect_error(SessionNotFound, partial(journal.metadata, session_id))

    async def a_stored_session_is_opened_where_it_ends(self) -> None:
        """Also when it was appended to a moment ago."""
        async with self.open_journal() as journal:
            session_id = fresh_id()
            log = await journal.create(session_id)
            events = some_events(session_id, 2)
            log.append(events)
            again = await journal.open(session_id)
            expect_equal(again.durable_seq, 2, "the durable_seq of a log that is opened again")
            more = some_events(session_id, 4, first_seq=3, origin=Origin.fresh(events[-1].id, 3))
            await write(again, more)
            expect_same(await journal.read(session_id), [*events, *more], "the log of two activations")

    async def an_event_that_does_not_follow_is_refused(self) -> None:
        """A gap, a number twice, a gap within: each is refused whole."""
        async with self.open_journal() as journal:
            session_id = fresh_id()
            log = await journal.create(session_id)
            events = some_events(session_id, 9)
            await write(log, events[:3])
            for wrong in (events[4:5], events[2:3], events[0:1], [events[3], events[5]]):
                await expect_error(JournalError, partial(log.append, wrong))
            await expect_error(JournalError, partial(log.wait_durable, 4))
            await write(log, events[3:])
            expect_same(await journal.read(session_id), events, "the log after refused events")

    async def a_part_of_a_log_can_be_read(self) -> None:
        """From any number, up to any count, whatever was written together."""
        async with self.open_journal() as journal:
            session_id = fresh_id()
            log = await journal.create(session_id)
            events = some_events(session_id, 10)
            for part in (events[:1], events[1:5], events[5:6], events[6:]):
                await write(log, part)
            for first in range(1, 12):
                for limit in (None, 0, 1, 3, 20):
                    end = None if limit is None else first - 1 + limit
                    for read in (log.read, partial(journal.read, session_id)):
                        expect_same(
                            await read(first, limit), events[first - 1 : end], f"{limit} events from {first}"
                        )
            for wrong in ((0, None), (1, -1)):
                await expect_error(InvalidConfiguration, partial(journal.read, session_id, *wrong))

    async def a_read_sees_what_was_only_appended(self) -> None:
        """Through the log, at once."""
        async with self.open_journal() as journal:
            session_id = fresh_id()
            log = await journal.create(session_id)
            events = some_events(session_id, 5)
            log.append(events)
            expect_same(await log.read(2, 3), events[1:4], "what was just appended")

    async def an_event_of_each_kind_comes_back_as_it_was(self) -> None:
        """Kind, values, ids and parents; with all fields given, and with none that may be left out."""
        async with self.open_journal() as journal:
            for defaults in (False, True):
                session_id = fresh_id()
                events = every_event(session_id, defaults=defaults)
                log = await journal.create(session_id)
                log.append(events)
                expect_same(await log.read(), events, "one event of each kind")

    async def what_activations_wrote_keeps_its_ids(self) -> None:
        """Also when events of two activations are on their way at the same time."""
        async with self.open_journal() as journal:
            session_id = fresh_id()
            log = await journal.create(session_id)
            events = some_events(session_id, 3)
            log.append(events)
            for first in (4, 6):
                more = some_events(
                    session_id, first + 1, first_seq=first, origin=Origin.fresh(events[-1].id, first)
                )
                log.append(more)
                events += more
            expect_same(await log.read(), events, "a log of three activations")

    async def a_big_event_comes_back_whole(self) -> None:
        """A document in a message, among small ones."""
        async with self.open_journal() as journal:
            session_id = fresh_id()
            log = await journal.create(session_id)
            events = [
                *some_events(session_id, 2),
                *some_events(session_id, 3, first_seq=3, text="é" * BIG),
                *some_events(session_id, 4, first_seq=4),
            ]
            log.append(events)
            expect_same(await log.read(), events, "a log with a big event")

    async def a_wait_that_is_cancelled_changes_nothing(self) -> None:
        """The event is written all the same."""
        async with self.open_journal() as journal:
            session_id = fresh_id()
            log = await journal.create(session_id)
            events = some_events(session_id, 2)
            for event in events:
                log.append([event])
                with trio.CancelScope() as scope:
                    scope.cancel()
                    await log.wait_durable(event.seq)
                expect(scope.cancelled_caught, "wait_durable can be cancelled")
            for call in (partial(journal.create, fresh_id()), log.read, log.wait_room):
                with trio.CancelScope() as scope:
                    scope.cancel()
                    await call()
            await log.wait_durable(2)
            expect_same(await journal.read(session_id), events, "the log after cancelled waits")

    async def what_waits_for_an_event_is_called_in_order(self) -> None:
        """`when_durable`: in the order of the numbers, each once, and at once for what is durable."""
        async with self.open_journal() as journal:
            session_id = fresh_id()
            log = await journal.create(session_id)
            called: list[tuple[int, bool]] = []

            def note(seq: int) -> None:
                called.append((seq, log.durable_seq >= seq))

            for event in some_events(session_id, 4):
                log.append([event])
                log.when_durable(event.seq, partial(note, event.seq))
            await log.wait_durable(4)
            log.when_durable(2, partial(note, 2))
            expected = [(1, True), (2, True), (3, True), (4, True), (2, True)]
            expect_equal(called, expected, "the calls of when_durable")

    async def a_snapshot_and_the_events_behind_it_are_the_log(self) -> None:
        """`load` gives the newest snapshot that there is, or none, and all that it does not hold."""
        async with self.open_journal() as journal:
            session_id = fresh_id()
            log = await journal.create(session_id)
            events = await write(log, some_events(session_id, 6))
            log.snapshot(3, b"three")
            log.snapshot(5, b"five")
            log.snapshot(4, b"four")
            events += await write(log, some_events(session_id, 8, first_seq=7))
            expect_load(await log.load(), events)
        if self.durable:
            async with self.open_journal() as journal:
                log = await journal.open(session_id)
                snapshot, tail = await log.load()
                expect_equal(snapshot, b"five", "the newest snapshot, after the end of the journal")
                expect_same(tail, events[5:], "the events behind the snapshot")
                await journal.delete(session_id)
                log = await journal.create(session_id)
                events = await write(log, some_events(session_id, 1))
                expect_equal(
                    (await log.load())[0], None, "the snapshot of a session that was deleted and made anew"
                )
