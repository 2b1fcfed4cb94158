"""Asking for approval of a call."""

import inspect
from typing import TYPE_CHECKING, Any

import trio

from exeunt.actors.activities.call_end import CallEnd
from exeunt.actors.events import PermissionCompleted, PermissionRequested
from exeunt.actors.models import ToolCall
from exeunt.actors.outcomes import Outcome
from exeunt.actors.permissions import (
    ApproveForSession,
    PermissionHandler,
    PermissionRequest,
    Reject,
    UserNotAvailable,
    to_decision,
)
from exeunt.actors.text import cause_of, encodable
from exeunt.actors.turn import parking

if TYPE_CHECKING:
    from exeunt.actors.activities.tool_call import Call
    from exeunt.actors.tools import Tool
    from exeunt.actors.turn.actor import SessionActor

DENIED_TEXT = "Permission denied and could not request permission from user"
"""What the model reads when there is nobody to ask; recorded conversations contain these words."""
REJECTED_TEXT = "The user rejected this tool call."


async def ask(call: "Call", tool: "Tool[..., Any]", *, forced: bool = False) -> CallEnd | None:
    """Return how the call ends for want of approval, or `None` when it may run.

    Bounded by the session's time for approvals; while it waits, the call leaves its slots to others. With *forced*,
    an approval for the whole session does not spare the question.
    """
    actor = call.actor
    handler = actor.options.on_permission_request
    if handler is None:
        return CallEnd(
            Outcome.DENIED, DENIED_TEXT, "no permission handler, and the tool does not skip permission"
        )
    if not forced and actor.approved_tools is not None and tool.name in actor.approved_tools:
        return None
    call.stage = "approval"
    call.limit(actor.options.waits.approval)
    actor.put(_requested, call)
    return await _answered(call, tool, handler)


async def _answered(call: "Call", tool: "Tool[..., Any]", handler: PermissionHandler) -> CallEnd | None:
    actor = call.actor
    arguments = ToolCall(call.call.id, call.name, call.arguments_json).arguments
    request = PermissionRequest(
        call.call.id, call.name, arguments, tool.description, request_id=call.asking or ""
    )
    try:
        answer = handler(request, actor.invocation(call.call.id))
        if inspect.isawaitable(answer):
            answer = await answer
        decision = to_decision(answer)
    except Exception as error:  # noqa: BLE001 - a permission handler is foreign code
        if call.cause is None:
            actor.put(_completed, call, "unavailable", None)
        return CallEnd(Outcome.DENIED, DENIED_TEXT, f"the permission handler failed: {cause_of(error)}")
    if call.cause is not None:
        await (
            trio.lowlevel.checkpoint()
        )  # it swallowed the end of its time: nobody waits for the answer any more
    if isinstance(decision, Reject):
        text = REJECTED_TEXT
        feedback = encodable(str(decision.feedback)) if decision.feedback else None
        if feedback:
            text = f"{text} User feedback: {feedback}"
        actor.put(_completed, call, "rejected", feedback)
        return CallEnd(Outcome.REJECTED, text, text)
    if isinstance(decision, UserNotAvailable):
        actor.put(_completed, call, "unavailable", None)
        return CallEnd(Outcome.DENIED, DENIED_TEXT, DENIED_TEXT)
    for_session = isinstance(decision, ApproveForSession)
    actor.put(_completed, call, "approved-for-session" if for_session else "approved", None)
    return None


def _requested(actor: "SessionActor", call: "Call") -> None:
    if call.done:
        return
    call.asking = actor.new_id()
    actor.emit(PermissionRequested, call.asking, call.call.id, call.name, call.arguments_json)
    parking.park(actor, call)


def _completed(actor: "SessionActor", call: "Call", kind: str, feedback: str | None) -> None:
    """Note the answer; one that comes after the call has its outcome changes nothing."""
    if call.done or call.asking is None:
        return
    actor.emit(PermissionCompleted, call.asking, call.call.id, kind, feedback)
    call.asking = None
    if kind == "approved-for-session":
        if actor.approved_tools is None:
            actor.approved_tools = set()
        actor.approved_tools.add(call.name)
    parking.unpark(actor, call)
