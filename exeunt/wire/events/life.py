"""What clients see of a session as a whole: its beginning and end, its errors, what becomes of its context."""

from collections.abc import Iterable
from typing import Any

from exeunt.actors import events as core
from exeunt.actors.models import ModelErrorKind
from exeunt.actors.turn.aborts import LOG_ENDED, TAKEN_OVER
from exeunt.wire.events.clock import iso
from exeunt.wire.events.figures import of_session
from exeunt.wire.events.mapper import EventMapper, WireEvent

Mapped = Iterable[WireEvent]

EVENT_FORMAT = 1
"""`version` of `session.start`: of the events' format."""

RATE_LIMIT = "rate_limit"
"""`errorType` of what we call `rate_limited`."""

USED_UP = ("quota", "billing")
"""Words in a provider's code of a limit that no waiting outlasts: that is an `errorType` of its own, `quota`."""

LOST = {
    TAKEN_OVER: (
        "session_taken_over",
        "Another server has taken the session over, or deleted it. Have it here again with session.resume",
    ),
    LOG_ENDED: (
        "session_lost",
        "The server cannot write the session's log any more. Take the session up again with session.resume",
    ),
}
"""`errorType` of a session that a server has lost, and what its clients are told, by why."""

COMPACTION_TRIGGERS = frozenset(
    {"threshold", "context_limit_retry", "manual", "memory_pressure", "model_switch"}
)


def start(mapper: EventMapper, event: core.SessionStart) -> Mapped:
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


def resume(mapper: EventMapper, event: core.SessionResume) -> Mapped:
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


def shutdown(mapper: EventMapper, event: core.SessionShutdown) -> Mapped:
    data: dict[str, Any] = {
        "shutdownType": "routine",
        "sessionStartTime": int(mapper.started * 1000),
        "codeChanges": {"linesAdded": 0, "linesRemoved": 0, "filesModified": []},
        "currentModel": mapper.model,
        **(of_session(mapper.usage or {}, mapper.account) if mapper.figures is None else mapper.figures()),
    }
    return mapper.persisted(event, data)


def error(mapper: EventMapper, event: core.SessionError) -> Mapped:
    data: dict[str, Any] = {"errorType": _error_type(event), "message": event.message}
    if event.status_code is not None:
        data["statusCode"] = event.status_code
    if event.error_code:
        data["errorCode"] = event.error_code
    return mapper.persisted(event, data)


def _error_type(event: core.SessionError) -> str:
    """Return the protocol's word for why a turn has no answer, where it has one; else our own."""
    if event.error_type != ModelErrorKind.RATE_LIMITED:
        return event.error_type
    used_up = any(word in event.error_code for word in USED_UP)
    return "quota" if used_up else RATE_LIMIT


def failed(mapper: EventMapper, event: core.SessionFailed) -> Mapped:
    """The session takes no more messages: what clients know as an error, after which they wait for nothing."""
    data = {"errorType": "session_failed", "message": f"The session has failed: {event.cause}"}
    return mapper.persisted(event, data, "session.error")


def lost(mapper: EventMapper, event: core.SessionLost) -> Mapped:
    """The session is gone here: what clients know as an error, after which they wait for nothing."""
    kind, why = LOST.get(event.cause, LOST[LOG_ENDED])
    return (mapper.ephemeral(event, {"errorType": kind, "message": why}, "session.error"),)


def idle(mapper: EventMapper, event: core.SessionIdle) -> Mapped:
    assistant: dict[str, Any] = {"aborted": True} if event.aborted else {}
    return (
        mapper.beside(event, "assistant.idle", assistant),
        mapper.ephemeral(event, {**assistant, "mode": mapper.mode}),
    )


def cleared(mapper: EventMapper, event: core.ContextCleared) -> Mapped:
    data = {"messagesCleared": event.messages_cleared, "initialMessage": event.initial_message}
    return mapper.persisted(event, data)


def truncated(mapper: EventMapper, event: core.SessionTruncated) -> Mapped:
    named = event.event_id
    if mapper.away is not None:
        named, mapper.last_id = mapper.away
    data = {"upToEventId": named, "eventsRemoved": event.events_removed}
    return (mapper.ephemeral(event, data, "session.snapshot_rewind"),)


def compacted(mapper: EventMapper, event: core.SessionCompacted) -> Mapped:
    data: dict[str, Any] = {"success": True, "messagesRemoved": event.messages_removed}
    if event.trigger in COMPACTION_TRIGGERS:
        data["trigger"] = event.trigger
    if event.note is not None:
        data |= event.note
    return mapper.persisted(event, data, "session.compaction_complete")


def handoff(mapper: EventMapper, event: core.SessionHandoff) -> Mapped:
    if event.action != "received":
        said = f"{event.action} ({event.trigger})" + (f": {event.detail}" if event.detail else "")
        return mapper.persisted(event, {"infoType": "handoff", "message": said}, "session.info")
    data = {"handoffTime": iso(event.time), "sourceType": "local"}
    if event.session_id is not None:
        data["remoteSessionId"] = event.session_id
    if event.detail is not None:
        data["context"] = event.detail
    return mapper.persisted(event, data)


def model_change(mapper: EventMapper, event: core.SessionModelChange) -> Mapped:
    mapper.model = event.new_model
    data = {"newModel": event.new_model}
    if event.previous_model:
        data["previousModel"] = event.previous_model
    if event.reasoning_effort:
        data["reasoningEffort"] = event.reasoning_effort
    if event.cause:
        data["cause"] = event.cause
    return mapper.persisted(event, data)


def mode_changed(mapper: EventMapper, event: core.SessionModeChanged) -> Mapped:
    mapper.mode = event.new_mode
    return mapper.persisted(event, {"previousMode": event.previous_mode, "newMode": event.new_mode})


def title(mapper: EventMapper, event: core.SessionTitleChanged) -> Mapped:
    return (mapper.ephemeral(event, {"title": event.title}),)


def info(mapper: EventMapper, event: core.SessionInfo) -> Mapped:
    kind = event.level if event.level in ("warning", "error") else "info"
    data = {f"{kind}Type": event.info_type, "message": event.message}
    if event.url is not None:
        data["url"] = event.url
    return mapper.persisted(event, data, f"session.{kind}")


def warning(mapper: EventMapper, event: core.SessionWarning) -> Mapped:
    return (mapper.ephemeral(event, {"warningType": event.warning_type, "message": event.message}),)
