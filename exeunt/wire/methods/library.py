"""All sessions of a tenant, in memory or stored: the namespace `sessions`."""

from typing import Any

from exeunt.actors.errors import SessionNotFound
from exeunt.wire.connection import Connection
from exeunt.wire.messages.sessions import FindByPrefix, ForkSession, ManySessions, OneSession
from exeunt.wire.methods import sessions
from exeunt.wire.serving import leaving, opening

SHORTEST_PREFIX = 7
"""Characters by which a person names a session."""


async def fork(connection: Connection, params: ForkSession) -> dict[str, Any]:
    """Make a session of the beginning of another's log; it is stored, and can be taken up."""
    hub = connection.hub
    made = await opening.fork(hub, connection.owner, params.sessionId, params.toEventId)
    answer = {"sessionId": made}
    if params.name is not None:
        answer["name"] = params.name
    return answer


async def close(connection: Connection, params: OneSession) -> dict[str, Any]:
    """Let a session leave memory, whoever is attached."""
    served = connection.hub.find(connection.owner, params.sessionId)
    await leaving.end(connection.hub, served, "closed")
    return {}


async def delete(connection: Connection, params: OneSession) -> None:
    """End a session and forget its log."""
    await sessions.delete(connection, params)


async def delete_many(connection: Connection, params: ManySessions) -> dict[str, Any]:
    """End sessions and forget their logs; those that are not there are passed over."""
    freed: dict[str, int] = {}
    for session_id in params.sessionIds:
        done = await sessions.delete(connection, OneSession(sessionId=session_id))
        if done["success"]:
            freed[session_id] = 0
    return {"freedBytes": freed}


async def find_by_prefix(connection: Connection, params: FindByPrefix) -> dict[str, Any]:
    """Find the one session whose id begins like this."""
    if len(params.prefix) < SHORTEST_PREFIX:
        return {}
    listed = await connection.hub.host.list_sessions(tenant=connection.owner, limit=sessions.MOST_LISTED)
    found = [one.session_id for one in listed if one.session_id.startswith(params.prefix)]
    return {"sessionId": found[0]} if len(found) == 1 else {}


async def in_use(connection: Connection, params: ManySessions) -> dict[str, Any]:
    """Say which of the sessions are in memory, with a client attached."""
    used: list[str] = []
    for session_id in params.sessionIds:
        try:
            metadata = await connection.hub.host.journal.metadata(session_id)
        except SessionNotFound:
            continue
        served = connection.hub.sessions.get(session_id)
        if metadata.tenant == connection.owner and served is not None and served.clients:
            used.append(session_id)
    return {"inUse": used}


async def save(connection: Connection, params: OneSession) -> dict[str, Any]:
    """Return when all that has happened in the session cannot be lost."""
    served = connection.hub.find(connection.owner, params.sessionId)
    actor = connection.hub.host.find(served.session_id)
    if actor is not None:
        await actor.log.wait_durable(actor.state.seq)
    return {}
