"""Answers to what turns ask before they go on: more credits, or another model."""

import secrets
from typing import Any

from exeunt.wire.connection import Connection
from exeunt.wire.messages.sessions import OneSession
from exeunt.wire.messages.ui import AutoModeSwitchAnswer, DirectHandler, SessionLimitsAnswer
from exeunt.wire.rpc import FAILED, RpcError
from exeunt.wire.serving import changing
from exeunt.wire.serving.served import Served

MOST_HANDLERS = 100
"""Of one session: a client has one, and may lose count of them."""


def session_limits(connection: Connection, params: SessionLimitsAnswer) -> dict[str, Any]:
    """Take what is to become of an exhausted limit, from any client of the session. The first answer counts.

    Raises `InvalidAnswer` for one with which the session still could not go on; then the request is open still.
    """
    response = params.response
    answer = {
        "action": response.action,
        "additionalAiCredits": response.additionalAiCredits,
        "maxAiCredits": response.maxAiCredits,
    }
    return _answered(connection, "session_limits", params.sessionId, params.requestId, answer)


def auto_mode_switch(connection: Connection, params: AutoModeSwitchAnswer) -> dict[str, Any]:
    """Take whether the turn goes on with another model, from any client of the session. The first answer counts."""
    return _answered(connection, "auto_mode_switch", params.sessionId, params.requestId, params.response)


def _answered(
    connection: Connection, kind: str, session_id: str, request_id: str, answer: Any
) -> dict[str, Any]:
    served = connection.hub.find(connection.owner, session_id)
    asked = any(request.request_id == request_id for request in served.asking.open_requests(kind))
    if not asked or connection not in served.clients:
        return {"success": False}
    return {"success": served.asking.answer(request_id, answer)}


def register_direct(connection: Connection, params: OneSession) -> dict[str, Any]:
    """Take note that this client answers `auto_mode_switch.requested`, so that no client is asked beside it."""
    served = connection.hub.find(connection.owner, params.sessionId)
    client = served.clients.get(connection)
    if client is None:
        raise RpcError(FAILED, "only a client that is attached to the session is sent its events")
    if served.asking.direct is None:
        served.asking.direct = {}
    if len(served.asking.direct) >= MOST_HANDLERS:
        raise RpcError(FAILED, f"{MOST_HANDLERS} handlers are registered for the session already")
    handle = secrets.token_hex(8)
    served.asking.direct[handle] = client
    who_answers_changed(connection, served)
    return {"handle": handle}


def unregister_direct(connection: Connection, params: DirectHandler) -> dict[str, Any]:
    """End that; say whether there was anything to end."""
    served = connection.hub.find(connection.owner, params.sessionId)
    direct = served.asking.direct or {}
    if direct.get(params.handle) is not served.clients.get(connection, direct):
        return {"unregistered": False}
    del direct[params.handle]
    served.asking.direct = direct or None
    who_answers_changed(connection, served)
    return {"unregistered": True}


def who_answers_changed(connection: Connection, served: Served) -> None:
    """Let the session know whether anybody says if it goes on with another model."""
    # One that has left memory is told with its next options.
    changing.reconfigure_now(connection.hub, served)
