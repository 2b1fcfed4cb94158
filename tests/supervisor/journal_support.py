"""What the tests of journals share: sessions that write, and what a database double was given."""

from collections.abc import Sequence

from exeunt.actors.events import Event
from exeunt.supervisor.journal.durable import DurableJournal
from exeunt.supervisor.journal.log import DurableLog
from exeunt.testing.faulty_store import FaultyStore
from exeunt.testing.journal_events import some_events


async def begun(journal: DurableJournal, session_id: str = "hamlet") -> tuple[DurableLog, list[Event]]:
    """Return the log of a new session whose first event is durable, and its events."""
    log = await journal.create(session_id)
    events = some_events(session_id, 1)
    log.append(events)
    await log.wait_durable(1)
    return log, events


def append(log: DurableLog, events: list[Event], count: int = 1) -> None:
    """Append *count* events, each by itself, to the log and to *events*."""
    last = events[-1].seq
    more = some_events(
        log.session_id, last + count, first_seq=last + 1, origin=events[0].origin, time=events[0].time
    )
    for event in more:
        log.append([event])
    events += more


def sessions_of(store: FaultyStore) -> Sequence[list[str]]:
    """Return, for each transaction, the sessions that it wrote, a name for each row."""
    return [[row.session_id for row in rows] for rows in store.transactions]
