"""What the model sees, as a value folded from events. It cannot be invalid.

A batch whose calls are still open is a state of the context, not a hole in a list: `request()` is defined only
when each call has its result. So nothing that happens in between (an abort, a crash, a clear, a failing sibling)
can produce a request that a provider refuses, and would refuse for ever after.

The messages are the events themselves, in an append-only list that successive values share; a value knows how
much of it is its own. Adding one is O(1), also at 10,000 messages, and an older value stays what it was.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, overload

import msgspec

from exeunt.actors.errors import ContextError
from exeunt.actors.events import (
    AssistantMessage,
    ContextCleared,
    Event,
    SessionCompacted,
    SessionTruncated,
    SystemMessage,
    ToolExecutionComplete,
    UserMessage,
)
from exeunt.actors.events.codec import SliceDecoder, encode_slices
from exeunt.actors.media import Media
from exeunt.actors.models import Message, ToolCall


class Messages(Sequence[Message]):
    """A read-only view of a context's messages."""

    __slots__ = ("_length", "_preamble", "_shared")

    def __init__(self, preamble: tuple[Any, ...], shared: list[Any], length: int) -> None:
        self._preamble = preamble
        self._shared = shared
        self._length = length

    def __len__(self) -> int:
        return len(self._preamble) + self._length

    @overload
    def __getitem__(self, index: int) -> Message: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Message, ...]: ...
    def __getitem__(self, index: int | slice) -> Message | tuple[Message, ...]:
        if isinstance(index, slice):
            return tuple(self)[index]
        split = len(self._preamble)
        position = index + split + self._length if index < 0 else index
        if not 0 <= position < split + self._length:
            raise IndexError(index)
        message: Message = self._preamble[position] if position < split else self._shared[position - split]
        return message

    def __iter__(self) -> Iterator[Message]:
        yield from self._preamble
        shared = self._shared
        for position in range(self._length):
            yield shared[position]

    def __repr__(self) -> str:
        return f"<Messages {[f'{m.role}: {m.content[:40]}' for m in self]}>"


class Batch(msgspec.Struct, frozen=True, gc=False):
    """The calls of the last assistant message, while some have no outcome."""

    message: AssistantMessage
    results: tuple[ToolExecutionComplete | None, ...]
    """In call order."""


class Context(msgspec.Struct, frozen=True, gc=False):
    """The model-facing side of a session at one moment. Immutable."""

    preamble: tuple[Any, ...] = ()
    """System and developer messages; a clear keeps them."""
    shared: list[Any] = []
    """Events that are messages. Each satisfies `Message`, though pyright does not see a class variable as an
    attribute that a protocol may ask for."""
    length: int = 0
    """How many of the shared messages are this value's."""
    generation: int = 0
    """Clears since the session began."""
    batch: Batch | None = None

    @property
    def conversation_length(self) -> int:
        """Number of messages that a clear would remove: all but system and developer messages.

        The assistant message of an open batch counts, its results do not yet.
        """
        return self.length + (self.batch is not None)

    @property
    def unanswered_seed(self) -> str | None:
        """The seed of the last clear, while its turn has not begun and nothing else has entered the context."""
        if self.length == 1 and self.batch is None and isinstance(self.shared[0], ContextCleared):
            return self.shared[0].initial_message
        return None

    @property
    def messages(self) -> Messages:
        """The messages, without an open batch."""
        return Messages(self.preamble, self.shared, self.length)

    def request(self) -> Messages:
        """Return the messages of the next request to the model.

        Raises `ContextError` while a tool call has no outcome.
        """
        if self.batch is not None:
            raise ContextError("a request was asked for while tool calls of the last answer have no outcome")
        return Messages(self.preamble, self.shared, self.length)

    def visible(self) -> tuple[Message, ...]:
        """Return what there is to see now, an open batch and its results so far included."""
        if self.batch is None:
            return tuple(self.messages)
        results: list[Any] = [result for result in self.batch.results if result is not None]
        message: Any = self.batch.message
        return (*self.messages, message, *results)

    def with_event(self, event: Event) -> "Context":
        """Return the context after *event*.

        Raises `ContextError` for an event that cannot follow; events that do not concern the context
        change nothing.
        """
        fold = _FOLDS.get(type(event))
        return self if fold is None else fold(self, event)

    def appended(self, *messages: Any) -> "Context":
        """Return the context with *messages* at its end and no open batch. For the folds."""
        shared = self.shared
        if len(shared) != self.length:
            # Another value went on from here before: this one continues on a list of its own.
            shared = shared[: self.length]
        shared.extend(messages)
        return Context(self.preamble, shared, len(shared), self.generation, None)


def fold_system(context: Context, event: SystemMessage) -> Context:
    preamble = (event,) if event.first else (*context.preamble, event)
    return Context(preamble, context.shared, context.length, context.generation, context.batch)


