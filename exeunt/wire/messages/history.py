"""The context of a session."""

import attrs
import msgspec

ABSENT = msgspec.Raw(b"")


@attrs.frozen(kw_only=True)
class ClearContext:
    """A clear. What the prompt must be is said in words of its own, so anything is taken here."""

    sessionId: str
    prompt: msgspec.Raw = ABSENT


@attrs.frozen(kw_only=True)
class Truncate:
    """A way back to an earlier conversation."""

    sessionId: str
    eventId: str
