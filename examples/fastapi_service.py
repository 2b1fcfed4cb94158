"""A chat service with FastAPI: sessions on the loop of the server, answers as server-sent events.

    uvicorn examples.fastapi_service:app

`fastapi_load.py` is its load: many users at once, each with a session of its own.
"""

import json
import os
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated

import anyio
import anyio.lowlevel
from fastapi import FastAPI, Header, HTTPException, Request
from fastapi.responses import PlainTextResponse, StreamingResponse
from prometheus_client import generate_latest
from pydantic import BaseModel

from exeunt import Event, Overloaded, SessionNotFound, allow_many_files, approve_all, tune_garbage_collector
from exeunt.embed.asyncio import EventStream, Session, SessionHost, open_host, tool
from exeunt.testing import Reply, ScriptedModel, call, say


@tool
async def look_up(order: int) -> str:
    """Look an order up."""
    await anyio.lowlevel.checkpoint()  # a real one asks a database here, with any library for asyncio
    return f"Order {order} left the house this morning."


SCRIPT: list[Reply] = [
    call("look_up", order=7),
    say(
        "It is on its way: it left the house this morning.",
        chunks=["It is on its way: ", "it left ", "the house this morning."],
    ),
]
# A real service gives create_session(model="...", provider={...}); the rest stays as it is.
MODEL = ScriptedModel.per_session(SCRIPT, cycle=True, record=False, check=False)


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncGenerator[None]:
    """The host lives as long as the server, on its loop. With `JOURNAL` set, sessions survive both."""
    tune_garbage_collector()
    allow_many_files()
    async with open_host(journal=os.environ.get("JOURNAL")) as host:
        app.state.host = host
        yield


app = FastAPI(lifespan=lifespan)


class Message(BaseModel):
    """What a user says."""

    prompt: str


@app.post("/sessions", status_code=201)
async def create(request: Request, tenant: str = "") -> dict[str, str]:
    """Make a session."""
    session = await host_of(request).create_session(
        model=MODEL,
        tools=[look_up],
        tenant=tenant,
        streaming=True,
        on_permission_request=approve_all,
        system_message="You answer questions about orders.",
    )
    return {"session_id": session.session_id}


@app.post("/sessions/{session_id}/messages")
async def say_to(request: Request, session_id: str, message: Message) -> StreamingResponse:
    """Send a message, and stream everything that happens until its answer is there."""
    session = session_of(request, session_id)
    events = session.events()
    try:
        await session.send(message.prompt)
    except Overloaded as error:
        await events.aclose()
        raise HTTPException(503, str(error), {"Retry-After": "1"}) from error
    return StreamingResponse(until_idle(session, events), media_type="text/event-stream")


@app.get("/sessions/{session_id}/events")
async def follow(
    request: Request, session_id: str, last_event_id: Annotated[str | None, Header()] = None
) -> StreamingResponse:
    """Follow a session from where a reader was: browsers send the last id that they saw when they come back."""
    events = session_of(request, session_id).events(after=last_event_id)
    return StreamingResponse(as_sse(events), media_type="text/event-stream")


@app.get("/metrics")
async def metrics(request: Request) -> PlainTextResponse:
    """What Prometheus scrapes."""
    return PlainTextResponse(generate_latest(host_of(request).metrics.registry))


def host_of(request: Request) -> SessionHost:
    """The host of the server."""
    host: SessionHost = request.app.state.host
    return host


def session_of(request: Request, session_id: str) -> Session:
    """A session, or 404."""
    try:
        return host_of(request).get_session(session_id)
    except SessionNotFound as error:
        raise HTTPException(404, str(error)) from error


async def until_idle(session: Session, events: EventStream) -> AsyncIterator[str]:
    """The events of a message. A user who goes away ends the turn: nobody would read the rest."""
    done = False
    try:
        async for event in events:
            yield sse(event)
            if event.type == "session.idle":
                done = True
                return
    finally:
        # Starlette cancels again and again until this is left.
        with anyio.move_on_after(5, shield=True):
            await events.aclose()
            if not done:
                await session.abort(reason="the user went away")


async def as_sse(events: EventStream) -> AsyncIterator[str]:
    """All events, for ever."""
    try:
        async for event in events:
            yield sse(event)
    finally:
        with anyio.move_on_after(5, shield=True):
            await events.aclose()


def sse(event: Event) -> str:
    """One event as a server-sent event. Only those in the log have an id that can be gone on after."""
    text = f"event: {event.type}\ndata: {json.dumps(event.payload(), default=str)}\n\n"
    return text if event.ephemeral else f"id: {event.id}\n{text}"
