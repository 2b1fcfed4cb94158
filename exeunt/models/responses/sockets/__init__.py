"""The Responses API over web sockets: one connection serves the requests of a session, one after the other.

Reading order: `model` (a call), `line` (a connection and what its server remembers), `lines` (which connection serves a
call), `direct` (a connection of our own; needs the extra `exeunt[websockets]`). Connections by way of somebody else,
such as a client of the Copilot SDK, come from the HTTP client that the model was given: see `SocketOpener`.
"""

from exeunt.models.responses.sockets.line import Socket, SocketOpener
from exeunt.models.responses.sockets.model import ResponsesSocketModel

__all__ = ["ResponsesSocketModel", "Socket", "SocketOpener"]
