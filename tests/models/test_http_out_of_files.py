"""What becomes of a model call when this process may open no more files."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import trio

from exeunt.testing.http_double import open_http_double
from tests.models.strict_server import recovered

PROGRAM = Path(__file__).with_name("out_of_files.py")

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no limit of open files")


async def run(*urls: str) -> dict[str, Any]:
    done = await trio.run_process([sys.executable, str(PROGRAM), *urls], capture_stdout=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost"])
async def test_a_turn_says_that_no_file_was_left_and_goes_on_when_there_is_one_again(name: str) -> None:
    async with open_http_double() as double:
        double.otherwise = recovered
        found = await run(f"http://{name}:{double.port}/v1")
    # Both attempts of the first message, and the first of the second.
    assert found["failures"] == ["overloaded"] * 3
    assert found["said"] == (
        f"cannot connect to {name}:{double.port}: this process has as many files open as it may (64): "
        "raise the limit (ulimit -n)"
    )
    assert found["then"] == "Recovered."


async def test_connections_that_nobody_uses_make_room() -> None:
    async with open_http_double() as used, open_http_double() as idle:
        used.otherwise = idle.otherwise = recovered
        found = await run(f"http://127.0.0.1:{used.port}/v1", f"http://127.0.0.1:{idle.port}/v1")
    assert (found["said"], found["failures"], found["then"]) == ("Recovered.", [], "Recovered.")
