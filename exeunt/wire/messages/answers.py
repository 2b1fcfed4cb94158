"""What clients answer to requests that went to them as events."""

from typing import Any

import attrs


@attrs.frozen(kw_only=True)
class ToolAnswer:
    """The result of a tool call, or why there is none."""

    sessionId: str
    requestId: str
    result: Any = None
    error: str | None = None


@attrs.frozen(kw_only=True)
class PermissionAnswer:
    """The decision about a tool call."""

    sessionId: str
    requestId: str
    result: Any = None


@attrs.frozen(kw_only=True)
class UserInput:
    """What a user said."""

    answer: str
    wasFreeform: bool = True


@attrs.frozen(kw_only=True)
class UserInputAnswer:
    """The answer to a question."""

    sessionId: str
    requestId: str
    response: UserInput
