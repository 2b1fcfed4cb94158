"""A journal that does not take an event, for tests of what becomes of the handler that logs it."""

from collections.abc import Sequence

from exeunt import JournalError
from exeunt.actors.events import Event
from exeunt.supervisor.journal import MemoryJournal, MemoryLog


class RefusingLog(MemoryLog):
    """Refuses the first slice with an event of this type, whole."""

    __slots__ = ("refuses",)

    def __init__(self, refuses: str) -> None:
        super().__init__()
        self.refuses = refuses

    def append(self, events: Sequence[Event]) -> None:
        if any(event.type == self.refuses for event in events):
            self.refuses = ""
            raise JournalError("the disk is full")
        super().append(events)


class RefusingJournal(MemoryJournal):
    """A journal of one session that fails once."""

    def __init__(self, refuses: str) -> None:
        super().__init__()
        self._refuses = refuses

    async def create(self, session_id: str) -> MemoryLog:
        log = RefusingLog(self._refuses)
        self._logs[session_id] = log
        return log
