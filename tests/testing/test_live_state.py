"""`check_live_state` holds each session's state against its log, also while the sessions are at work."""

from collections.abc import Sequence
from typing import cast

import pytest

from exeunt import Session, SessionHost, open_host
from exeunt.actors.errors import InvariantViolation
from exeunt.actors.events import Event
from exeunt.supervisor.journal.memory import MemoryLog
from exeunt.testing import ScriptedModel, say
from exeunt.testing.checked_host import check_live_state


class SlowLog(MemoryLog):
    """Is read like a log on disk: the session has a turn before its events are taken, and one before they are there."""

    session: Session | None = None

    async def read(self, from_seq: int = 1, limit: int | None = None) -> Sequence[Event]:
        session, self.session = self.session, None
        if session is None:  # the turns below read too
            return await super().read(from_seq, limit)
        await session.send_and_wait("while you wait to read")
        events = list(await super().read(from_seq, limit))
        await session.send_and_wait("while you read")
        return events


class ForgetfulLog(MemoryLog):
    """Gives back a log without its last message."""

    async def read(self, from_seq: int = 1, limit: int | None = None) -> Sequence[Event]:
        events = await super().read(from_seq, limit)
        last = max(index for index, event in enumerate(events) if event.type == "user.message")
        return events[:last]


async def a_session_after_a_turn(host: SessionHost, log: MemoryLog) -> Session:
    session = await host.create_session(model=ScriptedModel([say("hi"), say("still here"), say("and here")]))
    await session.send_and_wait("hello")
    (actor,) = host.actors()
    log.append(cast("MemoryLog", actor.log).events)
    actor.log = log
    return session


async def test_a_session_that_goes_on_while_its_log_is_read_is_found_whole() -> None:
    async with open_host() as host:
        log = SlowLog()
        log.session = await a_session_after_a_turn(host, log)
        before = len(log.events)
        await check_live_state(host)
        assert len(log.events) > before


async def test_a_session_whose_log_tells_something_else_is_named() -> None:
    async with open_host() as host:
        session = await a_session_after_a_turn(host, ForgetfulLog())
        with pytest.raises(InvariantViolation, match=session.session_id):
            await check_live_state(host)
