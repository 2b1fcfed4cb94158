"""Asking for approval of a call: of the host's handler, and of whoever answers the request from elsewhere."""

import inspect
from typing import TYPE_CHECKING, Any

import trio

from exeunt.actors.activities.call_end import CallEnd
from exeunt.actors.models import ToolCall
from exeunt.actors.outcomes import Outcome
from exeunt.actors.permissions import (
    ApproveOnce,
    LeavePending,
    PermissionDecision,
    PermissionHandler,
    PermissionRequest,
    Reject,
    UserNotAvailable,
    answer_of_handler,
)
from exeunt.actors.text import cause_of, encodable
from exeunt.actors.turn import requests
from exeunt.actors.turn.requests import OpenRequest

if TYPE_CHECKING:
    from exeunt.actors.activities.tool_call import Call
    from exeunt.actors.tools import Tool

DENIED_TEXT = "Permission denied and could not request permission from user"
"""What the model reads when there is nobody to ask; recorded conversations contain these words."""
REJECTED_TEXT = "The user rejected this tool call."
NO_HANDLER = CallEnd(
    Outcome.DENIED, DENIED_TEXT, "no permission handler, and the tool does not skip permission"
)


async def ask(call: "Call", tool: "Tool[..., Any]", *, forced: bool = False) -> CallEnd | None:
    """Return how the call ends for want of approval, or `None` when it may run.

    Bounded by the tool's time for approvals, or the session's; while it waits, the call leaves its slots to others.
    With *forced*, an approval for the whole session does not spare the question.
    """
    actor = call.actor
    handler = actor.options.on_permission_request
    if call.open_request is not None:
        return await _wait_on(call, tool, call.open_request)
    if handler is None:
        return NO_HANDLER
    if not forced and actor.approved_tools is not None and tool.name in actor.approved_tools:
        return None
    seconds = tool.approval_timeout or actor.options.waits.approval
    request = OpenRequest(call, seconds)
    call.stage = "approval"
    call.approval_seconds = seconds
    call.limit(seconds)
    actor.put(requests.ask_permission, request, tool.description)
    return await _decided(call, tool, handler, request)


async def _wait_on(call: "Call", tool: "Tool[..., Any]", request: OpenRequest) -> CallEnd | None:
    """Go on with the request of an earlier activation, under its id and with what is left of its time.

    Who was asked then is gone, so this activation's handler is asked; an answer from elsewhere may have come already.
    """
    actor = call.actor
    # It is the call's only as long as it is open: they would hold each other for ever.
    call.open_request = None
    call.stage = "approval"
    call.approval_seconds = request.seconds
    call.limit(requests.time_left(actor, request))
    handler = actor.options.on_permission_request
    approved = actor.approved_tools is not None and tool.name in actor.approved_tools
    if not request.resolved and (handler is None or tool.skip_permission or approved):
        unasked = handler is None and not (tool.skip_permission or approved)
        actor.put(requests.decide, request, UserNotAvailable() if unasked else ApproveOnce())
        if unasked:
            return NO_HANDLER
        await _until_safe(call)
        return None
    return await _decided(call, tool, handler, request)


async def _decided(
    call: "Call", tool: "Tool[..., Any]", handler: PermissionHandler | None, request: OpenRequest
) -> CallEnd | None:
    actor = call.actor
    try:
        decision = await _decision(call, tool, handler, request)
    except Exception as error:  # noqa: BLE001 - a permission handler is foreign code
        if call.cause is None:
            actor.put(requests.decide, request, UserNotAvailable())
        return CallEnd(Outcome.DENIED, DENIED_TEXT, f"the permission handler failed: {cause_of(error)}")
    if call.cause is not None:
        # It swallowed the end of its time: nobody waits for the answer any more.
        await trio.lowlevel.checkpoint()
    actor.put(requests.decide, request, decision)
    if isinstance(decision, Reject):
        text = REJECTED_TEXT
        if decision.feedback:
            text = f"{text} User feedback: {encodable(str(decision.feedback))}"
        return CallEnd(Outcome.REJECTED, text, text)
    if isinstance(decision, UserNotAvailable):
        return CallEnd(Outcome.DENIED, DENIED_TEXT, DENIED_TEXT)
    if actor.log.outlives_process:
        await _until_safe(call)
    return None


async def _decision(
    call: "Call", tool: "Tool[..., Any]", handler: PermissionHandler | None, request: OpenRequest
) -> PermissionDecision:
    """Return the first answer: the handler's, or one from elsewhere, which ends the handler."""
    answer: Any = LeavePending()
    if handler is not None and not request.resolved:
        arguments = ToolCall(call.call.id, call.name, call.arguments_json).arguments
        asked = PermissionRequest(
            call.call.id,
            call.name,
            arguments,
            tool.description,
            request_id=request.request_id,
            hook_message=call.asked_because,
        )
        answer = handler(asked, call.actor.invocation(call.call.id))
        if inspect.isawaitable(answer):
            answer = await first_answer(answer, request)
    decision = answer_of_handler(answer)
    if request.resolved or isinstance(decision, LeavePending):
        decision = await request.wait()
    chosen: PermissionDecision = decision
    return chosen


async def first_answer(answering: Any, request: OpenRequest) -> Any:
    """Return what the handler answers, or that it leaves that open where another answer came first.

    What it raises when it is ended by another answer does not count.
    """
    with trio.CancelScope() as scope:  # noqa: ASYNC912 - what the handler returned to be awaited does wait
        request.scope = scope
        try:
            return await answering
        except Exception:
            if not request.resolved:
                raise
        finally:
            request.scope = None
    return LeavePending()


async def _until_safe(call: "Call") -> None:
    """Before the handler runs, the answer must be durable: else the call would wait, and run, once more.

    No time-out concerns it any more but the ones that follow.
    """
    call.unlimit()
    call.stage = "slot"
    if call.actor.log.outlives_process:
        await call.until_safe(call.actor.state.seq)
