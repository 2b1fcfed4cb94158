"""What the tests of passivation share: hosts whose sessions leave early, and a journal that can be slow or broken."""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

import trio

from exeunt import HostOptions, Session, SessionHost
from exeunt.actors.events import Event
from exeunt.actors.session import EventStream
from exeunt.supervisor.journal import MemoryJournal
from exeunt.supervisor.journal.memory import MemoryLog
from exeunt.testing import ScriptedModel, checked_host, say

AFTER = 10.0
"""Seconds after which the sessions of these tests leave."""


def passivating(*, most_live: int | None = None, **keywords: Any) -> AbstractAsyncContextManager[SessionHost]:
    """Open a checked host whose sessions leave memory 10 s after their last work."""
    after = None if most_live is not None else AFTER
    options = HostOptions(passivate_after=after, most_live=most_live)
    return checked_host(options=options, **keywords)


async def idle_away(*sessions: Session) -> None:
    """Wait until *sessions*, which are idle, have left memory."""
    await trio.sleep(AFTER + 0.5)
    assert [session.statistics().status for session in sessions] == ["passive"] * len(sessions)


def talker(*answers: str) -> ScriptedModel:
    """Return a model that says these answers, one to each message."""
    return ScriptedModel([say(answer) for answer in answers])


def numbers(events: Sequence[Event]) -> list[int]:
    """Return the numbers of the logged ones of *events*."""
    return [event.seq for event in events if not event.ephemeral]


async def take(stream: EventStream, last: int) -> list[Event]:
    """Return what the stream gives up to the logged event *last*. Bounded by a minute."""
    taken: list[Event] = []
    with trio.fail_after(60):
        async for event in stream:
            taken.append(event)
            if not event.ephemeral and event.seq >= last:
                break
    return taken


class MoodyJournal(MemoryJournal):
    """A journal in memory that can be told to be slow, or to fail, when a log is opened."""

    def __init__(self) -> None:
        super().__init__()
        self.error: Exception | None = None
        """Raised at each opening, while it is set."""
        self.seconds = 0.0
        """What an opening takes."""
        self.opened = 0

    async def open(self, session_id: str) -> MemoryLog:
        """Open a log, in its time, or fail."""
        self.opened += 1
        if self.seconds:
            await trio.sleep(self.seconds)
        if self.error is not None:
            raise self.error
        return await super().open(session_id)
