"""The context of a session."""

from collections.abc import Sequence
from typing import Any

import msgspec

from exeunt.actors.errors import EmptySeedPrompt, NoToolCallInFlight
from exeunt.actors.events import Event
from exeunt.wire.connection import Connection
from exeunt.wire.messages.history import ClearContext, Truncate
from exeunt.wire.messages.sessions import OneSession
from exeunt.wire.rpc import FAILED, RpcError

NOT_A_TEXT = "missing or non-string parameter 'prompt'"

BLANK = (
    "session.history.clearContext requires a non-empty 'prompt': it becomes the first user message of the window the "
    "clear creates"
)

NO_CALL = (
    "session.history.clearContext must be called from inside a tool handler: no tool call is in flight, so the clear "
    "cannot drop the tool results it orphans and the seed prompt would have no turn to run in. (A clear earlier in the "
    "same tool batch also produces this state: its wipe removed the tool calls this check reads. Only one clear per "
    "tool batch is supported.)"
)
"""These three texts are the protocol's: clients look for them."""


async def clear_context(connection: Connection, params: ClearContext) -> dict[str, Any]:
    """Stage a clear. It belongs to a call whose answer this client still owes: the only one, or the terminal ones."""
    served = connection.hub.find(connection.owner, params.sessionId)
    client = served.clients.get(connection)
    calls = set[str]() if client is None else served.asking.calls_of(client)
    try:
        prompt: Any = msgspec.json.decode(bytes(params.prompt) or b"null")
    except (msgspec.DecodeError, RecursionError):
        prompt = None
    if not isinstance(prompt, str):
        raise RpcError(FAILED, NOT_A_TEXT)
    try:
        cleared = await served.handle.history.clear_context(prompt, calls=calls)
    except EmptySeedPrompt as error:
        raise RpcError(FAILED, BLANK, {"type": "EmptySeedPrompt"}) from error
    except NoToolCallInFlight as error:
        raise RpcError(FAILED, NO_CALL, {"type": "NoToolCallInFlight"}) from error
    return {"messagesCleared": cleared.messages_cleared}


def _before(events: Sequence[Event], event_id: str) -> str:
    """Return the last event before this one at which no turn was under way, and no message waited for one.

    Clients name an event to be removed, mostly a user's message; the host names the last one that stays.
    """
    last = event_id
    inside = False
    for event in events:
        if event.id == event_id:
            return last
        if event.type == "user.message":
            inside = True
        elif event.type == "turn.end":
            inside = False
        if not inside and not event.type.startswith("message."):
            last = event.id
    return event_id


async def truncate(connection: Connection, params: Truncate) -> dict[str, Any]:
    """Take an event and all that came after it out of the conversation; with it goes the turn that it is in."""
    served = connection.hub.find(connection.owner, params.sessionId)
    last = _before(await served.handle.get_events(), params.eventId)
    served.going_back_before(params.eventId)
    try:
        event = await served.handle.history.truncate(last)
    finally:
        served.going_back_before(None)
    told = served.history(await served.handle.get_events())
    served.chain_behind(told[-1].id if told else None)
    return {"eventsRemoved": event.events_removed, "checkpointCleanupFailed": False}


def nothing_to_cancel(connection: Connection, params: OneSession) -> dict[str, Any]:
    """Say that no compaction runs: there is none."""
    connection.hub.find(connection.owner, params.sessionId)
    return {"cancelled": False}


def nothing_to_abort(connection: Connection, params: OneSession) -> dict[str, Any]:
    """The same, in the words of another method."""
    connection.hub.find(connection.owner, params.sessionId)
    return {"aborted": False}
