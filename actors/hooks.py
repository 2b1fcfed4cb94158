"""Hooks: places where the host takes part in a turn. Names and fields are those of the Copilot SDK.

A hook is called `fn(input, invocation)`, synchronous or not. It returns `None`, or the output as a mapping in
snake_case. A pre-tool hook that raises or runs out of time denies the call; every other one that fails leaves
a `hook.end` with the error and is otherwise ignored.
"""

from collections.abc import Awaitable, Callable, Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, cast

import attrs

if TYPE_CHECKING:
    from exeunt.actors.session import Session

Hook = Callable[[Any, Any], Any | Awaitable[Any]]


class Fields(Mapping[str, Any]):
    """Lets the fields of an attrs class be read as items too, as the SDK's mappings are."""

    __slots__ = ()

    def __getitem__(self, key: str) -> Any:
        if key not in self._names():
            raise KeyError(key)
        return getattr(self, key)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names())

    def __len__(self) -> int:
        return len(self._names())

    def _names(self) -> tuple[str, ...]:
        fields: tuple[attrs.Attribute[Any], ...] = attrs.fields(cast("Any", type(self)))
        return tuple(field.name for field in fields)


@attrs.frozen(kw_only=True, eq=False)
class HookInput(Fields):
    """What every hook is told."""

    session_id: str
    timestamp: datetime
    working_directory: str = ""


@attrs.frozen(kw_only=True, eq=False)
class SessionStartInput(HookInput):
    """Before the first prompt of a session, or of a session taken up again. Output: `additional_context`."""

    source: str = "new"
    """`new` or `resume`."""
    initial_prompt: str = ""


@attrs.frozen(kw_only=True, eq=False)
class UserPromptSubmittedInput(HookInput):
    """Before a prompt, a steering message or a seed enters the context.

    Output: `modified_prompt`, `additional_context`, or `decision="block"` with a `reason`.
    """

    prompt: str


@attrs.frozen(kw_only=True, eq=False)
class UserPromptTransformedInput(HookInput):
    """After the hook of the prompt, with what that has made of it. Output: `modified_transformed_prompt`.

    Called for every prompt, also where there is no hook that has changed it.
    """

    prompt: str
    """Without what was added to it."""
    transformed_prompt: str
    """As it is to enter the context."""


@attrs.frozen(kw_only=True, eq=False)
class PreToolUseInput(HookInput):
    """Before a call is approved and run.

    Output: `permission_decision` (`allow`, `deny`, `ask`), `permission_decision_reason`, `modified_args`,
    `additional_context`.
    """

    tool_name: str
    tool_args: Any
    tool_call_id: str


@attrs.frozen(kw_only=True, eq=False)
class PostToolUseInput(HookInput):
    """After a handler succeeded. Output: `modified_result`, `additional_context`.

    What counts for the turn is the result after this hook.
    """

    tool_name: str
    tool_args: Any
    tool_result: Any
    tool_call_id: str


@attrs.frozen(kw_only=True, eq=False)
class PostToolUseFailureInput(HookInput):
    """After a handler failed. Output: `additional_context`."""

    tool_name: str
    tool_args: Any
    error: str
    tool_call_id: str


@attrs.frozen(kw_only=True, eq=False)
class AgentStopInput(HookInput):
    """After the model, or a terminal tool, has ended a turn, and before anything else begins.

    Output: `decision="block"` with a `reason`, which goes before all messages that wait, as a message of its own: who
    waits for the reply gets that of the turn which it begins. Where the turn has cleared the context, the reason
    follows the turn of the seed.
    """

    stop_reason: str = "end_turn"
    stop_hook_active: bool = False
    """Whether this turn was itself begun by such a block: a hook that always blocks would never let it end."""


@attrs.frozen(kw_only=True, eq=False)
class SessionEndInput(HookInput):
    """After a turn ended. Nothing else begins before it has returned or run out of time."""

    reason: str
    """`complete`, `error` or `abort`."""
    final_message: str | None = None
    error: str | None = None


@attrs.frozen(kw_only=True, eq=False)
class ErrorOccurredInput(HookInput):
    """After a model call failed for good, or a handler raised.

    Output, for a model call: `error_handling="retry"` with `retry_count` (1 to 5) more attempts.
    """

    error: str
    error_context: str
    """`model_call` or `tool_execution`."""
    recoverable: bool = True


@attrs.frozen(kw_only=True)
class Hooks:
    """The hooks of a session; each may be left out."""

    on_session_start: Hook | None = None
    on_user_prompt_submitted: Hook | None = None
    on_user_prompt_transformed: Hook | None = None
    on_pre_tool_use: Hook | None = None
    on_post_tool_use: Hook | None = None
    on_post_tool_use_failure: Hook | None = None
    on_agent_stop: Hook | None = None
    on_session_end: Hook | None = None
    on_error_occurred: Hook | None = None


NO_HOOKS = Hooks()


@attrs.frozen(eq=False)
class HookInvocation(Fields):
    """Where a hook or a permission handler is called from."""

    session: "Session"
    session_id: str
    tool_call_id: str | None = None
