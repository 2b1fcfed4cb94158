"""What clients see of each kind of event. Names and fields are those of the protocol's schema."""

from collections.abc import Callable, Iterable
from typing import Any

from exeunt.actors import events as core
from exeunt.actors.models import ToolCall
from exeunt.wire.events import budget, calls
from exeunt.wire.events.citations import citations
from exeunt.wire.events.clock import iso
from exeunt.wire.events.mapper import EventMapper, WireEvent
from exeunt.wire.events.media import attachments
from exeunt.wire.names import camel

Mapped = Iterable[WireEvent]

EVENT_FORMAT = 1
"""`version` of `session.start`: of the events' format."""

SEED_SOURCE = "session-memory-rollover"
"""`source` of the user message that a clear of the context leaves."""

SHOWN = frozenset({"agentMode", "attachments", "content", "source"})
"""Fields of a message's note that are shown in its `user.message`."""

COMPACTION_TRIGGERS = frozenset(
    {"threshold", "context_limit_retry", "manual", "memory_pressure", "model_switch"}
)

ABORT_REASONS = frozenset({"user_initiated", "remote_command", "user_abort", "autopilot_credit_limit"})

OUTSIDE = frozenset(
    {
        "message.accepted",
        "message.dropped",
        "session.clear_refused",
        "session.clear_rolled_back",
        "session.dead_letter",
        "session.media_removed",
        "session.restarted",
        "tool.result_stale",
        "turn.end",
    }
)
"""Events that the protocol does not have: for clients that ask for them."""


# --- The session -------------------------------------------------------------------------------------------


def _start(mapper: EventMapper, event: core.SessionStart) -> Mapped:
    mapper.model = mapper.model or event.model
    mapper.started = event.time
    data: dict[str, Any] = {
        "sessionId": event.session_id,
        "version": EVENT_FORMAT,
        "producer": "exeunt",
        "copilotVersion": "0.0.0",
        "startTime": iso(event.time),
        "selectedModel": mapper.model,
        "context": {"cwd": mapper.working_directory},
        "remoteSteerable": False,
        "alreadyInUse": False,
    }
    if mapper.effort is not None:
        data["reasoningEffort"] = mapper.effort
    return mapper.persisted(event, data)


def _resume(mapper: EventMapper, event: core.SessionResume) -> Mapped:
    data = {
        "resumeTime": iso(event.time),
        "eventCount": event.event_count,
        "selectedModel": mapper.model,
        "context": {"cwd": mapper.working_directory},
        "remoteSteerable": False,
        "alreadyInUse": False,
        "sessionWasActive": event.was_active,
        "continuePendingWork": event.continue_pending_work,
    }
    return mapper.persisted(event, data)


def _shutdown(mapper: EventMapper, event: core.SessionShutdown) -> Mapped:
    data: dict[str, Any] = {
        "shutdownType": "routine",
        "totalApiDurationMs": 0,
        "sessionStartTime": int(mapper.started * 1000),
        "codeChanges": {"linesAdded": 0, "linesRemoved": 0, "filesModified": []},
        "modelMetrics": {},
        "currentModel": mapper.model,
    }
    return mapper.persisted(event, data)


def _error(mapper: EventMapper, event: core.SessionError) -> Mapped:
    data: dict[str, Any] = {"errorType": event.error_type, "message": event.message}
    if event.status_code is not None:
        data["statusCode"] = event.status_code
    if event.error_code:
        data["errorCode"] = event.error_code
    return mapper.persisted(event, data)


def _failed(mapper: EventMapper, event: core.SessionFailed) -> Mapped:
    """The session takes no more messages: what clients know as an error, after which they wait for nothing."""
    data = {"errorType": "session_failed", "message": f"The session has failed: {event.cause}"}
    return mapper.persisted(event, data, "session.error")


def _idle(mapper: EventMapper, event: core.SessionIdle) -> Mapped:
    assistant: dict[str, Any] = {"aborted": True} if event.aborted else {}
    return (
        mapper.beside(event, "assistant.idle", assistant),
        mapper.ephemeral(event, {**assistant, "mode": mapper.mode}),
    )


def _cleared(mapper: EventMapper, event: core.ContextCleared) -> Mapped:
    data = {"messagesCleared": event.messages_cleared, "initialMessage": event.initial_message}
    return mapper.persisted(event, data)


