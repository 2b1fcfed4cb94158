"""The command as a process of its own: in a pipe, and at a terminal that a test types on."""

import atexit
import contextlib
import functools
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import attrs
import trio

EXEUNT = (sys.executable, "-c", "from exeunt.cli import main; main()")
VIRTUAL = (sys.executable, str(Path(__file__).with_name("virtual_exeunt.py")))
"""The same in virtual time."""

LONGEST = 40.0
"""Seconds that a test waits for a program, on a busy machine: a test that fails shall not hang."""

CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r")


@functools.cache
def data_folder() -> str:
    """A folder for what programs of tests keep, instead of the one of whoever runs them."""
    folder = tempfile.TemporaryDirectory(prefix="exeunt-tests-")
    atexit.register(folder.cleanup)
    return folder.name


def environment(**changes: str) -> dict[str, str]:
    """Return an environment without what would colour, size or configure the output."""
    left_out = {
        "NO_COLOR",
        "FORCE_COLOR",
        "COLUMNS",
        "LINES",
        "EXEUNT_API_KEY",
        "OPENAI_API_KEY",
        "ANTHROPIC_API_KEY",
        "OPENAI_BASE_URL",
    }
    kept = {
        name: value
        for name, value in os.environ.items()
        if name not in left_out and not name.lower().endswith("_proxy")
    }
    return {**kept, "XDG_DATA_HOME": data_folder(), "TERM": "xterm-256color", "PYTHONUTF8": "1", **changes}


async def run(
    *arguments: str, program: Sequence[str] = EXEUNT, stdin: bytes = b"", **variables: str
) -> "subprocess.CompletedProcess[str]":
    """Run the command in pipes to its end, with what it wrote as text."""
    with trio.fail_after(LONGEST):
        done = await trio.run_process(
            [*program, *arguments],
            stdin=stdin,
            capture_stdout=True,
            capture_stderr=True,
            check=False,
            env=environment(**variables),
        )
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())


@attrs.define(eq=False)
class Terminal:
    """A terminal of 80 columns with a program in it."""

    _fd: int
    _process: trio.Process
    raw: str = ""
    """All that was written, control codes included."""
    _place: int = 0

    @property
    def text(self) -> str:
        """All that was written, without control codes."""
        return CONTROL.sub("", self.raw)

    async def expect(self, words: str) -> None:
        """Wait until *words* have been written, behind what was expected before."""
        with trio.move_on_after(LONGEST):
            await trio.lowlevel.checkpoint()
            while (at := self.text.find(words, self._place)) < 0:
                if not await self._read():
                    break
            else:
                self._place = at + len(words)
                return
        raise AssertionError(f"{words!r} was not written:\n{self.text[self._place :]}")

    async def type(self, keys: str) -> None:
        """Press *keys*."""
        await trio.to_thread.run_sync(os.write, self._fd, keys.encode())

    def settings(self) -> list[Any]:
        """Return how the terminal is set."""
        import termios

        return termios.tcgetattr(self._fd)

    async def ended(self) -> int:
        """Wait for the end of the program; return its exit status."""
        with trio.fail_after(LONGEST):
            while await self._read():
                pass
            return await self._process.wait()

    async def _read(self) -> bool:
        await trio.lowlevel.wait_readable(self._fd)
        try:
            data = os.read(self._fd, 65_536)
        except OSError:  # Linux says so when the last program at the terminal has ended.
            data = b""
        self.raw += data.decode(errors="replace")
        return bool(data)


@asynccontextmanager
async def at_a_terminal(
    *arguments: str, program: Sequence[str] = EXEUNT, **variables: str
) -> AsyncGenerator[Terminal]:
    """Run the command at a terminal; kill it if it still runs when the body ends."""
    import fcntl
    import pty
    import struct
    import termios

    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 80, 0, 0))

    def take_terminal() -> None:
        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)  # so that Ctrl-C on it is a signal to the program

    try:
        process = await trio.lowlevel.open_process(
            [*program, *arguments],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env=environment(**variables),
            preexec_fn=take_terminal,
        )
        os.close(theirs)
        try:
            yield Terminal(ours, process)
        finally:
            if process.poll() is None:
                with contextlib.suppress(ProcessLookupError):
                    process.send_signal(signal.SIGKILL)
                with trio.CancelScope(shield=True):
                    await process.wait()
    finally:
        os.close(ours)
