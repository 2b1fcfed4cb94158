"""The server: listens, and keeps its connections as supervised children."""

import errno
import importlib
import logging
import math
import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import AbstractContextManager, asynccontextmanager
from importlib.metadata import version
from pathlib import Path
from socket import gaierror
from typing import Any

import attrs
import trio

from exeunt.actors.errors import EndpointUnavailable, InvalidConfiguration
from exeunt.host import SessionHost
from exeunt.models.http.pool import close_idle_connections
from exeunt.supervisor.children import ChildSpec, Restart
from exeunt.supervisor.tree import Supervisor, open_supervisor
from exeunt.tuning import why_no_file
from exeunt.wire.collector import scraped
from exeunt.wire.connection import Connection
from exeunt.wire.options import Tokens, WireOptions
from exeunt.wire.serving.hub import Hub
from exeunt.wire.serving.models import DefaultProvider
from exeunt.wire.statistics import OTHER, WireStatistics
from exeunt.wire.table import METHODS

logger = logging.getLogger("exeunt.wire")

OUT_OF_RESOURCES = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
"""Errors of accepting a connection that pass when others have ended."""

TRY_AGAIN = 0.1
"""Seconds until a connection is accepted again after one of these."""

SAY_AGAIN = 60.0
"""Seconds after which the log says so again: often enough for who looks, and a line for each attempt fills a disk."""

GOODBYE = "The server has ended. Take the session up again with session.resume"
"""What clients are told whose sessions are at work then."""

FAREWELL = 1.0
"""Seconds for that: who reads takes it at once."""

LOOPBACK = ("127.0.0.1", "::1", "localhost")


NEEDED_BY_ALL = (
    "encodings.idna",
    "jsonschema_rs",
    "exeunt.wire.events.mapping",
    "exeunt.models.openai.provider",
)
"""Modules that are loaded with the server and not with its first session: whoever comes first need not wait while some
6 MB are read. The doors to other models' APIs are loaded by who uses them."""


def load_needed(options: WireOptions) -> None:
    """Load what a server needs. Raises `InvalidConfiguration` where it is not installed."""
    try:
        for name in NEEDED_BY_ALL:
            importlib.import_module(name)
        if options.instruction_roots:
            importlib.import_module("yaml")
    except ImportError as error:
        raise InvalidConfiguration(
            'a server for clients needs an extra: pip install "exeunt[wire]"'
        ) from error


