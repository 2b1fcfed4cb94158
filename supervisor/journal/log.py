"""The log of one session in a durable journal: what is collected, what is durable, who waits for it."""

from collections import deque
from collections.abc import Callable, Sequence
from typing import Protocol

import outcome
import trio

from exeunt.actors.errors import ExeuntError, JournalError, JournalUnavailable
from exeunt.actors.events import Event
from exeunt.actors.events.codec import Data
from exeunt.actors.turn.live import Waiter

Ending = Callable[[], ExeuntError]
"""Makes the error that says why a log takes nothing more: a new one for each who is told."""


class Keeper(Protocol):
    """What a log needs of its journal."""

    @property
    def has_room(self) -> bool: ...

    closed: bool

    async def wait_room(self) -> None: ...
    def collected(self, log: "DurableLog", events: int, first: bool) -> None: ...
    def flush(self, log: "DurableLog") -> None: ...
    def keep_snapshot(self, session_id: str, seq: int, data: bytes) -> None: ...
    async def read_known(
        self, session_id: str, from_seq: int, limit: int | None, known: int
    ) -> Sequence[Event]: ...
    async def load(self, session_id: str, known: int) -> tuple[Data | None, Sequence[Event]]: ...


class DurableLog:
    """The log of one session. Implements `exeunt.actors.ports.SessionLog`."""

    __slots__ = (
        "__weakref__",
        "_callbacks",
        "_collected",
        "_ending",
        "_journal",
        "_on_lost",
        "_waiters",
        "durable_seq",
        "fenced",
        "session_id",
        "taken_seq",
    )

    def __init__(self, journal: Keeper, session_id: str, seq: int) -> None:
        self.session_id = session_id
        self.durable_seq = seq
        self.taken_seq = seq
        """Number of the last event that was appended."""
        self.fenced = False
        """Set by the writer: nothing more of this log is written. What another host has written since may by chance
        have as many events as were refused here, so that later ones would seem to follow."""
        self._journal = journal
        self._collected: list[Event] = []
        self._waiters: list[tuple[int, Waiter]] | None = None
        self._callbacks: deque[tuple[int, Callable[[], None]]] | None = None
        self._ending: Ending | None = None
        self._on_lost: Callable[[Exception], None] | None = None

    def append(self, events: Sequence[Event]) -> None:
        """Take one handler run's events, whole or not at all. Never waits.

        Raises `JournalError` when they do not follow, and what ended the log: `SessionOwnedElsewhere`, `JournalError`.
        """
        if self._ending is not None:
            raise self._ending()
        if self._journal.closed:
            raise JournalUnavailable(
                f"the journal has ended; session {self.session_id} is not written any more"
            )
        first_seq, last_seq = events[0].seq, events[-1].seq
        if first_seq != self.taken_seq + 1 or last_seq != self.taken_seq + len(events):
            raise JournalError(f"events {first_seq} to {last_seq} do not follow the log's {self.taken_seq}")
        first = not self._collected
        self._collected.extend(events)
        self.taken_seq = last_seq
        self._journal.collected(self, len(events), first)

    @property
    def has_room(self) -> bool:
        """Whether the journal takes new work."""
        return self._journal.has_room

    async def wait_room(self) -> None:
        """Wait until the journal takes new work. Cancelled: nothing has happened."""
        await self._journal.wait_room()

    async def wait_durable(self, seq: int) -> None:
        """Wait until event *seq* cannot be lost; while the database is unavailable, as long as that takes.

        Raises `SessionOwnedElsewhere`, and `JournalError` when the event will never be durable: it was not appended,
        the session's log is damaged, or the journal ended without its database. Cancelled: the event is written all
        the same.
        """
        if seq <= self.durable_seq:
            await trio.lowlevel.checkpoint()
            return
        if self._ending is not None:
            raise self._ending()
        if seq > self.taken_seq:
            raise JournalError(f"event {seq} was not appended; the log ends with {self.taken_seq}")
        self._journal.flush(self)
        waiter = Waiter()
        entry = (seq, waiter)
        if self._waiters is None:
            self._waiters = []
        self._waiters.append(entry)
        try:
            await waiter.wait()
        finally:
            if self._waiters is not None and entry in self._waiters:
                self._waiters.remove(entry)

    async def read(self, from_seq: int = 1, limit: int | None = None) -> Sequence[Event]:
        """Return the events from number *from_seq* on, what is only appended so far included.

        Raises `JournalError`.
        """
        await self.wait_durable(self.taken_seq)
        return await self._journal.read_known(self.session_id, from_seq, limit, self.durable_seq)

    def read_now(self, from_seq: int = 1) -> None:
        """Return `None`: reading a database takes waiting."""

    async def load(self) -> tuple[Data | None, Sequence[Event]]:
        """Return the newest snapshot, if there is one, and the events behind it. Raises `JournalError`."""
        await self.wait_durable(self.taken_seq)
        return await self._journal.load(self.session_id, self.durable_seq)

    @property
    def outlives_process(self) -> bool:
        """A snapshot saves reading the log from its beginning."""
        return True

    def snapshot(self, seq: int, data: bytes) -> None:
        """Keep *data* as the state after event *seq*, once that is durable. Never waits or raises.

        A snapshot that cannot be written is lost, and logged: the log has everything that it would have said.
        """
        self.when_durable(seq, lambda: self._journal.keep_snapshot(self.session_id, seq, data))

    def when_durable(self, seq: int, callback: Callable[[], None]) -> None:
        """Call *callback* once event *seq* is durable, in the order of the numbers; now, if it is.

        Never, if it cannot become durable: `watch` tells of that.
        """
        if seq <= self.durable_seq:
            callback()
            return
        if self._ending is not None:
            return
        if self._callbacks is None:
            self._callbacks = deque()
        self._callbacks.append((seq, callback))

    def watch(self, on_lost: Callable[[Exception], None]) -> None:
        """Call *on_lost* when nothing more can be written: another host has the session, or its log is damaged."""
        self._on_lost = on_lost

    # --- For the journal -------------------------------------------------------------------------------------

    def take(self) -> list[Event]:
        """Hand over what was collected."""
        events, self._collected = self._collected, []
        return events

    def written(self, seq: int) -> None:
        """Events up to *seq* are durable."""
        self.durable_seq = seq
        if self._waiters:
            ready = [waiter for wanted, waiter in self._waiters if wanted <= seq]
            self._waiters = [entry for entry in self._waiters if entry[0] > seq] or None
            for waiter in ready:
                waiter.resolve(outcome.Value(None))
        while self._callbacks and self._callbacks[0][0] <= seq:
            self._callbacks.popleft()[1]()
        if not self._callbacks:
            self._callbacks = None

    def end(self, ending: Ending) -> int:
        """Nothing more will be written. Tell who waits; return how many collected events that drops."""
        if self._ending is not None:
            return 0
        self._ending = ending
        waiters, self._waiters, self._callbacks = self._waiters, None, None
        for _, waiter in waiters or ():
            waiter.resolve(outcome.Error(ending()))
        dropped = len(self.take())
        if self._on_lost is not None:
            self._on_lost(ending())
        return dropped
