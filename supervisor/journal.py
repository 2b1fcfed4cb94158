"""Where the logs of sessions live: the protocol, and a journal in memory."""

from collections.abc import Sequence
from typing import Protocol

import attrs
import trio

from exeunt.actors.errors import JournalError, SessionExists, SessionNotFound
from exeunt.actors.events import Event
from exeunt.actors.ports import SessionLog


@attrs.frozen
class SessionMetadata:
    """What is known of a stored session without reading it."""

    session_id: str
    tenant: str
    start_time: float
    """Seconds since the epoch."""
    modified_time: float
    """Of the last event; seconds since the epoch."""
    events: int
    live: bool = False
    """Whether the session is in memory."""


class Journal(Protocol):
    """Keeps the logs of sessions."""

    async def create(self, session_id: str) -> SessionLog:
        """Return the empty log of a new session. Raises `SessionExists`."""
        ...

    async def open(self, session_id: str) -> SessionLog:
        """Return the log of a stored session. Raises `SessionNotFound`, and makes nothing."""
        ...

    async def delete(self, session_id: str) -> None:
        """Forget a session. Raises `SessionNotFound`."""
        ...

    async def list(self) -> Sequence[SessionMetadata]:
        """Return what is stored, the session that was used last first."""
        ...


class MemoryLog:
    """The log of one session, as long as the process lives."""

    __slots__ = ("_events",)

    def __init__(self) -> None:
        self._events: list[Event] = []

    def append(self, events: Sequence[Event]) -> None:
        """Add *events*. Raises `JournalError` when they do not follow."""
        if events[0].seq != len(self._events) + 1:
            raise JournalError(f"event {events[0].seq} does not follow the log's {len(self._events)}")
        self._events.extend(events)

    def read(self, from_seq: int = 1) -> Sequence[Event]:
        """Return the events from number *from_seq* on."""
        return self._events[from_seq - 1 :]

    @property
    def durable_seq(self) -> int:
        """All of it: in memory, what is written is as safe as it will be."""
        return len(self._events)

    async def wait_durable(self, seq: int) -> None:
        """Return at once."""
        await trio.lowlevel.checkpoint()


class MemoryJournal:
    """Keeps logs in memory: whole across disconnects and crashes of actors, gone with the process."""

    def __init__(self) -> None:
        self._logs: dict[str, MemoryLog] = {}

    async def create(self, session_id: str) -> MemoryLog:
        """Return the empty log of a new session. Raises `SessionExists`."""
        if session_id in self._logs:
            raise SessionExists(
                f"session {session_id!r} exists already: resume it, or delete it first", session_id=session_id
            )
        log = self._logs[session_id] = MemoryLog()
        return log

    async def open(self, session_id: str) -> MemoryLog:
        """Return the log of a stored session. Raises `SessionNotFound`."""
        log = self._logs.get(session_id)
        if log is None:
            raise SessionNotFound(f"no session has the id {session_id!r}", session_id=session_id)
        return log

    async def delete(self, session_id: str) -> None:
        """Forget a session. Raises `SessionNotFound`."""
        await self.open(session_id)
        del self._logs[session_id]

    async def list(self) -> Sequence[SessionMetadata]:
        """Return what is stored, the session that was used last first."""
        found: list[SessionMetadata] = []
        for session_id, log in self._logs.items():
            events = log.read()
            if events:
                tenant = getattr(events[0], "tenant", "")
                found.append(
                    SessionMetadata(session_id, tenant, events[0].time, events[-1].time, len(events))
                )
        return sorted(found, key=lambda item: item.modified_time, reverse=True)
