"""A journal over a database: bounds, waiting, and the journal's side of it. `writer` has the thread that writes.

A log collects the events of handler runs until somebody needs them durable, or for 5 ms; then they go to the writer
as one slice.
"""

import contextlib
import logging
import weakref
from collections.abc import Callable, Sequence
from functools import partial

import attrs
import trio

from exeunt.actors.errors import (
    ExeuntError,
    InvalidConfiguration,
    JournalError,
    JournalUnavailable,
    SessionExists,
    SessionNotFound,
    SessionOwnedElsewhere,
)
from exeunt.actors.events import Event
from exeunt.actors.events.codec import Data
from exeunt.supervisor.journal.log import DurableLog
from exeunt.supervisor.journal.protocol import Page, SessionMetadata
from exeunt.supervisor.journal.reader import load_state, read_events
from exeunt.supervisor.journal.slices import Slices
from exeunt.supervisor.journal.store import Store, StoredSession, StoreUnavailable
from exeunt.supervisor.journal.writer import Writer

logger = logging.getLogger("exeunt.supervisor")

FLUSH_EVERY = 0.005
"""Seconds that an event may wait for company when nobody needs it durable. A commit to disk takes about as long."""

OPEN_AGAIN = 0.1
"""Seconds until a store that could not be opened is tried again; twice as long each time."""

OPEN_AT_LEAST_EVERY = 2.0
"""Seconds between two of these attempts at most: a database takes longer to start."""

READERS = 4
"""Threads that read logs at once. Reading is rare: resumes, and subscribers that ask for the past."""

NEW_WAIT = 2.0
"""Seconds that a list waits for sessions that were just made: a commit takes milliseconds."""


@attrs.frozen
class JournalStatistics:
    """A look at a durable journal."""

    store: str
    """Which database it is, without a password."""
    available: bool
    """Whether the last write succeeded."""
    pending_events: int
    """Events that were accepted and are not durable yet."""
    bound: int
    """With more pending than this, messages are refused and turns wait before their next step."""
    commits: int
    """Transactions that have written events. One holds those of many sessions."""
    written_events: int
    """Events that they have written."""
    failures: int
    """Attempts to write that found the database unavailable."""
    truncated_bytes: int
    """Bytes of a write that had been cut off half-way, and were dropped when the database was opened."""


