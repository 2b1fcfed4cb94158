"""What clients see of tool calls, and of what these ask people."""

from collections.abc import Iterable
from typing import Any

import msgspec

from exeunt.actors import events as core
from exeunt.actors.models import ToolCall
from exeunt.wire.events.mapper import EventMapper, WireEvent
from exeunt.wire.events.media import binary_results

Mapped = Iterable[WireEvent]


def tool_start(mapper: EventMapper, event: core.ToolExecutionStart) -> Mapped:
    data: dict[str, Any] = {
        "toolCallId": event.tool_call_id,
        "toolName": event.tool_name,
        "arguments": event.arguments,
        "model": mapper.model,
    }
    if event.turn_id is not None:
        data["turnId"] = str(mapper.step)
    if mapper.calls is None:
        mapper.calls = {}
    mapper.calls[event.tool_call_id] = event.tool_name
    return mapper.persisted(event, data)


def tool_complete(mapper: EventMapper, event: core.ToolExecutionComplete) -> Mapped:
    if mapper.calls is not None:
        mapper.calls.pop(event.tool_call_id, None)
        mapper.calls = mapper.calls or None
    data: dict[str, Any] = {
        "toolCallId": event.tool_call_id,
        "model": mapper.model,
        "success": event.success,
        "toolTelemetry": {},
    }
    if event.turn_id is None:
        data["isUserRequested"] = True
    else:
        data["interactionId"] = event.turn_id
        data["turnId"] = str(mapper.step)
    error = event.error
    if error is None:
        result: dict[str, Any] = {
            "content": event.content,
            "detailedContent": event.session_log or event.content,
        }
        data["result"] = result
        if event.contents:
            result["contents"] = list(event.contents)
        if event.sources:
            result["citableSources"] = [msgspec.to_builtins(source) for source in event.sources]
        if event.media:
            with_data = event.seq >= mapper.data_from
            result["binaryResultsForLlm"] = binary_results(event.media, with_data=with_data)
    else:
        data["error"] = error
    return mapper.persisted(event, data)


def external(mapper: EventMapper, event: core.ExternalToolRequested) -> Mapped:
    data = {
        "requestId": event.request_id,
        "sessionId": mapper.session_id,
        "toolCallId": event.tool_call_id,
        "toolName": event.tool_name,
        "arguments": ToolCall(event.tool_call_id, event.tool_name, event.arguments_json).arguments,
        "workingDirectory": mapper.working_directory,
    }
    return mapper.persisted(event, data)


def permission(mapper: EventMapper, event: core.PermissionRequested) -> Mapped:
    if mapper.approvals is None:
        mapper.approvals = {}
    mapper.approvals[event.request_id] = event.tool_name
    about = approval(
        event.tool_call_id,
        event.tool_name,
        event.tool_description,
        ToolCall(event.tool_call_id, event.tool_name, event.arguments_json).arguments,
        event.hook_message,
    )
    data = {
        "requestId": event.request_id,
        "permissionRequest": about,
        "promptRequest": about,
        "agentMode": mapper.mode,
    }
    return mapper.persisted(event, data)


def approval(
    call_id: str, name: str, description: str, arguments: Any, hook_message: str | None
) -> dict[str, Any]:
    """Return what clients are told of a call that needs an approval."""
    if hook_message is not None:
        about = {"kind": "hook", "toolCallId": call_id, "toolName": name, "toolArgs": arguments}
        return about | ({"hookMessage": hook_message} if hook_message else {})
    about = {"kind": "custom-tool", "toolCallId": call_id, "toolName": name}
    return about | {"toolDescription": description, "args": arguments}


def permission_done(mapper: EventMapper, event: core.PermissionCompleted) -> Mapped:
    name = ""
    if mapper.approvals is not None:
        name = mapper.approvals.pop(event.request_id, "")
        mapper.approvals = mapper.approvals or None
    data = {
        "requestId": event.request_id,
        "toolCallId": event.tool_call_id,
        "result": _decision(event, name),
    }
    return mapper.persisted(event, data)


def _decision(event: core.PermissionCompleted, tool_name: str) -> dict[str, Any]:
    if event.kind == "approved":
        return {"kind": "approved"}
    if event.kind == "approved-for-session":
        approval = {"kind": "custom-tool", "toolName": tool_name}
        return {"kind": "approved-for-session", "approval": approval}
    if event.kind == "rejected":
        feedback = {"feedback": event.feedback} if event.feedback else {}
        return {"kind": "denied-interactively-by-user", **feedback}
    if event.kind == "cancelled":
        return {"kind": "cancelled", "reason": "Session aborted"}
    return {"kind": "denied-no-approval-rule-and-could-not-request-from-user"}


def question(mapper: EventMapper, event: core.UserInputRequested) -> Mapped:
    data = {
        "requestId": event.request_id,
        "question": event.question,
        "choices": list(event.choices),
        "allowFreeform": event.allow_freeform,
        "toolCallId": event.tool_call_id,
    }
    return (mapper.ephemeral(event, data),)


def question_done(mapper: EventMapper, event: core.UserInputCompleted) -> Mapped:
    data: dict[str, Any] = {"requestId": event.request_id}
    if event.answer is not None:
        data["answer"] = event.answer
        data["wasFreeform"] = event.was_freeform
    return (mapper.ephemeral(event, data),)
