"""From each kind of line in a transcript to the events of a log."""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, cast

import msgspec

from exeunt.actors import events as core
from exeunt.actors.errors import ContextError
from exeunt.actors.models import ModelErrorKind, ToolCall
from exeunt.actors.outcomes import Outcome, TurnEndReason
from exeunt.actors.prices import MOST_CREDITS, NANO, checked_credits
from exeunt.actors.state.context import may_be_cut
from exeunt.actors.text import encodable
from exeunt.wire.events.conversation import SEED_SOURCE, SHOWN
from exeunt.wire.events.life import EVENT_FORMAT, RATE_LIMIT
from exeunt.wire.files.rebuilding.log import GrowingLog
from exeunt.wire.serving.compacting import composed

_FAILURES = {outcome.value: outcome for outcome in Outcome if outcome is not Outcome.SUCCESS}


class _Line(msgspec.Struct, frozen=True):
    type: str
    data: dict[str, Any]
    id: str
    timestamp: str
    ephemeral: bool = False
    agentId: str | None = None  # noqa: N815 - the protocol's name
    """A sub-agent, whose conversation is its own."""


_lines = msgspec.json.Decoder(_Line)


class Malformed(ValueError):
    """A line is not what it should be."""


def take(log: GrowingLog, line: str) -> None:
    """Add one line to the log. Raises `ContextError`, `ValueError` for what cannot follow, or is no line."""
    try:
        event = _lines.decode(line)
    except msgspec.MsgspecError as error:
        raise Malformed(f"it is no event: {error}") from error
    if event.ephemeral or event.agentId is not None:
        return
    log.time = _seconds(event.timestamp)
    if not log.events and event.type != "session.start":
        raise Malformed(f"a session begins with session.start, not with {event.type:.80}")
    read = READERS.get(event.type)
    if read is not None:
        read(log, event.data)


def session_start(log: GrowingLog, data: Mapping[str, Any]) -> None:
    """The first one."""
    if log.events:
        raise Malformed("a session begins only once")
    if data.get("sessionId") != log.session_id:
        raise Malformed(f"it is the transcript of session {data.get('sessionId')!r:.80}")
    if data.get("version") != EVENT_FORMAT:
        raise Malformed(f"its format is {data.get('version')!r:.20}; {EVENT_FORMAT} is read")
    log.emit(core.SessionStart, log.session_id, log.tenant, _text(data, "selectedModel", ""))


def session_resume(log: GrowingLog, data: Mapping[str, Any]) -> None:
    """Somebody took it up."""
    active = data.get("sessionWasActive") is True
    log.emit(core.SessionResume, log.state.seq, data.get("continuePendingWork") is True, active)


def session_shutdown(log: GrowingLog, data: Mapping[str, Any]) -> None:
    """It left memory."""
    log.emit(core.SessionShutdown, _text(data, "shutdownType", "routine"))


def session_error(log: GrowingLog, data: Mapping[str, Any]) -> None:
    """A turn got no answer."""
    kind = _text(data, "errorType", "unknown")
    log.emit(
        core.SessionError,
        ModelErrorKind.RATE_LIMITED.value if kind == RATE_LIMIT else kind,
        _text(data, "message", ""),
        _count(data.get("statusCode")),
        log.turn_id,
        _text(data, "errorCode", ""),
    )
    if log.state.turn_id is not None:
        log.reason = TurnEndReason.ERROR


def session_info(log: GrowingLog, data: Mapping[str, Any]) -> None:
    """Somebody noted something."""
    for level in ("info", "warning"):
        if f"{level}Type" in data:
            kind, message = _text(data, f"{level}Type", "notification"), _text(data, "message", "")
            log.emit(core.SessionInfo, kind, message, level, _text(data, "url", "") or None)


def model_change(log: GrowingLog, data: Mapping[str, Any]) -> None:
    """Another model."""
    log.emit(
        core.SessionModelChange,
        _text(data, "newModel"),
        _text(data, "previousModel", ""),
        _text(data, "reasoningEffort", ""),
        _text(data, "cause", ""),
    )


def limits_changed(log: GrowingLog, data: Mapping[str, Any]) -> None:
    """More credits, or fewer, or no limit of them."""
    most = _object(data, "sessionLimits").get("maxAiCredits")
    log.emit(core.SessionLimitsChanged, checked_credits("sessionLimits.maxAiCredits", most))


