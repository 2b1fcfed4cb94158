"""Messages that wait."""

from typing import Any

from exeunt.wire.connection import Connection
from exeunt.wire.messages.sessions import OneSession
from exeunt.wire.messages.ui import QueueItem


def items(connection: Connection, params: OneSession) -> dict[str, Any]:
    """List the messages that no turn has taken in."""
    served = connection.hub.find(connection.owner, params.sessionId)
    waiting = served.handle.pending_messages()
    steering = served.steering_ids()
    return {
        "items": [
            {
                "id": item.message_id,
                "messageId": item.message_id,
                "kind": "message",
                "displayText": item.prompt,
                "agentMode": served.mode,
            }
            for item in waiting
            if item.message_id not in steering
        ],
        "steeringMessages": [item.prompt for item in waiting if item.message_id in steering],
        "inFlightSteeringCount": 0,
    }


def has_any(connection: Connection, params: OneSession) -> dict[str, Any]:
    """Say whether any message waits."""
    served = connection.hub.find(connection.owner, params.sessionId)
    return {"hasPending": bool(served.handle.pending_messages())}


def remove(connection: Connection, params: QueueItem) -> dict[str, Any]:
    """Take a message back."""
    served = connection.hub.find(connection.owner, params.sessionId)
    return {"removed": served.handle.withdraw(params.id)}


def remove_last(connection: Connection, params: OneSession) -> dict[str, Any]:
    """Take the message back that was sent last."""
    served = connection.hub.find(connection.owner, params.sessionId)
    waiting = served.handle.pending_messages()
    if not waiting:
        return {"removed": False}
    return {"removed": served.handle.withdraw(max(waiting, key=lambda item: item.order).message_id)}


def clear(connection: Connection, params: OneSession) -> None:
    """Take all messages back that wait."""
    served = connection.hub.find(connection.owner, params.sessionId)
    for item in served.handle.pending_messages():
        served.handle.withdraw(item.message_id)
