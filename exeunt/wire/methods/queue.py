"""Messages that wait, and the commands among them."""

from typing import Any

from exeunt.actors.state.session_state import Pending
from exeunt.actors.turn import errands
from exeunt.wire.connection import Connection
from exeunt.wire.messages.sessions import OneSession
from exeunt.wire.messages.ui import QueueItem
from exeunt.wire.serving.served import Served


def items(connection: Connection, params: OneSession) -> dict[str, Any]:
    """List the messages that no turn has taken in, and the commands that wait among them."""
    served = connection.hub.find(connection.owner, params.sessionId)
    waiting = served.handle.pending_messages()
    steering = served.steering_ids()
    queued = [item for item in waiting if item.message_id not in steering]
    listed: list[dict[str, Any]] = []
    for command in _commands(connection, served):
        while queued and queued[0].order <= command.order:
            listed.append(_message(queued.pop(0)))
        listed.append({"id": command.errand_id, "kind": "command", "displayText": command.name})
    listed += [_message(item) for item in queued]
    return {
        "items": [{**item, "agentMode": served.mode} for item in listed],
        "steeringMessages": [item.prompt for item in waiting if item.message_id in steering],
        "inFlightSteeringCount": 0,
    }


def _message(item: Pending) -> dict[str, Any]:
    return {
        "id": item.message_id,
        "messageId": item.message_id,
        "kind": "message",
        "displayText": item.prompt,
    }


def _commands(connection: Connection, served: Served) -> list[errands.Errand]:
    actor = connection.hub.host.find(served.session_id)
    return [] if actor is None else errands.waiting(actor)


def has_any(connection: Connection, params: OneSession) -> dict[str, Any]:
    """Say whether any message or command waits."""
    served = connection.hub.find(connection.owner, params.sessionId)
    return {"hasPending": bool(served.handle.pending_messages() or _commands(connection, served))}


def remove(connection: Connection, params: QueueItem) -> dict[str, Any]:
    """Take a message or a command back."""
    served = connection.hub.find(connection.owner, params.sessionId)
    return {"removed": served.handle.withdraw(params.id) or _withdraw_command(connection, served, params.id)}


def _withdraw_command(connection: Connection, served: Served, command_id: str) -> bool:
    actor = connection.hub.host.find(served.session_id)
    done: list[bool] = []
    if actor is not None and actor.status == "live":
        actor.put(errands.withdraw, command_id, done)
    return bool(done and done[0])


def remove_last(connection: Connection, params: OneSession) -> dict[str, Any]:
    """Take back what was given to the session last, a message or a command."""
    served = connection.hub.find(connection.owner, params.sessionId)
    last = max(served.handle.pending_messages(), key=lambda item: item.order, default=None)
    commands = _commands(connection, served)
    if commands and (last is None or commands[-1].order >= last.order):
        return {"removed": _withdraw_command(connection, served, commands[-1].errand_id)}
    return {"removed": last is not None and served.handle.withdraw(last.message_id)}


def clear(connection: Connection, params: OneSession) -> None:
    """Take all messages and commands back that wait."""
    served = connection.hub.find(connection.owner, params.sessionId)
    for item in served.handle.pending_messages():
        served.handle.withdraw(item.message_id)
    for command in _commands(connection, served):
        _withdraw_command(connection, served, command.errand_id)
