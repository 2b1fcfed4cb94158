"""Sessions beside each other: made, deleted, forked, listed, many at once."""

from functools import partial

import attrs
import trio

from exeunt.actors.errors import (
    InvalidConfiguration,
    SessionExists,
    SessionNotFound,
)
from exeunt.actors.events import Event
from exeunt.supervisor.journal import SessionMetadata, fork_log
from exeunt.testing.journal_conformance.frame import Checks, fresh_id, listed, make, write
from exeunt.testing.journal_events import LAST_ACT, some_events
from exeunt.testing.journal_verdicts import expect, expect_equal, expect_error, expect_same

CROWD = 200
"""Sessions that write at once."""


@attrs.frozen
class SessionChecks(Checks):
    """What a journal does with several sessions."""

    async def a_deleted_session_is_gone(self) -> None:
        """With all that is known of it, also what was appended a moment ago; its id is free."""
        async with self.open_journal() as journal:
            for wait in (True, False):
                session_id = fresh_id()
                log = await journal.create(session_id)
                log.append(some_events(session_id, 3))
                if wait:
                    await log.wait_durable(3)
                await journal.delete(session_id)
                for call in (journal.open, journal.read, journal.metadata, journal.delete):
                    await expect_error(SessionNotFound, partial(call, session_id))
                log = await journal.create(session_id)
                events = await write(log, some_events(session_id, 1))
                expect_same(await journal.read(session_id), events, "the log of a session that was made anew")

    async def a_forked_session_is_one_of_its_own(self) -> None:
        """It has the events up to the fork, under its own id, and goes on without the other."""
        async with self.open_journal() as journal:
            source_id, copy_id = fresh_id(), fresh_id()
            source = await journal.create(source_id)
            events = await write(source, some_events(source_id, 6, tenant="stage"))
            log = await fork_log(journal, source_id, copy_id, 4)
            expect_equal(log.durable_seq, 4, "the durable_seq of a fork")
            renamed = some_events(copy_id, 4, tenant="stage", origin=events[0].origin)
            expect_same(await journal.read(copy_id), renamed, "the log of a fork")
            more = await write(log, some_events(copy_id, 5, first_seq=5))
            expect_same(await journal.read(copy_id), [*renamed, *more], "the log of a fork that went on")
            expect_same(await journal.read(source_id), events, "the log that was forked")
            await expect_error(SessionExists, partial(fork_log, journal, source_id, copy_id))
            await expect_error(SessionNotFound, partial(fork_log, journal, fresh_id(), fresh_id()))
            for wrong in (0, 7):
                await expect_error(
                    InvalidConfiguration, partial(fork_log, journal, source_id, fresh_id(), wrong)
                )

    async def what_sessions_write_in_turns_stays_apart(self) -> None:
        """Each log has its own events, in its own order."""
        async with self.open_journal() as journal:
            ids = [fresh_id() for _ in range(5)]
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
                session_id = fresh_id()
                log = await journal.create(session_id)
                expected[session_id] = events = some_events(session_id, 6)
                for begin in (0, 2, 4):
                    await write(log, events[begin : begin + 2])

            async with trio.open_nursery() as nursery:
                for _ in range(CROWD):
                    nursery.start_soon(session)
            for session_id, events in expected.items():
                expect_same(await journal.read(session_id), events, "one of two hundred logs")
            expect(journal.statistics() is not None, "a journal has statistics")

    async def a_listing_says_what_is_known_without_reading(self) -> None:
        """Tenant, times, number of events."""
        async with self.open_journal() as journal:
            session_id, tenant = fresh_id(), fresh_id()
            log = await journal.create(session_id)
            await write(log, some_events(session_id, 3, tenant=tenant))
            expected = SessionMetadata(session_id, tenant, LAST_ACT + 1, LAST_ACT + 3, 3)
            expect_equal(await journal.metadata(session_id), expected, "the metadata of a session")
            expect_equal(
                list((await journal.list(tenant=tenant)).sessions), [expected], "the listing of a tenant"
            )

    async def a_listing_goes_by_last_use(self) -> None:
        """The session used last comes first, in pages of any size, of one tenant if asked."""
        async with self.open_journal() as journal:
            tenant = fresh_id()
            # Pairs were used at the same time: among them the order is any, but the same for all pages.
            ids = [await make(journal, tenant, LAST_ACT + number // 2) for number in range(7)]
            await make(journal, fresh_id(), LAST_ACT)
            for size in (1, 2, 3, 7, 100):
                found = await listed(journal, tenant, size)
                expect_equal(sorted(item.session_id for item in found), sorted(ids), f"a listing by {size}")
                times = [item.modified_time for item in found]
                expect_equal(times, sorted(times, reverse=True), f"the times of a listing by {size}")
            everyone = [item.session_id for item in await listed(journal, None, 50)]
            expect(set(ids) <= set(everyone), "a listing of all tenants has all sessions")
            for wrong in (partial(journal.list, page="no page"), partial(journal.list, limit=0)):
                await expect_error(InvalidConfiguration, wrong)

    async def a_listing_goes_on_while_sessions_change(self) -> None:
        """What nobody uses between two pages is shown exactly once; what is used moves to the front."""
        async with self.open_journal() as journal:
            tenant = fresh_id()
            ids = [await make(journal, tenant, LAST_ACT + number) for number in range(9)]
            first = await journal.list(tenant=tenant, limit=3)
            log = await journal.open(ids[2])
            await write(log, some_events(ids[2], 2, first_seq=2, time=LAST_ACT + 100))
            await journal.delete(ids[8])
            newcomer = await make(journal, tenant, LAST_ACT + 50)
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
