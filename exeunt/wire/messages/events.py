"""The log of a session."""

from typing import Any, Literal

import attrs


@attrs.frozen(kw_only=True)
class ReadLog:
    """A part of the log, from a cursor on."""

    sessionId: str
    cursor: str | None = None
    max: int | None = None
    waitMs: int | None = None
    types: Any = None
    direction: Literal["forward", "backward"] | None = None
    includeEphemeral: bool | None = None


@attrs.frozen(kw_only=True)
class RegisterInterest:
    """A kind of event that is wanted too."""

    sessionId: str
    eventType: str


@attrs.frozen(kw_only=True)
class ReleaseInterest:
    """An end of that."""

    sessionId: str
    handle: str


@attrs.frozen(kw_only=True)
class Log:
    """A line for the log."""

    sessionId: str
    message: str
    level: Literal["info", "warning", "error"] | None = None
    type: str | None = None
    ephemeral: bool | None = None
    url: str | None = None
    tip: str | None = None
