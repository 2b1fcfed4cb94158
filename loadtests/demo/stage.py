"""The demo as a whole: a host, its metrics over HTTP, the run, the view, the report."""

import logging
import signal
import sys
import tempfile
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import attrs
import trio
from rich.console import Console
from rich.live import Live

from exeunt import EndpointUnavailable, open_host
from exeunt.demo.performance import Performance
from exeunt.demo.screen import live_view, print_report, progress_line
from exeunt.demo.second_act import SecondAct, play_second_act
from exeunt.demo.verdict import judge
from exeunt.metrics import Exposition, Metrics, open_exposition

USUAL_PORT = 9464
"""Where exporters of application metrics usually listen."""
REFRESH, LINE_EVERY = 0.25, 5.0
"""Seconds between two pictures of the live view, and between two lines where there is no terminal."""
SECOND_ACT = "Second act: a worker process is killed, and another one takes its sessions up."
ENDING_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@attrs.frozen(kw_only=True)
class DemoOptions:
    """What may be chosen."""

    sessions: int = 2_000
    seed: int = 1
    port: int | None = None
    """For the metrics: 0 takes any that is free, `None` the usual one, or any if that is taken."""
    journal: str | None = None
    """URL of the journal; `None` is a SQLite file in a temporary folder, which goes with the run."""
    leave: bool = False
    """Whether to leave at the end, instead of serving the metrics."""


async def run_demo(options: DemoOptions, console: Console) -> int:
    """Play the demo on *console* and return the exit status of the process.

    0: all promises were kept. 1: one was broken. 128 and the signal's number: a signal ended the run; the report
    is that of the run so far. Waits at the end for a signal if *console* is a terminal, unless told to leave.
    """
    terminal = sys.stdout.isatty() and not console.is_dumb_terminal
    with _quiet_log() as log, tempfile.TemporaryDirectory(prefix="exeunt-demo-") as name:
        return await _stage(options, console, log, Path(name), terminal=terminal)


async def _stage(options: DemoOptions, console: Console, log: "_Log", folder: Path, *, terminal: bool) -> int:
    journal = f"sqlite:///{folder.as_posix()}/demo.sqlite3" if options.journal is None else options.journal
    async with open_host(journal=journal) as host, _serve(host.metrics, options.port) as exposition:
        performance = Performance(host, options.sessions, options.seed)
        played = await _play(performance, console, exposition.url, folder, live=terminal)
        signum, second_act = played.signum, played.second_act
        promises = await judge(performance, second_act, stopped=signum is not None)
        print_report(console, performance, promises, second_act)
        if signum is not None:
            console.print(f" Ended by {signal.Signals(signum).name}.")
            return 128 + signum
        kept = all(promise.kept for promise in promises)
        if not kept:
            log.replay()
        if terminal and not options.leave:
            console.print(f" Metrics at [bold]{exposition.url}[/bold] until Ctrl-C.", highlight=False)
            with trio.open_signal_receiver(*ENDING_SIGNALS) as signals:
                await anext(signals)
            console.print()
    return 0 if kept else 1


@attrs.define
class _Played:
    """What came of both acts."""

    signum: int | None = None
    """The signal that ended them early, if one did."""
    second_act: SecondAct | None = None


async def _play(
    performance: Performance, console: Console, address: str, folder: Path, *, live: bool
) -> _Played:
    """Run the performance and show it; then the second act."""
    played = _Played()

    async def listen(task_status: trio.TaskStatus[None]) -> None:
        with trio.open_signal_receiver(*ENDING_SIGNALS) as signals:
            task_status.started()
            played.signum = await anext(signals)
        nursery.cancel_scope.cancel()

    async with trio.open_nursery() as nursery:
        await nursery.start(listen)
        async with trio.open_nursery() as showing:
            showing.start_soon(_show_live if live else _show_lines, performance, console, address)
            await performance.run()
            showing.cancel_scope.cancel()
        console.print(SECOND_ACT)
        played.second_act = await play_second_act(folder)
        nursery.cancel_scope.cancel()
    return played


async def _show_live(performance: Performance, console: Console, address: str) -> None:
    # Drawn here, not in a thread of `Live`: a second thread would take the interpreter away from the sessions.
    with Live(live_view(performance, address), console=console, auto_refresh=False, transient=True) as live:
        while True:
            await trio.sleep(REFRESH)
            live.update(live_view(performance, address), refresh=True)


async def _show_lines(performance: Performance, console: Console, address: str) -> None:
    console.print(
        f"Exeunt demo: {performance.sessions:,} sessions at once, metrics at {address}", highlight=False
    )
    while True:
        await trio.sleep(LINE_EVERY)
        console.print(progress_line(performance), highlight=False)


@asynccontextmanager
async def _serve(metrics: Metrics, port: int | None) -> AsyncGenerator[Exposition]:
    if port is None:
        try:
            async with open_exposition(metrics, port=USUAL_PORT) as exposition:
                yield exposition
                return
        except EndpointUnavailable:
            port = 0
    async with open_exposition(metrics, port=port) as exposition:
        yield exposition


class _Log(logging.Handler):
    """Keeps the host's log, which would tear the live view: the injected crashes are in it."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        if len(self._records) < 100:
            self._records.append(record)

    def replay(self) -> None:
        """Write it where it would have been written."""
        for record in self._records:
            sys.stderr.write(self.format(record) + "\n")


@contextmanager
def _quiet_log() -> Generator[_Log]:
    logger, log = logging.getLogger("exeunt"), _Log()
    propagated, logger.propagate = logger.propagate, False
    logger.addHandler(log)
    try:
        yield log
    finally:
        logger.removeHandler(log)
        logger.propagate = propagated
