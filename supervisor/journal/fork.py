"""A log as the beginning of another session's."""

from collections.abc import Iterable, Sequence

import msgspec
import trio

from exeunt.actors.errors import InvalidConfiguration, JournalError
from exeunt.actors.events import Event, MessageDropped, Origin, SessionStart
from exeunt.actors.ports import SessionLog
from exeunt.actors.state import SessionState
from exeunt.supervisor.journal.protocol import Journal

PART = 1_000
"""Events that are copied at once: a long log need not be in memory, and the journal need not take it in one go."""

CLEAN_UP_TIMEOUT = 10.0
"""Seconds that the removal of a half-made log may take when the fork is cancelled or fails."""


async def fork_log(
    journal: Journal, source_id: str, new_id: str, at_seq: int | None = None, *, keep_queue: bool = True
) -> SessionLog:
    """Copy the log of *source_id* up to event *at_seq*, or all that is durable now, into a new log; return that.

    Events keep their ids; `SessionStart.session_id` is *new_id*. Messages that wait at that point wait in the copy too;
    without *keep_queue* they are withdrawn there, by events of the copy's own. The copy is durable when this returns.
    The source may be live and does not notice. Raises `SessionNotFound`, `SessionExists`, `InvalidConfiguration` for an
    event that the source does not have, `JournalError`. When it fails or is cancelled there is no new session.
    """
    has = (await journal.metadata(source_id)).events
    end = has if at_seq is None else at_seq
    if not 1 <= end <= has:
        raise InvalidConfiguration(
            f"session {source_id!r} has events 1 to {has}; it cannot be forked at {end}"
        )
    log = await journal.create(new_id)
    try:
        await _copy(journal, source_id, new_id, log, end, keep_queue=keep_queue)
    except BaseException:
        with trio.CancelScope(shield=True, deadline=trio.current_time() + CLEAN_UP_TIMEOUT):
            await _remove(journal, new_id)
        raise
    return log


async def _copy(
    journal: Journal, source_id: str, new_id: str, log: SessionLog, end: int, *, keep_queue: bool
) -> None:
    seq = 0
    last: Event | None = None
    state = SessionState()
    while seq < end:
        events = await journal.read(source_id, seq + 1, min(PART, end - seq))
        if not events:
            raise JournalError(f"session {source_id!r} lost event {seq + 1} while it was forked")
        await log.wait_room()
        log.append(_renamed(events, new_id))
        last = events[-1]
        seq = last.seq
        await log.wait_durable(seq)
        if not keep_queue:
            SessionState.replay(events, state)
    waiting = [message.message_id for message in state.pending()]
    if last is not None and waiting:
        await log.wait_room()
        log.append(_withdrawn(last, waiting))
        await log.wait_durable(seq + len(waiting))


def _withdrawn(last: Event, messages: Iterable[str]) -> Sequence[Event]:
    """What ends *messages* after *last*, of an origin of its own: the source has other events by these numbers."""
    origin = Origin.fresh(last.id, last.seq + 1)
    return [
        MessageDropped(origin, number, last.time, message, "withdrawn")
        for number, message in enumerate(messages, last.seq + 1)
    ]


def _renamed(events: Sequence[Event], new_id: str) -> Sequence[Event]:
    first = events[0]
    if not isinstance(first, SessionStart):
        return events
    return [msgspec.structs.replace(first, session_id=new_id), *events[1:]]


async def _remove(journal: Journal, session_id: str) -> None:
    try:
        await journal.delete(session_id)
    except Exception:  # noqa: BLE001 - it may not be there, or the database not; the first error counts
        return