def _truncated(mapper: EventMapper, event: core.SessionTruncated) -> Mapped:
    named = event.event_id
    if mapper.away is not None:
        named, mapper.last_id = mapper.away
    data = {"upToEventId": named, "eventsRemoved": event.events_removed}
    return (mapper.ephemeral(event, data, "session.snapshot_rewind"),)


def _compacted(mapper: EventMapper, event: core.SessionCompacted) -> Mapped:
    data: dict[str, Any] = {"success": True, "messagesRemoved": event.messages_removed}
    if event.trigger in COMPACTION_TRIGGERS:
        data["trigger"] = event.trigger
    if event.note is not None:
        data |= event.note
    return mapper.persisted(event, data, "session.compaction_complete")


def _handoff(mapper: EventMapper, event: core.SessionHandoff) -> Mapped:
    if event.action != "received":
        said = f"{event.action} ({event.trigger})" + (f": {event.detail}" if event.detail else "")
        return mapper.persisted(event, {"infoType": "handoff", "message": said}, "session.info")
    data = {"handoffTime": iso(event.time), "sourceType": "local"}
    if event.session_id is not None:
        data["remoteSessionId"] = event.session_id
    if event.detail is not None:
        data["context"] = event.detail
    return mapper.persisted(event, data)


def _model_change(mapper: EventMapper, event: core.SessionModelChange) -> Mapped:
    mapper.model = event.new_model
    data = {"newModel": event.new_model}
    if event.previous_model:
        data["previousModel"] = event.previous_model
    if event.reasoning_effort:
        data["reasoningEffort"] = event.reasoning_effort
    if event.cause:
        data["cause"] = event.cause
    return mapper.persisted(event, data)


def _mode_changed(mapper: EventMapper, event: core.SessionModeChanged) -> Mapped:
    mapper.mode = event.new_mode
    return mapper.persisted(event, {"previousMode": event.previous_mode, "newMode": event.new_mode})


def _title(mapper: EventMapper, event: core.SessionTitleChanged) -> Mapped:
    return (mapper.ephemeral(event, {"title": event.title}),)


def _info(mapper: EventMapper, event: core.SessionInfo) -> Mapped:
    kind = event.level if event.level in ("warning", "error") else "info"
    data = {f"{kind}Type": event.info_type, "message": event.message}
    if event.url is not None:
        data["url"] = event.url
    return mapper.persisted(event, data, f"session.{kind}")


def _warning(mapper: EventMapper, event: core.SessionWarning) -> Mapped:
    return (mapper.ephemeral(event, {"warningType": event.warning_type, "message": event.message}),)


# --- The conversation --------------------------------------------------------------------------------------


def _system(mapper: EventMapper, event: core.SystemMessage) -> Mapped:
    return mapper.persisted(event, {"role": event.role, "content": event.content})


def _accepted(mapper: EventMapper, event: core.MessageAccepted) -> Mapped:
    if event.note is not None:
        shown = {name: value for name, value in event.note.items() if name in SHOWN}
        if mapper.notes is None:
            mapper.notes = {}
        mapper.notes[event.message_id] = shown
    if event.media:
        if mapper.media is None:
            mapper.media = {}
        mapper.media[event.message_id] = event.media, event.seq >= mapper.data_from
    return (*_own(mapper, event), mapper.beside(event, "pending_messages.modified", {}))


def _dropped(mapper: EventMapper, event: core.MessageDropped) -> Mapped:
    if mapper.notes is not None:
        mapper.notes.pop(event.message_id, None)
    if mapper.media is not None:
        mapper.media.pop(event.message_id, None)
    return (*_own(mapper, event), mapper.beside(event, "pending_messages.modified", {}))


