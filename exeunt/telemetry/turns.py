"""From the events of the conversation to the spans of turns and of model calls."""

from collections.abc import Callable
from typing import Any

from opentelemetry import trace
from opentelemetry.trace import SpanKind

from exeunt.actors import events as core
from exeunt.actors.outcomes import TurnEndReason
from exeunt.telemetry import content, names
from exeunt.telemetry.propagation import NOWHERE, extracted
from exeunt.telemetry.session_trace import OpenTurn, SessionTrace, failed

BEGIN_A_TURN = frozenset({"idle", "queued", "seed"})

FAILURES = frozenset({TurnEndReason.ERROR, TurnEndReason.LIMIT, TurnEndReason.INTERRUPTED})
"""Ends that nobody wanted. An abort is somebody's wish."""

LONGEST_ERROR = 1000
"""Characters of what a provider says that has failed: enough for a sentence or a short body."""


def accepted(spans: SessionTrace, event: core.MessageAccepted) -> None:
    spans.accepted[event.message_id] = (spans.moment, extracted(event.note))


def dropped(spans: SessionTrace, event: core.MessageDropped) -> None:
    spans.fallen = spans.accepted.pop(event.message_id, None)


def user_message(spans: SessionTrace, event: core.UserMessage) -> None:
    """A message enters the context: it begins a turn, or steers the one under way."""
    came, parent = spans.accepted.pop(event.message_id or "", (None, NOWHERE))
    if event.delivery == "steering":
        spans.turn_of(event.turn_id)
        spans.note(names.STEERED, {names.MESSAGE_ID: event.message_id or ""})
        return
    if event.delivery not in BEGIN_A_TURN:
        return
    about: dict[str, Any] = {names.TURN_DELIVERY: event.delivery}
    began = spans.moment
    if event.delivery == "seed":
        # Who waits for the turn that cleared the context gets the answer of this one.
        parent = spans.cleared or NOWHERE
        began = spans.free_since or began
        spans.cleared = None
    elif came is not None:
        # Its slot, and its hooks, are waits of the turn; the turns before it are not.
        began = max(came, spans.free_since)
        about[names.QUEUED_SECONDS] = (began - came) / 1e9
    if event.message_id is not None:
        about[names.MESSAGE_ID] = event.message_id
    habits = spans.habits
    if habits.capture_content:
        about[names.INPUT_MESSAGES] = content.one("user", event.content, habits.content_limit)
    spans.begin_turn(event.turn_id, began, parent, about)


def step(spans: SessionTrace, event: core.AssistantTurnStart) -> None:
    """A request goes to the model."""
    turn = spans.turn_of(event.turn_id)
    spans.end_chat(turn)
    habits = spans.habits
    about: dict[str, Any] = {
        names.OPERATION: names.CHAT,
        names.CONVERSATION_ID: spans.session_id,
        names.STEP: event.step,
    }
    title = names.CHAT
    held = habits.find(spans.session_id)
    if held is not None:
        options = held.options
        title = f"{title} {options.model_name}"
        about[names.REQUEST_MODEL] = options.model_name
        about[names.PROVIDER] = options.provider_name
        if options.streaming:
            about[names.REQUEST_STREAM] = True
    span = habits.tracer.start_span(
        title,
        trace.set_span_in_context(turn.span, turn.parent),
        SpanKind.CLIENT,
        about,
        start_time=spans.moment,
    )
    turn.chat = span
    turn.attempt_began = spans.moment
    if held is not None and habits.capture_content and span.is_recording():
        messages, limit = held.context.messages, habits.content_limit
        system = content.instructions(messages, limit)
        if system is not None:
            span.set_attribute(names.SYSTEM_INSTRUCTIONS, system)
        said, omitted = content.conversation(messages, event.seq, limit)
        span.set_attribute(names.INPUT_MESSAGES, said)
        if omitted:
            span.set_attribute(names.MESSAGES_OMITTED, omitted)


def first_piece(spans: SessionTrace, event: core.Event) -> None:
    turn = spans.turn
    if turn is not None and turn.attempt_began is not None and turn.chat is not None:
        seconds = max(0, spans.moment - turn.attempt_began) / 1e9
        turn.chat.set_attribute(names.FIRST_CHUNK, seconds)
        turn.attempt_began = None


def usage(spans: SessionTrace, event: core.AssistantUsage) -> None:
    turn = spans.turn
    if turn is None:
        return
    turn.input_tokens += event.input_tokens
    turn.output_tokens += event.output_tokens
    if turn.chat is not None:
        about: dict[str, Any] = {names.RESPONSE_MODEL: event.model}
        if event.input_tokens or event.output_tokens:
            # Zero is what a provider says that does not count.
            about[names.INPUT_TOKENS] = event.input_tokens
            about[names.OUTPUT_TOKENS] = event.output_tokens
        turn.chat.set_attributes(about)


