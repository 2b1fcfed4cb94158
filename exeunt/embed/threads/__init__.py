"""Exeunt in a program of threads (Flask, Django, Celery, a script): the names of the trio API, and calls that block.

    from exeunt.embed.threads import open_host, tool

    with open_host() as host:
        session = host.create_session(model=model, tools=[...])
        reply = session.send_and_wait("hello")

Here is what differs from `exeunt`; everything else (errors, events, options, replies) is the same and is taken from
there. Synchronous handlers run in worker threads and may block; those that are `async def` are trio coroutines.

To read the code: `runtime` (the thread), `crossing` (calls into it), `handlers` (what the program gives), then the
handles: `opening`, `host`, `session`, `history`, `streams`, `remote`.
"""

from exeunt.actors.permissions import approve_all
from exeunt.actors.tools import tool
from exeunt.embed.threads.history import ClearResult, History
from exeunt.embed.threads.host import SessionHost
from exeunt.embed.threads.invocation import HookInvocation, ToolInvocation
from exeunt.embed.threads.opening import open_host
from exeunt.embed.threads.remote import RemoteEventStream, RemoteHistory, RemoteSession
from exeunt.embed.threads.session import Session
from exeunt.embed.threads.streams import EventStream

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
    "open_host",
    "tool",
]
