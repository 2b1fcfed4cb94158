"""What the actor needs of a model: two calls, and one kind of error.

A door under `exeunt.models` implements `ModelClient`; so does `exeunt.testing.ScriptedModel`. The messages of
a request are the events of the log themselves, read through the `Message` protocol, so a request costs no copy.
"""

import enum
from collections.abc import AsyncIterator, Sequence
from typing import Any, Literal, Protocol, cast, runtime_checkable

import msgspec

from exeunt.actors.citations import Citations
from exeunt.actors.errors import ExeuntError
from exeunt.actors.media import Media

Role = Literal["system", "developer", "user", "assistant", "tool"]
FinishReason = Literal["stop", "tool_calls", "length", "content_filter"]


class ToolCall(msgspec.Struct, frozen=True, gc=False):
    """One call that the model asked for."""

    id: str
    """Unique within the context. The session gives a new one where a model sent none, or one twice."""
    name: str
    """As the model wrote it, not necessarily the name of a tool."""
    arguments_json: str
    """The arguments as the model wrote them: usually, but not surely, the JSON text of an object."""

    @property
    def arguments(self) -> Any:
        """The arguments, decoded: a new `dict`, or the raw text where that is not the JSON of an object."""
        if not self.arguments_json.strip():
            return {}
        value: Any
        try:
            value = msgspec.json.decode(self.arguments_json)
        except (msgspec.DecodeError, RecursionError):
            return self.arguments_json
        return cast("Any", value) if isinstance(value, dict) else self.arguments_json


class Message(Protocol):
    """A message of a request. Immutable; events of the log satisfy it."""

    @property
    def role(self) -> Role:
        """Who speaks."""
        ...

    @property
    def content(self) -> str:
        """The text; empty for an answer that only calls tools."""
        ...

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The calls of an assistant message, in call order; else empty."""
        ...

    @property
    def tool_call_id(self) -> str | None:
        """The call that a `tool` message answers; else `None`."""
        ...

    @property
    def media(self) -> tuple[Media, ...]:
        """What a user's message or a tool's result brings beside its text; else empty."""
        ...


def reasoning_blocks_of(message: Message) -> "ReasoningBlocks | None":
    """Return what an answer's model wants to be given back with it; `None` for messages that have nothing like it."""
    blocks: ReasoningBlocks | None = getattr(message, "reasoning_blocks", None)
    return blocks


def is_transient(message: Message) -> bool:
    """Whether a message stands in this request only, and in none that follows: no provider is to keep it."""
    return getattr(message, "transient", False) is True


class ToolDefinition(msgspec.Struct, frozen=True):
    """A tool as the model sees it."""

    name: str
    description: str
    parameters: dict[str, Any]
    """JSON Schema of the arguments: always of an object."""
    defer: Literal["auto", "never"] | None = None
    """What the tool says of being searched for. The doors here send every tool, whatever it says."""


class MediaSupport(msgspec.Struct, frozen=True, kw_only=True):
    """What media a model takes. What it does not take is told to it as text."""

    images: bool = True
    image_types: frozenset[str] | None = None
    """MIME types of images; `None`: those that the door can carry."""
    most_images: int | None = None
    """Images in one request; of more, the newest are shown. `None`: no bound of the model's own."""
    largest_image: int | None = None
    """Bytes of one image; `None`: no bound of the model's own."""
    documents: bool = True
    """PDF documents. Texts are told as text to every model."""


class ModelRequest(msgspec.Struct, frozen=True):
    """One call of a model.

    Valid by construction: each tool call is followed by exactly one result, and each result has its call.
    """

    messages: Sequence[Message]
    """System and developer messages first, then the conversation. A view: read it, do not keep and change it."""
    tools: tuple[ToolDefinition, ...] = ()
    session_id: str = ""
    turn_id: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    """Further headers for doors that speak HTTP; those of the provider's configuration win."""
    media: MediaSupport | None = None
    """What the model takes, where somebody knows better than the door."""


