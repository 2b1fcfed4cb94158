"""Events of the conversation. Each that the model sees satisfies `exeunt.actors.models.Message` as it is."""

from typing import Any, ClassVar

from exeunt.actors.events.envelope import EphemeralEvent, Event
from exeunt.actors.models import ReasoningBlocks, Role, ToolCall
from exeunt.actors.outcomes import TurnEndReason


class SystemMessage(Event, frozen=True, gc=False, tag="system.message"):
    """A system or developer message. Those of one activation replace those of the one before."""

    type: ClassVar[str] = "system.message"
    tool_calls: ClassVar[tuple[()]] = ()
    tool_call_id: ClassVar[None] = None
    content: str
    role: Role = "system"
    first: bool = True
    """Whether the preamble begins anew with this one."""


class MessageAccepted(Event, frozen=True, gc=False, tag="message.accepted"):
    """A message was taken. It ends exactly once: with its turn, or with `message.dropped`."""

    type: ClassVar[str] = "message.accepted"
    message_id: str
    mode: str
    """`enqueue` or `immediate`, as sent."""
    prompt: str
    steers: bool = False
    """Whether it joins the running turn instead of waiting for one of its own."""
    first: bool = False
    """Whether it goes before the messages that wait already, instead of behind them."""
    note: dict[str, Any] | None = None
    """What its sender wants to be remembered with it: JSON values, for those who show the session. Nothing that the
    host does depends on it."""


class MessageDropped(Event, frozen=True, gc=False, tag="message.dropped"):
    """An accepted message will never be answered."""

    type: ClassVar[str] = "message.dropped"
    message_id: str
    cause: str
    """`aborted`, `withdrawn`, `blocked`, `dead_letter`, `session_failed` or `deleted`."""


class UserMessage(Event, frozen=True, gc=False, tag="user.message"):
    """A message entered the context."""

    type: ClassVar[str] = "user.message"
    role: ClassVar[Role] = "user"
    tool_calls: ClassVar[tuple[()]] = ()
    tool_call_id: ClassVar[None] = None
    content: str
    """What the model sees."""
    turn_id: str
    message_id: str | None = None
    """The accepted message; `None` for a seed and for what a hook adds."""
    delivery: str = "queued"
    """`idle`, `queued`, `steering`, `seed`, `hook`: the first two and `seed` begin a turn."""
    prompt: str | None = None
    """Without what hooks have added to it or made of it as a whole, where they have. What was sent is in
    `message.accepted`, or as the seed in `session.context_cleared`."""


class AssistantTurnStart(Event, frozen=True, gc=False, tag="assistant.turn_start"):
    """A step begins: a request goes to the model."""

    type: ClassVar[str] = "assistant.turn_start"
    turn_id: str
    step: int
    """Number of the step in its turn, from 0."""


class AssistantMessage(Event, frozen=True, gc=False, tag="assistant.message"):
    """The model's answer of one step."""

    type: ClassVar[str] = "assistant.message"
    role: ClassVar[Role] = "assistant"
    tool_call_id: ClassVar[None] = None
    content: str
    turn_id: str
    streamed_as: str | None = None
    """The id under which its pieces were shown, if they were."""
    tool_calls: tuple[ToolCall, ...] = ()
    reasoning: str = ""
    reasoning_blocks: ReasoningBlocks | None = None
    """What the model wants to be given back with this answer. Opaque, and for no other model."""

    @property
    def message_id(self) -> str:
        """The answer's id: that of its pieces, or of this event."""
        return self.streamed_as or self.id

    @property
    def tool_requests(self) -> tuple[ToolCall, ...]:
        """The calls, under the name that the Copilot SDK gives them."""
        return self.tool_calls


class AssistantTurnEnd(Event, frozen=True, gc=False, tag="assistant.turn_end"):
    """A step ended: its batch has all outcomes."""

    type: ClassVar[str] = "assistant.turn_end"
    turn_id: str
    step: int


class TurnEnd(Event, frozen=True, gc=False, tag="turn.end"):
    """A turn ended; every message that it took in ends with it."""

    type: ClassVar[str] = "turn.end"
    turn_id: str
    reason: TurnEndReason
    generation: int
    steps: int
    """Requests that went to the model."""
    duration: float
    """Seconds, of the monotonic clock, from the first wait to the end."""
    cleared: bool = False
    """Whether a clear is committed with this end: `session.context_cleared` is the next event."""


class Abort(Event, frozen=True, gc=False, tag="abort"):
    """Somebody asked to end the running turn."""

    type: ClassVar[str] = "abort"
    reason: str
    turn_id: str | None = None


class AssistantMessageDelta(EphemeralEvent, frozen=True, gc=False, tag="assistant.message_delta"):
    """A piece of a streamed answer. A retry begins a new `message_id`; what was shown before is void."""

    type: ClassVar[str] = "assistant.message_delta"
    message_id: str
    delta_content: str


class AssistantReasoningDelta(EphemeralEvent, frozen=True, gc=False, tag="assistant.reasoning_delta"):
    """A piece of streamed reasoning."""

    type: ClassVar[str] = "assistant.reasoning_delta"
    message_id: str
    delta_content: str


class AssistantUsage(EphemeralEvent, frozen=True, gc=False, tag="assistant.usage"):
    """A model call succeeded: what it took."""

    type: ClassVar[str] = "assistant.usage"
    model: str
    provider: str
    input_tokens: int
    output_tokens: int
    duration: float
    """Seconds."""
    cache_read_tokens: int = 0
    """Of the input, those that the provider had in its cache."""
    cache_write_tokens: int = 0
    """Of the input, those that the provider put into its cache."""
    reasoning_tokens: int = 0
    """Of the output, those of the model's reasoning."""


class ModelCallFailure(EphemeralEvent, frozen=True, gc=False, tag="model.call_failure"):
    """One attempt of a model call failed."""

    type: ClassVar[str] = "model.call_failure"
    model: str
    provider: str
    error_type: str
    message: str
    status_code: int | None
    duration: float
    """Seconds."""
    attempt: int
    """From 1."""


class AssistantTurnRetry(EphemeralEvent, frozen=True, gc=False, tag="assistant.turn_retry"):
    """The same request will be sent again."""

    type: ClassVar[str] = "assistant.turn_retry"
    turn_id: str
    reason: str
    attempt: int
    """Number of the attempt to come, from 2."""
    delay: float
    """Seconds until then."""
