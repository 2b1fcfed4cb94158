"""From the events of the session itself to span events, links and ends."""

from typing import Any

from exeunt.actors import events as core
from exeunt.telemetry import content, names
from exeunt.telemetry.propagation import NOWHERE
from exeunt.telemetry.session_trace import SessionTrace
from exeunt.telemetry.turns import Handler

AFTER_A_TURN = frozenset({"agentStop", "sessionEnd"})
"""Hooks that run when a turn has ended: none of their time is its own, and none is the next turn's."""


def cleared(spans: SessionTrace, event: core.ContextCleared) -> None:
    """A clear is committed, by the turn or the call of the host that has just ended."""
    about: dict[str, Any] = {
        names.MESSAGES_CLEARED: event.messages_cleared,
        names.GENERATION: event.generation,
    }
    if event.trigger:
        about[names.CLEAR_TRIGGER] = event.trigger
    habits = spans.habits
    if habits.capture_content:
        about[names.SEED] = content.clipped(event.initial_message, habits.content_limit)
    turn = spans.ended_turn
    by = spans.ended_call if turn is None else turn.span
    spans.cleared = NOWHERE if turn is None else turn.parent
    if by is not None:
        by.add_event(event.type, about, spans.moment)
        spans.follows = (by.get_span_context(), "context_cleared")


def rolled_back(spans: SessionTrace, event: core.ClearRolledBackEvent) -> None:
    spans.note(event.type, {names.CLEAR_CAUSE: event.cause, names.TOOL_CALL_ID: event.call_id})


def refused(spans: SessionTrace, event: core.ClearRefusedEvent) -> None:
    spans.note(event.type, {names.CLEAR_CAUSE: event.cause})


def compacted(spans: SessionTrace, event: core.SessionCompacted) -> None:
    about = {
        names.MESSAGES_REMOVED: event.messages_removed,
        names.GENERATION: event.generation,
    }
    spans.note(event.type, about)


def handed_off(spans: SessionTrace, event: core.SessionHandoff) -> None:
    about = {names.HANDOFF_ACTION: event.action, names.HANDOFF_TRIGGER: event.trigger}
    if event.session_id is not None:
        about[names.HANDOFF_SESSION] = event.session_id
    spans.note(event.type, about)


def aborted(spans: SessionTrace, event: core.Abort) -> None:
    spans.note(event.type, {names.ABORT_REASON: event.reason})


def hook_began(spans: SessionTrace, event: core.HookStart) -> None:
    if spans.turn is not None or spans.accepted:
        spans.hooks[event.hook_invocation_id] = spans.moment


def hook_ended(spans: SessionTrace, event: core.HookEnd) -> None:
    since = spans.hooks.pop(event.hook_invocation_id, None)
    about: dict[str, Any] = {names.HOOK_TYPE: event.hook_type, names.HOOK_SUCCESS: event.success}
    if since is not None:
        about[names.SECONDS] = (spans.moment - since) / 1e9
    if event.tool_call_id is not None:
        spans.note_call(event.tool_call_id, event.type, about)
    elif event.hook_type not in AFTER_A_TURN:
        spans.note(event.type, about)
    elif spans.turn is None:
        spans.free_since = spans.moment


def restarted(spans: SessionTrace, event: core.SessionRestarted) -> None:
    """The actor was built anew. What that has cut off ends in the same handler run."""
    spans.note(event.type, {names.RESTART_EPOCH: event.epoch})


def left(spans: SessionTrace, event: core.SessionShutdown | core.SessionFailed | core.SessionLost) -> None:
    """The session has left memory; what it leaves open, another activation goes on with."""
    spans.leave()


HANDLERS: dict[type[core.Event], Handler] = {
    core.ContextCleared: cleared,
    core.ClearRolledBackEvent: rolled_back,
    core.ClearRefusedEvent: refused,
    core.SessionCompacted: compacted,
    core.SessionHandoff: handed_off,
    core.Abort: aborted,
    core.HookStart: hook_began,
    core.HookEnd: hook_ended,
    core.SessionRestarted: restarted,
    core.SessionShutdown: left,
    core.SessionFailed: left,
    core.SessionLost: left,
}
