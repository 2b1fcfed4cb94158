"""Events of tool calls, and of what they ask people."""

from typing import Any, ClassVar

from exeunt.actors.citations import CitableSource
from exeunt.actors.events.envelope import EphemeralEvent, Event
from exeunt.actors.media import Media
from exeunt.actors.models import Role, ToolCall
from exeunt.actors.outcomes import Outcome


class ToolExecutionStart(Event, frozen=True, gc=False, tag="tool.execution_start"):
    """A call is in flight from here until its outcome. Logged before anything of it runs."""

    type: ClassVar[str] = "tool.execution_start"
    tool_call_id: str
    tool_name: str
    arguments_json: str
    turn_id: str | None
    """`None` for a call that the host made between turns."""
    terminal: bool = False
    idempotent: bool = False

    @property
    def arguments(self) -> Any:
        """The arguments, decoded; the raw text where they are no JSON object."""
        return ToolCall(self.tool_call_id, self.tool_name, self.arguments_json).arguments


class ToolExecutionComplete(Event, frozen=True, gc=False, tag="tool.execution_complete"):
    """A call has its outcome. As a message of a context it is the call's result."""

    type: ClassVar[str] = "tool.execution_complete"
    role: ClassVar[Role] = "tool"
    tool_calls: ClassVar[tuple[()]] = ()
    tool_call_id: str
    tool_name: str
    outcome: Outcome
    content: str
    """What the model sees as the result."""
    turn_id: str | None
    duration: float
    """Seconds from `tool.execution_start`."""
    terminal: bool = False
    error_message: str | None = None
    """The true cause of any other outcome than success, also where the model is not told."""
    modified_arguments: str | None = None
    """The arguments that a hook put in the place of the model's."""
    guidance: str | None = None
    """What a hook wants the model to read after the batch."""
    session_log: str | None = None
    media: tuple[Media, ...] = ()
    """What the model is shown beside the text."""
    contents: tuple[dict[str, Any], ...] = ()
    """What those are shown who look at the session: blocks of JSON values."""
    sources: tuple[CitableSource, ...] = ()
    """What the model may cite, where its provider can."""

    @property
    def success(self) -> bool:
        """Whether the call succeeded."""
        return self.outcome == "success"

    @property
    def result(self) -> str:
        """The text for the model."""
        return self.content

    @property
    def error(self) -> dict[str, str] | None:
        """`{"message": ..., "code": outcome}`, or `None` after a success."""
        if self.outcome == "success":
            return None
        return {"message": self.error_message or self.content, "code": self.outcome}


class ToolResultStale(EphemeralEvent, frozen=True, gc=False, tag="tool.result_stale"):
    """A handler returned after its call had an outcome; what it returned is dropped."""

    type: ClassVar[str] = "tool.result_stale"
    tool_call_id: str
    tool_name: str
    turn_id: str | None


class ExternalToolRequested(Event, frozen=True, gc=False, tag="external_tool.requested"):
    """A call was handed to somebody outside of the process, who answers under the id of the request."""

    type: ClassVar[str] = "external_tool.requested"
    request_id: str
    tool_call_id: str
    tool_name: str
    arguments_json: str


class PermissionRequested(Event, frozen=True, gc=False, tag="permission.requested"):
    """A call waits for somebody's approval."""

    type: ClassVar[str] = "permission.requested"
    request_id: str
    tool_call_id: str
    tool_name: str
    arguments_json: str
    """The arguments with which the call would run, as a hook may have changed them."""
    tool_description: str = ""
    deadline: float | None = None
    """When the request ends without an answer, in seconds since the epoch; `None` in logs of old."""
    guidance: str | None = None
    """What a hook wants the model to read after the batch, if the call has to wait on in another activation."""
    hook_message: str | None = None
    """Why a hook wants a person to be asked; `None` where none wants that."""


class PermissionCompleted(Event, frozen=True, gc=False, tag="permission.completed"):
    """The approval was given, refused, or not to be had."""

    type: ClassVar[str] = "permission.completed"
    request_id: str
    tool_call_id: str
    kind: str
    """`approved`, `approved-for-session`, `rejected`, `unavailable`, `timeout` or `cancelled`."""
    feedback: str | None = None


class UserInputRequested(Event, frozen=True, gc=False, tag="user_input.requested"):
    """A call asks the user something."""

    type: ClassVar[str] = "user_input.requested"
    request_id: str
    tool_call_id: str
    tool_name: str
    question: str
    choices: tuple[str, ...] = ()
    allow_freeform: bool = True
    """Whether an answer may be none of the choices."""
    deadline: float | None = None
    """When the request ends without an answer, in seconds since the epoch."""


class UserInputCompleted(Event, frozen=True, gc=False, tag="user_input.completed"):
    """The question has its answer, or will have none."""

    type: ClassVar[str] = "user_input.completed"
    request_id: str
    tool_call_id: str
    kind: str
    """`answered`, `unavailable`, `timeout` or `cancelled`."""
    answer: str | None = None
    was_freeform: bool = False
