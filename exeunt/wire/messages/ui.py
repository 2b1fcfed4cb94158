"""Questions to a person, and slash commands."""

from typing import Any, Literal

import attrs


@attrs.frozen(kw_only=True)
class Elicitation:
    """A form for a person."""

    sessionId: str
    message: str
    requestedSchema: dict[str, Any] | None = None
    mode: str | None = None
    url: str | None = None


@attrs.frozen(kw_only=True)
class ElicitationAnswer:
    """A form that was filled in, or not."""

    sessionId: str
    requestId: str
    result: dict[str, Any]


@attrs.frozen(kw_only=True)
class ExecuteCommand:
    """A command of a client, to be run."""

    sessionId: str
    commandName: str
    args: str = ""


@attrs.frozen(kw_only=True)
class InvokeCommand:
    """The same, in the words of another method."""

    sessionId: str
    name: str
    input: str | None = None


@attrs.frozen(kw_only=True)
class CommandAnswer:
    """A command that has run, or has not."""

    sessionId: str
    requestId: str
    error: str | None = None


@attrs.frozen(kw_only=True)
class AutoModeSwitchAnswer:
    """Whether a turn goes on with another model."""

    sessionId: str
    requestId: str
    response: Literal["yes", "yes_always", "no"]


@attrs.frozen(kw_only=True)
class SessionLimitsResponse:
    """What is to become of a limit that is exhausted."""

    action: Literal["add", "set", "unset", "cancel"]
    additionalAiCredits: Any = None
    maxAiCredits: Any = None


@attrs.frozen(kw_only=True)
class SessionLimitsAnswer:
    """The same, for one request."""

    sessionId: str
    requestId: str
    response: SessionLimitsResponse


@attrs.frozen(kw_only=True)
class DirectHandler:
    """A client that answers for itself whether to go on with another model, and does so no more."""

    sessionId: str
    handle: str


@attrs.frozen(kw_only=True)
class QueueItem:
    """A message that waits."""

    sessionId: str
    id: str


@attrs.frozen(kw_only=True)
class EnqueueCommand:
    """A command to be run when its place in the queue has come."""

    sessionId: str
    command: str


@attrs.frozen(kw_only=True)
class QueuedCommandResult:
    """Whether the client ran a command, and whether what waits behind it is to wait on."""

    handled: bool
    stopProcessingQueue: bool | None = None


@attrs.frozen(kw_only=True)
class QueuedCommandAnswer:
    """What became of a command that was queued."""

    sessionId: str
    requestId: str
    result: QueuedCommandResult
