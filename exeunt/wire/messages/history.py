"""The context of a session."""

from typing import Literal

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


@attrs.frozen(kw_only=True)
class Compact:
    """A conversation to be summed up, and what the summary is to look at in particular."""

    sessionId: str
    customInstructions: str | None = attrs.field(
        default=None, validator=attrs.validators.optional(attrs.validators.max_len(4000))
    )
    trigger: Literal["manual", "model_switch"] | None = None
