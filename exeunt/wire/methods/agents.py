"""The custom agents of a session, and which of them it is."""

from typing import Any

from exeunt.wire.connection import Connection
from exeunt.wire.messages import settings as se
from exeunt.wire.messages.sessions import CustomAgent, OneSession
from exeunt.wire.rpc import FAILED, RpcError
from exeunt.wire.serving.changing import change
from exeunt.wire.serving.served import Served


def _find(connection: Connection, session_id: str) -> Served:
    return connection.hub.find(connection.owner, session_id)


def list_agents(connection: Connection, params: OneSession) -> dict[str, Any]:
    """List the session's custom agents."""
    return {"agents": [_agent(one) for one in _find(connection, params.sessionId).config.customAgents or ()]}


def current_agent(connection: Connection, params: OneSession) -> dict[str, Any]:
    """Say which of them the session is."""
    config = _find(connection, params.sessionId).config
    chosen = next((one for one in config.customAgents or () if one.name == config.agent), None)
    return {"agent": None if chosen is None else _agent(chosen)}


async def select_agent(connection: Connection, params: se.SelectAgent) -> dict[str, Any]:
    """Let the session go on as one of its agents: with its prompt, and its tools only."""
    served = _find(connection, params.sessionId)
    chosen = next((one for one in served.config.customAgents or () if one.name == params.name), None)
    if chosen is None:
        raise RpcError(FAILED, f"the session has no agent named {params.name!r}")
    await change(connection.hub, served, agent=chosen.name)
    about = {
        "agentName": chosen.name,
        "agentDisplayName": chosen.displayName or chosen.name,
        "tools": chosen.tools,
    }
    served.notify("subagent.selected", about)
    return {"agent": _agent(chosen)}


async def deselect_agent(connection: Connection, params: OneSession) -> None:
    """Let the session go on as itself."""
    served = _find(connection, params.sessionId)
    await change(connection.hub, served, agent=None)
    served.notify("subagent.deselected", {})


def _agent(agent: CustomAgent) -> dict[str, Any]:
    about = {
        "id": agent.name,
        "name": agent.name,
        "displayName": agent.displayName or agent.name,
        "description": agent.description or "",
    }
    if agent.model is not None:
        about["model"] = agent.model
    return about
