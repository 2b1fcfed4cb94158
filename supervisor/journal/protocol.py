"""What the host needs of a journal: the logs of sessions, by id."""

from collections.abc import Sequence
from typing import Any, Protocol

import attrs

from exeunt.actors.events import Event
from exeunt.actors.ports import SessionLog


@attrs.frozen
class SessionMetadata:
    """What is known of a stored session without reading it."""

    session_id: str
    tenant: str
    start_time: float
    """Seconds since the epoch."""
    modified_time: float
    """Of the last event; seconds since the epoch."""
    events: int
    live: bool = False
    """Whether the session is in memory."""
    model: str = ""
    """The model that was chosen for it last while it ran, as its last `session.model_change` names it. Told to
    `session_options` only: a listing reads no log."""


@attrs.frozen
class Page:
    """A part of a listing."""

    sessions: Sequence[SessionMetadata]
    """The session that was used last first."""
    next: str | None
    """What to ask for the next part with; `None` at the end. Opaque."""


class Journal(Protocol):
    """Keeps the logs of sessions. All methods may be cancelled; what a write did until then stands."""

    async def create(self, session_id: str) -> SessionLog:
        """Return the empty log of a new session. Raises `SessionExists`, `JournalError`."""
        ...

    async def open(self, session_id: str) -> SessionLog:
        """Return the log of a stored session, ready to go on. Raises `SessionNotFound`, and makes nothing."""
        ...

    async def read(self, session_id: str, from_seq: int = 1, limit: int | None = None) -> Sequence[Event]:
        """Return the durable events of a session from number *from_seq* on, at most *limit*. Wakes nobody.

        Raises `SessionNotFound`, `JournalError`.
        """
        ...

    async def delete(self, session_id: str) -> None:
        """Forget a session. Raises `SessionNotFound`."""
        ...

    async def list(self, *, tenant: str | None = None, limit: int = 100, page: str | None = None) -> Page:
        """Return a part of what is stored; *page* is the `next` of the part before."""
        ...

    async def metadata(self, session_id: str) -> SessionMetadata:
        """Return what is known of one session. Raises `SessionNotFound`."""
        ...

    def statistics(self) -> Any:
        """Return a look at the journal."""
        ...
