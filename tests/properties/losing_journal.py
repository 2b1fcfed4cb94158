"""A journal that loses some writes, and says so."""

from collections.abc import Iterable, Sequence

import attrs

from exeunt import JournalError
from exeunt.actors.events import Event
from exeunt.actors.ports import SessionLog
from exeunt.supervisor.journal import MemoryJournal, SessionMetadata


class LosingJournal:
    """Keeps logs in memory; the writes with the given numbers, counted over all sessions from 1, fail."""

    def __init__(self, lost: Iterable[int]) -> None:
        self.calm = False
        """Whether nothing is lost any more."""
        self._lost = frozenset(lost)
        self._writes = 0
        self._journal = MemoryJournal()

    async def create(self, session_id: str) -> SessionLog:
        return _LosingLog(self, await self._journal.create(session_id))

    async def open(self, session_id: str) -> SessionLog:
        return _LosingLog(self, await self._journal.open(session_id))

    async def delete(self, session_id: str) -> None:
        await self._journal.delete(session_id)

    async def list(self) -> Sequence[SessionMetadata]:
        return await self._journal.list()

    def write(self) -> None:
        """Count a write. Raises `JournalError` if it is to be lost."""
        self._writes += 1
        if self._writes in self._lost and not self.calm:
            raise JournalError(f"write {self._writes} was lost")


@attrs.frozen
class _LosingLog:
    journal: LosingJournal
    log: SessionLog

    def append(self, events: Sequence[Event]) -> None:
        self.journal.write()
        self.log.append(events)

    def read(self, from_seq: int = 1) -> Sequence[Event]:
        return self.log.read(from_seq)

    @property
    def durable_seq(self) -> int:
        return self.log.durable_seq

    async def wait_durable(self, seq: int) -> None:
        await self.log.wait_durable(seq)
