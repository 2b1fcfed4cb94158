"""Plays a program against our server, on each way to it, with a model that is a script."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import trio

from exeunt.testing.http_double import open_http_double
from tests.interop.languages.model import model

RUNTIME = str(Path(sys.executable).with_name("exeunt-runtime"))
EXEUNT = str(Path(sys.executable).with_name("exeunt"))

WAYS = ("uri", "stdio", "tcp")

TOKEN = "a token of the program"

LONGEST = 300.0
"""Seconds for all scenes of one way: seconds on a quiet machine, and each scene has a limit of its own."""


async def play(way: str, program: Sequence[str]) -> dict[str, Any]:
    """Play all scenes of `program` on `way`; what it saw, by scene.

    Raises `RuntimeError` with what the program said when it ended with an error or printed something else, and
    `trio.TooSlowError` when it took too long.
    """
    async with open_http_double() as double:
        double.otherwise = model
        base_url = f"http://127.0.0.1:{double.port}/v1"
        with trio.fail_after(LONGEST):
            if way == "uri":
                async with serving() as address:
                    lines = await _run([*program, way, address, TOKEN, base_url])
            else:
                token = TOKEN if way == "tcp" else ""
                lines = await _run([*program, way, RUNTIME, token, base_url])
        seen = {scene.pop("scene"): scene for scene in lines}
        seen["clear"]["requests"] = [
            [message["role"] for message in request.json["messages"]] for request in double.requests[:3]
        ]
    return seen


@asynccontextmanager
async def serving() -> AsyncGenerator[str]:
    """Run `exeunt serve` with a token, and a journal of its own; yield its address."""
    with tempfile.TemporaryDirectory() as folder:
        command = [EXEUNT, "serve", "--port", "0", "--journal", f"sqlite:///{folder}/journal.sqlite3"]
        async with trio.open_nursery() as nursery:
            start = partial(
                trio.run_process,
                command,
                stdout=subprocess.PIPE,
                check=False,
                env={**environment(), "EXEUNT_CONNECTION_TOKEN": TOKEN},
            )
            process: trio.Process = await nursery.start(start)
            assert process.stdout is not None
            line = b""
            while not line.endswith(b"\n"):
                data = await process.stdout.receive_some()
                if not data:
                    raise RuntimeError("the server ended before it served")
                line += data
            yield f"127.0.0.1:{line.split()[-1].decode()}"
            process.terminate()


def environment() -> Mapping[str, str]:
    """This process's, without proxies: all that the programs reach is on this machine."""
    return {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}


async def _run(command: Sequence[str]) -> list[dict[str, Any]]:
    done = await trio.run_process(
        command, capture_stdout=True, capture_stderr=True, check=False, env=environment()
    )
    said = done.stderr.decode(errors="replace")
    if done.returncode:
        raise RuntimeError(f"the program ended with {done.returncode}: {said[-2000:]}")
    # Some clients print a line of their own there, of an error in a handler for example.
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith(b"{")]
