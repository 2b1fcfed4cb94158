"""What a session's clients choose while it lives: mode, name, options, tools."""

from typing import Any, cast

import attrs
import msgspec

from exeunt.actors.errors import InvalidConfiguration
from exeunt.actors.events import SessionModeChanged, SessionTitleChanged
from exeunt.wire.connection import Connection
from exeunt.wire.messages import settings as se
from exeunt.wire.messages.sessions import OneSession
from exeunt.wire.methods.metadata import require_directory
from exeunt.wire.methods.models import must_be_there_for_tokens
from exeunt.wire.rpc import FAILED, RpcError
from exeunt.wire.serving import changing, opening
from exeunt.wire.serving.served import Served

LONGEST_NAME = 200
"""Characters of a session's name: a line of a list."""


def _find(connection: Connection, session_id: str) -> Served:
    return connection.hub.find(connection.owner, session_id)


# --- Mode and name -----------------------------------------------------------------------------------------


def get_mode(connection: Connection, params: OneSession) -> str:
    """Say which mode the session is in."""
    return _find(connection, params.sessionId).mode


def set_mode(connection: Connection, params: se.SetMode) -> dict[str, Any]:
    """Note another mode, for the clients: nothing of the turns depends on it."""
    served = _find(connection, params.sessionId)
    before = served.mode
    if params.expectedMode not in (None, before):
        return {"status": "conflict", "modelChanged": False, "modeApplied": False}
    if params.mode == before:
        return {"status": "unchanged", "modelChanged": False, "modeApplied": True}
    served.record(SessionModeChanged, before, params.mode)
    served.lifecycle("session.updated")
    return {"status": "applied", "modelChanged": False, "modeApplied": True}


def get_name(connection: Connection, params: OneSession) -> dict[str, Any]:
    """Say what the session is called."""
    return {"name": _find(connection, params.sessionId).title or None}


def set_name(connection: Connection, params: se.SetName) -> None:
    """Give the session a name."""
    rename(_find(connection, params.sessionId), params.name)


def set_name_if_none(connection: Connection, params: se.SetAutoName) -> dict[str, Any]:
    """Give a session a name that has none."""
    served = _find(connection, params.sessionId)
    if served.title or not params.summary.strip():
        return {"applied": False}
    rename(served, params.summary)
    return {"applied": True}


def rename(served: Served, name: str) -> None:
    """Give a session a name. Raises `RpcError`."""
    title = name.strip()
    if not title:
        raise RpcError(FAILED, "a session's name must not be empty, nor only white space")
    if len(title) > LONGEST_NAME:
        raise RpcError(FAILED, f"a session's name has at most {LONGEST_NAME} characters, not {len(title)}")
    served.record(SessionTitleChanged, title)
    served.lifecycle("session.updated")


# --- Options and tools -------------------------------------------------------------------------------------


async def update_options(connection: Connection, params: se.UpdateOptions) -> dict[str, Any]:
    """Change some of what the session was made with."""
    served = _find(connection, params.sessionId)
    fields = attrs.asdict(params, recurse=False)
    del fields["sessionId"]
    fields["modelCapabilities"] = fields.pop("modelCapabilitiesOverrides")
    limits = fields.pop("sessionLimits")
    if limits is not se.NOT_SAID:
        if limits is not None and not isinstance(limits, dict):
            raise InvalidConfiguration("sessionLimits must be an object, or null")
        fields["sessionLimits"] = cast("dict[str, Any]", limits or {})
    changes = {name: value for name, value in fields.items() if value is not None}
    moves_to = changes.pop("workingDirectory", None)
    if moves_to is not None:
        require_directory(moves_to)
    client = served.clients.get(connection)
    before = None if client is None else client.config
    must_be_there_for_tokens(client, [params.provider])
    if client is not None:
        # Filters are those of the client whose tools they let through, a provider of who gets its tokens.
        own = ("availableTools", "excludedTools", "provider")
        client.config = attrs.evolve(
            client.config, **{key: value for key, value in changes.items() if key in own}
        )
    read_before = served.instructions
    try:
        if read_before is None and params.skipCustomInstructions is False:
            again = attrs.evolve(served.config, skipCustomInstructions=False)
            served.instructions = await opening.read_instructions(connection.hub, again)
        await changing.change(connection.hub, served, **changes)
    except BaseException:
        served.instructions = read_before
        if client is not None and before is not None:
            client.config = before
        raise
    if served.instructions is not read_before:
        served.tell_problems()
    if moves_to is not None:
        served.move(moves_to)
    if "sessionLimits" in changes:
        changing.limit_credits(connection.hub, served)
    return {"success": True}


async def set_tools(connection: Connection, params: se.SetTools) -> dict[str, Any]:
    """Give the session other tools of this client."""
    served = _find(connection, params.sessionId)
    client = served.clients.get(connection)
    if client is None:
        raise RpcError(FAILED, "only a client that is attached to the session has tools in it")
    before = client.tools
    client.tools = connection.hub.tools.tools(msgspec.Raw(msgspec.json.encode(params.tools)))
    try:
        await changing.reconfigure(connection.hub, served)
    except BaseException:
        client.tools = before
        raise
    return {}


def tool_metadata(connection: Connection, params: OneSession) -> dict[str, Any]:
    """List the tools that the model is given."""
    actor = connection.hub.host.find(_find(connection, params.sessionId).session_id)
    tools = () if actor is None else tuple(actor.options.tools)
    return {
        "tools": [
            {
                "name": tool.name,
                "description": tool.description,
                "input_schema": tool.definition.parameters,
                "deferLoading": False,
            }
            for tool in tools
        ]
    }


def tools_are_valid(connection: Connection, params: OneSession) -> dict[str, Any]:
    """Say that the tools are ready: they were checked when they were declared."""
    _find(connection, params.sessionId)
    return {}