def answered(spans: SessionTrace, event: core.AssistantMessage) -> None:
    """The model has answered."""
    turn = spans.turn_of(event.turn_id)
    span, habits = turn.chat, spans.habits
    if event.content:
        turn.answer = event.content
    if span is None:
        return
    span.set_attribute(names.FINISH_REASONS, ("tool_call",) if event.tool_calls else ("stop",))
    if habits.capture_content and span.is_recording():
        span.set_attribute(names.OUTPUT_MESSAGES, content.answer(event, habits.content_limit))
    spans.end_chat(turn)


def attempt_failed(spans: SessionTrace, event: core.ModelCallFailure) -> None:
    about: dict[str, Any] = {
        names.ERROR_TYPE: event.error_type,
        names.ATTEMPT: event.attempt,
        names.SECONDS: event.duration,
    }
    if spans.habits.capture_content:
        # A provider may repeat what was said, of which it refuses some.
        about[names.ERROR_MESSAGE] = content.clipped(event.message, LONGEST_ERROR)
    if event.status_code is not None:
        about[names.HTTP_STATUS] = event.status_code
    _note_chat(spans, names.ATTEMPT_FAILED, about)


def tried_again(spans: SessionTrace, event: core.AssistantTurnRetry) -> None:
    about = {names.ERROR_TYPE: event.reason, names.ATTEMPT: event.attempt, names.SECONDS: event.delay}
    turn = _note_chat(spans, names.RETRY, about)
    if turn is not None:
        turn.attempt_began = spans.moment + int(event.delay * 1e9)


def _note_chat(spans: SessionTrace, name: str, about: dict[str, Any]) -> OpenTurn | None:
    turn = spans.turn
    if turn is not None and turn.chat is not None:
        turn.chat.add_event(name, about, spans.moment)
    return turn


def error(spans: SessionTrace, event: core.SessionError) -> None:
    """A turn gets no answer. The step of the model call has ended just before, in the same handler run."""
    turn = spans.turn
    if turn is not None:
        turn.error_type = event.error_type
        if turn.last_chat is not None:
            told = content.clipped(event.message, LONGEST_ERROR) if spans.habits.capture_content else None
            failed(turn.last_chat, event.error_type, told)


def step_ended(spans: SessionTrace, event: core.AssistantTurnEnd) -> None:
    turn = spans.turn
    if turn is not None and turn.turn_id == event.turn_id:
        spans.end_chat(turn)


def ended(spans: SessionTrace, event: core.TurnEnd) -> None:
    """A turn has ended. One that never came to its message has had no span until now."""
    turn = spans.turn
    if turn is None or turn.turn_id != event.turn_id:
        came, parent = spans.fallen or (None, NOWHERE)
        if came is None:
            came = spans.moment - int(event.duration * 1e9)
        turn = spans.begin_turn(event.turn_id, max(came, spans.free_since), parent, {})
    span, habits = turn.span, spans.habits
    about: dict[str, Any] = {
        names.TURN_REASON: event.reason.value,
        names.TURN_STEPS: event.steps,
        names.GENERATION: event.generation,
    }
    if turn.input_tokens or turn.output_tokens:
        about[names.INPUT_TOKENS] = turn.input_tokens
        about[names.OUTPUT_TOKENS] = turn.output_tokens
    if habits.capture_content and turn.answer:
        about[names.OUTPUT_MESSAGES] = content.one("assistant", turn.answer, habits.content_limit)
    span.set_attributes(about)
    if event.reason in FAILURES:
        failed(span, turn.error_type or event.reason.value)
    if event.reason is TurnEndReason.INTERRUPTED:
        spans.follows = (span.get_span_context(), "interrupted")
    spans.end_turn(turn)


Handler = Callable[[SessionTrace, Any], None]

HANDLERS: dict[type[core.Event], Handler] = {
    core.MessageAccepted: accepted,
    core.MessageDropped: dropped,
    core.UserMessage: user_message,
    core.AssistantTurnStart: step,
    core.AssistantMessageDelta: first_piece,
    core.AssistantReasoningDelta: first_piece,
    core.AssistantUsage: usage,
    core.AssistantMessage: answered,
    core.ModelCallFailure: attempt_failed,
    core.AssistantTurnRetry: tried_again,
    core.SessionError: error,
    core.AssistantTurnEnd: step_ended,
    core.TurnEnd: ended,
}