def fold_user(context: Context, event: UserMessage) -> Context:
    if context.batch is not None:
        raise ContextError(f"user message {event.id} stands between a tool call and its result")
    if event.delivery == "seed" and context.length == 1 and isinstance(context.shared[0], ContextCleared):
        return Context(context.preamble, [event], 1, context.generation, None)
    return context.appended(event)


def with_media(context: Context, media: tuple[Media, ...]) -> Context:
    """Return the context with *media* in its last message: they were sent with it, and stand in another event."""
    last = msgspec.structs.replace(context.shared[context.length - 1], media=media)
    before = Context(context.preamble, context.shared, context.length - 1, context.generation, None)
    return before.appended(last)


def fold_assistant(context: Context, event: AssistantMessage) -> Context:
    if context.batch is not None:
        raise ContextError(f"assistant message {event.id} stands between a tool call and its result")
    if event.tool_calls:
        batch = Batch(event, (None,) * len(event.tool_calls))
        return Context(context.preamble, context.shared, context.length, context.generation, batch)
    # An answer without text or calls is logged, but strict providers refuse such a message.
    return context.appended(event) if event.content else context


def fold_result(context: Context, event: ToolExecutionComplete) -> Context:
    if event.turn_id is None:
        return context
    batch = context.batch
    if batch is None:
        raise ContextError(f"result of {event.tool_call_id!r} has no call")
    results = _with_result(batch, event)
    if None in results:
        open_batch = Batch(batch.message, results)
        return Context(context.preamble, context.shared, context.length, context.generation, open_batch)
    return context.appended(_with_modified_arguments(batch.message, results), *results)


def _with_result(batch: Batch, event: ToolExecutionComplete) -> tuple[ToolExecutionComplete | None, ...]:
    for position, call in enumerate(batch.message.tool_calls):
        if call.id == event.tool_call_id:
            if batch.results[position] is not None:
                raise ContextError(f"tool call {call.id!r} has two results")
            return (*batch.results[:position], event, *batch.results[position + 1 :])
    raise ContextError(f"result of {event.tool_call_id!r} has no call in the open batch")


def _with_modified_arguments(
    message: AssistantMessage, results: tuple[ToolExecutionComplete | None, ...]
) -> AssistantMessage:
    """What a hook put in the place of the model's arguments is what the model reads back."""
    for result in results:
        if result is not None and result.modified_arguments is not None:
            break
    else:
        return message
    calls = tuple(
        call
        if r is None or r.modified_arguments is None
        else ToolCall(call.id, call.name, r.modified_arguments)
        for call, r in zip(message.tool_calls, results, strict=True)
    )
    return msgspec.structs.replace(message, tool_calls=calls)


def fold_cleared(context: Context, event: ContextCleared) -> Context:
    if context.batch is not None:
        raise ContextError(f"clear {event.id} stands between a tool call and its result")
    return Context(context.preamble, [event], 1, event.generation, None)


def difference(context: Context, target: Context) -> tuple[int, tuple[bytes, ...]]:
    """Say how to come from the conversation of *context* to that of *target*, as `SessionTruncated` has it.

    Returns how many of the first messages stay, and those behind them as slices of a log.
    """
    kept = 0
    # The last message may be the one whose arguments a hook has changed since; equal numbers do not say that.
    for here, there in zip(context.shared[: context.length], target.shared[: target.length], strict=False):
        if here.seq != there.seq or here != there:
            break
        kept += 1
    return kept, tuple(encode_slices(target.shared[kept : target.length]))


def fold_truncated(context: Context, event: SessionTruncated) -> Context:
    if context.batch is not None:
        raise ContextError(f"truncation {event.id} stands between a tool call and its result")
    if not 0 <= event.kept <= context.length:
        raise ContextError(f"truncation {event.id} keeps {event.kept} of {context.length} messages")
    kept = Context(context.preamble, context.shared, event.kept, event.generation, None)
    return kept.appended(*SliceDecoder().decode_all(event.restored)) if event.restored else kept


def fold_compacted(context: Context, event: SessionCompacted) -> Context:
    if context.batch is not None:
        raise ContextError(f"compaction {event.id} stands between a tool call and its result")
    if not may_be_cut(context, event.messages_removed):
        raise ContextError(
            f"compaction {event.id} removes {event.messages_removed} of {context.length} messages"
        )
    kept = context.shared[event.messages_removed : context.length]
    return Context(context.preamble, [event, *kept], 1 + len(kept), event.generation, None)


def may_be_cut(context: Context, messages: int) -> bool:
    """Say whether the first *messages* may leave the conversation: no result may stay without its call."""
    if not 1 <= messages <= context.length:
        return False
    return messages == context.length or context.shared[messages].role != "tool"


_FOLDS: dict[type[Event], Callable[[Context, Any], Context]] = {
    SystemMessage: fold_system,
    UserMessage: fold_user,
    AssistantMessage: fold_assistant,
    ToolExecutionComplete: fold_result,
    ContextCleared: fold_cleared,
    SessionTruncated: fold_truncated,
    SessionCompacted: fold_compacted,
}
