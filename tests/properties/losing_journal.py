"""A journal that loses some writes, and says so."""

from collections.abc import Iterable, Sequence

from exeunt import JournalError, SessionExists
from exeunt.actors.events import Event
from exeunt.supervisor.journal import MemoryJournal, MemoryLog


class LosingJournal(MemoryJournal):
    """Keeps logs in memory; the writes with the given numbers, counted over all sessions from 1, fail."""

    def __init__(self, lost: Iterable[int]) -> None:
        super().__init__()
        self.calm = False
        """Whether nothing is lost any more."""
        self._lost = frozenset(lost)
        self._writes = 0

    async def create(self, session_id: str) -> MemoryLog:
        if session_id in self._logs:
            raise SessionExists("it exists", session_id=session_id)
        log = self._logs[session_id] = _LosingLog(self)
        return log

    def write(self) -> None:
        """Count a write. Raises `JournalError` if it is to be lost."""
        self._writes += 1
        if self._writes in self._lost and not self.calm:
            raise JournalError(f"write {self._writes} was lost")


class _LosingLog(MemoryLog):
    __slots__ = ("_journal",)

    def __init__(self, journal: LosingJournal) -> None:
        super().__init__()
        self._journal = journal

    def append(self, events: Sequence[Event]) -> None:
        self._journal.write()
        super().append(events)
