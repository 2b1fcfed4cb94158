"""A journal that ends and is opened again, and two hosts that have the same one open."""

from functools import partial

import attrs

from exeunt.actors.errors import (
    SessionOwnedElsewhere,
)
from exeunt.actors.events import Event
from exeunt.testing.journal_conformance.frame import Checks, fresh_id, write
from exeunt.testing.journal_events import some_events
from exeunt.testing.journal_verdicts import expect_equal, expect_error, expect_same


@attrs.frozen
class HostChecks(Checks):
    """What a durable journal keeps beyond the end of a host. Any other passes at once."""

    async def what_was_durable_is_there_after_reopening(self) -> None:
        """All that `wait_durable` acknowledged, also when the journal ended right behind it."""
        if not self.durable:
            return
        expected: dict[str, list[Event]] = {}
        async with self.open_journal() as journal:
            for _ in range(10):
                session_id = fresh_id()
                log = await journal.create(session_id)
                expected[session_id] = await write(log, some_events(session_id, 5))
        async with self.open_journal() as journal:
            for session_id, events in expected.items():
                log = await journal.open(session_id)
                expect_same(await log.read(), events, "the log after reopening")
                expected[session_id] = events + await write(log, some_events(session_id, 6, first_seq=6))
        async with self.open_journal() as journal:
            for session_id, events in expected.items():
                expect_same(await journal.read(session_id), events, "the log after the second reopening")

    async def what_was_only_appended_is_written_at_the_end(self) -> None:
        """A journal that ends in order writes what it has."""
        if not self.durable:
            return
        session_id = fresh_id()
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
            session_id = fresh_id()
            loser = await one.create(session_id)
            events = await write(loser, some_events(session_id, 3))
            told: list[Exception] = []
            loser.watch(told.append)
            winner = await other.open(session_id)
            events += await write(winner, some_events(session_id, 4, first_seq=4))
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
            events += await write(winner, some_events(session_id, 5, first_seq=5))
            for journal in (one, other):
                expect_same(await journal.read(session_id), events, "the log that two opened")
            # Who lost may ask again.
            again = await one.open(session_id)
            events += await write(again, some_events(session_id, 6, first_seq=6))
            expect_same(await other.read(session_id), events, "the log after it was taken back")

    async def two_openers_cannot_both_make_a_session(self) -> None:
        """One of the two is refused, at once or with its first event."""
        if not self.durable:
            return
        async with self.open_journal() as one, self.open_journal() as other:
            session_id = fresh_id()
            logs = [await journal.create(session_id) for journal in (one, other)]
            events = await write(logs[0], some_events(session_id, 2))
            logs[1].append(some_events(session_id, 2))
            await expect_error(SessionOwnedElsewhere, partial(logs[1].wait_durable, 2))
            expect_same(await other.read(session_id), events, "the log that two made")
