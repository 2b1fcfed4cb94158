"""How a tool call ended, on its way into the log."""

from typing import Any

import msgspec

from exeunt.actors.citations import CitableSource
from exeunt.actors.media import Media
from exeunt.actors.outcomes import Outcome

INTERRUPTED_TEXT = "The execution of this tool, or a previous tool was interrupted."
"""What the model reads of a call that was cut off; recorded conversations contain these words."""


class CallEnd(msgspec.Struct, frozen=True, gc=False):
    """How a call ended."""

    outcome: Outcome
    text: str
    """For the model."""
    error: str | None = None
    """The true cause, for the log."""
    session_log: str | None = None
    media: tuple[Media, ...] = ()
    contents: tuple[dict[str, Any], ...] = ()
    sources: tuple[CitableSource, ...] = ()


def rolled_back_end(cause: str) -> CallEnd:
    """The outcome of a call that succeeded and whose clear must not happen after all."""
    text = f"The tool finished, but its clear was rolled back: {cause}."
    return CallEnd(Outcome.CANCELLED, text, text)
