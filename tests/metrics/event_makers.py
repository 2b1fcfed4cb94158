"""Short ways to make the events that are counted, and a host's statistics."""

from collections.abc import Mapping
from typing import Any

import attrs

from exeunt.actors.events import (
    AssistantUsage,
    AutoModeSwitchCompleted,
    ClearRefusedEvent,
    ClearRolledBackEvent,
    ContextCleared,
    DeadLetter,
    MediaRemoved,
    MessageDropped,
    ModelCallFailure,
    Origin,
    PermissionCompleted,
    SessionFailed,
    SessionHandoff,
    SessionLimitsExhaustedCompleted,
    SessionLost,
    SessionRestarted,
    ToolExecutionComplete,
    ToolResultStale,
    TurnEnd,
    UsageCheckpoint,
    UserInputCompleted,
)

ORIGIN = Origin("11111111-2222-4333", None, 1)
TIME = 1_700_000_000.5


@attrs.frozen
class Statistics:
    """What a host would say of itself."""

    sessions: Mapping[str, int] = attrs.field(factory=lambda: {"live": 3, "failed": 1})
    mailbox_depth: int = 7
    mailbox_refused: int = 2
    tool_calls_in_flight: int = 4
    pending_requests: int = 2
    subscriber_lag: int = 5
    admission: Mapping[str, int] = attrs.field(factory=lambda: {"granted": 11, "queued": 6, "refused": 1})


def turn_end(reason: Any = "completed", duration: float = 1.5, time: float = TIME) -> TurnEnd:
    return TurnEnd(ORIGIN, 1, time, "t1", reason, 0, 1, duration)


def tool_complete(
    tool: str = "search", outcome: Any = "success", duration: float = 0.2, *, terminal: bool = False
) -> ToolExecutionComplete:
    return ToolExecutionComplete(ORIGIN, 1, TIME, "c1", tool, outcome, "", "t1", duration, terminal)


def usage(
    provider: str = "openai", input_tokens: int = 120, output_tokens: int = 30, duration: float = 0.7
) -> AssistantUsage:
    return AssistantUsage(ORIGIN, 1, TIME, 1, "model", provider, input_tokens, output_tokens, duration)


def model_failure(
    provider: str = "openai", error_type: str = "timeout", duration: float = 0.7
) -> ModelCallFailure:
    return ModelCallFailure(ORIGIN, 1, TIME, 1, "model", provider, error_type, "late", None, duration, 1)


def cleared(messages: int = 4, time: float = TIME, trigger: str = "") -> ContextCleared:
    return ContextCleared(ORIGIN, 1, time, messages, "seed", 1, trigger=trigger)


def handoff(action: str = "reminded", trigger: str = "tokens") -> SessionHandoff:
    return SessionHandoff(ORIGIN, 1, TIME, action, trigger, 0)


def permission_ended(kind: str = "approved") -> PermissionCompleted:
    return PermissionCompleted(ORIGIN, 1, TIME, "r1", "c1", kind)


def question_ended(kind: str = "answered") -> UserInputCompleted:
    return UserInputCompleted(ORIGIN, 1, TIME, "r1", "c1", kind)


def paid(nano: int = 1) -> UsageCheckpoint:
    return UsageCheckpoint(ORIGIN, 1, TIME, "m", nano, nano, 10, 2)


def credits_decided(kind: str = "answered", action: str = "cancel") -> SessionLimitsExhaustedCompleted:
    return SessionLimitsExhaustedCompleted(ORIGIN, 1, TIME, "r1", "t1", kind, action)


def switch_decided(kind: str = "answered", response: str = "no") -> AutoModeSwitchCompleted:
    return AutoModeSwitchCompleted(ORIGIN, 1, TIME, "r1", "t1", kind, response)


def clear_refused(cause: str) -> ClearRefusedEvent:
    return ClearRefusedEvent(ORIGIN, 1, TIME, 1, cause)


def clear_rolled_back() -> ClearRolledBackEvent:
    return ClearRolledBackEvent(ORIGIN, 1, TIME, 1, "failure", "c1")


def dead_letter(cause: str) -> DeadLetter:
    return DeadLetter(ORIGIN, 1, TIME, 1, "message", cause)


def dropped(cause: str) -> MessageDropped:
    return MessageDropped(ORIGIN, 1, TIME, "m1", cause)


def restarted() -> SessionRestarted:
    return SessionRestarted(ORIGIN, 1, TIME, 1, "ValueError: no")


def failed() -> SessionFailed:
    return SessionFailed(ORIGIN, 1, TIME, "ValueError: no")


def lost(cause: str = "taken_over") -> SessionLost:
    return SessionLost(ORIGIN, 1, TIME, 1, cause, "gone")


def stale() -> ToolResultStale:
    return ToolResultStale(ORIGIN, 1, TIME, 1, "c1", "search", "t1")


def media_removed(removed: int) -> MediaRemoved:
    return MediaRemoved(ORIGIN, 1, TIME, 5, removed, removed * 1_000)
