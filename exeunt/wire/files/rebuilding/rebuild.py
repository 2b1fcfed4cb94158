"""A session that this server does not know, made again of its transcript.

Another server has had it, or this one has lost its journal. The transcript says all that clients saw, in order; the log
says more, and `log` makes that up again where it follows from the rest, or refuses what it cannot understand. A log
that is made again is held against the same rules as one that is read from a journal, event by event.
"""

from collections.abc import Collection, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

import trio

from exeunt.actors.errors import (
    ContextError,
    InvalidConfiguration,
    SessionFileNotFound,
    SessionFileTooLarge,
    TranscriptUnusable,
)
from exeunt.actors.events import Event
from exeunt.supervisor.checks import require_session_id
from exeunt.wire.files.opening import store_for
from exeunt.wire.files.rebuilding.kinds import take
from exeunt.wire.files.rebuilding.log import GrowingLog
from exeunt.wire.files.transcript import NAME

if TYPE_CHECKING:
    from exeunt.wire.serving.client import Client
    from exeunt.wire.serving.hub import Hub

AT_ONCE = 1_000
"""Events that a journal is given at a time."""

CLEAN_UP_TIMEOUT = 10.0
"""Seconds that the removal of a half-made log may take."""


async def rebuild(hub: "Hub", client: "Client", tenant: str, session_id: str) -> bool:
    """Make a session's log of its transcript, durable; say whether there is one.

    Raises `TranscriptUnusable` with the line for one that says no such session, `SessionFilesUnavailable`,
    `JournalError`. When it fails or is cancelled there is no new session.
    """
    store = store_for(hub, tenant, session_id, client.peer)
    if store is None:
        return False
    try:
        require_session_id(session_id)
        content = await store.read(NAME)
    except (SessionFileNotFound, InvalidConfiguration):
        return False
    except SessionFileTooLarge as error:
        raise TranscriptUnusable(
            f"session {session_id!r} is not known here, and its transcript is too long to make it again: {error}. "
            "Resume it where its journal is"
        ) from error
    terminal = {name for name, tool in client.served_tools.items() if tool.is_terminal}
    events = read_transcript(content, session_id, tenant, terminal)
    await _keep(hub, session_id, events)
    hub.file_counts.sessions_rebuilt += 1
    return True


def read_transcript(
    content: str, session_id: str, tenant: str = "", terminal: Collection[str] = ()
) -> Sequence[Event]:
    """Return the log of a session whose transcript is *content*. Raises `TranscriptUnusable`.

    *terminal* names the tools whose success ends a turn: the transcript does not say.
    """
    log = GrowingLog(session_id, tenant, terminal)
    # The last line has no end where whoever wrote it was cut off.
    for number, line in enumerate(content.split("\n")[:-1], 1):
        try:
            take(log, line)
        except (ContextError, ValueError, RecursionError) as error:
            raise TranscriptUnusable(
                f"session {session_id!r} is not known here, and cannot be made again of its transcript: "
                f"line {number}: {error}"
            ) from error
    if not log.events:
        raise TranscriptUnusable(
            f"session {session_id!r} is not known here, and cannot be made again: its transcript is empty"
        )
    log.end()
    return log.events


async def _keep(hub: "Hub", session_id: str, events: Sequence[Event]) -> None:
    journal = hub.host.journal
    log = await journal.create(session_id)
    try:
        for begin in range(0, len(events), AT_ONCE):
            await log.wait_room()
            log.append(events[begin : begin + AT_ONCE])
            await log.wait_durable(events[min(begin + AT_ONCE, len(events)) - 1].seq)
    except BaseException:
        deadline = trio.current_time() + CLEAN_UP_TIMEOUT
        # It may not be there; the first error counts.
        with trio.CancelScope(shield=True, deadline=deadline), suppress(Exception):
            await journal.delete(session_id)
        raise