def usage_checkpoint(log: GrowingLog, data: Mapping[str, Any]) -> None:
    """What was spent so far. Which tokens that were, a transcript does not say."""
    total, spent = data.get("totalNanoAiu"), log.state.account.spent
    if type(total) is not int or not spent <= total <= MOST_NANO:
        raise Malformed(f"its totalNanoAiu is no number from {spent} on: {total!r:.40}")
    model = (log.state.labels or {}).get("model", "unknown")
    log.emit(core.UsageCheckpoint, model, total - spent, total, 0, 0)


MOST_NANO = round(MOST_CREDITS * NANO)
"""A sum that no session comes to."""


def mode_changed(log: GrowingLog, data: Mapping[str, Any]) -> None:
    """Another mode."""
    log.emit(core.SessionModeChanged, _text(data, "previousMode", ""), _text(data, "newMode"))


def system_message(log: GrowingLog, data: Mapping[str, Any]) -> None:
    """A system or developer message: those that follow each other belong together."""
    role = data.get("role")
    first = not isinstance(log.events[-1], core.SystemMessage)
    log.emit(
        core.SystemMessage,
        _text(data, "content"),
        "developer" if role == "developer" else "system",
        first,
    )


def user_message(log: GrowingLog, data: Mapping[str, Any]) -> None:
    """A message of the user, of a hook, or the seed of a clear."""
    prompt = _text(data, "content", "")
    content = _text(data, "transformedContent", "") or prompt
    shown = prompt if prompt and prompt != content else None
    source, delivery = data.get("source"), data.get("delivery")
    if source == "hook":
        log.emit(core.UserMessage, content, log.turn_id, None, "hook", shown)
        return
    steers = delivery == "steering" and log.state.turn_id is not None
    if not steers:
        log.end_turn()
        seeded = source == SEED_SOURCE and log.state.context.unanswered_seed is not None
        log.begin_turn()
        if seeded:
            log.emit(core.UserMessage, content, log.turn_id, None, "seed", shown)
            return
    message_id = _text(data, "messageId", "") or log.origin.object_id(log.state.seq + 1)
    note = {name: data[name] for name in sorted(SHOWN - {"content"}) if name in data}
    mode = "immediate" if steers else "enqueue"
    log.emit(core.MessageAccepted, message_id, mode, prompt or content, steers, note=_note(note))
    kind = "steering" if steers else "queued" if delivery == "queued" else "idle"
    log.emit(core.UserMessage, content, log.turn_id, message_id, kind, shown)


def turn_start(log: GrowingLog, data: Mapping[str, Any]) -> None:
    """A request went to the model."""
    log.close_calls(Outcome.INTERRUPTED)
    log.emit(core.AssistantTurnStart, log.turn_id, log.steps)
    log.steps += 1
    log.answered = False


def assistant_message(log: GrowingLog, data: Mapping[str, Any]) -> None:
    """The model answered."""
    if not log.turn_id:
        raise ContextError("an answer stands before any message")
    log.close_calls(Outcome.INTERRUPTED)
    requests: Any = data.get("toolRequests") or []
    if not isinstance(requests, list):
        raise Malformed("its toolRequests are no list")
    calls = tuple(_call(request) for request in cast("Sequence[Any]", requests))
    if len({call.id for call in calls}) < len(calls):
        raise ContextError("two calls of an answer have the same id")
    log.emit(
        core.AssistantMessage,
        _text(data, "content", ""),
        log.turn_id,
        _text(data, "messageId", "") or None,
        log.named_anew(calls),
        _text(data, "reasoningText", ""),
    )
    log.answered = not calls


def turn_end(log: GrowingLog, data: Mapping[str, Any]) -> None:
    """A step ended: what has no result by then was given up."""
    log.close_calls(Outcome.CANCELLED)
    if log.state.step is not None:
        log.emit(core.AssistantTurnEnd, log.turn_id, log.state.step.step)
    if log.clear is not None:
        log.end_turn()


def abort(log: GrowingLog, data: Mapping[str, Any]) -> None:
    """Somebody aborted the turn."""
    log.emit(core.Abort, _text(data, "reason", "user_initiated"), log.state.turn_id)
    if log.state.turn_id is not None:
        log.reason = TurnEndReason.ABORTED


def tool_start(log: GrowingLog, data: Mapping[str, Any]) -> None:
    """A call began. Calls that no answer asked for are no part of the conversation."""
    call = log.open_call(data)
    if call is not None:
        log.start_call(call)


