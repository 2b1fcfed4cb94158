"""Which stored sessions are old enough to be forgotten."""

import attrs

from exeunt.actors.errors import InvalidConfiguration
from exeunt.supervisor.checks import require_number, require_whole_number
from exeunt.supervisor.journal import Journal, SessionMetadata

LIST_AT_ONCE = 1000
"""Sessions that the journal is asked for at once."""


@attrs.frozen
class Retention:
    """How long sessions are kept."""

    older_than: float | None
    """Seconds since the last event, beyond which a session goes; `None` keeps any."""
    keep: int | None
    """Sessions that stay, those used last; `None` keeps any number."""

    def __attrs_post_init__(self) -> None:
        if self.older_than is None and self.keep is None:
            raise InvalidConfiguration(
                "say which sessions go: older_than in seconds, or how many to keep, or both"
            )
        if self.older_than is not None:
            require_number("older_than", self.older_than, least=0)
        if self.keep is not None:
            require_whole_number("keep", self.keep, least=0)

    async def expired(self, journal: Journal, now: float, *, tenant: str | None) -> list[SessionMetadata]:
        """Return the sessions that are too old at *now* (seconds since the epoch) or too many, the oldest first."""
        found: list[SessionMetadata] = []
        page: str | None = None
        place = 0
        while True:
            part = await journal.list(tenant=tenant, limit=LIST_AT_ONCE, page=page)
            for session in part.sessions:
                place += 1
                too_many = self.keep is not None and place > self.keep
                if too_many or (
                    self.older_than is not None and now - session.modified_time > self.older_than
                ):
                    found.append(session)
            page = part.next
            if page is None:
                found.reverse()
                return found
