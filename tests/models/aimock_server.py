"""Starts a stand-in for model APIs that others wrote: `@copilotkit/aimock`, run by Node."""

import json
import shutil
import subprocess
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

needs_node = pytest.mark.skipif(
    shutil.which("node") is None or shutil.which("npm") is None, reason="Node is not installed"
)

CACHE = Path(__file__).parents[2] / ".cache" / "aimock"
PACKAGE = "@copilotkit/aimock@1.43.0"
LARGEST_INSTALL = 50.0
"""Seconds. It is one package without dependencies; the time limit of a test is a minute."""


def installed() -> Path:
    """Install the package if it is not there; return its program."""
    program = CACHE / "node_modules" / "@copilotkit" / "aimock" / "dist" / "cli.js"
    if not program.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        subprocess.run(
            ["npm", "install", "--no-audit", "--no-fund", "--silent", "--prefix", str(CACHE), PACKAGE],
            check=True,
            capture_output=True,
            timeout=LARGEST_INSTALL,
        )
    return program


@asynccontextmanager
async def open_aimock(folder: Path, fixtures: Mapping[str, Any]) -> AsyncGenerator[str]:
    """Serve *fixtures*, written to *folder*, while the context is open; give the server's address."""
    file = folder / "fixtures.json"
    file.write_text(json.dumps(fixtures))
    # A port that is free now: the program prints the one it was given, so it cannot choose.
    listener = trio.socket.socket()
    await listener.bind(("127.0.0.1", 0))
    port: int = listener.getsockname()[1]
    listener.close()
    program = await trio.to_thread.run_sync(installed)
    command = [
        "node",
        str(program),
        "-p",
        str(port),
        "-f",
        str(file),
        "--log-level",
        "silent",
        "--latency",
        "1",
    ]
    async with trio.open_nursery() as nursery:
        process: trio.Process = await nursery.start(trio.run_process, command)
        with trio.fail_after(15):
            while True:
                try:
                    await (await trio.open_tcp_stream("127.0.0.1", port)).aclose()
                    break
                except OSError:
                    assert process.poll() is None
                    await trio.sleep(0.05)
        try:
            yield f"http://127.0.0.1:{port}"
        finally:
            nursery.cancel_scope.cancel()
