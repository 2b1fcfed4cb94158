"""The log of a session, and what its clients write into it."""

import secrets
from typing import Any

import trio

from exeunt.actors.events import SessionInfo
from exeunt.wire.connection import Connection
from exeunt.wire.messages.events import Log, ReadLog, RegisterInterest, ReleaseInterest
from exeunt.wire.messages.sessions import OneSession
from exeunt.wire.methods.turn_questions import who_answers_changed
from exeunt.wire.rpc import FAILED, INVALID_PARAMS, RpcError
from exeunt.wire.serving.reading import Reading
from exeunt.wire.serving.served import Served
from exeunt.wire.serving.turn_questions import GATED

MOST_EVENTS = 1_000
"""Events of one answer."""

LONGEST_WAIT = 60.0
"""Seconds that a reader may wait for an event: then it asks again."""

MOST_INTERESTS = 100
"""Of one client in one session. There are some ten kinds of events to be interested in."""


async def read(connection: Connection, params: ReadLog) -> dict[str, Any]:
    """Return a part of the log; where there is nothing yet, wait for it if asked to."""
    served = connection.hub.find(connection.owner, params.sessionId)
    most = MOST_EVENTS if params.max is None else max(1, min(params.max, MOST_EVENTS))
    kinds = _kinds(params.types)
    backward = params.direction == "backward"
    reading = await _reading(connection, served)
    place = _place(reading, params.cursor, backward)
    status = "ok" if place is not None else "expired"
    if place is None:
        place = len(reading.events) if backward else 0
    if not backward and place >= len(reading.events) and params.waitMs:
        await _something(served, min(params.waitMs / 1000, LONGEST_WAIT))
        reading = await _reading(connection, served)
    events = reading.events
    part = events[max(0, place - most) : place] if backward else events[place : place + most]
    if backward:
        first = place - len(part)
        cursor = events[first].id if first < len(events) else ""
        more = first > 0
    else:
        cursor = part[-1].id if part else (params.cursor or "")
        more = place + len(part) < len(events)
    if not more:
        connection.hub.readings.ended(served)
    chosen = [event for event in part if kinds is None or event.type in kinds]
    return {"events": chosen, "cursor": cursor, "hasMore": more, "cursorStatus": status}


def _kinds(types: Any) -> set[str] | None:
    """Return which kinds of events are asked for; `None` for all. Raises `RpcError`."""
    if not isinstance(types, list):
        return None
    named: list[Any] = types  # pyright: ignore[reportUnknownVariableType]
    if not all(isinstance(kind, str) for kind in named):
        raise RpcError(INVALID_PARAMS, "invalid parameters of session.eventLog.read: types are texts, or '*'")
    return set(named)


async def _reading(connection: Connection, served: Served) -> Reading:
    async with connection.hub.histories:
        await connection.room()
        return await connection.hub.readings.of(served)


def _place(reading: Reading, cursor: str | None, backward: bool) -> int | None:
    """Return where to go on: behind the event of the cursor, or before it. `None` for one that is not there."""
    if not cursor:
        return len(reading.events) if backward else 0
    place = reading.place_of(cursor)
    return place if place is None or backward else place + 1


async def _something(served: Served, seconds: float) -> None:
    """Wait until anything is logged, for a time."""
    happened = trio.Event()
    with trio.move_on_after(seconds):
        end = served.handle.on(lambda event: None if event.ephemeral else happened.set())
        try:
            await happened.wait()
        finally:
            end()


async def tail(connection: Connection, params: OneSession) -> dict[str, Any]:
    """Return a cursor behind the last event."""
    served = connection.hub.find(connection.owner, params.sessionId)
    await trio.lowlevel.checkpoint()
    return {"cursor": served.last_id or ""}


def register_interest(connection: Connection, params: RegisterInterest) -> dict[str, Any]:
    """Send this client events of a kind that is not sent otherwise."""
    served = connection.hub.find(connection.owner, params.sessionId)
    client = served.clients.get(connection)
    if client is None:
        raise RpcError(FAILED, "only a client that is attached to the session is sent its events")
    if client.interests is None:
        client.interests = {}
    if len(client.interests) >= MOST_INTERESTS:
        raise RpcError(FAILED, f"a client may have {MOST_INTERESTS} interests in one session")
    handle = secrets.token_hex(8)
    client.interests[handle] = params.eventType
    _interests_changed(connection, served, params.eventType)
    return {"handle": handle}


def release_interest(connection: Connection, params: ReleaseInterest) -> dict[str, Any]:
    """End that. One that has ended, or never was, is as good as ended."""
    served = connection.hub.find(connection.owner, params.sessionId)
    client = served.clients.get(connection)
    known = client is not None and client.interests is not None and params.handle in client.interests
    if known and client is not None and client.interests is not None:
        kind = client.interests.pop(params.handle)
        _interests_changed(connection, served, kind)
    return {"success": True}


def _interests_changed(connection: Connection, served: Served, kind: str) -> None:
    served.want_own()
    if kind in GATED:
        who_answers_changed(connection, served)


def write(connection: Connection, params: Log) -> dict[str, Any]:
    """Note something in the log, or only show it."""
    served = connection.hub.find(connection.owner, params.sessionId)
    level, kind = params.level or "info", params.type or "notification"
    if params.ephemeral:
        data = {f"{level}Type": kind, "message": params.message}
        if params.url is not None:
            data["url"] = params.url
        return {"eventId": served.notify(f"session.{level}", data)}
    return {"eventId": served.record(SessionInfo, kind, params.message, level, params.url)}
