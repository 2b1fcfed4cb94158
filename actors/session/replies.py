"""What the calls of a session return."""

import attrs
import msgspec

from exeunt.actors.media import Media
from exeunt.actors.outcomes import Outcome
from exeunt.actors.turn.live import TurnRecord


class Reply(msgspec.Struct, frozen=True, gc=False):
    """The answer to a message."""

    content: str
    """The last text of the model; at `terminal_tool` the text of the first successful terminal call."""
    reason: str
    """Why the last turn ended: `completed`, `terminal_tool` or `limit`."""
    turns: tuple[TurnRecord, ...]
    """The turn that took the message in, and the seeded turns that followed clears."""


@attrs.frozen
class ToolOutcome:
    """How a call of the host ended."""

    tool_call_id: str
    tool_name: str
    outcome: Outcome
    content: str
    """The text of its result."""
    media: tuple[Media, ...] = ()
    """What its result brings beside the text."""


@attrs.frozen
class AbortReceipt:
    """What an abort did."""

    turn: str | None
    """Id of the turn that it ended; `None` when none ran."""
    tools_cancelled: tuple[str, ...]
    """Ids of the calls that ended `cancelled` by it."""
    queued: int
    """Messages, queued and steered, that were dropped, or kept with `queued="keep"`."""
