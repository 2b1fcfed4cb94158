"""The door for clients of the Copilot SDK, in any language: JSON-RPC over stdio, TCP and Unix sockets.

Reading order: `table` (every method at a glance), `messages` (their parameters) and `methods` (what they do, both by
namespace); `framing`, `rpc`, `method` and `outbox` (from bytes to parameters, and back), `connection` (one client),
`server` (all of them), `statistics` and `collector` (their numbers); `events` (from the events of a session to those
of the protocol), `serving` (sessions and their clients), `instructions` (files with instructions that clients name),
`files` (those of sessions), `below` (how any are opened). Needs the extra `wire`.

    async with open_host() as host, open_wire_server(host, port=7890, default=DefaultProvider(...)) as listening:
        ...
"""

from exeunt.wire.options import WireOptions
from exeunt.wire.server import Listening, WireServer, open_wire_server
from exeunt.wire.serving.models import DefaultProvider
from exeunt.wire.statistics import WireStatistics

__all__ = [
    "DefaultProvider",
    "Listening",
    "WireOptions",
    "WireServer",
    "WireStatistics",
    "open_wire_server",
]
