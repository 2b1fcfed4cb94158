"""Messages and aborts."""

from collections.abc import Coroutine
from typing import Any

from exeunt.actors.errors import TurnAborted, TurnFailed
from exeunt.wire.connection import Connection
from exeunt.wire.messages.sessions import Abort, Send, SendMessages
from exeunt.wire.rpc import FAILED, RpcError
from exeunt.wire.serving.attachments import with_attachments
from exeunt.wire.serving.served import Served


def send(connection: Connection, params: Send) -> dict[str, Any] | Coroutine[Any, Any, dict[str, Any]]:
    """Give the session a message; answer with its id once it is accepted and cannot be lost."""
    served = connection.hub.find(connection.owner, params.sessionId)
    prompt = with_attachments(params.prompt, params.attachments)
    mode = params.mode or "enqueue"
    accepted = served.handle.send_now(prompt, mode)
    if accepted is not None:
        return {"messageId": accepted}
    return _send(served, prompt, mode)


async def _send(served: Served, prompt: str, mode: Any) -> dict[str, Any]:
    return {"messageId": await served.handle.send(prompt, mode)}


async def send_and_wait(connection: Connection, params: Send) -> dict[str, Any]:
    """Give the session a message; answer with the reply to it."""
    served = connection.hub.find(connection.owner, params.sessionId)
    prompt = with_attachments(params.prompt, params.attachments)
    served.last_answer = None
    try:
        await served.handle.send_and_wait(prompt, None, mode=params.mode or "enqueue")
    except TurnAborted:
        return {"aborted": True, "response": served.last_answer}
    except TurnFailed as error:
        raise RpcError(FAILED, f"Session error: {error}") from error
    return {"aborted": False, "response": served.last_answer}


async def abort(connection: Connection, params: Abort) -> dict[str, Any]:
    """End what the session does; drop what waits. The answer comes when it has ended."""
    served = connection.hub.find(connection.owner, params.sessionId)
    await served.handle.abort(reason=params.reason or "user_initiated")
    return {"success": True}


async def send_many(connection: Connection, params: SendMessages) -> dict[str, Any]:
    """Give the session several messages, in order. When one is refused, those before it are accepted."""
    served = connection.hub.find(connection.owner, params.sessionId)
    accepted: list[str] = []
    for message in params.messages:
        prompt = with_attachments(message.prompt, message.attachments)
        accepted.append(await served.handle.send(prompt, params.mode or "enqueue"))
    return {"messageIds": accepted}
