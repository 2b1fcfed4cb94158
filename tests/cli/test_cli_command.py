"""The command as a whole: help, versions, wrong options."""

import subprocess
import sys
from importlib.metadata import version

import pytest

from tests.cli.programs import run


async def test_help_names_every_command_and_fits_80_columns() -> None:
    done = await run("--help")
    assert done.returncode == 0
    assert all(command in done.stdout for command in ("demo", "chat", "doctor", "--version"))
    assert max(len(line) for line in done.stdout.splitlines()) <= 80
    assert "\x1b" not in done.stdout


@pytest.mark.parametrize("command", ["demo", "chat", "doctor", "serve"])
async def test_each_command_has_help_that_fits_80_columns(command: str) -> None:
    done = await run(command, "--help")
    assert done.returncode == 0
    assert f"Usage: exeunt {command}" in done.stdout
    assert max(len(line) for line in done.stdout.splitlines()) <= 80


async def test_the_version_is_that_of_the_package() -> None:
    done = await run("--version")
    assert (done.returncode, done.stdout) == (0, f"exeunt {version('exeunt')}\n")


async def test_without_a_command_there_is_help() -> None:
    done = await run()
    assert done.returncode == 2
    assert "Usage: exeunt" in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("dmo",), "demo"),
        (("demo", "--sessions", "0"), "--sessions"),
        (("demo", "--sessions", "many"), "--sessions"),
        (("demo", "--port", "70000"), "--port"),
        (("demo", "--wrong"), "--wrong"),
        (("doctor", "extra"), "extra"),
    ],
)
async def test_wrong_usage_is_named_with_status_2(arguments: tuple[str, ...], named: str) -> None:
    done = await run(*arguments)
    assert done.returncode == 2
    assert named in done.stderr
    assert "Traceback" not in done.stderr


def test_help_loads_no_door_and_no_demo() -> None:
    program = (
        "import sys\nfrom exeunt.cli import main\nsys.argv = ['exeunt', '--help']\n"
        "try:\n    main()\nexcept SystemExit:\n    print(*sorted(sys.modules), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = set(done.stderr.split())
    assert "exeunt.cli.app" in loaded
    unwanted = {
        "openai",
        "exeunt.demo",
        "exeunt.testing",
        "exeunt.models.openai",
        "exeunt.cli.chat",
        "readline",
    }
    assert unwanted.isdisjoint(loaded)
