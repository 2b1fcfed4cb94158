"""The connection and the server."""

from datetime import UTC, datetime
from typing import Any

from exeunt.wire import rpc
from exeunt.wire.connection import Connection, Then
from exeunt.wire.messages.server import Anything, Connect, Nothing, Ping
from exeunt.wire.rpc import RpcError
from exeunt.wire.serving.models import names_for
from exeunt.wire.serving.pricing import priced

PROTOCOL = 3
"""The version of the protocol that clients ask for."""


def connect(connection: Connection, params: Connect) -> dict[str, Any]:
    """Let a client in. A wrong token may be followed by another."""
    tokens = connection.server.tokens
    if tokens:
        tenant = None if params.token is None else tokens.tenant(params.token)
        if tenant is None:
            connection.wrong_token()
            raise RpcError(rpc.AUTHENTICATION_FAILED, "AUTHENTICATION_FAILED")
        connection.login(tenant)
    elif params.token is not None and not connection.server.ignores_tokens:
        raise RpcError(rpc.AUTHENTICATION_NOT_CONFIGURED, "AUTHENTICATION_NOT_CONFIGURED")
    return {"ok": True, "protocolVersion": PROTOCOL, "version": connection.server.version, "taskKinds": []}


def ping(connection: Connection, params: Ping) -> dict[str, Any]:
    """Give a sign of life."""
    return {
        "message": "pong" if params.message is None else f"pong: {params.message}",
        "timestamp": datetime.now(UTC).isoformat().replace("+00:00", "Z"),
        "protocolVersion": PROTOCOL,
    }


def status(connection: Connection, params: Nothing) -> dict[str, Any]:
    """Say what runs here."""
    return {"version": connection.server.version, "protocolVersion": PROTOCOL}


def auth_status(connection: Connection, params: Nothing) -> dict[str, Any]:
    """Say whether models can be reached: by a provider of the server's own."""
    default = connection.hub.handlers.models.default
    if default.provider is None and default.client is None:
        return {"isAuthenticated": False, "statusMessage": "Not authenticated"}
    return {
        "isAuthenticated": True,
        "authType": "api-key",
        "statusMessage": "The server has a model provider",
    }


async def list_models(connection: Connection, params: Nothing) -> dict[str, Any]:
    """List the models of the server's own provider; without one, those of a client that sends requests itself."""
    hub = connection.hub
    names = await names_for(hub, connection)
    prices = hub.handlers.models.book.prices
    return {"models": [_model(name) | priced(prices, name) for name in names]}


def _model(name: str) -> dict[str, Any]:
    return {
        "id": name,
        "name": name,
        "capabilities": {
            "supports": {"vision": False, "reasoningEffort": False},
            "limits": {"max_context_window_tokens": 0},
        },
    }


def list_tools(connection: Connection, params: Anything) -> dict[str, Any]:
    """List the tools of the server itself: the one with which a model asks a client's user."""
    own = connection.hub.handlers.ask_user
    return {
        "tools": [{"name": own.name, "description": own.description, "parameters": own.definition.parameters}]
    }


def shut_down(connection: Connection, params: Nothing) -> Then:
    """End the server, where it serves nobody else; else only answer."""
    return Then({}, connection.server.shut_down_asked)
