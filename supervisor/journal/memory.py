"""A journal in memory: whole across disconnects and crashes of actors, gone with the process."""

import json
from collections.abc import Callable, Sequence

import attrs
import trio

from exeunt.actors.errors import InvalidConfiguration, JournalError, SessionExists, SessionNotFound
from exeunt.actors.events import Event
from exeunt.actors.events.codec import Data
from exeunt.supervisor.journal.protocol import Page, SessionMetadata


class MemoryLog:
    """The log of one session, as long as the process lives."""

    __slots__ = ("_events",)

    def __init__(self) -> None:
        self._events: list[Event] = []

    def append(self, events: Sequence[Event]) -> None:
        """Add *events*. Raises `JournalError` when they do not follow."""
        taken = len(self._events)
        first, last = events[0].seq, events[-1].seq
        if first != taken + 1 or last != taken + len(events):
            raise JournalError(f"events {first} to {last} do not follow the log's {taken}")
        self._events.extend(events)

    @property
    def events(self) -> Sequence[Event]:
        """All of it, at once: what only a log in memory can give."""
        return self._events

    async def read(self, from_seq: int = 1, limit: int | None = None) -> Sequence[Event]:
        """Return the events from number *from_seq* on."""
        await trio.lowlevel.checkpoint()
        end = None if limit is None else from_seq - 1 + limit
        return self._events[from_seq - 1 : end]

    def read_now(self, from_seq: int = 1) -> Sequence[Event]:
        """Return the events from number *from_seq* on."""
        return self._events[from_seq - 1 :]

    async def load(self) -> tuple[Data | None, Sequence[Event]]:
        """Return the log; a snapshot would save nothing."""
        await trio.lowlevel.checkpoint()
        return None, self._events

    def snapshot(self, seq: int, data: bytes) -> None:
        """Keep nothing: the log is at hand."""

    outlives_process = False
    has_room = True

    async def wait_room(self) -> None:
        """Return at once."""
        await trio.lowlevel.checkpoint()

    def when_durable(self, seq: int, callback: Callable[[], None]) -> None:
        """Call *callback* now."""
        callback()

    def watch(self, on_lost: Callable[[Exception], None]) -> None:
        """Nobody else can have a log that is in this memory."""

    @property
    def durable_seq(self) -> int:
        """All of it: in memory, what is written is as safe as it will be."""
        return len(self._events)

    async def wait_durable(self, seq: int) -> None:
        """Return at once. Raises `JournalError` for an event that was not appended."""
        await trio.lowlevel.checkpoint()
        if seq > len(self._events):
            raise JournalError(f"event {seq} was not appended; the log ends with {len(self._events)}")


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

    async def read(self, session_id: str, from_seq: int = 1, limit: int | None = None) -> Sequence[Event]:
        """Return the events of a session from number *from_seq* on, at most *limit*. Raises `SessionNotFound`."""
        if from_seq < 1 or (limit is not None and limit < 0):
            raise InvalidConfiguration(
                f"events are read from number 1 on, and none or more; not {from_seq}, {limit}"
            )
        return await (await self.open(session_id)).read(from_seq, limit)

    async def delete(self, session_id: str) -> None:
        """Forget a session. Raises `SessionNotFound`."""
        await self.open(session_id)
        del self._logs[session_id]

    async def list(self, *, tenant: str | None = None, limit: int = 100, page: str | None = None) -> Page:
        """Return a part of what is stored, the session that was used last first."""
        if limit < 1:
            raise InvalidConfiguration(f"limit must be at least 1 session a page, not {limit}")
        await trio.lowlevel.checkpoint()
        found = [self._metadata(key, log) for key, log in self._logs.items() if log.events]
        wanted = [item for item in found if tenant is None or item.tenant == tenant]
        wanted.sort(key=_place)
        if page is not None:
            after = _decoded(page)
            wanted = [item for item in wanted if _place(item) > after]
        following = _encoded(_place(wanted[limit - 1])) if len(wanted) > limit else None
        return Page(wanted[:limit], following)

    async def metadata(self, session_id: str) -> SessionMetadata:
        """Return what is known of one session. Raises `SessionNotFound`."""
        return self._metadata(session_id, await self.open(session_id))

    @staticmethod
    def _metadata(session_id: str, log: MemoryLog) -> SessionMetadata:
        events = log.events
        tenant = getattr(events[0], "tenant", "") if events else ""
        start, modified = (events[0].time, events[-1].time) if events else (0.0, 0.0)
        return SessionMetadata(session_id, tenant, start, modified, len(events))

    def statistics(self) -> "MemoryStatistics":
        """Return a look at the journal."""
        return MemoryStatistics(len(self._logs), sum(len(log.events) for log in self._logs.values()))


@attrs.frozen
class MemoryStatistics:
    """A look at a journal in memory."""

    sessions: int
    """Sessions that are stored."""
    events: int
    """Events of all of them."""


def _place(item: SessionMetadata) -> tuple[float, str]:
    return (-item.modified_time, item.session_id)


def _encoded(place: tuple[float, str]) -> str:
    return json.dumps(place)


def _decoded(page: str) -> tuple[float, str]:
    try:
        modified, session_id = json.loads(page)
        return float(modified), str(session_id)
    except (ValueError, TypeError) as error:
        raise InvalidConfiguration(f"{page!r:.80} is no page of a listing") from error