class DurableJournal:
    """Keeps logs in a `Store`. Run it as a service of the host, before everything that uses it."""

    def __init__(self, store: Store, *, bound: int = 100_000) -> None:
        self._store = store
        self._bound = bound
        self._dirty: list[DurableLog] = []
        self._writer = Writer(store, self)
        self._pending = 0
        self._available = True
        self._wake = trio.Event()
        self._hurry = trio.Event()
        self._room = trio.Event()
        self._readers = trio.CapacityLimiter(READERS)
        self._busy: dict[str, DurableLog] = {}
        """Logs that have events which are not durable."""
        self._new: weakref.WeakValueDictionary[str, DurableLog] = weakref.WeakValueDictionary()
        """Logs that were created and have no durable event: the database does not know them yet."""
        self.closed = False
        """Whether `run` has ended: nothing more is taken."""
        self._commits = 0
        self._written = 0
        self._failures = 0
        self.on_commit: Callable[[float, int], None] = lambda seconds, events: None
        """Told the seconds and the events of each commit, in the loop: for metrics."""

    # --- As a service ----------------------------------------------------------------------------------------

    async def run(
        self, *, wait: float = 0.0, task_status: "trio.TaskStatus[DurableJournal]" = trio.TASK_STATUS_IGNORED
    ) -> None:
        """Open the store and write until cancelled; then write what is left and close it.

        A store that is unavailable is tried again for *wait* seconds, which the log says. Raises `JournalError` when it
        cannot be opened.
        """
        self._available = True
        self.closed = False
        try:
            await self._open(wait)
            async with trio.open_nursery() as nursery:
                # It ends when it has read the end mark, not before: the nursery waits for it.
                nursery.start_soon(self._writer.run, name="exeunt journal writer")
                task_status.started(self)
                try:
                    await self._flush_for_ever()
                finally:
                    self._flush_all()
                    self.closed = True
                    self._writer.end()
        finally:
            with trio.CancelScope(shield=True):
                await trio.to_thread.run_sync(self._store.close)

    async def _open(self, wait: float) -> None:
        began = trio.current_time()
        delay = OPEN_AGAIN
        while True:
            try:
                await trio.to_thread.run_sync(self._store.open)
                break
            except StoreUnavailable as error:
                left = began + wait - trio.current_time()
                if left <= 0.0:
                    raise
                if delay == OPEN_AGAIN:
                    logger.warning(
                        "the journal %s is unavailable; it is waited for, %g s at most: %s",
                        self._store.name,
                        wait,
                        error,
                    )
            await trio.sleep(min(delay, left))
            delay = min(2 * delay, OPEN_AT_LEAST_EVERY)
        if delay != OPEN_AGAIN:
            logger.warning(
                "the journal %s is there after %.1f s", self._store.name, trio.current_time() - began
            )

    async def _flush_for_ever(self) -> None:
        while True:
            await self._wake.wait()
            self._wake = trio.Event()
            with trio.move_on_after(FLUSH_EVERY):
                # Whoever needs something durable wakes this task, which runs behind all that run now: what they
                # have collected by then goes to the writer together, and wakes its thread once.
                await self._hurry.wait()
            self._hurry = trio.Event()
            self._flush_all()

    # --- The loop's side -------------------------------------------------------------------------------------

    @property
    def has_room(self) -> bool:
        """Whether new work is taken: the store is there and keeps up."""
        return self._available and self._pending < self._bound and not self.closed

    async def wait_room(self) -> None:
        """Wait until new work is taken."""
        while not self.has_room:
            await self._room.wait()
        await trio.lowlevel.checkpoint_if_cancelled()

    def collected(self, log: DurableLog, events: int, first: bool) -> None:
        """A log has events that the writer does not have yet. *first*: it had none before."""
        self._pending += events
        if first:
            self._busy[log.session_id] = log
            self._dirty.append(log)
            if len(self._dirty) == 1:
                self._wake.set()

    def flush(self, log: DurableLog) -> None:
        """Give the writer what *log* has collected."""
        if self._dirty:
            self._hurry.set()

    def _flush_all(self) -> None:
        dirty, self._dirty = self._dirty, []
        slices = [(log, events) for log in dirty if (events := log.take())]
        if slices:
            self._writer.write(slices)

    # --- What the writer reports, in the loop ----------------------------------------------------------------

    def committed(self, batch: Slices, seconds: float) -> None:
        """What is not fenced of *batch* is durable."""
        if not self._available:
            logger.warning("the journal %s is back", self._store.name)
        self._available = True
        events = sum(len(events) for log, events in batch if not log.fenced)
        self._commits += 1
        self._written += events
        self.on_commit(seconds, events)
        for log, written in batch:
            if log.fenced:
                self._end(log, partial(_owned_elsewhere, log.session_id))
            else:
                self._new.pop(log.session_id, None)
                log.written(written[-1].seq)
        self.settled(batch)

    def refused(self, log: DurableLog, events: list[Event], error: JournalError) -> None:
        """What the writer was given for *log* will never be written, for a reason that is no other host."""
        self._end(log, lambda: type(error)(str(error)))
        self.settled([(log, events)])

    def _end(self, log: DurableLog, ending: Callable[[], ExeuntError]) -> None:
        self._new.pop(log.session_id, None)
        self._pending -= log.end(ending)

    def settled(self, batch: Slices) -> None:
        """*batch* is off the writer's hands: make room."""
        for log, events in batch:
            self._pending -= len(events)
            if self._busy.get(log.session_id) is log and (log.fenced or log.durable_seq == log.taken_seq):
                del self._busy[log.session_id]
        if self.has_room and self._room.statistics().tasks_waiting:
            self._room.set()
            self._room = trio.Event()

    def failed(self, error: StoreUnavailable) -> None:
        """The database is away; the writer tries again."""
        self._failures += 1
        if self._available:
            logger.error(
                "the journal %s is unavailable; new work is refused until it is back: %s",
                self._store.name,
                error,
            )
        self._available = False

    # --- Journal ---------------------------------------------------------------------------------------------

    async def create(self, session_id: str) -> DurableLog:
        """Return the empty log of a new session. It is stored with its first event.

        Raises `SessionExists`, `JournalUnavailable`, `JournalError`. Cancelled: there is no session.
        """
        self._check_room()
        if session_id in self._new:
            raise SessionExists(
                f"session {session_id!r} exists already: resume it, or delete it first", session_id=session_id
            )
        log = self._new[session_id] = DurableLog(self, session_id, 0)
        try:
            if await self._find(session_id) is not None:
                raise SessionExists(
                    f"session {session_id!r} exists already: resume it, or delete it first",
                    session_id=session_id,
                )
        except BaseException:
            self._new.pop(session_id, None)
            raise
        return log

    async def open(self, session_id: str) -> DurableLog:
        """Return the log of a stored session. Events that are still on their way to the database are waited for.

        Raises `SessionNotFound`, `JournalError`. Cancelled: nothing has happened.
        """
        found = await self._find_settled(session_id)
        if found is None:
            raise _not_found(session_id)
        return DurableLog(self, session_id, found.last_seq)

    async def _find_settled(self, session_id: str) -> StoredSession | None:
        while True:
            await self._settle(session_id)
            found = await self._find(session_id)
            if session_id not in self._busy:
                return found

    async def _settle(self, session_id: str) -> None:
        """Wait until everything that was appended to the session before is durable, or will never be."""
        busy = self._busy.get(session_id)
        if busy is None:
            return
        if not self._available:
            raise JournalUnavailable(
                f"the journal {self._store.name} cannot be written to now, and session {session_id} has events that"
                " it does not have yet; try again later"
            )
        # Why they were not written is for those who appended them.
        with contextlib.suppress(SessionOwnedElsewhere, JournalError):
            await busy.wait_durable(busy.taken_seq)

    async def _settle_new(self) -> None:
        """Wait until the database knows each session that was made before. Where it is away, it knows those it has."""
        for session_id in [each for each in self._busy if each in self._new]:
            with contextlib.suppress(JournalUnavailable):
                await self._settle(session_id)

    async def read(self, session_id: str, from_seq: int = 1, limit: int | None = None) -> Sequence[Event]:
        """Return the durable events of a session from number *from_seq* on, at most *limit*. Wakes nobody.

        Raises `SessionNotFound`, `JournalError`.
        """
        if from_seq < 1 or (limit is not None and limit < 0):
            raise InvalidConfiguration(
                f"events are read from number 1 on, and none or more; not {from_seq}, {limit}"
            )
        events = await self.read_known(session_id, from_seq, limit, 0)
        if not events and session_id not in self._busy and session_id not in self._new:
            await self.metadata(session_id)
        return events

    async def read_known(
        self, session_id: str, from_seq: int, limit: int | None, known: int
    ) -> Sequence[Event]:
        """Read events of a log that is known to have *known* of them. For logs. Raises `JournalError`."""
        return await trio.to_thread.run_sync(
            read_events, self._store, session_id, from_seq, limit, known, limiter=self._readers
        )

    async def load(self, session_id: str, known: int) -> tuple[Data | None, Sequence[Event]]:
        """Return the newest snapshot of a session, if there is one, and the events behind it. For logs."""
        return await trio.to_thread.run_sync(
            load_state, self._store, session_id, known, limiter=self._readers
        )

    def keep_snapshot(self, session_id: str, seq: int, data: bytes) -> None:
        """Let the writer keep a snapshot, behind what it has to write."""
        self._writer.write_snapshot(session_id, seq, data)

    async def delete(self, session_id: str) -> None:
        """Forget a session. What was appended before is deleted too. Raises `SessionNotFound`, `JournalError`.

        A log of it that is still open takes nothing more. Cancelled: it is deleted, or nothing has happened.
        """
        await self._settle(session_id)
        self._new.pop(session_id, None)
        if not await trio.to_thread.run_sync(self._store.delete, session_id, limiter=self._readers):
            raise _not_found(session_id)

    async def list(self, *, tenant: str | None = None, limit: int = 100, page: str | None = None) -> Page:
        """Return a part of what is stored, the session used last first; *page* is the `next` of the part before.

        The first part waits, `NEW_WAIT` at most, until the database knows those that were made before. One that is used
        meanwhile moves to the front; none is shown twice but such a one. Raises `InvalidConfiguration`, `JournalError`.
        """
        if limit < 1:
            raise InvalidConfiguration(f"limit must be at least 1 session a page, not {limit}")
        if page is None:
            with trio.move_on_after(NEW_WAIT):
                await self._settle_new()
        found, following = await trio.to_thread.run_sync(
            self._store.list, tenant, limit, page, limiter=self._readers
        )
        return Page([_metadata(item) for item in found], following)

    async def metadata(self, session_id: str) -> SessionMetadata:
        """Return what is known of one session. Raises `SessionNotFound`."""
        found = await self._find_settled(session_id)
        if found is None:
            raise _not_found(session_id)
        return _metadata(found)

    def statistics(self) -> JournalStatistics:
        """Return a look at the journal."""
        return JournalStatistics(
            store=self._store.name,
            available=self._available,
            pending_events=self._pending,
            bound=self._bound,
            commits=self._commits,
            written_events=self._written,
            failures=self._failures,
            truncated_bytes=self._store.truncated_bytes,
        )

    async def _find(self, session_id: str) -> StoredSession | None:
        return await trio.to_thread.run_sync(self._store.find, session_id, limiter=self._readers)

    def _check_room(self) -> None:
        if not self.has_room:
            why = "does not keep up" if self._available and not self.closed else "cannot be written to now"
            raise JournalUnavailable(f"the journal {self._store.name} {why}; try again later")


def _metadata(stored: StoredSession) -> SessionMetadata:
    return SessionMetadata(
        stored.session_id, stored.tenant, stored.start_time, stored.modified_time, stored.last_seq
    )


def _not_found(session_id: str) -> SessionNotFound:
    return SessionNotFound(f"no session has the id {session_id!r}", session_id=session_id)


def _owned_elsewhere(session_id: str) -> SessionOwnedElsewhere:
    return SessionOwnedElsewhere(
        f"session {session_id} was taken over by another host, or deleted; nothing more is written here. "
        "Resume it to have it here again",
        session_id=session_id,
    )
