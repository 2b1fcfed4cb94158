"""What the checks share: the journal under test, and the steps that they are made of."""

import uuid
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

import attrs

from exeunt.actors.events import Event
from exeunt.actors.ports import SessionLog
from exeunt.supervisor.journal import Journal, SessionMetadata
from exeunt.testing.journal_events import some_events
from exeunt.testing.journal_verdicts import expect

OpenJournal = Callable[[], AbstractAsyncContextManager[Journal]]


@attrs.frozen
class Checks:
    """Checks of the journal that *open_journal* opens for the length of its block.

    *durable* says that each block sees what others wrote before, and that two may be open at once, as two hosts.
    """

    open_journal: OpenJournal
    durable: bool = False


def fresh_id() -> str:
    return f"conformance-{uuid.uuid4()}"


async def write(log: SessionLog, events: list[Event]) -> list[Event]:
    log.append(events)
    await log.wait_durable(events[-1].seq)
    return events


async def make(journal: Journal, tenant: str, time: float) -> str:
    session_id = fresh_id()
    log = await journal.create(session_id)
    await write(log, some_events(session_id, 1, tenant=tenant, time=time))
    return session_id


async def listed(journal: Journal, tenant: str | None, size: int) -> list[SessionMetadata]:
    found: list[SessionMetadata] = []
    page: str | None = None
    while True:
        part = await journal.list(tenant=tenant, limit=size, page=page)
        expect(0 < len(part.sessions) <= size, f"a page of {size} has {len(part.sessions)} sessions")
        found += part.sessions
        page = part.next
        if page is None:
            return found
