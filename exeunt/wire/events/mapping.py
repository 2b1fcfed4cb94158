"""What clients see of each kind of event. Names and fields are those of the protocol's schema."""

from collections.abc import Callable
from typing import Any

from exeunt.actors import events as core
from exeunt.actors.models import ToolCall
from exeunt.wire.events import of_session, of_tools
from exeunt.wire.events.clock import iso
from exeunt.wire.events.mapper import EventMapper, Mapped, WireEvent

SEED_SOURCE = "session-memory-rollover"
"""`source` of the user message that a clear of the context leaves."""

SHOWN = frozenset({"agentMode", "attachments", "content", "source"})
"""Fields of a message's note that are shown in its `user.message`."""

ABORT_REASONS = frozenset({"user_initiated", "remote_command", "user_abort", "autopilot_credit_limit"})

OUTSIDE = frozenset(
    {
        "message.accepted",
        "message.dropped",
        "session.clear_refused",
        "session.clear_rolled_back",
        "session.dead_letter",
        "session.restarted",
        "tool.result_stale",
        "turn.end",
    }
)
"""Events that the protocol does not have: for clients that ask for them."""


# --- The conversation --------------------------------------------------------------------------------------


def _system(mapper: EventMapper, event: core.SystemMessage) -> Mapped:
    return mapper.persisted(event, {"role": event.role, "content": event.content})


def _accepted(mapper: EventMapper, event: core.MessageAccepted) -> Mapped:
    if event.note is not None:
        shown = {name: value for name, value in event.note.items() if name in SHOWN}
        if mapper.notes is None:
            mapper.notes = {}
        mapper.notes[event.message_id] = shown
    return (*_own(mapper, event), mapper.beside(event, "pending_messages.modified", {}))


def _dropped(mapper: EventMapper, event: core.MessageDropped) -> Mapped:
    if mapper.notes is not None:
        mapper.notes.pop(event.message_id, None)
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


# --- What the protocol does not have -----------------------------------------------------------------------


def _own(mapper: EventMapper, event: core.Event) -> Mapped:
    if not mapper.wants_own:
        return ()
    data = {_camel(name): value for name, value in event.payload().items()}
    return (WireEvent(event.type, data, event.id, iso(event.time), mapper.last_id, event.ephemeral),)


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.title() for word in rest)


MAPPINGS: dict[type[core.Event], Callable[[EventMapper, Any], Mapped]] = {
    core.SessionStart: of_session.start,
    core.SessionResume: of_session.resume,
    core.SessionShutdown: of_session.shutdown,
    core.SessionError: of_session.error,
    core.SessionFailed: of_session.failed,
    core.SessionIdle: of_session.idle,
    core.ContextCleared: of_session.cleared,
    core.SessionTruncated: of_session.truncated,
    core.SessionCompacted: of_session.compacted,
    core.SessionHandoff: of_session.handoff,
    core.SessionModelChange: of_session.model_change,
    core.SessionModeChanged: of_session.mode_changed,
    core.SessionTitleChanged: of_session.title,
    core.SessionInfo: of_session.info,
    core.SessionWarning: of_session.warning,
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
    core.ToolExecutionStart: of_tools.tool_start,
    core.ToolExecutionComplete: of_tools.tool_complete,
    core.ExternalToolRequested: of_tools.external,
    core.PermissionRequested: of_tools.permission,
    core.PermissionCompleted: of_tools.permission_done,
    core.UserInputRequested: of_tools.question,
    core.UserInputCompleted: of_tools.question_done,
    core.HookStart: of_tools.hook_start,
    core.HookEnd: of_tools.hook_end,
    core.TurnEnd: _own,
    core.ToolResultStale: _own,
    core.ClearRefusedEvent: _own,
    core.ClearRolledBackEvent: _own,
    core.DeadLetter: _own,
    core.SessionRestarted: _own,
}