def _user(mapper: EventMapper, event: core.UserMessage) -> Mapped:
    delivery = event.delivery
    if delivery in ("idle", "queued", "seed"):
        mapper.step = 0
        mapper.turn_began = event.time
        if delivery != "seed":
            mapper.message_id = event.message_id
    data: dict[str, Any] = {
        "content": event.content if event.prompt is None else event.prompt,
        "transformedContent": event.content,
        "messageId": event.message_id or event.id,
        "interactionId": event.turn_id,
        "turnId": str(mapper.step),
    }
    if delivery == "seed":
        data["source"] = SEED_SOURCE
        data["delivery"] = "queued"
    elif delivery == "hook":
        data["source"] = "hook"
    else:
        data["delivery"] = delivery
    if event.message_id is None:
        return mapper.persisted(event, data)
    if mapper.notes is not None:
        data |= mapper.notes.pop(event.message_id, {})
        mapper.notes = mapper.notes or None
    if mapper.media is not None and event.message_id in mapper.media:
        attached, with_data = mapper.media.pop(event.message_id)
        mapper.media = mapper.media or None
        data["attachments"] = attachments(data.get("attachments"), attached, with_data=with_data)
    return (mapper.beside(event, "pending_messages.modified", {}), *mapper.persisted(event, data))


def _turn_start(mapper: EventMapper, event: core.AssistantTurnStart) -> Mapped:
    mapper.step = event.step
    return mapper.persisted(event, {"turnId": str(event.step), "interactionId": event.turn_id})


def _assistant(mapper: EventMapper, event: core.AssistantMessage) -> Mapped:
    data: dict[str, Any] = {
        "messageId": event.message_id,
        "model": mapper.model,
        "content": event.content,
        "toolRequests": [_tool_request(call) for call in event.tool_calls],
        "interactionId": event.turn_id,
        "turnId": str(mapper.step),
    }
    if mapper.message_id is not None:
        data["originatingMessageId"] = mapper.message_id
    if event.reasoning:
        data["reasoningText"] = event.reasoning
    if event.citations is not None:
        data["citations"] = citations(event.citations, event.content)
    mapper.pieces = None
    return mapper.persisted(event, data)


def _tool_request(call: ToolCall) -> dict[str, Any]:
    return {"toolCallId": call.id, "name": call.name, "arguments": call.arguments, "type": "function"}


def _turn_end(mapper: EventMapper, event: core.AssistantTurnEnd) -> Mapped:
    return mapper.persisted(event, {"turnId": str(event.step)})


def _abort(mapper: EventMapper, event: core.Abort) -> Mapped:
    reason = event.reason if event.reason in ABORT_REASONS else "user_initiated"
    calls = mapper.calls or {}
    about: dict[str, Any] = {
        "activity": "tool_call" if calls else "model_call",
        "turn": mapper.step,
        "elapsedMs": max(0, int((event.time - mapper.turn_began) * 1000)),
    }
    if calls:
        about |= {"toolCallIds": list(calls), "toolNames": list(calls.values()), "safeToolNames": []}
    else:
        about["cancelPhase"] = "pre_first_token" if mapper.pieces is None else "mid_stream"
    (wire,) = mapper.persisted(event, {"reason": reason})
    return (wire, mapper.beside(event, "agent.interrupted", about))


def _delta(mapper: EventMapper, event: core.AssistantMessageDelta) -> Mapped:
    seen: list[WireEvent] = []
    pieces = mapper.pieces
    if pieces is None or pieces[0] != event.message_id:
        pieces = (event.message_id, 0)
        seen.append(mapper.beside(event, "assistant.message_start", {"messageId": event.message_id}))
    size = pieces[1] + len(event.delta_content.encode("utf-8", "replace"))
    mapper.pieces = (event.message_id, size)
    seen.append(mapper.beside(event, "assistant.streaming_delta", {"totalResponseSizeBytes": size}))
    data = {"messageId": event.message_id, "deltaContent": event.delta_content}
    seen.append(mapper.ephemeral(event, data))
    return seen


def _reasoning(mapper: EventMapper, event: core.AssistantReasoningDelta) -> Mapped:
    data = {"reasoningId": event.message_id, "deltaContent": event.delta_content}
    return (mapper.ephemeral(event, data),)


def _usage(mapper: EventMapper, event: core.AssistantUsage) -> Mapped:
    mapper.usage = mapper.usage.with_call(event)
    data = {
        "model": event.model,
        "inputTokens": event.input_tokens,
        "outputTokens": event.output_tokens,
        "duration": int(event.duration * 1000),
    }
    details = {
        "cacheReadTokens": event.cache_read_tokens,
        "cacheWriteTokens": event.cache_write_tokens,
        "reasoningTokens": event.reasoning_tokens,
    }
    data |= {name: tokens for name, tokens in details.items() if tokens}
    return (mapper.ephemeral(event, data),)


