"""A server in numbers."""

from collections.abc import Mapping
from typing import Final

import attrs

from exeunt.wire.files.counts import FileCounts

CLOSED_BECAUSE: Final = (
    "bad_frame",
    "no_token",
    "silent_in_a_frame",
    "slow_client",
    "stalled",
    "wrong_tokens",
)
"""Why a server closes a connection."""

ANSWERED: Final = "answered"
REFUSED: Final = "refused"
CANCELLED: Final = "cancelled"
"""What becomes of a request: it has its result, an error, or its client has given it up."""

OTHER: Final = "other"
"""Stands for every method that there is not."""


@attrs.frozen(kw_only=True)
class WireStatistics:
    """A server at one moment. What happened counts since it began."""

    connections: int = 0
    """Clients that are connected."""
    accepted: int = 0
    """Connections so far."""
    refused: int = 0
    """Connections that were closed because there were too many."""
    sessions: int = 0
    """Sessions that clients have in memory."""
    events_dropped: int = 0
    """Events that slow clients did without."""
    closed: Mapping[str, int] = attrs.field(factory=dict[str, int])
    """Connections that the server has closed, by its reason (`CLOSED_BECAUSE`)."""
    requests: Mapping[tuple[str, str], int] = attrs.field(factory=dict[tuple[str, str], int])
    """Requests of clients that have ended, by method and by what became of them: `answered`, `refused`, `cancelled`.
    Methods that there are not are `other`."""
    files: FileCounts = attrs.field(factory=FileCounts)
    """What has become of the files of sessions."""