def tool_requested(log: GrowingLog, data: Mapping[str, Any]) -> None:
    """A call was handed to its client."""
    call = log.open_call(data)
    if call is not None:
        log.start_call(call)
        request_id = _text(data, "requestId")
        log.emit(core.ExternalToolRequested, request_id, call.id, call.name, call.arguments_json)


def tool_complete(log: GrowingLog, data: Mapping[str, Any]) -> None:
    """A call ended."""
    call = log.open_call(data)
    if call is None:
        return
    log.start_call(call)
    if data.get("success") is True:
        log.end_call(call, Outcome.SUCCESS, _text(_object(data, "result"), "content", ""), None)
        return
    error = _object(data, "error")
    outcome = _FAILURES.get(str(error.get("code")), Outcome.FAILURE)
    message = _text(error, "message", "")
    log.end_call(call, outcome, message, message)


def context_cleared(log: GrowingLog, data: Mapping[str, Any]) -> None:
    """The conversation was replaced by a seed."""
    cleared = _count(data.get("messagesCleared"))
    count = log.state.context.conversation_length if cleared is None else cleared
    seed = _text(data, "initialMessage")
    log.clear = core.ContextCleared(log.origin, 0, log.time, count, seed, 0)
    if log.batch is None:
        log.end_turn()


def compacted(log: GrowingLog, data: Mapping[str, Any]) -> None:
    """The conversation was summed up."""
    if data.get("success") is not True:
        return
    log.end_turn()
    context = log.state.context
    removed = _count(data.get("messagesRemoved"))
    count = context.length if removed is None or not may_be_cut(context, removed) else removed
    content = composed(
        tuple(context.request())[: len(context.preamble) + count], _text(data, "summaryContent", "")
    )
    note = {
        name: value for name, value in data.items() if name not in ("success", "messagesRemoved", "trigger")
    }
    log.emit(
        core.SessionCompacted,
        content,
        count,
        context.generation + 1,
        _text(data, "trigger", ""),
        _note(note),
    )


READERS: dict[str, Callable[[GrowingLog, Mapping[str, Any]], None]] = {
    "session.start": session_start,
    "session.resume": session_resume,
    "session.shutdown": session_shutdown,
    "session.error": session_error,
    "session.info": session_info,
    "session.warning": session_info,
    "session.model_change": model_change,
    "session.mode_changed": mode_changed,
    "session.context_cleared": context_cleared,
    "session.compaction_complete": compacted,
    "session.session_limits_changed": limits_changed,
    "session.usage_checkpoint": usage_checkpoint,
    "system.message": system_message,
    "user.message": user_message,
    "assistant.turn_start": turn_start,
    "assistant.message": assistant_message,
    "assistant.turn_end": turn_end,
    "tool.execution_start": tool_start,
    "external_tool.requested": tool_requested,
    "tool.execution_complete": tool_complete,
    "abort": abort,
}
"""What is read of each kind of event. Others change nothing of what a session is: hooks, approvals, notices."""


def _call(request: Any) -> ToolCall:
    if not isinstance(request, Mapping):
        raise Malformed("a call is no object")
    about = cast("Mapping[str, Any]", request)
    arguments = about.get("arguments")
    # Not msgspec: numbers of any length are read, and are to be written as they were.
    text = arguments if isinstance(arguments, str) else json.dumps(arguments or {}, ensure_ascii=False)
    return ToolCall(_text(about, "toolCallId"), _text(about, "name"), encodable(text))


def _note(note: dict[str, Any]) -> dict[str, Any] | None:
    """Return *note*, unless nothing is in it, or what no log can hold."""
    try:
        msgspec.msgpack.encode(note)
    except (OverflowError, UnicodeEncodeError):
        return None
    return note or None


def _count(value: Any) -> int | None:
    return value if type(value) is int and 0 <= value <= MOST else None


MOST = 2**31
"""Of anything that is counted."""


def _text(data: Mapping[str, Any], name: str, default: str | None = None) -> str:
    value = data.get(name)
    if value is None and default is not None:
        return default
    if not isinstance(value, str):
        raise Malformed(f"its {name} is no text")
    return encodable(value)


def _object(data: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = data.get(name)
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def _seconds(timestamp: str) -> float:
    moment = datetime.fromisoformat(timestamp)
    seconds = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    if not math.isfinite(seconds):
        raise Malformed("its time is none")
    return seconds
