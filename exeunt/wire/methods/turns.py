"""Messages and aborts."""

from collections.abc import Coroutine
from typing import Any

from exeunt.actors.errors import TurnAborted, TurnFailed
from exeunt.wire.connection import Connection
from exeunt.wire.messages.sessions import Abort, OneMessage, Send, SendMessages
from exeunt.wire.rpc import FAILED, RpcError
from exeunt.wire.serving import opening
from exeunt.wire.serving.attachments import with_attachments
from exeunt.wire.serving.endings import Endings
from exeunt.wire.serving.hub import Hub
from exeunt.wire.serving.request_headers import RequestHeaders
from exeunt.wire.serving.served import Served
from exeunt.wire.serving.tracing import trace_of


def send(connection: Connection, params: Send) -> dict[str, Any] | Coroutine[Any, Any, dict[str, Any]]:
    """Give the session a message; answer with its id once it is accepted and cannot be lost."""
    served = connection.hub.find(connection.owner, params.sessionId)
    mode = params.mode or "enqueue"
    if params.wait or params.requestHeaders is not None:
        return _send_specially(connection.hub, served, params, mode)
    prompt, note = _told(params, served, params)
    first = bool(params.prepend)
    accepted = served.handle.send_now(prompt, mode, first=first, note=note)
    if accepted is not None:
        return {"messageId": accepted}
    return _send(served, prompt, mode, first, note)


async def _send(
    served: Served, prompt: str, mode: Any, first: bool, note: dict[str, Any] | None
) -> dict[str, Any]:
    return {"messageId": await served.handle.send(prompt, mode, first=first, note=note)}


async def _send_specially(hub: Hub, served: Served, params: Send, mode: Any) -> dict[str, Any]:
    """Send a message whose turn has headers of its own, or whose sender waits for its end."""
    prompt, note = _told(params, served, params)
    key: dict[str, str] = {}
    headers = served.headers
    if params.requestHeaders:
        if headers is None:
            headers = served.headers = RequestHeaders()
            await opening.reconfigure(hub, served)
        key = headers.give(params.requestHeaders)
    endings = Endings()
    unsubscribe = served.handle.on(endings)
    try:
        message_id = await served.handle.send(
            prompt, mode, first=bool(params.prepend), note={**(note or {}), **key} or None
        )
        if params.wait:
            await endings.of(message_id)
    finally:
        unsubscribe()
        if headers is not None and key:
            headers.withdraw(key)
    return {"messageId": message_id}


def _told(
    message: Send | OneMessage, served: Served, sent: Send | SendMessages
) -> tuple[str, dict[str, Any] | None]:
    """Return what the model is told, and what is to be remembered beside that: for clients, and for traces."""
    prompt = with_attachments(message.prompt, message.attachments)
    note: dict[str, Any] = {}
    if message.displayPrompt is not None:
        note["content"] = message.displayPrompt
    elif prompt != message.prompt:
        note["content"] = message.prompt
    if message.attachments:
        note["attachments"] = message.attachments
    if message.source is not None:
        note["source"] = message.source
    if message.agentMode is not None:
        note["agentMode"] = message.agentMode
    if served.hub.host.tracing is not None:
        note |= trace_of(served, sent.traceparent, sent.tracestate)
    return prompt, note or None


async def send_and_wait(connection: Connection, params: Send) -> dict[str, Any]:
    """Give the session a message; answer with the reply to it."""
    served = connection.hub.find(connection.owner, params.sessionId)
    prompt, note = _told(params, served, params)
    with served.watching_answers() as answer:
        try:
            await served.handle.send_and_wait(
                prompt, None, mode=params.mode or "enqueue", first=bool(params.prepend), note=note
            )
        except TurnAborted:
            return {"aborted": True, "response": answer.event}
        except TurnFailed as error:
            raise RpcError(FAILED, f"Session error: {error}") from error
        return {"aborted": False, "response": answer.event}


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
        prompt, note = _told(message, served, params)
        accepted.append(await served.handle.send(prompt, params.mode or "enqueue", note=note))
    return {"messageIds": accepted}
