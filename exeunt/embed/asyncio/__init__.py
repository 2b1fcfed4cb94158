"""Exeunt in a program on asyncio or uvloop: the names of the trio API, for asyncio tasks.

    from exeunt.embed.asyncio import open_host, tool

    async with open_host() as host:
        session = await host.create_session(model=model, tools=[...])
        reply = await session.send_and_wait("hello")

Here is what differs from `exeunt`; everything else (errors, events, options, replies) is the same and is taken from
there. Handlers that are `async def` are asyncio coroutines, unless they are marked with `runs_on_trio`.

To read the code: `guest` (the trio run on the loop), `crossing` (calls between the loops), `handlers` (what the program
gives), then the handles: `opening`, `host`, `session`, `history`, `streams`, `remote`.
"""

from exeunt.actors.marks import runs_on_trio
from exeunt.actors.permissions import approve_all
from exeunt.actors.tools import tool
from exeunt.embed.asyncio.crossing import from_asyncio
from exeunt.embed.asyncio.history import ClearResult, History
from exeunt.embed.asyncio.host import SessionHost
from exeunt.embed.asyncio.invocation import HookInvocation, ToolInvocation
from exeunt.embed.asyncio.models import asyncio_model
from exeunt.embed.asyncio.opening import open_host
from exeunt.embed.asyncio.remote import RemoteEventStream, RemoteHistory, RemoteSession, asyncio_transport
from exeunt.embed.asyncio.session import Session
from exeunt.embed.asyncio.streams import EventStream

__all__ = [
    "ClearResult",
    "EventStream",
    "History",
    "HookInvocation",
    "RemoteEventStream",
    "RemoteHistory",
    "RemoteSession",
    "Session",
    "SessionHost",
    "ToolInvocation",
    "approve_all",
    "asyncio_model",
    "asyncio_transport",
    "from_asyncio",
    "open_host",
    "runs_on_trio",
    "tool",
]
