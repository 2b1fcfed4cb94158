"""Answers to requests that went to clients as events."""

import re
from typing import Any

from exeunt.actors.outcomes import ToolResult
from exeunt.actors.user_input import UserInputResponse
from exeunt.wire.connection import Connection
from exeunt.wire.messages.answers import PermissionAnswer, ToolAnswer, UserInputAnswer
from exeunt.wire.serving.decisions import decision_from
from exeunt.wire.serving.results import result_from


def tool_call(connection: Connection, params: ToolAnswer) -> dict[str, Any]:
    """Take the result of a call, from the client that was asked or one that takes over. The first answer counts."""
    served = connection.hub.find(connection.owner, params.sessionId)
    pending = None if served.asking.calls is None else served.asking.calls.get(params.requestId)
    client = served.clients.get(connection)
    if pending is None or pending.waiter.resolved or not pending.may_take_over(client):
        return {"success": False}
    name, arguments = served.asking.called(pending)
    pending.answer(result_from(params.result, params.error, name, arguments))
    return {"success": True}


_REQUEST_ID = re.compile(rb'[{,]\s*"requestId"\s*:\s*"([0-9a-f-]{1,64})"')


def tool_call_passed_over(connection: Connection, beginning: bytes, why: str) -> None:
    """End the call whose result was too long to be read. Its client is told, but the SDKs do not try again."""
    found = _REQUEST_ID.search(beginning)
    if found is None:
        return
    request_id = found[1].decode()
    # Clients write the id of the session first or last.
    for served in connection.attached.values():
        pending = (served.asking.calls or {}).get(request_id)
        if pending is not None and pending.may_take_over(served.clients.get(connection)):
            pending.answer(
                ToolResult(f"The result of the tool was too long to be read: {why}", "failure", why)
            )


def permission(connection: Connection, params: PermissionAnswer) -> dict[str, Any]:
    """Take a decision, from any client of the session. The first counts; one that is none denies the call."""
    served = connection.hub.find(connection.owner, params.sessionId)
    asked = any(
        request.request_id == params.requestId for request in served.asking.open_requests("permission")
    )
    if not asked or connection not in served.clients:
        return {"success": False}
    return {"success": served.asking.answer(params.requestId, decision_from(params.result))}


def user_input(connection: Connection, params: UserInputAnswer) -> dict[str, Any]:
    """Take what a user said, from any client of the session. The first answer counts."""
    served = connection.hub.find(connection.owner, params.sessionId)
    asked = any(
        request.request_id == params.requestId for request in served.asking.open_requests("user_input")
    )
    if not asked or connection not in served.clients:
        return {"success": False}
    response = UserInputResponse(params.response.answer, params.response.wasFreeform)
    return {"success": served.asking.answer(params.requestId, response)}
