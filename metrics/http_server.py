"""Metrics over HTTP, in threads of their own: a loop that is stuck is when they are wanted most.

The formats are `prometheus_client`'s. Its own `start_http_server` is not used, because its connections have
no time-out and no bound.
"""

import gzip
import logging
import socket
import threading
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from typing import Any, Final, cast
from urllib.parse import parse_qs, urlsplit

import attrs
import trio
from prometheus_client.exposition import gzip_accepted

from exeunt.actors.errors import EndpointUnavailable, InvalidConfiguration
from exeunt.metrics.host_metrics import Metrics

_log: Final = logging.getLogger(__name__)

MAX_CONNECTIONS: Final = 8
"""A pair of Prometheus servers and some people. More are closed at once and counted."""
CLIENT_WAIT: Final = 10.0
"""Seconds for each read and write: Prometheus' own default for a whole scrape."""
CLOSING_WAIT: Final = 1.0
"""Seconds that closing waits for the threads whose connections it has just shut."""
_POLL: Final = 0.2
"""Seconds between the accepting thread's looks at whether it shall end: closing waits no longer for it."""


@attrs.frozen
class Exposition:
    """An endpoint that a Prometheus can scrape, for as long as its context lasts."""

    url: str
    """With the path: `http://127.0.0.1:9464/metrics`."""
    port: int
    """The true port, also where an ephemeral one was asked for."""
    _server: "_Server" = attrs.field(repr=False, alias="server")

    @property
    def refused(self) -> int:
        """Connections closed unread because `MAX_CONNECTIONS` were open."""
        return self._server.refused


@asynccontextmanager
async def open_exposition(
    metrics: Metrics, host: str = "127.0.0.1", port: int = 0
) -> AsyncGenerator[Exposition, None]:
    """Serve *metrics* at `/metrics` until the context is left. Port 0 takes any that is free.

    There is no authentication and no TLS: bind it to an address that only Prometheus reaches. A scrape costs
    the loop nothing but the statistics. Leaving the context, or cancelling it, closes the socket and cuts off
    scrapes that are under way; it takes at most about a second.

    Raises `InvalidConfiguration` for a port that cannot exist, `EndpointUnavailable` if the address is taken
    or not this machine's.
    """
    if type(port) is not int or not 0 <= port <= 65_535:
        raise InvalidConfiguration(f"port is {port!r}: give a number from 0 (any free one) to 65535")
    # In a thread, because looking up the name may ask the network.
    server = await trio.to_thread.run_sync(_Server.bind, metrics, host, port)
    thread = threading.Thread(target=server.serve_forever, args=(_POLL,), name="exeunt-metrics", daemon=True)
    thread.start()
    try:
        yield Exposition(server.url, server.server_port, server)
    finally:
        with trio.CancelScope(shield=True):
            await trio.to_thread.run_sync(server.close)


async def serve_metrics(
    metrics: Metrics,
    host: str = "127.0.0.1",
    port: int = 0,
    *,
    task_status: trio.TaskStatus[Exposition] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Serve *metrics* until cancelled: `open_exposition` as a task, for `nursery.start` or a supervisor.

    Its errors are those of `open_exposition`; its started value is the `Exposition`.
    """
    async with open_exposition(metrics, host, port) as exposition:
        task_status.started(exposition)
        await trio.sleep_forever()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    # Two hosts that share a port by mistake would each get half of the scrapes.
    allow_reuse_port = False

    def __init__(self, metrics: Metrics, family: socket.AddressFamily, address: Any) -> None:
        self.metrics = metrics
        self.address_family = family
        self.refused = 0
        self._slots = threading.Semaphore(MAX_CONNECTIONS)
        self._open: set[socket.socket] = set()
        super().__init__(address, _Handler)

    @classmethod
    def bind(cls, metrics: Metrics, host: str, port: int) -> "_Server":
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
            family, _, _, _, address = found[0]
            return cls(metrics, family, address)
        except OSError as error:
            raise EndpointUnavailable(
                f"cannot serve metrics at {host!r}, port {port}: {error.strerror or error}."
                " Give another port, 0 for any free one, or an address of this machine"
            ) from error

    @property
    def url(self) -> str:
        host = f"[{self.server_name}]" if ":" in self.server_name else self.server_name
        return f"http://{host}:{self.server_port}/metrics"

    def server_bind(self) -> None:
        # Without the reverse name look-up of the base, which may take seconds and is of no use here.
        TCPServer.server_bind(self)
        self.server_name, self.server_port = self.socket.getsockname()[:2]

    def process_request(self, request: Any, client_address: Any) -> None:
        if not self._slots.acquire(blocking=False):
            self.refused += 1
            super().shutdown_request(request)
            return
        self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        super().shutdown_request(request)
        self._open.discard(request)
        self._slots.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        # The base prints a traceback; a client that goes away is no news, anything else is a fault of ours.
        _log.warning("a scrape from %s failed", client_address, exc_info=True)

    def close(self) -> None:
        self.shutdown()
        self.server_close()
        for request in self._open.copy():
            with suppress(OSError):
                request.shutdown(socket.SHUT_RDWR)
        for _ in range(MAX_CONNECTIONS):
            if not self._slots.acquire(timeout=CLOSING_WAIT / MAX_CONNECTIONS):
                _log.warning("a scrape is still under way after its endpoint was closed")


class _Handler(BaseHTTPRequestHandler):
    # One request a connection (HTTP/1.0): idle connections would hold the few that there may be.
    timeout = CLIENT_WAIT
    server_version = "exeunt"
    sys_version = ""

    def do_GET(self) -> None:
        target = urlsplit(self.path)
        if target.path not in ("/", "/metrics"):
            self.send_error(HTTPStatus.NOT_FOUND, "The metrics are at /metrics")
            return
        names = parse_qs(target.query).get("name[]", [])
        metrics = cast("_Server", self.server).metrics
        try:
            body, content_type = metrics.render(self.headers.get("Accept", ""), names)
        except Exception:  # noqa: BLE001 - a collector may be anybody's
            # Prometheus must see a failed scrape, not an empty one.
            _log.exception("the metrics could not be collected")
            self.send_error(HTTPStatus.INTERNAL_SERVER_ERROR)
            return
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", content_type)
        if gzip_accepted(self.headers.get("Accept-Encoding", "")):
            body = gzip.compress(body)
            self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        with suppress(ConnectionError):
            self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base's name
        _log.debug(format, *args)