def _call_failure(mapper: EventMapper, event: core.ModelCallFailure) -> Mapped:
    data: dict[str, Any] = {
        "source": "top_level",
        "model": event.model,
        "errorMessage": event.message,
        "errorType": event.error_type,
        "durationMs": int(event.duration * 1000),
    }
    if event.status_code is not None:
        data["statusCode"] = event.status_code
    return (mapper.ephemeral(event, data),)


def _retry(mapper: EventMapper, event: core.AssistantTurnRetry) -> Mapped:
    data = {"turnId": str(mapper.step), "model": mapper.model, "reason": event.reason}
    return (mapper.ephemeral(event, data),)


def _hook_start(mapper: EventMapper, event: core.HookStart) -> Mapped:
    data = {"hookInvocationId": event.hook_invocation_id, "hookType": event.hook_type}
    return mapper.persisted(event, data)


def _hook_end(mapper: EventMapper, event: core.HookEnd) -> Mapped:
    data: dict[str, Any] = {
        "hookInvocationId": event.hook_invocation_id,
        "hookType": event.hook_type,
        "success": event.success,
    }
    if event.error is not None:
        data["error"] = {"message": event.error}
    return mapper.persisted(event, data)


# --- What the protocol does not have -----------------------------------------------------------------------


def _own(mapper: EventMapper, event: core.Event) -> Mapped:
    if not mapper.wants_own:
        return ()
    # Data are shown once, with the event that the protocol has for them.
    data = {camel(name): value for name, value in event.payload().items() if name != "media"}
    return (WireEvent(event.type, data, event.id, iso(event.time), mapper.last_id, event.ephemeral),)


MAPPINGS: dict[type[core.Event], Callable[[EventMapper, Any], Mapped]] = {
    core.SessionStart: _start,
    core.SessionResume: _resume,
    core.SessionShutdown: _shutdown,
    core.SessionError: _error,
    core.SessionFailed: _failed,
    core.SessionIdle: _idle,
    core.ContextCleared: _cleared,
    core.SessionTruncated: _truncated,
    core.SessionCompacted: _compacted,
    core.SessionHandoff: _handoff,
    core.SessionModelChange: _model_change,
    core.SessionModeChanged: _mode_changed,
    core.SessionTitleChanged: _title,
    core.SessionInfo: _info,
    core.SessionWarning: _warning,
    core.SystemMessage: _system,
    core.MessageAccepted: _accepted,
    core.MessageDropped: _dropped,
    core.UserMessage: _user,
    core.AssistantTurnStart: _turn_start,
    core.AssistantMessage: _assistant,
    core.AssistantTurnEnd: _turn_end,
    core.Abort: _abort,
    core.AssistantMessageDelta: _delta,
    core.AssistantReasoningDelta: _reasoning,
    core.AssistantUsage: _usage,
    core.ModelCallFailure: _call_failure,
    core.AssistantTurnRetry: _retry,
    core.ToolExecutionStart: calls.tool_start,
    core.ToolExecutionComplete: calls.tool_complete,
    core.ExternalToolRequested: calls.external,
    core.PermissionRequested: calls.permission,
    core.PermissionCompleted: calls.permission_done,
    core.UserInputRequested: calls.question,
    core.UserInputCompleted: calls.question_done,
    core.UsageCheckpoint: budget.checkpoint,
    core.SessionLimitsChanged: budget.limits_changed,
    core.SessionLimitsExhaustedRequested: budget.exhausted,
    core.SessionLimitsExhaustedCompleted: budget.decided,
    core.AutoModeSwitchRequested: budget.switch,
    core.AutoModeSwitchCompleted: budget.switched,
    core.HookStart: _hook_start,
    core.HookEnd: _hook_end,
    core.TurnEnd: _own,
    core.ToolResultStale: _own,
    core.ClearRefusedEvent: _own,
    core.ClearRolledBackEvent: _own,
    core.DeadLetter: _own,
    core.MediaRemoved: _own,
    core.SessionRestarted: _own,
}
