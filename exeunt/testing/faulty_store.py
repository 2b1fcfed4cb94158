"""Databases that misbehave on command, to test what a durable journal makes of it."""

import threading
from collections.abc import Callable, Sequence

import attrs
import trio

from exeunt.stores.paging import page_after, place_of
from exeunt.supervisor.journal import Row, Store, StoredSession, StoreUnavailable

PATIENCE = 30.0
"""Seconds that a test waits for another thread, and that a store hangs, before the test is taken for broken."""


class MemoryStore:
    """A database in memory, that keeps the rules of one. It survives the journals that use it."""

    name = "memory store"
    truncated_bytes = 0

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sessions: dict[str, StoredSession] = {}
        self._slices: dict[str, list[Row]] = {}
        self._snapshots: dict[str, tuple[int, bytes]] = {}

    def copy(self) -> "MemoryStore":
        """Return a database with what is in this one now: what a process leaves that is killed at this moment."""
        left = MemoryStore()
        with self._lock:
            left._sessions = dict(self._sessions)
            left._slices = {session_id: list(rows) for session_id, rows in self._slices.items()}
            left._snapshots = dict(self._snapshots)
        return left

    def open(self) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""

    def write(self, rows: Sequence[Row]) -> Sequence[str]:
        """Write *rows*; return the sessions whose rows do not follow what is stored."""
        with self._lock:
            lost: set[str] = set()
            for row in rows:
                if row.session_id not in lost and not self._write(row):
                    lost.add(row.session_id)
            return sorted(lost)

    def _write(self, row: Row) -> bool:
        known = self._sessions.get(row.session_id)
        slices = self._slices.setdefault(row.session_id, [])
        if row.start_time is None:
            follows = known is not None and known.last_seq == row.first_seq - 1
        else:
            follows = known is None
        if not follows:
            return row in slices
        if known is None:
            known = StoredSession(row.session_id, row.tenant or "", row.start_time or 0.0, row.time, 0)
        self._sessions[row.session_id] = attrs.evolve(known, modified_time=row.time, last_seq=row.last_seq)
        slices.append(row)
        return True

    def change(self, session_id: str, change: Callable[[list[Row]], None]) -> None:
        """Let *change* edit the slices of a session, as damage would."""
        with self._lock:
            change(self._slices[session_id])

    def read(self, session_id: str, from_seq: int, limit: int | None = None) -> Sequence[bytes]:
        """Return the slices that hold events from number *from_seq* on."""
        with self._lock:
            found = [row.data for row in self._slices.get(session_id, ()) if row.last_seq >= from_seq]
            return found if limit is None else found[:limit]

    def find(self, session_id: str) -> StoredSession | None:
        """Return what is known of a session."""
        with self._lock:
            return self._sessions.get(session_id)

    def list(
        self, tenant: str | None, limit: int, page: str | None
    ) -> tuple[Sequence[StoredSession], str | None]:
        """Return sessions, those used last first."""
        with self._lock:
            found = [each for each in self._sessions.values() if tenant is None or each.tenant == tenant]
        found.sort(key=lambda each: (-each.modified_time, each.session_id))
        if page is not None:
            modified, session_id = place_of(page)
            found = [
                each for each in found if (-each.modified_time, each.session_id) > (-modified, session_id)
            ]
        return found[:limit], page_after(found[limit - 1]) if len(found) > limit else None

    def delete(self, session_id: str) -> bool:
        """Remove a session."""
        with self._lock:
            self._slices.pop(session_id, None)
            self._snapshots.pop(session_id, None)
            return self._sessions.pop(session_id, None) is not None

    def write_snapshot(self, session_id: str, seq: int, data: bytes) -> None:
        """Keep a snapshot, if it is newer than the one before."""
        with self._lock:
            known = self._sessions.get(session_id)
            if known is not None and known.last_seq >= seq > self._snapshots.get(session_id, (0, b""))[0]:
                self._snapshots[session_id] = (seq, data)

    def read_snapshot(self, session_id: str) -> tuple[int, bytes] | None:
        """Return the newest snapshot."""
        with self._lock:
            return self._snapshots.get(session_id)


