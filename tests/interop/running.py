"""Programs of these tests: `exeunt serve`, and scripts of the official clients."""

import os
import subprocess
import sys
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import attrs
import trio

from tests.interop.node import modules_or_skip
from tests.interop.python import interpreter

EXEUNT = str(Path(sys.executable).with_name("exeunt"))

LONGEST = 120.0
"""Seconds that a program may take on a busy machine."""


async def line_of(process: trio.Process) -> str:
    """Return the next line that the program writes. Raises `AssertionError` if it has ended without one."""
    assert process.stdout is not None
    line = b""
    with trio.fail_after(LONGEST):
        while True:
            # Byte by byte, so that nothing of the next line is taken.
            byte = await process.stdout.receive_some(1)
            line += byte
            if byte in (b"", b"\n"):
                break
    assert line, f"{process.args!r} has ended"
    return line.decode().rstrip("\n")


@asynccontextmanager
async def serving(*options: str, port: int = 0, killed: bool = False) -> AsyncGenerator[str]:
    """Run `exeunt serve`; give its address. It ends in order, or by SIGKILL if it shall be *killed*."""
    async with trio.open_nursery() as nursery:
        start = partial(
            trio.run_process,
            [EXEUNT, "serve", "--port", str(port), *options],
            stdout=subprocess.PIPE,
            stdin=None,
            check=False,
        )
        process = await nursery.start(start)
        line = await line_of(process)
        yield f"127.0.0.1:{line.split()[-1]}"
        if killed:
            process.kill()
        else:
            process.terminate()
        with trio.fail_after(LONGEST):
            assert await process.wait() == (-9 if killed else 0)


@attrs.frozen
class Script:
    """A script of an official client, in an environment in which it finds what listens on this machine."""

    command: Sequence[str]
    environment: Mapping[str, str]

    async def play(self) -> bytes:
        """Run it to its end; return what it printed."""
        with trio.fail_after(LONGEST):
            done = await trio.run_process(
                self.command, capture_stdout=True, capture_stderr=True, check=False, env=self.environment
            )
        assert done.returncode == 0, done.stderr.decode()
        printed: bytes = done.stdout
        return printed

    @asynccontextmanager
    async def talking(self) -> AsyncGenerator[trio.Process]:
        """Run it in pipes; it is to end by itself. What it has to complain of comes with the test's output."""
        async with trio.open_nursery() as nursery:
            start = partial(trio.run_process, stdin=subprocess.PIPE, stdout=subprocess.PIPE, check=False)
            process = await nursery.start(partial(start, self.command, env=self.environment))
            yield process
            with trio.fail_after(LONGEST):
                assert await process.wait() == 0


def _environment(**variables: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    return {**kept, **variables}


def node(script: Path, *arguments: str) -> Script:
    """Return a script for the official JavaScript client, whose packages are installed here."""
    modules = modules_or_skip()
    command = ["node", str(script.with_suffix(".mjs")), *arguments]
    return Script(command, _environment(NODE_MODULES=str(modules)))


def python(script: Path, *arguments: str) -> Script:
    """Return a script for the official Python client, in an environment of its own that is installed here."""
    return Script([str(interpreter()), str(script.with_suffix(".py")), *arguments], _environment())