class WireServer:
    """Serves the sessions of a host to clients. Made by `open_wire_server`, or for one stream by `serve_stream`."""

    def __init__(
        self,
        host: SessionHost,
        *,
        options: WireOptions | None = None,
        tokens: Tokens | None = None,
        default: DefaultProvider | None = None,
        ignores_tokens: bool = False,
    ) -> None:
        self.options = options or WireOptions()
        load_needed(self.options)
        self.tokens = tokens or Tokens({})
        self.hub = Hub(host, self.options, default or DefaultProvider())
        self.methods = METHODS
        for method in METHODS.values():
            method.prepare()
        self.version = version("exeunt")
        self.ignores_tokens = ignores_tokens
        """Whether a token that nobody asked for is welcome: on a stream that only its owner has."""
        self.ended_by_client = trio.Event()
        """Set when a client has asked for the end of the server, and may."""
        self.connections: set[Connection] = set()
        self._accepted = 0
        self._refused = 0
        self._dropped = 0
        self._closed: dict[str, int] = {}
        self._requests: dict[tuple[str, str], int] = {}

    def shut_down_asked(self) -> None:
        """A client asks for the end of the server."""
        if self.options.shutdown_ends_server:
            self.ended_by_client.set()

    def ended(self, connection: Connection) -> None:
        """A connection is over."""
        self.connections.discard(connection)
        self._dropped += connection.events_dropped
        reason = connection.closed_because
        if reason:
            self._closed[reason] = self._closed.get(reason, 0) + 1

    def count(self, method: str, outcome: str) -> None:
        """A request has ended."""
        key = (method if method in self.methods else OTHER, outcome)
        self._requests[key] = self._requests.get(key, 0) + 1

    def scraped(self) -> AbstractContextManager[None]:
        """Have the server's numbers among the host's metrics, in the body. Raises `InvalidConfiguration`."""
        return scraped(self.hub.host.metrics.registry, self.statistics)

    def statistics(self) -> WireStatistics:
        """Return a look at the server. Costs O(connections)."""
        return WireStatistics(
            connections=len(self.connections),
            accepted=self._accepted,
            refused=self._refused,
            sessions=len(self.hub.sessions),
            events_dropped=self._dropped + sum(one.events_dropped for one in self.connections),
            closed=dict(self._closed),
            requests=dict(self._requests),
            files=attrs.evolve(self.hub.file_counts),
        )

    async def serve_stream(self, stream: trio.abc.Stream, name: str = "the client") -> None:
        """Serve one client; return when it has left, or is cut off."""
        connection = self._connection(stream, name)
        await connection.run()

    async def say_goodbye(self) -> None:
        """Tell the clients whose sessions are at work that nobody here goes on with them. Waits `FAREWELL` at most.

        The SDKs wait for an event of the session. That the connection has ended they do not notice meanwhile, and they
        would wait until their time is over.
        """
        for served in list(self.hub.sessions.values()):
            actor = self.hub.host.find(served.session_id)
            if served.clients and actor is not None and actor.active:
                served.notify("session.error", {"errorType": "server_ended", "message": GOODBYE})
        with trio.move_on_after(FAREWELL):
            await self.flushed()

    async def flushed(self) -> None:
        """Wait until all that was posted is written."""
        for connection in list(self.connections):
            await connection.flushed()

    def _connection(self, stream: trio.abc.Stream, name: str) -> Connection:
        connection = Connection(self, stream, name)
        self.connections.add(connection)
        self._accepted += 1
        return connection

    async def run(
        self,
        open_listeners: Callable[[], Awaitable[Sequence[trio.SocketListener]]],
        *,
        task_status: trio.TaskStatus[Sequence[trio.SocketListener]] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        """Listen and serve until cancelled. Each connection is a child that ends alone."""
        listeners = await open_listeners()
        try:
            async with open_supervisor(name="wire connections") as children, trio.open_nursery() as nursery:
                for listener in listeners:
                    nursery.start_soon(self._listen, children, listener, name="exeunt wire listener")
                task_status.started(listeners)
        finally:
            for listener in listeners:
                listener.socket.close()

    async def _listen(self, children: Supervisor, listener: trio.SocketListener) -> None:
        """Accept connections, for ever. Not `trio.serve_listeners`: it keeps a task for each as long as it lasts."""
        silent_until = -math.inf
        while True:
            try:
                stream = await listener.accept()
            except OSError as error:
                if error.errno not in OUT_OF_RESOURCES:
                    raise
                # Others may close theirs meanwhile; those who wait are still there then.
                close_idle_connections()
                if trio.current_time() >= silent_until:
                    silent_until = trio.current_time() + SAY_AGAIN
                    why = why_no_file(error) or error.strerror
                    logger.error("no connection can be accepted, those who connect wait: %s", why)
                await trio.sleep(TRY_AGAIN)
            else:
                await self._accept(children, stream)

    async def _accept(self, children: Supervisor, stream: trio.SocketStream) -> None:
        if len(self.connections) >= self.options.most_connections:
            self._refused += 1
            await trio.aclose_forcefully(stream)
            return
        _keep_alive(stream)
        connection = self._connection(stream, f"connection {self._accepted + 1}")
        await children.start_child(ChildSpec(connection.name, connection.run, restart=Restart.TEMPORARY))


def _keep_alive(stream: trio.SocketStream) -> None:
    """Notice within two minutes when the machine of a client is gone, though nothing is sent."""
    socket = trio.socket
    stream.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (("TCP_KEEPIDLE", 60), ("TCP_KEEPINTVL", 15), ("TCP_KEEPCNT", 4)):
        option = getattr(socket, name, None)
        if option is not None and stream.socket.family in (socket.AF_INET, socket.AF_INET6):
            stream.setsockopt(socket.IPPROTO_TCP, option, value)


@attrs.frozen
class Listening:
    """A server that can be connected to, while its context lasts."""

    server: WireServer
    port: int | None
    """The true port, also where any free one was asked for; `None` without one."""


@asynccontextmanager
async def open_wire_server(
    host: SessionHost,
    *,
    port: int | None = 0,
    address: str = "127.0.0.1",
    unix: Path | None = None,
    tokens: dict[str, str] | None = None,
    default: DefaultProvider | None = None,
    options: WireOptions | None = None,
) -> AsyncGenerator[Listening]:
    """Serve *host* to clients on TCP (*port*, 0 for any free one, `None` for none) and on a Unix socket (*unix*).

    *tokens* are tenants by their tokens; without any, everybody who can connect may use all sessions of the tenant
    without a name, so an *address* that is not this machine's own loopback needs one. *default* is the model of
    sessions whose client brings none. The server is a service of the host: it is restarted if it fails.

    Leaving the context cuts all connections. Raises `InvalidConfiguration`, `EndpointUnavailable`.
    """
    known = Tokens(tokens or {})
    check_place(address, port, unix, has_tokens=bool(known))
    server = WireServer(host, options=options, tokens=known, default=default)
    # Here, and not as the child's first step: where it cannot listen, that is its caller's mistake and no failure.
    opened = await _listeners(address, port, unix)
    where = None if port is None else _port(opened)
    fresh = True

    async def open_listeners() -> Sequence[trio.SocketListener]:
        nonlocal fresh
        if not fresh:
            # After a failure the port must be the same.
            opened[:] = await _listeners(address, where, unix)
        fresh = False
        return opened

    try:
        await host.services.start_child(ChildSpec("wire", server.run, args=(open_listeners,)))
    except BaseException:
        for listener in opened:
            listener.socket.close()
        if unix is not None:
            with trio.CancelScope(shield=True):
                await trio.Path(unix).unlink(missing_ok=True)
        raise
    try:
        with server.scraped():
            yield Listening(server, where)
    finally:
        with trio.CancelScope(shield=True):
            await server.say_goodbye()
            await host.services.stop_child("wire")
            if unix is not None:
                await trio.Path(unix).unlink(missing_ok=True)


def check_place(address: str, port: int | None, unix: Path | None, *, has_tokens: bool) -> None:
    """See whether a server may listen there, without trying to. Raises `InvalidConfiguration`."""
    if port is None:
        if unix is None:
            raise InvalidConfiguration("a server listens on a port, on a Unix socket, or on both")
        return
    if type(port) is not int or not 0 <= port <= 65_535:
        raise InvalidConfiguration(f"port is {port!r}: give a number from 0 (any free one) to 65535")
    if not address.strip():
        raise InvalidConfiguration(
            "the address to listen at is empty: leave it out for 127.0.0.1, or give 0.0.0.0 for all of this machine"
        )
    if address not in LOOPBACK and not has_tokens:
        raise InvalidConfiguration(
            f"{address} can be reached from other machines: give the server a token, or let it listen on 127.0.0.1"
        )


def _port(listeners: Sequence[trio.SocketListener]) -> int:
    return int(listeners[0].socket.getsockname()[1])


async def _listeners(address: str, port: int | None, unix: Path | None) -> list[trio.SocketListener]:
    found: list[trio.SocketListener] = []
    where: Any = unix
    try:
        if port is not None:
            where = f"{address}, port {port}"
            found += await trio.open_tcp_listeners(port, host=address)
        if unix is not None:
            where = unix
            found.append(await _unix_listener(unix))
    except OSError as error:
        for listener in found:
            await trio.aclose_forcefully(listener)
        other = "port or path, or 0 for any free port"
        if isinstance(error, gaierror) or error.errno == errno.EADDRNOTAVAIL:
            other = "address: one of this machine"
        raise EndpointUnavailable(
            f"cannot listen at {where}: {error.strerror or error}. Give another {other}"
        ) from error
    return found


async def _unix_listener(path: Path) -> trio.SocketListener:
    socket = trio.socket.socket(trio.socket.AF_UNIX, trio.socket.SOCK_STREAM)
    try:
        file = trio.Path(path)
        if await file.is_socket():
            if await _answers(path):
                raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE))
            # One that a server has left behind, which was killed.
            await file.unlink()
        await socket.bind(str(path))
        await file.chmod(0o600)
        socket.listen(BACKLOG)
    except BaseException:
        socket.close()
        raise
    return trio.SocketListener(socket)


async def _answers(path: Path) -> bool:
    """Whether anybody listens on a Unix socket."""
    with trio.socket.socket(trio.socket.AF_UNIX, trio.socket.SOCK_STREAM) as probe:
        try:
            await probe.connect(str(path))
        except ConnectionRefusedError:
            return False
        return True


BACKLOG = 1024
"""Connections that may wait to be accepted: a thousand clients may come at once."""
