"""Messages and aborts."""

from collections.abc import Coroutine
from typing import Any

import attrs

from exeunt.actors.errors import TurnAborted, TurnFailed
from exeunt.actors.media import Media
from exeunt.wire.connection import Connection
from exeunt.wire.messages.sessions import Abort, OneMessage, Send, SendMessages
from exeunt.wire.rpc import FAILED, RpcError
from exeunt.wire.serving import changing
from exeunt.wire.serving.attached_files import Read, names_files
from exeunt.wire.serving.attachments import attached
from exeunt.wire.serving.endings import Endings
from exeunt.wire.serving.hub import Hub
from exeunt.wire.serving.request_headers import RequestHeaders
from exeunt.wire.serving.served import Served
from exeunt.wire.serving.tracing import trace_of


@attrs.frozen
class Told:
    """A message as the session is given it."""

    prompt: str
    media: tuple[Media, ...]
    note: dict[str, Any] | None
    """What is remembered beside that."""


def send(connection: Connection, params: Send) -> dict[str, Any] | Coroutine[Any, Any, dict[str, Any]]:
    """Give the session a message; answer with its id once it is accepted and cannot be lost."""
    hub = connection.hub
    served = hub.find(connection.owner, params.sessionId)
    mode = params.mode or "enqueue"
    first = bool(params.prepend)
    if params.wait or params.requestHeaders is not None:
        return _send_specially(hub, served, params, mode)
    if _must_read(hub, params):
        return _read_and_send(hub, served, params, mode)
    told = _told(params, served, params)
    accepted = served.handle.send_now(told.prompt, mode, attachments=told.media, first=first, note=told.note)
    if accepted is not None:
        return {"messageId": accepted}
    return _send(served, told, mode, first)


async def _send(served: Served, told: Told, mode: Any, first: bool) -> dict[str, Any]:
    sent = served.handle.send(told.prompt, mode, attachments=told.media, first=first, note=told.note)
    return {"messageId": await sent}


async def _read_and_send(hub: Hub, served: Served, params: Send, mode: Any) -> dict[str, Any]:
    return await _send(
        served, await _told_with_files(hub, params, served, params), mode, bool(params.prepend)
    )


async def _send_specially(hub: Hub, served: Served, params: Send, mode: Any) -> dict[str, Any]:
    """Send a message whose turn has headers of its own, or whose sender waits for its end."""
    told = await _told_with_files(hub, params, served, params)
    key: dict[str, str] = {}
    headers = served.headers
    if params.requestHeaders:
        if headers is None:
            headers = served.headers = RequestHeaders()
            await changing.reconfigure(hub, served)
        key = headers.give(params.requestHeaders)
    endings = Endings()
    unsubscribe = served.handle.on(endings)
    try:
        message_id = await served.handle.send(
            told.prompt,
            mode,
            attachments=told.media,
            first=bool(params.prepend),
            note={**(told.note or {}), **key} or None,
        )
        if params.wait:
            await endings.of(message_id)
    finally:
        unsubscribe()
        if headers is not None and key:
            headers.withdraw(key)
    return {"messageId": message_id}


def _must_read(hub: Hub, message: Send | OneMessage) -> bool:
    return hub.attached_files is not None and names_files(message.attachments)


async def _told_with_files(
    hub: Hub, message: Send | OneMessage, served: Served, sent: Send | SendMessages
) -> Told:
    if hub.attached_files is None or not names_files(message.attachments):
        return _told(message, served, sent)
    files = await hub.attached_files.read(message.attachments)
    return _told(message, served, sent, files)


def _told(
    message: Send | OneMessage, served: Served, sent: Send | SendMessages, files: Read | None = None
) -> Told:
    """Return what the session is given, and what is remembered for clients and for traces. Raises `InvalidMedia`."""
    what = attached(message.prompt, message.attachments, files)
    note: dict[str, Any] = {}
    if message.displayPrompt is not None:
        note["content"] = message.displayPrompt
    elif what.prompt != message.prompt:
        note["content"] = message.prompt
    if what.noted:
        note["attachments"] = what.noted
    if message.source is not None:
        note["source"] = message.source
    if message.agentMode is not None:
        note["agentMode"] = message.agentMode
    if served.hub.host.tracing is not None:
        note |= trace_of(served, sent.traceparent, sent.tracestate)
    return Told(what.prompt, what.media, note or None)


async def send_and_wait(connection: Connection, params: Send) -> dict[str, Any]:
    """Give the session a message; answer with the reply to it."""
    served = connection.hub.find(connection.owner, params.sessionId)
    told = await _told_with_files(connection.hub, params, served, params)
    with served.watching_answers() as answer:
        try:
            await served.handle.send_and_wait(
                told.prompt,
                None,
                mode=params.mode or "enqueue",
                attachments=told.media,
                first=bool(params.prepend),
                note=told.note,
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
        told = await _told_with_files(connection.hub, message, served, params)
        queued = served.handle.send(
            told.prompt, params.mode or "enqueue", attachments=told.media, note=told.note
        )
        accepted.append(await queued)
    return {"messageIds": accepted}
