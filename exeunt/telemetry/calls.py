"""From the events of tool calls, and of what these ask people, to spans."""

from typing import Any

from opentelemetry import trace
from opentelemetry.trace import SpanKind

from exeunt.actors import events as core
from exeunt.actors.outcomes import Outcome
from exeunt.telemetry import content, names
from exeunt.telemetry.propagation import NOWHERE
from exeunt.telemetry.session_trace import OpenCall, SessionTrace, failed
from exeunt.telemetry.turns import Handler

FAILURES = frozenset({Outcome.FAILURE, Outcome.INVALID, Outcome.TIMEOUT, Outcome.INTERRUPTED})
"""Outcomes that nobody wanted. A denial, a "no" and an abort are somebody's wish."""


def began(spans: SessionTrace, event: core.ToolExecutionStart) -> None:
    """A call is in flight, of a turn or of the host."""
    call = _begin(spans, event, spans.moment)
    habits = spans.habits
    if habits.capture_content and call.span.is_recording():
        arguments = content.clipped(event.arguments_json, habits.content_limit)
        call.span.set_attribute(names.TOOL_ARGUMENTS, arguments)


def _begin(
    spans: SessionTrace, event: core.ToolExecutionStart | core.ToolExecutionComplete, began_at: int
) -> OpenCall:
    call_id, tool, turn_id = event.tool_call_id, event.tool_name, event.turn_id
    before = spans.calls.get(call_id)
    if before is not None:
        spans.ends(before.span)
    parent = NOWHERE
    if turn_id is not None:
        turn = spans.turn_of(turn_id, began_at)
        parent = trace.set_span_in_context(turn.span, turn.parent)
    about: dict[str, Any] = {
        names.OPERATION: names.EXECUTE_TOOL,
        names.CONVERSATION_ID: spans.session_id,
        names.TOOL_NAME: tool,
        names.TOOL_CALL_ID: call_id,
        names.TOOL_TYPE: "function",
        names.TOOL_TERMINAL: event.terminal,
    }
    title = f"{names.EXECUTE_TOOL} {tool}"
    span = spans.habits.tracer.start_span(title, parent, SpanKind.INTERNAL, about, start_time=began_at)
    call = spans.calls[call_id] = OpenCall(span, turn_id)
    return call


def ended(spans: SessionTrace, event: core.ToolExecutionComplete) -> None:
    """A call has its outcome. One that began in another activation gets its span now."""
    call = spans.calls.get(event.tool_call_id)
    if call is None:
        began_at = spans.moment - int(event.duration * 1e9)
        if spans.turn is not None and event.turn_id == spans.turn.turn_id:
            began_at = max(began_at, spans.turn.began)
        call = _begin(spans, event, began_at)
    del spans.calls[event.tool_call_id]
    span, habits = call.span, spans.habits
    about: dict[str, Any] = {names.TOOL_OUTCOME: event.outcome.value}
    if habits.capture_content and span.is_recording():
        about[names.TOOL_RESULT] = content.clipped(event.content, habits.content_limit)
        if event.modified_arguments is not None:
            about[names.TOOL_ARGUMENTS] = content.clipped(event.modified_arguments, habits.content_limit)
    span.set_attributes(about)
    if event.outcome in FAILURES:
        # What went wrong may repeat what the model or the user has said.
        told = event.error_message if habits.capture_content else None
        failed(span, event.outcome.value, told)
    spans.ends(span)
    if event.turn_id is None:
        spans.free_since = spans.moment
        spans.ended_call = span


def stale(spans: SessionTrace, event: core.ToolResultStale) -> None:
    spans.note(event.type, {names.TOOL_NAME: event.tool_name, names.TOOL_CALL_ID: event.tool_call_id})


def asked(spans: SessionTrace, event: core.PermissionRequested | core.UserInputRequested) -> None:
    """A call waits for somebody."""
    call = spans.calls.get(event.tool_call_id)
    if call is None:
        return
    if call.asked is None:
        call.asked = {}
    call.asked[event.request_id] = spans.moment
    call.span.add_event(event.type, {names.REQUEST_ID: event.request_id}, spans.moment)


def told(spans: SessionTrace, event: core.PermissionCompleted | core.UserInputCompleted) -> None:
    """Somebody has answered, or will not."""
    call = spans.calls.get(event.tool_call_id)
    if call is None:
        return
    about: dict[str, Any] = {names.REQUEST_ID: event.request_id, names.REQUEST_END: event.kind}
    since = None if call.asked is None else call.asked.pop(event.request_id, None)
    if since is not None:
        about[names.SECONDS] = (spans.moment - since) / 1e9
    call.span.add_event(event.type, about, spans.moment)


HANDLERS: dict[type[core.Event], Handler] = {
    core.ToolExecutionStart: began,
    core.ToolExecutionComplete: ended,
    core.ToolResultStale: stale,
    core.PermissionRequested: asked,
    core.UserInputRequested: asked,
    core.PermissionCompleted: told,
    core.UserInputCompleted: told,
}
