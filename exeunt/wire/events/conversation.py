"""What clients see of a conversation: messages, answers and their pieces, what these took, hooks."""

from collections.abc import Iterable
from typing import Any

from exeunt.actors import events as core
from exeunt.actors.models import ToolCall
from exeunt.wire.events.citations import citations
from exeunt.wire.events.mapper import EventMapper, WireEvent
from exeunt.wire.events.media import attachments
from exeunt.wire.events.outside import own

Mapped = Iterable[WireEvent]

SEED_SOURCE = "session-memory-rollover"
"""`source` of the user message that a clear of the context leaves."""

SHOWN = frozenset({"agentMode", "attachments", "content", "source"})
"""Fields of a message's note that are shown in its `user.message`."""

ABORT_REASONS = frozenset({"user_initiated", "remote_command", "user_abort", "autopilot_credit_limit"})


def system(mapper: EventMapper, event: core.SystemMessage) -> Mapped:
    return mapper.persisted(event, {"role": event.role, "content": event.content})


def accepted(mapper: EventMapper, event: core.MessageAccepted) -> Mapped:
    if event.note is not None:
        shown = {name: value for name, value in event.note.items() if name in SHOWN}
        if mapper.notes is None:
            mapper.notes = {}
        mapper.notes[event.message_id] = shown
    if event.media:
        if mapper.media is None:
            mapper.media = {}
        mapper.media[event.message_id] = event.media, event.seq >= mapper.data_from
    return (*own(mapper, event), mapper.beside(event, "pending_messages.modified", {}))


def dropped(mapper: EventMapper, event: core.MessageDropped) -> Mapped:
    if mapper.notes is not None:
        mapper.notes.pop(event.message_id, None)
    if mapper.media is not None:
        mapper.media.pop(event.message_id, None)
    return (*own(mapper, event), mapper.beside(event, "pending_messages.modified", {}))


def user(mapper: EventMapper, event: core.UserMessage) -> Mapped:
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


def turn_start(mapper: EventMapper, event: core.AssistantTurnStart) -> Mapped:
    mapper.step = event.step
    return mapper.persisted(event, {"turnId": str(event.step), "interactionId": event.turn_id})


def assistant(mapper: EventMapper, event: core.AssistantMessage) -> Mapped:
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


def turn_end(mapper: EventMapper, event: core.AssistantTurnEnd) -> Mapped:
    return mapper.persisted(event, {"turnId": str(event.step)})


def abort(mapper: EventMapper, event: core.Abort) -> Mapped:
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


def delta(mapper: EventMapper, event: core.AssistantMessageDelta) -> Mapped:
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


def reasoning(mapper: EventMapper, event: core.AssistantReasoningDelta) -> Mapped:
    data = {"reasoningId": event.message_id, "deltaContent": event.delta_content}
    return (mapper.ephemeral(event, data),)


def usage(mapper: EventMapper, event: core.AssistantUsage) -> Mapped:
    mapper.sum_up(event)
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


def call_failure(mapper: EventMapper, event: core.ModelCallFailure) -> Mapped:
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


def retry(mapper: EventMapper, event: core.AssistantTurnRetry) -> Mapped:
    data = {"turnId": str(mapper.step), "model": mapper.model, "reason": event.reason}
    return (mapper.ephemeral(event, data),)


def hook_start(mapper: EventMapper, event: core.HookStart) -> Mapped:
    data = {"hookInvocationId": event.hook_invocation_id, "hookType": event.hook_type}
    return mapper.persisted(event, data)


def hook_end(mapper: EventMapper, event: core.HookEnd) -> Mapped:
    data: dict[str, Any] = {
        "hookInvocationId": event.hook_invocation_id,
        "hookType": event.hook_type,
        "success": event.success,
    }
    if event.error is not None:
        data["error"] = {"message": event.error}
    return mapper.persisted(event, data)
