"""What hooks may answer. The fields are those of the Copilot SDK, in snake_case, and all may be left out.

An answer with any other field, or with a value that its field does not take, is an error of the hook: an answer that is
only nearly right must not let a call through that it meant to deny.
"""

from collections.abc import Mapping
from typing import Any, Generic, Literal, TypeVar, cast

import attrs
import msgspec


class HookOutput(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What any hook may answer. What the docs call *without effect* is taken so that hooks of the SDK fit."""

    suppress_output: bool | None = None
    """Without effect."""


class SessionStartOutput(HookOutput, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the hook of a session's start may answer."""

    additional_context: str | None = None
    """What the model reads before the first prompt."""
    modified_config: dict[str, Any] | None = None
    """Without effect: `resume_session` configures a session."""


class UserPromptSubmittedOutput(HookOutput, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the hook of a prompt may answer."""

    modified_prompt: str | None = None
    additional_context: str | None = None
    decision: Literal["block"] | None = None
    reason: str | None = None
    """Of the block."""


class UserPromptTransformedOutput(HookOutput, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the hook of a prompt that is about to enter the context may answer."""

    modified_transformed_prompt: str | None = None


class PreToolUseOutput(HookOutput, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the hook before a call may answer."""

    permission_decision: Literal["allow", "deny", "ask"] | None = None
    permission_decision_reason: str | None = None
    modified_args: Any = None
    additional_context: str | None = None


class PostToolUseOutput(HookOutput, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the hook after a success may answer."""

    modified_result: Any = None
    """Whatever a handler may return."""
    additional_context: str | None = None


class PostToolUseFailureOutput(HookOutput, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the hook after a failure may answer."""

    additional_context: str | None = None


class AgentStopOutput(HookOutput, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the hook at the end of the agent's work may answer."""

    decision: Literal["block"] | None = None
    reason: str | None = None
    """What the agent is to do instead of ending."""


class SessionEndOutput(HookOutput, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the hook after a turn may answer. All of it is without effect."""

    cleanup_actions: list[str] | None = None
    session_summary: str | None = None


class ErrorOccurredOutput(HookOutput, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the hook of an error may answer."""

    error_handling: Literal["retry", "skip", "abort"] | None = None
    """For a model call, `retry` makes further attempts. The others are without effect: the turn ends by the error."""
    retry_count: int | None = None
    user_notification: str | None = None
    """Without effect."""


class WrongAnswer(Exception):
    """Says what is wrong with what a hook answered."""


Out = TypeVar("Out", bound=HookOutput)


@attrs.frozen
class HookKind(Generic[Out]):
    """One place where hooks are called."""

    name: str
    """As events and recorded texts have it."""
    output: type[Out]

    def read(self, answer: Any) -> Out:
        """Return what a hook answered, a mapping or such an output, as an output. Raises `WrongAnswer`."""
        if answer is None:
            return self.output()
        if isinstance(answer, self.output):
            return answer
        if not isinstance(answer, Mapping):
            raise WrongAnswer(f"the hook returned {type(answer).__name__}; it must return a mapping or None")
        try:
            return msgspec.convert(dict(cast("Mapping[str, Any]", answer)), self.output)
        except msgspec.ValidationError as error:
            fields = ", ".join(self.output.__struct_fields__)
            raise WrongAnswer(f"the hook's answer is wrong: {error}. Its fields are {fields}") from error


SESSION_START = HookKind("sessionStart", SessionStartOutput)
USER_PROMPT_SUBMITTED = HookKind("userPromptSubmitted", UserPromptSubmittedOutput)
USER_PROMPT_TRANSFORMED = HookKind("userPromptTransformed", UserPromptTransformedOutput)
PRE_TOOL_USE = HookKind("preToolUse", PreToolUseOutput)
POST_TOOL_USE = HookKind("postToolUse", PostToolUseOutput)
POST_TOOL_USE_FAILURE = HookKind("postToolUseFailure", PostToolUseFailureOutput)
AGENT_STOP = HookKind("agentStop", AgentStopOutput)
SESSION_END = HookKind("sessionEnd", SessionEndOutput)
ERROR_OCCURRED = HookKind("errorOccurred", ErrorOccurredOutput)
