"""What a model is told of the credits that its session has left."""

from collections.abc import Sequence
from typing import ClassVar

import msgspec

from exeunt.actors.models import Message, Role
from exeunt.actors.prices import shown
from exeunt.actors.state.account import Account

STATUS = (
    "<session_limits_status>\n"
    "Remaining session limits: {} AI credits. Later session_limits_status messages supersede earlier ones. "
    "Be frugal; avoid optional exploration and unnecessary tool calls.\n"
    "</session_limits_status>"
)
"""What the model is told of the limit, in the words that recorded conversations hold."""


class Status(msgspec.Struct, frozen=True, gc=False):
    """A message that says what is left. It stands in requests only, and is no part of the conversation."""

    role: ClassVar[Role] = "user"
    tool_calls: ClassVar[tuple[()]] = ()
    tool_call_id: ClassVar[None] = None
    media: ClassVar[tuple[()]] = ()
    transient: ClassVar[bool] = True
    content: str


def with_status(messages: Sequence[Message], account: Account) -> Sequence[Message]:
    """Return the messages of a request, with what is left of the limit behind them. Costs O(messages) with a limit."""
    left = account.left
    if left is None:
        return messages
    # pyright does not see a class variable as an attribute that a protocol may ask for.
    status: Message = Status(STATUS.format(shown(left)))  # pyright: ignore[reportAssignmentType]
    return (*messages, status)
