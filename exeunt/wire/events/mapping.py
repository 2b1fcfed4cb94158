"""Which kind of event becomes what of the protocol's. Names and fields are those of its schema."""

from collections.abc import Callable, Iterable
from typing import Any

from exeunt.actors import events as core
from exeunt.wire.events import budget, calls, conversation, life
from exeunt.wire.events.mapper import EventMapper, WireEvent
from exeunt.wire.events.outside import own

MAPPINGS: dict[type[core.Event], Callable[[EventMapper, Any], Iterable[WireEvent]]] = {
    core.SessionStart: life.start,
    core.SessionResume: life.resume,
    core.SessionShutdown: life.shutdown,
    core.SessionError: life.error,
    core.SessionFailed: life.failed,
    core.SessionLost: life.lost,
    core.SessionIdle: life.idle,
    core.ContextCleared: life.cleared,
    core.SessionTruncated: life.truncated,
    core.SessionCompacted: life.compacted,
    core.SessionHandoff: life.handoff,
    core.SessionModelChange: life.model_change,
    core.SessionModeChanged: life.mode_changed,
    core.SessionTitleChanged: life.title,
    core.SessionInfo: life.info,
    core.SessionWarning: life.warning,
    core.SystemMessage: conversation.system,
    core.MessageAccepted: conversation.accepted,
    core.MessageDropped: conversation.dropped,
    core.UserMessage: conversation.user,
    core.AssistantTurnStart: conversation.turn_start,
    core.AssistantMessage: conversation.assistant,
    core.AssistantTurnEnd: conversation.turn_end,
    core.Abort: conversation.abort,
    core.AssistantMessageDelta: conversation.delta,
    core.AssistantReasoningDelta: conversation.reasoning,
    core.AssistantUsage: conversation.usage,
    core.ModelCallFailure: conversation.call_failure,
    core.AssistantTurnRetry: conversation.retry,
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
    core.HookStart: conversation.hook_start,
    core.HookEnd: conversation.hook_end,
    core.TurnEnd: own,
    core.ToolResultStale: own,
    core.ClearRefusedEvent: own,
    core.ClearRolledBackEvent: own,
    core.DeadLetter: own,
    core.MediaRemoved: own,
    core.SessionRestarted: own,
}
