"""Slash commands that wait for their place among the messages of a session."""

import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import trio

from exeunt.actors.errors import ExeuntError
from exeunt.actors.session.putting import AWAY, put_call
from exeunt.actors.turn import errands
from exeunt.actors.turn.errands import Errand
from exeunt.wire.connection import Connection
from exeunt.wire.messages.ui import EnqueueCommand, QueuedCommandAnswer, QueuedCommandResult
from exeunt.wire.methods import ui
from exeunt.wire.rpc import FAILED, RpcError
from exeunt.wire.serving import abilities
from exeunt.wire.serving.asking import ANSWER_WAIT, asked
from exeunt.wire.serving.pending import QUEUED_COMMAND
from exeunt.wire.serving.served import Served

LONGEST_COMMAND = 10_000
"""Characters: a command and what a person types behind it."""

logger = logging.getLogger("exeunt.wire")


async def enqueue(connection: Connection, params: EnqueueCommand) -> dict[str, Any]:
    """Queue a command behind the messages that wait; where nothing does, it is run at once."""
    served = connection.hub.find(connection.owner, params.sessionId)
    command = params.command.strip()
    if not command.startswith("/") or not command[1:].strip():
        raise RpcError(FAILED, f"a command is a name behind a slash, such as /compact; not {command!r:.80}")
    if len(command) > LONGEST_COMMAND:
        raise RpcError(FAILED, f"a command has at most {LONGEST_COMMAND} characters, not {len(command)}")
    errand = Errand(served.new_id(), command)
    host, act = connection.hub.host, partial(put_call, call=errand)
    actor = host.find(served.session_id)
    if actor is None or actor.status in AWAY:
        await host.deliver(served.session_id, act)
    else:
        await trio.lowlevel.checkpoint_if_cancelled()
        act(actor)
    served.used = True
    host.spawn(partial(_attend, connection, served, errand))
    return {"queued": True}


async def _attend(connection: Connection, served: Served, errand: Errand) -> None:
    """Wait for the place of a command, and run it then."""
    served.notify("pending_messages.modified", {})
    halt = False
    try:
        await errand.waiter.wait()
        served.notify("pending_messages.modified", {})
        halt = await _unless_given_up(errand, partial(_run, connection, served, errand.name))
    except ExeuntError:
        # It was withdrawn, or dropped with the rest of the queue.
        served.notify("pending_messages.modified", {})
    finally:
        actor = connection.hub.host.find(served.session_id)
        if actor is not None:
            actor.put(errands.finish, errand, halt)


async def _unless_given_up(errand: Errand, run: Callable[[], Awaitable[bool]]) -> bool:
    """Return what *run* does, or `False` once the session goes on without it."""
    halt = False
    async with trio.open_nursery() as nursery:

        async def until_given_up() -> None:
            try:
                await errand.over.wait()
            except ExeuntError:
                nursery.cancel_scope.cancel()

        nursery.start_soon(until_given_up)
        halt = await run()
        nursery.cancel_scope.cancel()
    return halt


async def _run(connection: Connection, served: Served, command: str) -> bool:
    """Run a command; return whether what waits behind it is to wait on.

    A client that has asked for `command.queued` runs it. Else it is that of a client by its name, or the server's own.
    """
    try:
        if abilities.delegates_commands(served):
            return await _delegated(served, command)
        name, _, given = command[1:].strip().partition(" ")
        done = await ui.run_command(connection, served, name, given.strip())
    except ExeuntError as error:
        served.notify("session.warning", {"warningType": "command", "message": f"{command}: {error}"})
    except Exception:
        logger.exception("a queued command failed")
        served.notify("session.warning", {"warningType": "command", "message": f"{command}: internal error"})
    else:
        said = done.get("message") or done.get("text")
        if said:
            served.notify("session.info", {"infoType": "command", "message": said})
    return False


async def _delegated(served: Served, command: str) -> bool:
    with trio.move_on_after(ANSWER_WAIT):
        answer: QueuedCommandResult = await asked(served, QUEUED_COMMAND, {"command": command}, None)
        return answer.handled and bool(answer.stopProcessingQueue)
    return False


def queued_done(connection: Connection, params: QueuedCommandAnswer) -> dict[str, Any]:
    """Take note of what became of a command, from any client of the session. The first answer counts."""
    served = connection.hub.find(connection.owner, params.sessionId)
    pending = (served.asking.questions or {}).get(params.requestId)
    if pending is None or pending.about != QUEUED_COMMAND or connection not in served.clients:
        return {"success": False}
    return {"success": pending.answer(params.result)}
