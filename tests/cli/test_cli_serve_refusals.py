"""What a server says that cannot start: one line, without a trace of the code."""

import socket
import sys
from pathlib import Path

import pytest

from tests.cli.programs import run


def entries(folder: Path) -> list[Path]:
    return list(folder.iterdir())


RUNTIME = (sys.executable, "-c", "from exeunt.cli.serve.runtime import main; main()")


async def test_a_port_that_is_taken_is_one_line() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        served = await run("serve", "--port", port)
        runtime = await run("--headless", "--port", port, program=RUNTIME)
    said = f"cannot listen at 127.0.0.1, port {port}: Address already in use. Give another port or path, or 0 for any"
    assert (served.returncode, served.stdout, served.stderr) == (1, "", f"exeunt: {said} free port\n")
    assert (runtime.returncode, runtime.stdout, runtime.stderr) == (
        1,
        "",
        f"exeunt-runtime: {said} free port\n",
    )


async def test_a_port_that_cannot_exist_is_refused_by_the_runtime_too() -> None:
    runtime = await run("--headless", "--port", "99999", program=RUNTIME)
    assert runtime.returncode == 1
    assert runtime.stderr == "exeunt-runtime: port is 99999: give a number from 0 (any free one) to 65535\n"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--log-level", "loud"], "--log-level"),
        (["--base-url", "127.0.0.1:8080"], "base_url must begin with http:// or https://"),
        (["--wire-api", "foo"], "use one of completions, responses"),
        (
            ["--auto-model", "m"],
            "exeunt serve: --auto-model is for the server's own provider, and there is none",
        ),
        (["--host", ""], "exeunt serve: the address to listen at is empty: leave it out for 127.0.0.1"),
        (["--host", " "], "exeunt serve: the address to listen at is empty"),
        (
            ["--host", "0.0.0.0"],
            "exeunt serve: 0.0.0.0 can be reached from other machines: give the server a token",
        ),
        (
            ["--journal", "mongo://x"],
            "exeunt serve: a journal's URL begins with memory:, sqlite:/// or postgresql://",
        ),
        (["--session-idle-timeout", "nan"], "--session-idle-timeout"),
        (["--otel-content"], "say where they go, by --otel-endpoint or --otel-file"),
        (
            ["--otel-file", "none/traces"],
            "exeunt serve: traces cannot go to 'none/traces': there is no folder 'none'",
        ),
    ],
)
async def test_wrong_options_are_wrong_usage_and_nothing_is_made(
    options: list[str], said: str, tmp_path: Path
) -> None:
    journal = tmp_path / "log.sqlite3"
    served = await run("serve", "--port", "0", "--journal", f"sqlite:///{journal}", *options)
    assert (served.returncode, served.stdout) == (2, "")
    assert said in served.stderr
    assert "Traceback" not in served.stderr
    assert entries(tmp_path) == []


async def test_an_address_that_no_machine_has_is_one_line() -> None:
    served = await run("serve", "--port", "0", "--host", "nowhere.invalid", EXEUNT_CONNECTION_TOKEN="t")
    assert (served.returncode, served.stdout) == (1, "")
    assert served.stderr.startswith("exeunt: cannot listen at nowhere.invalid, port 0: ")
    assert served.stderr.endswith(". Give another address: one of this machine\n")


async def test_a_runtime_that_is_told_nonsense_makes_nothing_either(tmp_path: Path) -> None:
    journal = f"sqlite:///{tmp_path / 'log.sqlite3'}"
    runtime = await run("--headless", "--host", "", "--journal", journal, program=RUNTIME)
    assert (runtime.returncode, runtime.stdout) == (1, "")
    assert runtime.stderr.startswith("exeunt-runtime: the address to listen at is empty")
    assert entries(tmp_path) == []
