"""Which calls of a session are approved, and which wait for that."""

from typing import Any

from exeunt.actors.permissions import PermissionRequest
from exeunt.actors.session import PendingRequest
from exeunt.wire.connection import Connection
from exeunt.wire.events.calls import approval
from exeunt.wire.messages import settings as se
from exeunt.wire.messages.sessions import OneSession
from exeunt.wire.rpc import FAILED, RpcError
from exeunt.wire.serving import changing
from exeunt.wire.serving.served import Served


def _find(connection: Connection, session_id: str) -> Served:
    return connection.hub.find(connection.owner, session_id)


async def set_approve_all(connection: Connection, params: se.SetApproveAll) -> dict[str, Any]:
    """Approve every call without a question, or ask again."""
    await _approve_all(connection, _find(connection, params.sessionId), params.enabled)
    return {"success": True}


async def set_permission_mode(connection: Connection, params: se.SetPermissionMode) -> dict[str, Any]:
    """The same; there is nobody here who could assist."""
    served = _find(connection, params.sessionId)
    if params.mode == "assisted":
        raise RpcError(
            FAILED, "approvals are given by clients, or all at once; there is no model that assists"
        )
    await _approve_all(connection, served, params.mode == "allow-all")
    return {"success": True, "mode": params.mode}


def get_permission_mode(connection: Connection, params: OneSession) -> dict[str, Any]:
    """Say whether calls are approved without a question."""
    return {"mode": "allow-all" if _find(connection, params.sessionId).approves_all else "manual"}


async def _approve_all(connection: Connection, served: Served, enabled: bool) -> None:
    before, served.approves_all = served.approves_all, enabled
    try:
        await changing.reconfigure(connection.hub, served)
    except BaseException:
        served.approves_all = before
        raise


def reset_approvals(connection: Connection, params: OneSession) -> dict[str, Any]:
    """Forget which tools were approved for the session."""
    actor = connection.hub.host.find(_find(connection, params.sessionId).session_id)
    if actor is not None:
        actor.approved_tools = None
    return {"success": True}


def pending_approvals(connection: Connection, params: OneSession) -> dict[str, Any]:
    """List the requests for approval that nobody has answered."""
    served = _find(connection, params.sessionId)
    return {
        "items": [
            {"requestId": pending.request_id, "request": _about(pending)}
            for pending in served.asking.open_requests("permission")
        ]
    }


def _about(pending: PendingRequest) -> dict[str, Any]:
    request = pending.request
    assert isinstance(request, PermissionRequest)
    return approval(
        request.tool_call_id,
        request.tool_name,
        request.tool_description,
        request.arguments,
        request.hook_message,
    )
