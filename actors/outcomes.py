"""How a tool call ends, and how a turn does.

Both sets are closed, and an outcome is written once: whatever a handler, a hook or a time-out does, exactly one
of these is recorded for each call, and only `SUCCESS` of a terminal tool ends a turn.
"""

import enum
from typing import Any, Literal, get_args

import msgspec

from exeunt.actors.citations import CitableSource
from exeunt.actors.errors import InvalidConfiguration
from exeunt.actors.media import Media, checked_media

ResultType = Literal["success", "failure", "rejected", "denied", "timeout"]
"""What a handler or a hook may claim. The other outcomes are the host's own findings."""


class Outcome(enum.StrEnum):
    """How a tool call ended."""

    SUCCESS = "success"
    """The handler returned and no hook turned its result into something else."""

    FAILURE = "failure"
    """The handler raised, said so, does not exist, or a hook turned its success into a failure."""

    INVALID = "invalid"
    """The arguments are not what the tool takes; the handler did not run."""

    DENIED = "denied"
    """A hook, a rule or an unanswered approval kept the handler from running."""

    REJECTED = "rejected"
    """A person said no."""

    TIMEOUT = "timeout"
    """A wait of the call ran out: for a slot, or for the handler."""

    CANCELLED = "cancelled"
    """The turn was aborted, or a clear of the context with `siblings="cancel"` ended it."""

    INTERRUPTED = "interrupted"
    """The actor or the process ended while the call was in flight: what it did is unknown."""


class TurnEndReason(enum.StrEnum):
    """Why a turn ended. Closed."""

    COMPLETED = "completed"
    """The model answered without calls."""
    TERMINAL_TOOL = "terminal_tool"
    """A terminal tool succeeded."""
    CONTEXT_CLEARED = "context_cleared"
    """A tool that is not terminal cleared the context; the seeded turn follows."""
    ABORTED = "aborted"
    """Somebody aborted it or stopped the session."""
    LIMIT = "limit"
    """It spent its budget of steps, failed batches or tokens; or the session its credits."""
    ERROR = "error"
    """The model gave no usable answer."""
    INTERRUPTED = "interrupted"
    """The actor or the process ended under it."""


HandoffAction = Literal["reminded", "forced", "refused", "summary_failed", "sent", "received"]
"""A step of a handoff. Closed."""

HandoffTrigger = Literal["tool", "messages", "tokens", "share"]
"""What brings a handoff about: a tool that the model called, or a mark that the context has passed. Closed."""

HANDOFF_ACTIONS: tuple[str, ...] = get_args(HandoffAction)
HANDOFF_TRIGGERS: tuple[str, ...] = get_args(HandoffTrigger)

REFUSALS = frozenset({Outcome.DENIED, Outcome.REJECTED})
"""Outcomes that say nothing about the model's skill: they do not count towards the limit of failed batches."""


class ToolResult(msgspec.Struct, frozen=True, gc=False):
    """What a tool call gives back to the model, and how it ended.

    A handler may return one instead of a plain value. The names are those of the Copilot SDK. Raises
    `InvalidConfiguration` for a result type that does not exist.
    """

    text_result_for_llm: str
    """The text that the model sees as the result of its call."""

    result_type: ResultType = "success"
    """What kind of end this is. Only `"success"` of a terminal tool ends a turn."""

    error: str | None = None
    """The reason, for the event log. The model sees `text_result_for_llm`."""

    tool_telemetry: dict[str, Any] | None = None
    """Figures of the tool's own, handed on to hooks."""

    session_log: str | None = None
    """A text for the event log only."""

    media: tuple[Media, ...] = ()
    """Pictures and other data that the model is shown beside the text; any iterable is taken. The Copilot SDK's
    `binary_results_for_llm`."""

    contents: tuple[dict[str, Any], ...] = ()
    """What those are shown who look at the session, and the model is not: blocks of JSON values, logged with the
    result."""

    sources: tuple[CitableSource, ...] = ()
    """What the model may cite, for providers that have citations; others are told the text alone. The Copilot SDK's
    `citableSources`."""

    def __post_init__(self) -> None:
        if self.media != ():
            msgspec.structs.force_setattr(self, "media", checked_media(self.media))
        if self.result_type not in RESULT_TYPES:
            raise InvalidConfiguration(
                f"result_type must be one of {', '.join(get_args(ResultType))}, not {self.result_type!r:.80}"
            )

    @property
    def outcome(self) -> Outcome:
        """The result type as an outcome."""
        return _OUTCOMES[self.result_type]


RESULT_TYPES: frozenset[str] = frozenset(get_args(ResultType))
_OUTCOMES = {kind: Outcome(kind) for kind in RESULT_TYPES}
