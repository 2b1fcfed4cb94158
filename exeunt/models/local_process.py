"""Start, watch and end the child process that serves the local model."""

import contextlib
import re
import subprocess
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import attrs
import h11
import trio

from exeunt.actors.errors import LocalModelUnavailable

READY_TIMEOUT = 60.0
"""Seconds from start to the first healthy answer. The bundled model needs 1 to 3; a file of some GB on a slow
disk needs most of it."""
STOP_GRACE = 2.0
"""Seconds from SIGTERM to SIGKILL. The child has nothing to save: it ends in milliseconds, or is broken."""
HEALTH_INTERVAL = 0.05
"""Seconds between two questions: short beside the load time."""
LOG_BYTES = 4096
"""Kept of the child's log. The cause of a failed load is in its last lines."""
_LINE_BYTES = 4096
"""Most that the child's only line may have. It has about 24."""
_ADDRESS = re.compile(rb"(http://127\.0\.0\.1:\d{1,5})\r?\n")


@attrs.define
class LogTail:
    """The last `LOG_BYTES` bytes of a log; what came before is dropped and counted."""

    dropped: int = 0
    _kept: bytearray = attrs.field(factory=bytearray, init=False)

    def add(self, data: bytes | bytearray) -> None:
        self._kept += data
        surplus = len(self._kept) - LOG_BYTES
        if surplus > 0:
            del self._kept[:surplus]
            self.dropped += surplus

    @property
    def text(self) -> str:
        """What was kept, decoded, with a first line that counts what was not."""
        kept = self._kept.decode(errors="replace").strip()
        return f"[{self.dropped} bytes before this]\n{kept}" if self.dropped else kept


@attrs.frozen
class Running:
    """A server that is ready."""

    address: str
    """`http://127.0.0.1:PORT`, without a path."""
    pid: int


@asynccontextmanager
async def running(command: Sequence[str]) -> AsyncGenerator[Running, None]:
    """Run *command* as a model server for as long as the context is open.

    Enters when the server has told its address and answers `GET /health` with 200, at most `READY_TIMEOUT`
    seconds after the start. Leaving, also by an error or a cancellation at any point, ends the child and
    waits until it is gone: SIGTERM, and SIGKILL after `STOP_GRACE` seconds. Raises `LocalModelUnavailable`.
    """
    # A group of its own: Ctrl-C in a terminal interrupts a turn of the parent, not the model.
    group: dict[str, Any] = {"process_group": 0}
    if sys.platform == "win32":
        group = {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP}
    pipe = subprocess.PIPE
    try:
        child = await trio.lowlevel.open_process(command, stdin=pipe, stdout=pipe, stderr=pipe, **group)
    except OSError as error:
        raise LocalModelUnavailable(f"The model server could not be started: {error}.") from error
    try:
        yield Running(await _ready(child), child.pid)
    finally:
        await _stop(child)  # noqa: ASYNC102 - shields itself, for a bounded time


async def _ready(child: trio.Process) -> str:
    log = LogTail()
    with trio.move_on_after(READY_TIMEOUT):
        if line := await _first_line(child, log):
            told = _ADDRESS.fullmatch(line)
            if told is None:
                raise LocalModelUnavailable(f"The model server told no address but {line!r}.", log=log.text)
            address = told[1].decode()
            while child.poll() is None:
                if await _healthy(address):
                    return address
                await trio.sleep(HEALTH_INTERVAL)
        status = await child.wait()
        ended = f"was ended by signal {-status}" if status < 0 else f"ended with exit code {status}"
        raise LocalModelUnavailable(
            _with_log(f"The model server {ended} before it was ready", log), log=log.text
        )
    late = f"The model server was not ready within {READY_TIMEOUT:g} s: try a smaller model"
    raise LocalModelUnavailable(_with_log(late, log), log=log.text)


def _with_log(message: str, log: LogTail) -> str:
    return f"{message}. Its last words:\n{log.text}" if log.text else f"{message}. It said nothing."


async def _first_line(child: trio.Process, log: LogTail) -> bytes:
    """Return the first line that the child says, or nothing if it ends before.

    Its log is read meanwhile: a full pipe would stop it.
    """
    assert child.stdout is not None
    assert child.stderr is not None
    said = bytearray()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_keep_log, child.stderr, log)
        while b"\n" not in said and len(said) < _LINE_BYTES:
            data = await child.stdout.receive_some(_LINE_BYTES)
            if not data:
                # It is ending: the cause is in the log, which the nursery waits for.
                said.clear()
                break
            said += data
        else:
            nursery.cancel_scope.cancel()
    return bytes(said)


async def _keep_log(stream: trio.abc.ReceiveStream, log: LogTail) -> None:
    async for data in stream:
        log.add(data)


async def _healthy(address: str) -> bool:
    """Whether `GET /health` is answered with 200. Any fault is a no: the caller asks again."""
    target = urlsplit(address)
    connection = h11.Connection(h11.CLIENT)
    headers = [("Host", target.netloc), ("Connection", "close")]
    question = connection.send(h11.Request(method="GET", target="/health", headers=headers)) or b""
    question += connection.send(h11.EndOfMessage()) or b""
    with contextlib.suppress(OSError, trio.BrokenResourceError, h11.RemoteProtocolError):
        async with await trio.open_tcp_stream(target.hostname or "", target.port or 0) as stream:
            await stream.send_all(question)
            while (event := connection.next_event()) is h11.NEED_DATA:
                connection.receive_data(await stream.receive_some(4096))
            return isinstance(event, h11.Response) and event.status_code == 200
    return False


async def _stop(child: trio.Process) -> None:
    with trio.CancelScope(shield=True):
        child.terminate()
        with trio.move_on_after(STOP_GRACE):
            await child.wait()
        if child.returncode is None:
            child.kill()
            await child.wait()
        for stream in (child.stdin, child.stdout, child.stderr):
            if stream is not None:
                await stream.aclose()
