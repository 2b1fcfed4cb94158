"""What a durable journal needs of a database: blocking calls, made from threads of the journal.

`exeunt.stores` implements it, one file for each database; `DurableJournal` adds the writer thread, group commit,
bounds and the asynchronous side. Nothing here knows SQL, trio, or what a slice holds.
"""

from collections.abc import Sequence
from typing import Protocol

import attrs

from exeunt.actors.errors import StoreDamaged, StoreUnavailable


@attrs.frozen
class Row:
    """One slice of a session's log, to be written."""

    session_id: str
    first_seq: int
    last_seq: int
    time: float
    """Of the last event; seconds since the epoch."""
    data: bytes
    tenant: str | None = None
    """Given with the slice that holds the session's first event."""
    start_time: float | None = None
    """Given with the slice that holds the session's first event."""


@attrs.frozen
class StoredSession:
    """What the database knows of a session."""

    session_id: str
    tenant: str
    start_time: float
    modified_time: float
    last_seq: int


class Store(Protocol):
    """A database of slices. `open` and `close` bracket the rest; `write` comes from one thread, reads from others.

    A session's slices follow each other without gaps: `first_seq` is the last slice's `last_seq` + 1. The pair
    (session, first_seq) is unique; that is the fence between two hosts which both believe to hold a session.
    """

    name: str
    """For messages: the kind and place of the database, without secrets."""

    @property
    def truncated_bytes(self) -> int:
        """Bytes of a write that was cut off half-way, found and dropped by `open`. Servers see to that themselves."""
        ...

    def open(self) -> None:
        """Connect, create or migrate the schema, check the integrity.

        Raises `JournalError`; `StoreUnavailable` where it may be called again later.
        """
        ...

    def close(self) -> None:
        """Disconnect. May be called twice."""
        ...

    def write(self, rows: Sequence[Row]) -> Sequence[str]:
        """Write *rows* in one transaction; return the ids of sessions whose rows do not follow what is stored.

        Those sessions' rows are left out, all others are durable when this returns. Raises `StoreUnavailable`:
        then nothing was written.
        """
        ...

    def read(self, session_id: str, from_seq: int, limit: int | None = None) -> Sequence[bytes]:
        """Return the slices that hold events from number *from_seq* on, in order, at most *limit* slices.

        An unknown session has none. Raises `StoreUnavailable`, `StoreDamaged`.
        """
        ...

    def find(self, session_id: str) -> StoredSession | None:
        """Return what is known of a session, or `None`."""
        ...

    def list(
        self, tenant: str | None, limit: int, page: str | None
    ) -> tuple[Sequence[StoredSession], str | None]:
        """Return sessions, those used last first, and what to ask for the next part with."""
        ...

    def delete(self, session_id: str) -> bool:
        """Remove a session with its slices and snapshots; say whether there was one."""
        ...

    def write_snapshot(self, session_id: str, seq: int, data: bytes) -> None:
        """Keep the state after event *seq*; older snapshots of the session may go. Raises `StoreUnavailable`."""
        ...

    def read_snapshot(self, session_id: str) -> tuple[int, bytes] | None:
        """Return the newest snapshot."""
        ...


__all__ = ["Row", "Store", "StoreDamaged", "StoreUnavailable", "StoredSession"]
