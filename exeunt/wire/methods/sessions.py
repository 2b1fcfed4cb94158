"""Making, taking up, listing and ending sessions."""

from contextlib import nullcontext
from typing import Any

from exeunt.actors.errors import SessionNotFound
from exeunt.actors.events import UserMessage
from exeunt.supervisor.journal import SessionMetadata
from exeunt.wire.connection import Connection, Then
from exeunt.wire.events.clock import iso
from exeunt.wire.files.folder import FolderStore
from exeunt.wire.files.session import remove_all
from exeunt.wire.messages.server import Nothing, SetForeground
from exeunt.wire.messages.sessions import ListSessions, OneSession, SessionConfig, Shutdown
from exeunt.wire.rpc import no_session
from exeunt.wire.serving import leaving, opening
from exeunt.wire.serving.client import Client
from exeunt.wire.serving.served import Served


async def create(connection: Connection, params: SessionConfig) -> Then:
    """Make a session."""
    return _attached(connection, await opening.create(connection.hub, connection, connection.owner, params))


async def resume(connection: Connection, params: SessionConfig) -> Then:
    """Take a session up, or attach to it."""
    return _attached(connection, await opening.resume(connection.hub, connection, connection.owner, params))


def _attached(connection: Connection, client: Client) -> Then:
    served = connection.hub.served(client.session_id)
    connection.attached[client.session_id] = served
    return Then(served.description(), client.release)


async def detach(connection: Connection, params: OneSession) -> dict[str, Any]:
    """Leave a session. The last who does lets it leave memory."""
    served = connection.attached.pop(params.sessionId, None)
    if served is not None:
        await leaving.detach(connection.hub, served, connection)
    return {"success": True}


async def destroy(connection: Connection, params: OneSession) -> dict[str, Any]:
    """Leave a session, and say whether there was one."""
    served = connection.attached.pop(params.sessionId, None)
    if served is None:
        return {"success": False}
    await leaving.detach(connection.hub, served, connection)
    return {"success": True}


async def delete(connection: Connection, params: OneSession) -> dict[str, Any]:
    """End a session and forget its log."""
    hub, session_id = connection.hub, params.sessionId
    missing = {"success": False, "error": f"Session file not found for {session_id}"}
    await hub.settled(session_id)
    try:
        if (await hub.host.journal.metadata(session_id)).tenant != connection.owner:
            return missing
        # It may have come, or left, meanwhile. From here on who asks for it waits until it is gone.
        served = await hub.settled(session_id)
        with hub.removal(session_id):
            await _remove(connection, served, session_id)
    except SessionNotFound:
        return missing
    if served is None or connection not in served.clients:
        connection.tell("session.lifecycle", {"type": "session.deleted", "sessionId": session_id})
    return {"success": True}


async def _remove(connection: Connection, served: Served | None, session_id: str) -> None:
    """Remove a session's log, and its files where they can be reached. Raises `SessionNotFound`."""
    hub = connection.hub
    files = None if served is None else served.files
    with nullcontext() if served is None else hub.departure(served):
        await hub.host.delete_session(session_id)
    if served is not None:
        served.lifecycle("session.deleted")
    if files is not None:
        await files.remove()
    elif served is None and hub.disk is not None:
        await remove_all(FolderStore(hub.disk, connection.owner, session_id))


async def list_all(connection: Connection, params: ListSessions) -> dict[str, Any]:
    """List the tenant's sessions, the one that was used last first."""
    found = await connection.hub.host.list_sessions(tenant=connection.owner, limit=MOST_LISTED)
    return {"sessions": [_described(connection, metadata) for metadata in found]}


MOST_LISTED = 10_000
"""Sessions of one answer: 2 MB. There are no pages in the protocol."""


def _described(connection: Connection, metadata: SessionMetadata) -> dict[str, Any]:
    hub = connection.hub
    served = hub.sessions.get(metadata.session_id)
    about: dict[str, Any] = {
        "sessionId": metadata.session_id,
        "startTime": iso(metadata.start_time),
        "modifiedTime": iso(metadata.modified_time),
        "isRemote": False,
        "isDetached": served is None or not served.clients,
        "context": {"cwd": hub.working_directory if served is None else served.working_directory},
    }
    if served is not None:
        title = served.title
        if title:
            about["summary"] = about["name"] = title
        if served.config.clientName:
            about["clientName"] = served.config.clientName
    return about


async def last_id(connection: Connection, params: Nothing) -> dict[str, Any]:
    """Say which of the tenant's sessions was used last."""
    found = await connection.hub.host.list_sessions(tenant=connection.owner, limit=1)
    return {"sessionId": found[0].session_id} if found else {}


async def metadata(connection: Connection, params: OneSession) -> dict[str, Any]:
    """Say what is known of one session."""
    try:
        found = await connection.hub.host.journal.metadata(params.sessionId)
    except SessionNotFound:
        return {}
    if found.tenant != connection.owner:
        return {}
    described = _described(connection, found)
    if "summary" not in described:
        beginning = await connection.hub.host.journal.read(params.sessionId, 1, BEGINNING)
        first = next((event for event in beginning if isinstance(event, UserMessage)), None)
        if first is not None:
            described["summary"] = (first.prompt or first.content)[:LONGEST_SUMMARY]
    return {"session": described}


BEGINNING = 20
"""Events of a log among which its first message is: before it stand the start and what hooks did."""

LONGEST_SUMMARY = 200
"""Characters, as of a name."""


async def messages(connection: Connection, params: OneSession) -> dict[str, Any]:
    """Return the events of a session, also of one that is not in memory."""
    async with connection.hub.histories:
        await connection.room()
        return await _history(connection, params.sessionId)


async def _history(connection: Connection, session_id: str) -> dict[str, Any]:
    hub = connection.hub
    served = hub.sessions.get(session_id)
    if served is not None and served.session is not None:
        served = hub.find(connection.owner, session_id)
        return {"events": served.history(await served.handle.get_events())}
    try:
        found = await hub.host.journal.metadata(session_id)
    except SessionNotFound:
        raise no_session(session_id) from None
    if found.tenant != connection.owner:
        raise no_session(session_id)
    return {"events": opening.stored_history(hub, session_id, await hub.host.journal.read(session_id))}


def get_foreground(connection: Connection, params: Nothing) -> dict[str, Any]:
    """Say which session is in the foreground: none, since a server has no screen."""
    return {}


def set_foreground(connection: Connection, params: SetForeground) -> dict[str, Any]:
    """Refuse it: a server has no screen."""
    return {"success": False, "error": "Not running in TUI+server mode: there is no foreground"}


async def suspend(connection: Connection, params: OneSession) -> None:
    """Let a session leave memory: what it does is cut off, what waits stays in its log."""
    served = connection.hub.find(connection.owner, params.sessionId)
    await leaving.end(connection.hub, served, "suspended")


async def shut_down(connection: Connection, params: Shutdown) -> None:
    """The same, in the words of another method."""
    served = connection.hub.find(connection.owner, params.sessionId)
    await leaving.end(connection.hub, served, params.reason or "shutdown")
