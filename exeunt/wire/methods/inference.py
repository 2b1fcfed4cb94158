"""Requests to models by way of a client."""

import base64
import binascii
from typing import Any

from exeunt.wire.connection import Connection
from exeunt.wire.messages.inference import ResponseChunk, ResponseStart
from exeunt.wire.messages.server import Nothing
from exeunt.wire.rpc import INVALID_PARAMS, RpcError
from exeunt.wire.serving.carrying import Exchange


def set_provider(connection: Connection, params: Nothing) -> dict[str, Any]:
    """Let this client send the requests of the sessions that it makes, or takes up, from now on."""
    connection.carries_requests = True
    return {"success": True}


def response_start(connection: Connection, params: ResponseStart) -> dict[str, Any]:
    """Take the head of an answer."""
    exchange = _exchange(connection, params.requestId)
    if exchange is None or exchange.status or not 100 <= params.status <= 599:
        return {"accepted": False}
    exchange.start(params.status, params.headers)
    return {"accepted": True}


def response_chunk(connection: Connection, params: ResponseChunk) -> dict[str, Any]:
    """Take a piece of an answer."""
    exchange = _exchange(connection, params.requestId)
    if exchange is None or exchange.is_done:
        return {"accepted": False}
    try:
        data = base64.b64decode(params.data, validate=True) if params.binary else params.data.encode()
    except (binascii.Error, ValueError) as error:
        raise RpcError(INVALID_PARAMS, "data with binary: true is no base64") from error
    exchange.add(data, bool(params.end), None if params.error is None else params.error.message)
    return {"accepted": True}


def _exchange(connection: Connection, request_id: str) -> Exchange | None:
    peer, exchange = connection.hub.exchanges.get(request_id, (None, None))
    return exchange if peer is connection else None
