"""Where servers keep files of sessions."""

import os
import sys
from pathlib import Path

import pytest
import trio

from exeunt.cli.serve.provider import base_directory_files, session_files

BIN = Path(sys.executable).parent


@pytest.mark.parametrize(
    ("environ", "option", "expected"),
    [
        ({}, None, None),
        ({"EXEUNT_SESSION_FILES": ""}, None, None),
        ({"COPILOT_HOME": "/base"}, None, None),
        ({"EXEUNT_SESSION_FILES": "/here"}, None, Path("/here")),
        ({"EXEUNT_SESSION_FILES": "/here"}, Path("/there"), Path("/there")),
    ],
)
def test_a_server_keeps_files_where_it_is_told_to(
    environ: dict[str, str], option: Path | None, expected: Path | None
) -> None:
    assert session_files(environ, option) == expected


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({}, None),
        ({"COPILOT_HOME": ""}, None),
        ({"COPILOT_HOME": "/base"}, Path("/base/session-state")),
        ({"COPILOT_HOME": "/base", "EXEUNT_SESSION_FILES": "/here"}, Path("/here")),
    ],
)
def test_a_runtime_keeps_files_below_the_base_directory_of_its_client(
    environ: dict[str, str], expected: Path | None
) -> None:
    assert base_directory_files(environ) == expected


@pytest.mark.parametrize("program", ["serve", "runtime"])
async def test_a_folder_that_cannot_be_written_to_ends_the_server_with_an_error(
    program: str, tmp_path: Path
) -> None:
    file = tmp_path / "file"
    file.write_text("x")
    command = {
        "serve": [BIN / "exeunt", "serve", "--port", "0", "--session-files", file],
        "runtime": [BIN / "exeunt-runtime", "--headless", "--stdio"],
    }[program]
    done = await trio.run_process(
        list(map(str, command)),
        capture_stdout=True,
        capture_stderr=True,
        check=False,
        env={**os.environ, "EXEUNT_SESSION_FILES": str(file)},
    )
    assert done.returncode == 1
    assert b"session files cannot be kept in" in done.stderr
    assert b"Traceback" not in done.stderr
