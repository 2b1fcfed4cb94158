"""The context of a session."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import msgspec
import trio

from exeunt.actors.errors import EmptySeedPrompt, NoToolCallInFlight
from exeunt.actors.events import Event
from exeunt.actors.models import ModelError
from exeunt.actors.turn.actor import SessionActor
from exeunt.wire.connection import Connection
from exeunt.wire.messages.history import ClearContext, Compact, Truncate
from exeunt.wire.messages.sessions import OneSession
from exeunt.wire.rpc import FAILED, RpcError
from exeunt.wire.serving.compacting import BY_ITSELF, Compaction, summarize, tracked
from exeunt.wire.serving.served import Served
from exeunt.wire.serving.sizes import estimate

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


def _shown_until(served: Served, events: Sequence[Event], event_id: str) -> str | None:
    """Return the last event that clients see of those up to this one."""
    seq = next((event.seq for event in events if event.id == event_id), 0)
    told = served.history([event for event in events if event.seq <= seq])
    return told[-1].id if told else None


async def truncate(connection: Connection, params: Truncate) -> dict[str, Any]:
    """Take an event and all that came after it out of the conversation; with it goes the turn that it is in."""
    served = connection.hub.find(connection.owner, params.sessionId)
    events = await served.handle.get_events()
    last = _before(events, params.eventId)
    with served.going_back(params.eventId, _shown_until(served, events, last)):
        event = await served.handle.history.truncate(last)
    return {"eventsRemoved": event.events_removed, "checkpointCleanupFailed": False}


MANUAL = "manual"
"""What brings a compaction about that a client asks for."""


async def compact(connection: Connection, params: Compact) -> dict[str, Any]:
    """Let the session's model sum the conversation up, and put that in its place. A failure changes nothing."""
    served = connection.hub.find(connection.owner, params.sessionId)
    actor = _at_rest(connection, served)
    if served.compaction is not None:
        raise RpcError(FAILED, "a compaction of the session is under way")
    done = None
    if actor.context.length:
        compaction = Compaction(served, params.trigger or MANUAL, params.customInstructions or "")
        with suppress(ModelError):  # the event has told of it
            done = await tracked(served, compaction)
    if done is None:
        return {"success": False, "messagesRemoved": 0, "tokensRemoved": 0}
    sizes = estimate(served.handle.history.messages(), actor.options.tools.definitions, cited=served.cites)
    return {
        "success": True,
        "messagesRemoved": done.event.messages_removed,
        "tokensRemoved": done.removed_tokens,
        "summaryContent": done.summary,
        "contextWindow": {
            "tokenLimit": served.token_limit,
            "currentTokens": sizes.total,
            "messagesLength": actor.here().context.length,
            "systemTokens": sizes.system,
            "conversationTokens": sizes.conversation,
            "toolDefinitionsTokens": sizes.tools,
        },
    }


async def summarize_for_handoff(connection: Connection, params: OneSession) -> dict[str, Any]:
    """Let the session's model sum the conversation up, for whoever goes on with it; nothing of it changes."""
    served = connection.hub.find(connection.owner, params.sessionId)
    actor = _at_rest(connection, served)
    if not actor.context.length:
        await trio.lowlevel.checkpoint()
        return {"summary": ""}
    return {"summary": (await summarize(actor, tuple(actor.context.request()))).content}


def _at_rest(connection: Connection, served: Served) -> SessionActor:
    actor = connection.hub.host.find(served.session_id)
    if actor is None or not actor.free:
        raise RpcError(FAILED, "the session is at work; wait until it is idle, or abort what it does")
    return actor


def cancel_background(connection: Connection, params: OneSession) -> dict[str, Any]:
    """Give a compaction up that has begun by itself."""
    return {"cancelled": _give_up(connection, params, manual=False)}


def abort_manual(connection: Connection, params: OneSession) -> dict[str, Any]:
    """Give a compaction up that a client has asked for."""
    return {"aborted": _give_up(connection, params, manual=True)}


def _give_up(connection: Connection, params: OneSession, *, manual: bool) -> bool:
    compaction = connection.hub.find(connection.owner, params.sessionId).compaction
    if compaction is None or (compaction.trigger != BY_ITSELF) != manual:
        return False
    compaction.scope.cancel()
    return True
