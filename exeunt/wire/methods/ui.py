"""Questions to a person, and slash commands: asked by one client, answered by another, or by the same."""

from typing import Any

import trio

from exeunt.wire.connection import Connection
from exeunt.wire.messages import ui
from exeunt.wire.messages.sessions import OneSession
from exeunt.wire.methods import builtins
from exeunt.wire.rpc import FAILED, RpcError
from exeunt.wire.serving import abilities
from exeunt.wire.serving.asking import ANSWER_WAIT, asked
from exeunt.wire.serving.pending import COMMAND, ELICITATION, Pending
from exeunt.wire.serving.served import Served


async def elicit(connection: Connection, params: ui.Elicitation) -> dict[str, Any]:
    """Show a form to a person, at any client that can, and return what was filled in."""
    served = connection.hub.find(connection.owner, params.sessionId)
    if not abilities.elicits(served):
        raise RpcError(FAILED, "no client of the session shows forms to a person")
    data: dict[str, Any] = {"message": params.message, "mode": params.mode or "form"}
    if params.requestedSchema is not None:
        data["requestedSchema"] = params.requestedSchema
    if params.url is not None:
        data["url"] = params.url
    with trio.move_on_after(ANSWER_WAIT):
        answer: dict[str, Any] = await asked(served, ELICITATION, data, None)
        return answer
    return {"action": "cancel"}


def elicited(connection: Connection, params: ui.ElicitationAnswer) -> dict[str, Any]:
    """Take what was filled in. The first answer counts."""
    served = connection.hub.find(connection.owner, params.sessionId)
    if params.result.get("action") not in ("accept", "decline", "cancel"):
        raise RpcError(FAILED, "result.action must be 'accept', 'decline' or 'cancel'")
    pending = _pending(served, params.requestId)
    if pending is None or pending.about != ELICITATION or connection not in served.clients:
        return {"success": False}
    return {"success": pending.answer(params.result)}


def list_commands(connection: Connection, params: OneSession) -> dict[str, Any]:
    """List the commands of all clients of the session, and the server's own where no client has one of that name."""
    served = connection.hub.find(connection.owner, params.sessionId)
    listed = {
        command["name"]: {**command, "description": command.get("description", ""), "kind": "client"}
        | {"allowDuringAgentExecution": True}
        for command in abilities.commands(served)
    }
    return {"commands": [*listed.values(), *(own for own in builtins.LISTED if own["name"] not in listed)]}


async def execute(connection: Connection, params: ui.ExecuteCommand) -> dict[str, Any]:
    """Let a client run one of its commands; return when it has."""
    served = connection.hub.find(connection.owner, params.sessionId)
    error = await _run(served, params.commandName, params.args)
    return {} if error is None else {"error": error}


async def invoke(connection: Connection, params: ui.InvokeCommand) -> dict[str, Any]:
    """The same, also for a command of the server; an error of the command is one of the request."""
    served = connection.hub.find(connection.owner, params.sessionId)
    return await run_command(connection, served, params.name.removeprefix("/"), params.input or "")


async def run_command(connection: Connection, served: Served, name: str, given: str) -> dict[str, Any]:
    """Run a command of a client or of the server, and return what it says. Raises `RpcError` for its error."""
    own = builtins.COMMANDS.get(name)
    if own is not None and all(command["name"] != name for command in abilities.commands(served)):
        return await own(connection, served, given.strip())
    error = await _run(served, name, given)
    if error is not None:
        raise RpcError(FAILED, error)
    return {"kind": "completed"}


async def _run(served: Served, name: str, args: str) -> str | None:
    client = next((one for one in reversed(served.clients.values()) if one.has_command(name)), None)
    if client is None:
        return f"Unknown command: {name}"
    data = {"command": f"/{name} {args}".rstrip(), "commandName": name, "args": args}
    with trio.move_on_after(ANSWER_WAIT):
        error: str | None = await asked(served, COMMAND, data, client)
        return error
    return f"the client did not finish the command {name} within {ANSWER_WAIT:g} s"


def command_done(connection: Connection, params: ui.CommandAnswer) -> dict[str, Any]:
    """Take note that a command has run."""
    served = connection.hub.find(connection.owner, params.sessionId)
    pending = _pending(served, params.requestId)
    if pending is None or pending.about != COMMAND or not pending.may_answer(served.clients.get(connection)):
        return {"success": False}
    return {"success": pending.answer(params.error)}


def _pending(served: Served, request_id: str) -> Pending | None:
    return None if served.asking.questions is None else served.asking.questions.get(request_id)
