"""Logs as clients see them: each made as far as it was read, and gone on with from there.

Who reads a log in parts would otherwise have it made anew, from its beginning, for each part.
"""

import sys
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from exeunt.actors.events import Event, SessionTruncated
from exeunt.actors.events.envelope import seq_in
from exeunt.wire.events.mapper import EventMapper, WireEvent
from exeunt.wire.events.media import data_from

if TYPE_CHECKING:
    from exeunt.wire.serving.served import Served

NEVER = sys.maxsize
"""Of the data of media: what is kept of logs here has a bound in events, not in bytes."""

MOST_LOGS = 4
"""Logs that are kept: 100,000 events are some 30 MB. The one that was read longest ago goes first."""

SMALL = 10_000
"""Events of a log that is kept when its reader has come to its end, and only waits for more: some 3 MB."""


class Reading:
    """The beginning of one log, as clients see it."""

    __slots__ = ("_mapper", "_moments", "_seqs", "events", "made_with", "seq")

    def __init__(self, served: "Served", *, moments: bool = False, media_from: int = NEVER) -> None:
        """With *moments* it has also what the log holds and clients think of as ephemeral.

        Media are shown with their data from the event of the log with the number *media_from* on.
        """
        self.made_with = made_with(served)
        """What the events say that no event of the log does."""
        session_id, directory, model, effort = self.made_with
        self._mapper = EventMapper(session_id, directory)
        self._mapper.model, self._mapper.effort = model, effort
        self._mapper.data_from = media_from
        self._moments = moments
        self._seqs: list[int] = []
        """Number of the event of the log that each of `events` stands for."""
        self.events: list[WireEvent] = []
        self.seq = 0
        """Number of the last event of the log that was taken in."""

    def extend(self, events: Iterable[Event]) -> None:
        """Take in the next events of the log; those that it has already are passed over."""
        mapper, moments = self._mapper, self._moments
        for event in events:
            if event.seq <= self.seq:
                continue
            self.seq = event.seq
            if type(event) is SessionTruncated:
                # The log keeps what is behind the place to which the session went back; clients do not see it.
                length = bisect_left(self._seqs, event.to_seq + 1)
                del self.events[length:], self._seqs[length:]
                mapper.last_id = self.events[-1].id if self.events else None
            for wire in mapper.map(event):
                if not wire.ephemeral or (moments and wire.id == event.id):
                    self.events.append(wire)
                    self._seqs.append(event.seq)

    def place_of(self, event_id: str) -> int | None:
        """Return the position of an event; `None` for one that is not there."""
        seq = seq_in(event_id)
        if seq is None:
            return None
        place = bisect_left(self._seqs, seq)
        while place < len(self._seqs) and self._seqs[place] == seq:
            if self.events[place].id == event_id:
                return place
            place += 1
        return None


def made_with(served: "Served") -> tuple[str, str, str, str | None]:
    """Return what the events of a session say that no event of its log does."""
    return served.session_id, served.working_directory, served.first_model, served.first_effort


def whole(served: "Served", events: Sequence[Event]) -> list[WireEvent]:
    """Return a whole log as clients see it."""
    reading = Reading(served, media_from=data_from(events))
    reading.extend(events)
    return reading.events


class Readings:
    """The logs that clients of a server read in parts."""

    def __init__(self) -> None:
        self._kept: dict[Served, Reading] = {}
        """In the order in which they were read last."""

    async def of(self, served: "Served") -> Reading:
        """Return a session's log as it is now. Raises `JournalError`; a cancellation changes nothing."""
        reading = self._kept.pop(served, None)
        if reading is None or reading.made_with != made_with(served):
            reading = Reading(served, moments=True)
        self._kept[served] = reading
        while len(self._kept) > MOST_LOGS:
            del self._kept[next(iter(self._kept))]
        reading.extend(await served.handle.get_events(reading.seq + 1))
        return reading

    def ended(self, served: "Served") -> None:
        """A reader has come to the end of a log: keep it only if it is small."""
        reading = self._kept.get(served)
        if reading is not None and len(reading.events) > SMALL:
            del self._kept[served]

    def forget(self, served: "Served") -> None:
        """The session has left memory."""
        self._kept.pop(served, None)