class FaultyStore:
    """A store whose faults a test switches on and off. Implements `exeunt.supervisor.journal.Store`.

    Faults concern the writes; with `everything`, reads too. They act from the next call on, in whatever thread.
    """

    def __init__(self, store: Store | None = None) -> None:
        """Wrap *store*, by default one in memory."""
        self.inner: Store = MemoryStore() if store is None else store
        self.name = f"faulty {self.inner.name}"
        self.transactions: list[list[Row]] = []
        """The rows of each write that succeeded."""
        self.attempts = 0
        """Writes that were begun, however they ended."""
        self.opened = 0
        self.closed = 0
        self._changed = threading.Condition()
        self._fault: Callable[[Sequence[Row]], Exception | None] | None = None
        self._times: int | None = None
        self._everything = False
        self._unheard = False
        self._may_go_on = threading.Event()
        self._may_go_on.set()

    @property
    def truncated_bytes(self) -> int:
        """What the store below found."""
        return self.inner.truncated_bytes

    # --- Commands --------------------------------------------------------------------------------------------

    def fail(self, error: Exception, *, times: int | None = None, everything: bool = False) -> None:
        """Raise *error* for the next *times* writes, or until `heal`; nothing is written."""
        self.fail_for(lambda rows: error, times=times)
        self._everything = everything

    def fail_for(
        self, fault: Callable[[Sequence[Row]], Exception | None], *, times: int | None = None
    ) -> None:
        """Raise what *fault* returns for the rows of a write, if anything."""
        self._fault, self._times = fault, times

    def be_full(self) -> None:
        """Refuse writes until `heal`, as a full disk does."""
        self.fail(StoreUnavailable(f"{self.name} cannot be written to: database or disk is full"))

    def lose_connection(self, *, times: int | None = None) -> None:
        """Refuse everything until `heal`, as a server does that is gone."""
        self.fail(StoreUnavailable(f"{self.name}: connection lost"), times=times, everything=True)

    def change(self, session_id: str, change: Callable[[list[Row]], None]) -> None:
        """Let *change* edit the slices of a session, as damage would; of a store in memory only."""
        assert isinstance(self.inner, MemoryStore)
        self.inner.change(session_id, change)

    def lose_answer(self) -> None:
        """Write the next transaction, and lose the connection before that is known."""
        self._unheard = True

    def hang(self) -> None:
        """Let writes wait, until `heal`, in the middle of their transaction."""
        self._may_go_on.clear()

    def resume(self) -> None:
        """Let the writes go on that hang; other faults stay."""
        self._may_go_on.set()

    def heal(self) -> None:
        """Work again."""
        self._fault = None
        self._times = None
        self._everything = False
        self._may_go_on.set()

    async def wait_attempts(self, count: int) -> None:
        """Wait until *count* writes were begun, since the beginning."""

        def wait() -> bool:
            with self._changed:
                return self._changed.wait_for(lambda: self.attempts >= count, PATIENCE)

        assert await trio.to_thread.run_sync(wait), f"{self.attempts} writes instead of {count}"

    # --- Store -----------------------------------------------------------------------------------------------

    def open(self) -> None:
        """Open what is inside."""
        self._check_everything()
        self.opened += 1
        self.inner.open()

    def close(self) -> None:
        """Close what is inside."""
        self.closed += 1
        self.inner.close()

    def write(self, rows: Sequence[Row]) -> Sequence[str]:
        """Write, or fail as told."""
        with self._changed:
            self.attempts += 1
            self._changed.notify_all()
        assert self._may_go_on.wait(PATIENCE), "the store hung for ever"
        error = self._next_fault(rows)
        if error is not None:
            raise error
        lost = self.inner.write(rows)
        self.transactions.append(list(rows))
        if self._unheard:
            self._unheard = False
            raise StoreUnavailable(f"{self.name}: the connection was lost during a commit")
        return lost

    def _next_fault(self, rows: Sequence[Row]) -> Exception | None:
        if self._fault is None or self._times == 0:
            return None
        error = self._fault(rows)
        if error is not None and self._times is not None:
            self._times -= 1
        return error

    def _check_everything(self) -> None:
        if self._everything:
            error = self._next_fault(())
            if error is not None:
                raise error

    def read(self, session_id: str, from_seq: int, limit: int | None = None) -> Sequence[bytes]:
        """Read, or fail as told."""
        self._check_everything()
        return self.inner.read(session_id, from_seq, limit)

    def find(self, session_id: str) -> StoredSession | None:
        """Look, or fail as told."""
        self._check_everything()
        return self.inner.find(session_id)

    def list(
        self, tenant: str | None, limit: int, page: str | None
    ) -> tuple[Sequence[StoredSession], str | None]:
        """List, or fail as told."""
        self._check_everything()
        return self.inner.list(tenant, limit, page)

    def delete(self, session_id: str) -> bool:
        """Delete, or fail as told."""
        self._check_everything()
        return self.inner.delete(session_id)

    def write_snapshot(self, session_id: str, seq: int, data: bytes) -> None:
        """Keep, or fail as told."""
        self._check_everything()
        self.inner.write_snapshot(session_id, seq, data)

    def read_snapshot(self, session_id: str) -> tuple[int, bytes] | None:
        """Read, or fail as told."""
        self._check_everything()
        return self.inner.read_snapshot(session_id)
