"""Running a server until it is told to end."""

import logging
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import attrs
import trio

from exeunt.actors.errors import InvalidConfiguration
from exeunt.cli.serve.orphans import Starter, until_abandoned
from exeunt.cli.serve.scraping import ScrapeOptions, open_scraping
from exeunt.cli.serve.telemetry import TraceOptions, open_traces
from exeunt.host import open_host
from exeunt.stores import journal_from_url
from exeunt.supervisor.options import HostOptions
from exeunt.wire.options import Tokens, WireOptions
from exeunt.wire.server import WireServer, check_place, load_needed, open_wire_server
from exeunt.wire.serving.models import DefaultProvider

logger = logging.getLogger("exeunt.serve")

DEFAULT_PORT = 7890
"""Of `exeunt serve`: any that is seldom taken."""


@attrs.frozen(kw_only=True)
class Served:
    """What is served, and to whom."""

    default: DefaultProvider
    options: WireOptions
    tokens: dict[str, str] = attrs.field(factory=dict[str, str], repr=False)
    journal: str | None = None
    journal_wait: float = 0.0
    """Seconds to wait for a journal whose database is away."""
    idle_timeout: float | None = None
    """Seconds after which an idle session leaves memory."""
    traces: TraceOptions | None = None
    """Where traces go, if they are wanted."""
    metrics: ScrapeOptions | None = None
    """Where metrics are scraped, if anybody may."""

    @property
    def host_options(self) -> HostOptions:
        """The bounds of the host."""
        # Who takes a session up says what it runs with: options of those that have left are of no use to anybody.
        return HostOptions(
            passivate_after=self.idle_timeout, journal_wait=self.journal_wait, remembered_options=0
        )


def check_ports(what: Served, *, address: str, port: int | None, unix: Path | None) -> None:
    """See whether a server on a port could be meant so. Raises `InvalidConfiguration`, as `check`."""
    check_place(address, port, unix, has_tokens=bool(what.tokens))
    check(what)


def check(what: Served) -> None:
    """See whether a server could be meant so, and run here, before anything is opened or made.

    Raises `InvalidConfiguration`.
    """
    load_needed(what.options)
    _ = what.host_options
    if what.journal is not None:
        journal_from_url(what.journal)
    elif what.journal_wait:
        raise InvalidConfiguration("--journal-wait is for a journal, and there is none: name it by --journal")


async def serve_ports(
    what: Served,
    *,
    address: str,
    port: int | None,
    unix: Path | None,
    say: Callable[[int | None], None],
    starter: Starter | None = None,
) -> int:
    """Listen until a signal says to end; return the exit status. *say* is told the port once it can be used.

    With a *starter* it also ends some time after that is gone and the last client with it.
    """
    async with (
        open_traces(what.traces) as telemetry,
        open_host(journal=what.journal, options=what.host_options, telemetry=telemetry) as host,
        open_scraping(what.metrics, host.metrics, _say_where),
        open_wire_server(
            host,
            port=port,
            address=address,
            unix=unix,
            tokens=what.tokens,
            default=what.default,
            options=what.options,
        ) as listening,
    ):
        say(listening.port)
        server = listening.server

        async def until_left() -> None:
            async with trio.open_nursery() as nursery:

                async def abandoned(by: Starter) -> None:
                    await until_abandoned(by.is_gone, lambda: len(server.connections))
                    nursery.cancel_scope.cancel()

                if starter is not None and starter.can_go:
                    nursery.start_soon(abandoned, starter)
                await server.ended_by_client.wait()
                nursery.cancel_scope.cancel()

        await _until_told(until_left)
    return 0


async def serve_stdio(what: Served) -> int:
    """Serve the standard streams until their other side ends them; return the exit status."""
    options = attrs.evolve(what.options, shutdown_ends_server=True)
    async with (
        open_traces(what.traces) as telemetry,
        open_host(journal=what.journal, options=what.host_options, telemetry=telemetry) as host,
        open_scraping(what.metrics, host.metrics, _say_where),
    ):
        server = WireServer(
            host,
            options=options,
            tokens=Tokens(what.tokens),
            default=what.default,
            ignores_tokens=True,
        )

        async def until_left() -> None:
            stream = trio.StapledStream(
                trio.lowlevel.FdStream(os.dup(sys.stdout.fileno())),
                trio.lowlevel.FdStream(os.dup(sys.stdin.fileno())),
            )
            async with trio.open_nursery() as nursery:

                async def served() -> None:
                    await server.serve_stream(stream)
                    nursery.cancel_scope.cancel()

                nursery.start_soon(served)
                await server.ended_by_client.wait()
                # Its answer is on the way.
                with trio.move_on_after(1.0):
                    await server.flushed()
                nursery.cancel_scope.cancel()

        with server.scraped():
            await _until_told(until_left, server.say_goodbye)
    return 0


def _say_where(url: str) -> None:
    logger.info("metrics are at %s", url)


def _ends_already(number: int, frame: object) -> None:
    """Take no notice of a signal that asks for what is under way."""


async def _until_told(
    ended: Callable[[], Awaitable[None]], farewell: Callable[[], Awaitable[None]] | None = None
) -> None:
    """Wait for *ended*, or for a signal that asks for the end; before that cancels *ended*, say *farewell*."""
    # Clients that have started a server end it twice: by their last request, and by a signal right behind it. What is
    # found here holds again once the receiver below is closed, while the host still writes what it was told.
    signal.signal(signal.SIGTERM, _ends_already)
    async with trio.open_nursery() as nursery:

        async def signalled() -> None:
            with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
                async for _ in signals:
                    if farewell is not None:
                        await farewell()
                    nursery.cancel_scope.cancel()
                    return

        nursery.start_soon(signalled)
        await ended()
        nursery.cancel_scope.cancel()


def log_to_stderr(level: str) -> None:
    """Write log lines to the standard error: the standard output may be the protocol's."""
    levels = {
        "none": logging.CRITICAL + 1,
        "error": logging.ERROR,
        "warning": logging.WARNING,
        "warn": logging.WARNING,
        "debug": logging.DEBUG,
    }
    chosen = levels.get(level, logging.INFO)
    logging.basicConfig(
        stream=sys.stderr, level=chosen, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