class ReasoningBlocks(msgspec.Struct, frozen=True, gc=False):
    """What a model wants to be given back of how it came to an answer, such as encrypted reasoning."""

    provider: str
    """Which door made them and for which model: only the same one sends them again."""
    blocks: str
    """The JSON text of an array, as the model's server wrote it."""


MOST_TOKENS = 10**12
"""Of one call: a million times what a request may have, and few enough that sums of them stay whole numbers of 64 bits.
What a provider says beyond it is an error of its own."""


class Usage(msgspec.Struct, frozen=True, gc=False):
    """Tokens of one model call. Zero where the model did not say."""

    input_tokens: int = 0
    """All of the request, those of the cache too."""
    output_tokens: int = 0
    """All of the answer, those of its reasoning too."""
    cache_read_tokens: int = 0
    """Of the input, those that the provider had in its cache."""
    cache_write_tokens: int = 0
    """Of the input, those that the provider put into its cache."""
    reasoning_tokens: int = 0
    """Of the output, those of its reasoning."""


class ModelResponse(msgspec.Struct, frozen=True, gc=False):
    """A whole answer of a model."""

    content: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    finish_reason: FinishReason = "stop"
    """Informative: a response with calls runs them whatever it says. `length` and `content_filter` are raised
    as `ModelError` by the doors where an answer is unusable."""
    usage: Usage | None = None
    reasoning: str = ""
    reasoning_blocks: ReasoningBlocks | None = None
    """Kept with the answer, and given back in the later requests of the session."""
    citations: Citations | None = None
    """What the words of `content` rest on."""


class ModelDelta(msgspec.Struct, frozen=True, gc=False):
    """A piece of a streamed answer. For display only: what counts is the `ModelResponse` at the end.

    An empty one says that the model is at work, with nothing to show: it writes the arguments of a call, or the
    provider keeps the connection alive. Without it the session would take the model for silent.
    """

    text: str = ""
    reasoning: str = ""


class ModelErrorKind(enum.StrEnum):
    """Why a model call failed. Closed."""

    AUTHENTICATION = "authentication"
    BAD_REQUEST = "bad_request"
    NOT_FOUND = "not_found"
    RATE_LIMITED = "rate_limited"
    OVERLOADED = "overloaded"
    SERVER_ERROR = "server_error"
    TIMEOUT = "timeout"
    CONNECTION_LOST = "connection_lost"
    TRUNCATED_STREAM = "truncated_stream"
    MALFORMED_RESPONSE = "malformed_response"
    MISCONFIGURED_ENDPOINT = "misconfigured_endpoint"
    EMPTY_ANSWER = "empty_answer"
    OUTPUT_LIMIT = "output_limit"
    CONTENT_FILTERED = "content_filtered"
    UNKNOWN = "unknown"
    """A client raised something that is no `ModelError`."""


class ModelError(ExeuntError):
    """A model call failed. The session retries it when `retry` says so; it ends the turn otherwise."""

    def __init__(
        self,
        kind: ModelErrorKind,
        message: str,
        *,
        retry: bool = False,
        status: int | None = None,
        retry_after: float | None = None,
        code: str = "",
        limited_for: float | None = None,
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.retry = retry
        """Whether the same request may succeed later."""
        self.status = status
        """The HTTP status, where there was one."""
        self.retry_after = retry_after
        """Seconds that the provider asked to wait, already checked to be finite and reasonable."""
        self.code = code
        """The provider's own code of the error, where it has said one."""
        self.limited_for = limited_for
        """Seconds until the limit that was hit is over, where the provider says so; however long."""


@runtime_checkable
class ModelClient(Protocol):
    """A model. One object may serve any number of sessions at once."""

    async def complete(self, request: ModelRequest, /) -> ModelResponse:
        """Answer *request*.

        Raises `ModelError`. Cancellation must leave the client usable for other sessions.
        """
        ...

    def stream(self, request: ModelRequest, /) -> AsyncIterator[ModelDelta | ModelResponse]:
        """Answer *request* in pieces: any number of `ModelDelta`, then exactly one `ModelResponse`.

        The iterator is an async generator or has `aclose()`; the session closes it, also when cancelled.
        Raises `ModelError`, also in the middle.
        """
        ...
