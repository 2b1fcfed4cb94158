"""What a server says that cannot start: one line, without a trace of the code."""

import socket
import sys

import pytest

from tests.cli.programs import run

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
    ],
)
async def test_wrong_options_are_wrong_usage(options: list[str], said: str) -> None:
    served = await run("serve", "--port", "0", *options)
    assert served.returncode == 2
    assert said in served.stderr
    assert "Traceback" not in served.stderr
