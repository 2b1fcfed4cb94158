"""Where the lines come from: a person at a terminal, or a pipe. Neither holds up the loop."""

import importlib
import os
import sys
from collections.abc import AsyncIterator, Generator
from contextlib import contextmanager
from typing import Protocol

import trio

from exeunt import InvalidPrompt

PROMPT = "> "
LONGEST_LINE = 1 << 20
"""Bytes. More than any model takes as one message."""


class Lines(Protocol):
    """A source of lines."""

    interactive: bool
    """Whether a person reads the answers as they come."""

    async def next(self) -> str | None:
        """Return the next line without its end; `None` after the last. Cancelled: an unfinished line is lost."""
        ...

    def meanwhile(self) -> AsyncIterator[str]:
        """Return the lines that come while an answer is under way."""
        ...


class PipedLines:
    """The lines of a file descriptor, read in a thread: a pipe or a file."""

    interactive = False

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._buffer = b""
        self._ended = False

    async def next(self) -> str | None:
        """Return the next line. Raises `InvalidPrompt` for one of more than `LONGEST_LINE` bytes."""
        while b"\n" not in self._buffer and not self._ended:
            # `os.read`, not `sys.stdin`: a thread that is left behind must not hold the lock of the stream.
            data = await trio.to_thread.run_sync(os.read, self._fd, 65_536, abandon_on_cancel=True)
            self._ended = not data
            self._buffer += data
            if len(self._buffer) > LONGEST_LINE + 65_536:
                raise InvalidPrompt(f"a line has more than {LONGEST_LINE:,} bytes")
        if not self._buffer:
            return None
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line.decode(errors="replace").removesuffix("\r")

    async def meanwhile(self) -> AsyncIterator[str]:
        """Give nothing: each line waits for the answer to the one before."""
        await trio.sleep_forever()
        yield ""


class TerminalLines:
    """The lines of a person, with a prompt, editing and a history. Use it inside of `terminal_kept`."""

    interactive = True

    def __init__(self) -> None:
        self._ended = False
        """Whether Ctrl-D was pressed during an answer."""

    async def next(self) -> str | None:
        """Ask for a line."""
        if self._ended:
            return None
        try:
            return await trio.to_thread.run_sync(input, PROMPT, abandon_on_cancel=True)
        except EOFError:
            return None

    async def meanwhile(self) -> AsyncIterator[str]:
        """Give the lines that are typed without a prompt, edited by the terminal itself."""
        if sys.platform == "win32":
            await trio.sleep_forever()  # a console cannot be waited for
        fd = sys.stdin.fileno()
        while True:
            await trio.lowlevel.wait_readable(fd)
            data = os.read(fd, 65_536)  # a terminal gives whole lines, and nothing for Ctrl-D
            if not data:
                self._ended = True
                await trio.sleep_forever()
            for line in data.decode(errors="replace").splitlines():
                yield line


def unfinished_line() -> str:
    """Return what a person has typed at the prompt so far."""
    readline = sys.modules.get("readline")
    return "" if readline is None else readline.get_line_buffer()


@contextmanager
def terminal_kept() -> Generator[None]:
    """Edit lines in the body; leave the terminal afterwards as it was, also with a prompt still open."""
    try:
        importlib.import_module("readline")  # this makes an editor of `input`
        import termios
    except ImportError:  # Windows: its console edits by itself
        yield
        return
    fd = sys.stdin.fileno()
    before = termios.tcgetattr(fd)
    try:
        yield
    finally:
        termios.tcsetattr(fd, termios.TCSADRAIN, before)
