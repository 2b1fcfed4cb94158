"""Reading streams of events, for tests."""

from typing import Any

from exeunt import Session
from exeunt.actors.events import Event


async def read(session: Session, seen: list[Event], **options: Any) -> None:
    async with session.events(**options) as stream:
        async for event in stream:
            seen.append(event)


def seqs(events: list[Event]) -> list[int]:
    """Numbers of the persisted ones."""
    return [event.seq for event in events if not event.ephemeral]
