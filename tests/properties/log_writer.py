"""Makes the events of one log, with numbers and ids as a session would give them."""

from typing import Any, TypeVar

from exeunt.actors.events import Event, Origin

E = TypeVar("E", bound=Event)


class LogWriter:
    """Numbers events in the order in which they are made."""

    def __init__(self) -> None:
        self.log: list[Event] = []
        self._origin = Origin("00000000-0000-4000")
        self._ids = 0

    def make(self, event: type[E], *payload: Any, **named: Any) -> E:
        """Return the event that would be the next one."""
        return event(self._origin, len(self.log) + 1, float(len(self.log)), *payload, **named)

    def write(self, event: Event) -> None:
        """Add *event* to the log."""
        self.log.append(event)

    def new_id(self, what: str) -> str:
        """Return an id that nothing else has."""
        self._ids += 1
        return f"{what} {self._ids}"
