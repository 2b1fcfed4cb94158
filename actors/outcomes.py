"""How a tool call ends.

The set is closed and an outcome is written once: whatever a handler, a hook or a time-out does, exactly one
of these is recorded for each call, and only `SUCCESS` of a terminal tool ends a turn.
"""

import enum
from typing import Any, Literal

import attrs

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


REFUSALS = frozenset({Outcome.DENIED, Outcome.REJECTED})
"""Outcomes that say nothing about the model's skill: they do not count towards the limit of failed batches."""


@attrs.frozen
class ToolResult:
    """What a tool call gives back to the model, and how it ended.

    A handler may return one instead of a plain value. The names are those of the Copilot SDK.
    """

    text_result_for_llm: str
    """The text that the model sees as the result of its call."""

    result_type: ResultType = attrs.field(
        default="success", validator=attrs.validators.in_(("success", "failure", "rejected", "denied", "timeout"))
    )
    """What kind of end this is. Only `"success"` of a terminal tool ends a turn."""

    error: str | None = None
    """The reason, for the event log. The model sees `text_result_for_llm`."""

    tool_telemetry: dict[str, Any] | None = None
    """Figures of the tool's own, handed on to hooks."""

    session_log: str | None = None
    """A text for the event log only."""

    @property
    def outcome(self) -> Outcome:
        """The result type as an outcome."""
        return Outcome(self.result_type)
