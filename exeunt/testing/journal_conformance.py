"""What every journal keeps, as checks that any implementation runs.

    KIT = JournalConformance(open_journal, durable=True)

    @pytest.mark.parametrize("check", JournalConformance.names())
    async def test_my_journal(check):
        await KIT.check(check)

Checks use sessions and a tenant of their own, so they may share a database. None waits for a clock; run them with the
real one, since journals use threads. A broken promise raises `InvariantViolation`.
"""

import inspect
import uuid
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from functools import partial

import attrs
import trio

from exeunt.actors.errors import (
    InvalidConfiguration,
    JournalError,
    SessionExists,
    SessionNotFound,
    SessionOwnedElsewhere,
)
from exeunt.actors.events import Event, Origin
from exeunt.actors.ports import SessionLog
from exeunt.supervisor.journal import Journal, SessionMetadata, fork_log
from exeunt.testing.journal_events import LAST_ACT, every_event, some_events
from exeunt.testing.journal_verdicts import expect, expect_equal, expect_error, expect_load, expect_same

OpenJournal = Callable[[], AbstractAsyncContextManager[Journal]]

BIG = 1_000_000
"""Characters of a big event: a document that somebody pasted."""

CROWD = 200
"""Sessions that write at once."""


@attrs.frozen
class JournalConformance:
    """The checks. *open_journal* opens a journal for the length of its block.

    *durable* says that each block sees what others wrote before, and that two may be open at once, as two hosts.
    """

    open_journal: OpenJournal
    durable: bool = False

    @classmethod
    def names(cls) -> list[str]:
        """Return the names of all checks. Those that need a durable journal pass at once on any other."""
        return [
            name for name, _ in inspect.getmembers(cls) if name.startswith(("a_", "an_", "what_", "two_"))
        ]

    async def check(self, name: str) -> None:
        """Run one check. Raises `InvariantViolation`."""
        await getattr(self, name)()

    # --- One session -----------------------------------------------------------------------------------------

    async def a_new_log_is_empty_and_takes_events_in_order(self) -> None:
        """Nothing is there; then exactly what was appended."""
        async with self.open_journal() as journal:
            session_id = _new_id()
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
            session_id = _new_id()
            log = await journal.create(session_id)
            await expect_error(SessionExists, partial(journal.create, session_id))
            events = await _write(log, some_events(session_id, 3))
            await expect_error(SessionExists, partial(journal.create, session_id))
            expect_same(await journal.read(session_id), events, "the log after a refused create")

    async def a_session_of_eight_creates_at_once_is_made_once(self) -> None:
        """One of them gets it."""
        async with self.open_journal() as journal:
            session_id, logs, refused = _new_id(), list[SessionLog](), list[Exception]()

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
            session_id = _new_id()
            for call in (journal.open, journal.read, journal.metadata, journal.delete):
                await expect_error(SessionNotFound, partial(call, session_id))
            await expect_error(SessionNotFound, partial(journal.metadata, session_id))

    async def a_stored_session_is_opened_where_it_ends(self) -> None:
        """Also when it was appended to a moment ago."""
        async with self.open_journal() as journal:
            session_id = _new_id()
            log = await journal.create(session_id)
            events = some_events(session_id, 2)
            log.append(events)
            again = await journal.open(session_id)
            expect_equal(again.durable_seq, 2, "the durable_seq of a log that is opened again")
            more = some_events(session_id, 4, first_seq=3, origin=Origin.fresh(events[-1].id, 3))
            await _write(again, more)
            expect_same(await journal.read(session_id), [*events, *more], "the log of two activations")

    async def an_event_that_does_not_follow_is_refused(self) -> None:
        """A gap, a number twice, a gap within: each is refused whole."""
        async with self.open_journal() as journal:
            session_id = _new_id()
            log = await journal.create(session_id)
            events = some_events(session_id, 9)
            await _write(log, events[:3])
            for wrong in (events[4:5], events[2:3], events[0:1], [events[3], events[5]]):
                await expect_error(JournalError, partial(log.append, wrong))
            await expect_error(JournalError, partial(log.wait_durable, 4))
            await _write(log, events[3:])
            expect_same(await journal.read(session_id), events, "the log after refused events")

    async def a_part_of_a_log_can_be_read(self) -> None:
        """From any number, up to any count, whatever was written together."""
        async with self.open_journal() as journal:
            session_id = _new_id()
            log = await journal.create(session_id)
            events = some_events(session_id, 10)
            for part in (events[:1], events[1:5], events[5:6], events[6:]):
                await _write(log, part)
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
            session_id = _new_id()
            log = await journal.create(session_id)
            events = some_events(session_id, 5)
            log.append(events)
            expect_same(await log.read(2, 3), events[1:4], "what was just appended")

    async def an_event_of_each_kind_comes_back_as_it_was(self) -> None:
        """Kind, values, ids and parents; with all fields given, and with none that may be left out."""
        async with self.open_journal() as journal:
            for defaults in (False, True):
                session_id = _new_id()
                events = every_event(session_id, defaults=defaults)
                log = await journal.create(session_id)
                log.append(events)
                expect_same(await log.read(), events, "one event of each kind")

    async def what_activations_wrote_keeps_its_ids(self) -> None:
        """Also when events of two activations are on their way at the same time."""
        async with self.open_journal() as journal:
            session_id = _new_id()
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
            session_id = _new_id()
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
            session_id = _new_id()
            log = await journal.create(session_id)
            events = some_events(session_id, 2)
            for event in events:
                log.append([event])
                with trio.CancelScope() as scope:
                    scope.cancel()
                    await log.wait_durable(event.seq)
                expect(scope.cancelled_caught, "wait_durable can be cancelled")
            for call in (partial(journal.create, _new_id()), log.read, log.wait_room):
                with trio.CancelScope() as scope:
                    scope.cancel()
                    await call()
            await log.wait_durable(2)
            expect_same(await journal.read(session_id), events, "the log after cancelled waits")

    async def what_waits_for_an_event_is_called_in_order(self) -> None:
        """`when_durable`: in the order of the numbers, each once, and at once for what is durable."""
        async with self.open_journal() as journal:
            session_id = _new_id()
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
            session_id = _new_id()
            log = await journal.create(session_id)
            events = await _write(log, some_events(session_id, 6))
            log.snapshot(3, b"three")
            log.snapshot(5, b"five")
            log.snapshot(4, b"four")
            events += await _write(log, some_events(session_id, 8, first_seq=7))
            expect_load(await log.load(), events)
        if self.durable:
            async with self.open_journal() as journal:
                log = await journal.open(session_id)
                snapshot, tail = await log.load()
                expect_equal(snapshot, b"five", "the newest snapshot, after the end of the journal")
                expect_same(tail, events[5:], "the events behind the snapshot")
                await journal.delete(session_id)
                log = await journal.create(session_id)
                events = await _write(log, some_events(session_id, 1))
                expect_equal(
                    (await log.load())[0], None, "the snapshot of a session that was deleted and made anew"
                )

    async def a_deleted_session_is_gone(self) -> None:
        """With all that is known of it, also what was appended a moment ago; its id is free."""
        async with self.open_journal() as journal:
            for wait in (True, False):
                session_id = _new_id()
                log = await journal.create(session_id)
                log.append(some_events(session_id, 3))
                if wait:
                    await log.wait_durable(3)
                await journal.delete(session_id)
                for call in (journal.open, journal.read, journal.metadata, journal.delete):
                    await expect_error(SessionNotFound, partial(call, session_id))
                log = await journal.create(session_id)
                events = await _write(log, some_events(session_id, 1))
                expect_same(await journal.read(session_id), events, "the log of a session that was made anew")

    async def a_forked_session_is_one_of_its_own(self) -> None:
        """It has the events up to the fork, under its own id, and goes on without the other."""
        async with self.open_journal() as journal:
            source_id, new_id = _new_id(), _new_id()
            source = await journal.create(source_id)
            events = await _write(source, some_events(source_id, 6, tenant="stage"))
            log = await fork_log(journal, source_id, new_id, 4)
            expect_equal(log.durable_seq, 4, "the durable_seq of a fork")
            renamed = some_events(new_id, 4, tenant="stage", origin=events[0].origin)
            expect_same(await journal.read(new_id), renamed, "the log of a fork")
            more = await _write(log, some_events(new_id, 5, first_seq=5))
            expect_same(await journal.read(new_id), [*renamed, *more], "the log of a fork that went on")
            expect_same(await journal.read(source_id), events, "the log that was forked")
            await expect_error(SessionExists, partial(fork_log, journal, source_id, new_id))
            await expect_error(SessionNotFound, partial(fork_log, journal, _new_id(), _new_id()))
            for wrong in (0, 7):
                await expect_error(
                    InvalidConfiguration, partial(fork_log, journal, source_id, _new_id(), wrong)
                )

    # --- Many sessions ---------------------------------------------------------------------------------------

    async def what_sessions_write_in_turns_stays_apart(self) -> None:
        """Each log has its own events, in its own order."""
        async with self.open_journal() as journal:
            ids = [_new_id() for _ in range(5)]
            logs = [await journal.create(session_id) for session_id in ids]
            expected = [some_events(session_id, 20) for session_id in ids]
            for number in range(20):
                for log, events in zip(logs, expected, strict=True):
                    log.append(events[number : number + 1])
            for log in logs:
                await log.wait_durable(20)
            for session_id, events in zip(ids, expected, strict=True):
                expect_same(await journal.read(session_id), events, "one of several logs")

    async def a_crowd_writes_at_once(self) -> None:
        """Two hundred sessions, each of which waits for each of its slices."""
        async with self.open_journal() as journal:
            expected: dict[str, list[Event]] = {}

            async def session() -> None:
                session_id = _new_id()
                log = await journal.create(session_id)
                expected[session_id] = events = some_events(session_id, 6)
                for begin in (0, 2, 4):
                    await _write(log, events[begin : begin + 2])

            async with trio.open_nursery() as nursery:
                for _ in range(CROWD):
                    nursery.start_soon(session)
            for session_id, events in expected.items():
                expect_same(await journal.read(session_id), events, "one of two hundred logs")
            expect(journal.statistics() is not None, "a journal has statistics")

    async def a_listing_says_what_is_known_without_reading(self) -> None:
        """Tenant, times, number of events."""
        async with self.open_journal() as journal:
            session_id, tenant = _new_id(), _new_id()
            log = await journal.create(session_id)
            await _write(log, some_events(session_id, 3, tenant=tenant))
            expected = SessionMetadata(session_id, tenant, LAST_ACT + 1, LAST_ACT + 3, 3)
            expect_equal(await journal.metadata(session_id), expected, "the metadata of a session")
            expect_equal(
                list((await journal.list(tenant=tenant)).sessions), [expected], "the listing of a tenant"
            )

    async def a_listing_goes_by_last_use(self) -> None:
        """The session used last comes first, in pages of any size, of one tenant if asked."""
        async with self.open_journal() as journal:
            tenant = _new_id()
            # Pairs were used at the same time: among them the order is any, but the same for all pages.
            ids = [await _make(journal, tenant, LAST_ACT + number // 2) for number in range(7)]
            await _make(journal, _new_id(), LAST_ACT)
            for size in (1, 2, 3, 7, 100):
                found = await _listed(journal, tenant, size)
                expect_equal(sorted(item.session_id for item in found), sorted(ids), f"a listing by {size}")
                times = [item.modified_time for item in found]
                expect_equal(times, sorted(times, reverse=True), f"the times of a listing by {size}")
            everyone = [item.session_id for item in await _listed(journal, None, 50)]
            expect(set(ids) <= set(everyone), "a listing of all tenants has all sessions")
            for wrong in (partial(journal.list, page="no page"), partial(journal.list, limit=0)):
                await expect_error(InvalidConfiguration, wrong)

    async def a_listing_goes_on_while_sessions_change(self) -> None:
        """What nobody uses between two pages is shown exactly once; what is used moves to the front."""
        async with self.open_journal() as journal:
            tenant = _new_id()
            ids = [await _make(journal, tenant, LAST_ACT + number) for number in range(9)]
            first = await journal.list(tenant=tenant, limit=3)
            log = await journal.open(ids[2])
            await _write(log, some_events(ids[2], 2, first_seq=2, time=LAST_ACT + 100))
            await journal.delete(ids[8])
            newcomer = await _make(journal, tenant, LAST_ACT + 50)
            found = [item.session_id for item in first.sessions]
            page = first.next
            while page is not None:
                part = await journal.list(tenant=tenant, limit=3, page=page)
                found += [item.session_id for item in part.sessions]
                page = part.next
            expect_equal(found, [*ids[8:2:-1], *ids[1::-1]], "a listing during which sessions changed")
            front = (await journal.list(tenant=tenant, limit=2)).sessions
            expect_equal(
                [item.session_id for item in front], [ids[2], newcomer], "the front of a new listing"
            )

    # --- Across journals: durable ones -----------------------------------------------------------------------

    async def what_was_durable_is_there_after_reopening(self) -> None:
        """All that `wait_durable` acknowledged, also when the journal ended right behind it."""
        if not self.durable:
            return
        expected: dict[str, list[Event]] = {}
        async with self.open_journal() as journal:
            for _ in range(10):
                session_id = _new_id()
                log = await journal.create(session_id)
                expected[session_id] = await _write(log, some_events(session_id, 5))
        async with self.open_journal() as journal:
            for session_id, events in expected.items():
                log = await journal.open(session_id)
                expect_same(await log.read(), events, "the log after reopening")
                expected[session_id] = events + await _write(log, some_events(session_id, 6, first_seq=6))
        async with self.open_journal() as journal:
            for session_id, events in expected.items():
                expect_same(await journal.read(session_id), events, "the log after the second reopening")

    async def what_was_only_appended_is_written_at_the_end(self) -> None:
        """A journal that ends in order writes what it has."""
        if not self.durable:
            return
        session_id = _new_id()
        events = some_events(session_id, 50)
        async with self.open_journal() as journal:
            log = await journal.create(session_id)
            for event in events:
                log.append([event])
        async with self.open_journal() as journal:
            expect_same(await journal.read(session_id), events, "the log after an end in order")

    async def two_openers_of_a_session_do_not_both_write(self) -> None:
        """The second who writes is told, and nothing of it is written, not even what seems to follow."""
        if not self.durable:
            return
        async with self.open_journal() as one, self.open_journal() as other:
            session_id = _new_id()
            loser = await one.create(session_id)
            events = await _write(loser, some_events(session_id, 3))
            told: list[Exception] = []
            loser.watch(told.append)
            winner = await other.open(session_id)
            events += await _write(winner, some_events(session_id, 4, first_seq=4))
            # The numbers after the refused one seem to follow what the winner wrote.
            for event in some_events(session_id, 6, first_seq=4, text="of the loser"):
                loser.append([event])
                if event.seq == 4:
                    await expect_error(SessionOwnedElsewhere, partial(loser.wait_durable, 4))
                    break
            await expect_error(
                SessionOwnedElsewhere, partial(loser.append, some_events(session_id, 5, first_seq=5))
            )
            await expect_error(SessionOwnedElsewhere, partial(loser.wait_durable, 5))
            expect_equal(
                [type(error) for error in told], [SessionOwnedElsewhere], "what the loser's watcher was told"
            )
            events += await _write(winner, some_events(session_id, 5, first_seq=5))
            for journal in (one, other):
                expect_same(await journal.read(session_id), events, "the log that two opened")
            # Who lost may ask again.
            again = await one.open(session_id)
            events += await _write(again, some_events(session_id, 6, first_seq=6))
            expect_same(await other.read(session_id), events, "the log after it was taken back")

    async def two_openers_cannot_both_make_a_session(self) -> None:
        """One of the two is refused, at once or with its first event."""
        if not self.durable:
            return
        async with self.open_journal() as one, self.open_journal() as other:
            session_id = _new_id()
            logs = [await journal.create(session_id) for journal in (one, other)]
            events = await _write(logs[0], some_events(session_id, 2))
            logs[1].append(some_events(session_id, 2))
            await expect_error(SessionOwnedElsewhere, partial(logs[1].wait_durable, 2))
            expect_same(await other.read(session_id), events, "the log that two made")


# --- Steps -------------------------------------------------------------------------------------------------------


def _new_id() -> str:
    return f"conformance-{uuid.uuid4()}"


async def _write(log: SessionLog, events: list[Event]) -> list[Event]:
    log.append(events)
    await log.wait_durable(events[-1].seq)
    return events


async def _make(journal: Journal, tenant: str, time: float) -> str:
    session_id = _new_id()
    log = await journal.create(session_id)
    await _write(log, some_events(session_id, 1, tenant=tenant, time=time))
    return session_id


async def _listed(journal: Journal, tenant: str | None, size: int) -> list[SessionMetadata]:
    found: list[SessionMetadata] = []
    page: str | None = None
    while True:
        part = await journal.list(tenant=tenant, limit=size, page=page)
        expect(0 < len(part.sessions) <= size, f"a page of {size} has {len(part.sessions)} sessions")
        found += part.sessions
        page = part.next
        if page is None:
            return found
