"""What a server says that cannot start: one line, without a trace of the code."""

import re
import socket
import sys
from pathlib import Path

import pytest

from tests.cli.programs import run


def entries(folder: Path) -> list[Path]:
    return list(folder.iterdir())


def variables() -> set[str]:
    """The variables that the servers read."""
    sources = Path(__file__).parents[2].glob("exeunt/cli/serve/*.py")
    return {name for path in sources for name in re.findall(r'"(EXEUNT_[A-Z_]+)"', path.read_text())}


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


@pytest.mark.parametrize("flag", ["--headless", "--server"])  # of the clients, some say this and some that
async def test_a_port_that_cannot_exist_is_refused_by_the_runtime_too(flag: str) -> None:
    runtime = await run(flag, "--port", "99999", program=RUNTIME)
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
        (["--model", ""], "'--model': it is empty: leave the option out"),
        (["--attachments-root", ""], "'--attachments-root': it is empty: leave the option out"),
        (["--config", "/"], "exeunt serve: / cannot be read: Is a directory\n"),
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


async def test_a_wait_for_a_journal_that_is_not_named_is_wrong_usage() -> None:
    served = await run("serve", "--port", "0", "--journal-wait", "5")
    assert (served.returncode, served.stdout) == (2, "")
    assert served.stderr == (
        "exeunt serve: --journal-wait is for a journal, and there is none: name it by --journal\n"
    )


async def test_a_server_says_that_it_waits_for_its_database_and_then_that_it_is_not_there() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    url = f"postgresql://ada:secret@127.0.0.1:{port}/plays"
    served = await run("serve", "--port", "0", "--journal", url, "--journal-wait", "1")
    assert (served.returncode, served.stdout) == (1, "")
    assert (
        f"the journal postgresql:127.0.0.1:{port}/plays is unavailable; it is waited for, 1 s"
        in served.stderr
    )
    assert served.stderr.splitlines()[-1].startswith(
        f"exeunt: postgresql:127.0.0.1:{port}/plays cannot be opened: "
    )
    assert "secret" not in served.stderr


async def test_an_address_that_no_machine_has_is_one_line() -> None:
    served = await run("serve", "--port", "0", "--host", "nowhere.invalid", EXEUNT_CONNECTION_TOKEN="t")
    assert (served.returncode, served.stdout) == (1, "")
    assert served.stderr.startswith("exeunt: cannot listen at nowhere.invalid, port 0: ")
    assert served.stderr.endswith(". Give another address: one of this machine\n")


@pytest.mark.parametrize("seconds", ["-1", "nan", "inf", "soon"])
async def test_a_time_that_is_none_is_told_by_the_name_of_its_flag(seconds: str) -> None:
    runtime = await run("--session-idle-timeout", seconds, program=RUNTIME)
    assert runtime.returncode == 2
    said = f"argument --session-idle-timeout: '{seconds}' is no time: give seconds, or 0 for never\n"
    assert runtime.stderr.endswith(said)


async def test_the_help_of_the_runtime_fits_80_columns_and_names_the_variables_that_it_reads() -> None:
    runtime = await run("--help", program=RUNTIME, COLUMNS="80")
    assert runtime.returncode == 0
    assert max(len(line) for line in runtime.stdout.splitlines()) <= 80
    read = variables()
    told = {name for name in read if name in runtime.stdout}
    told |= {name for name in read if f" _{name.removeprefix('EXEUNT_PROVIDER_')}" in runtime.stdout}
    assert read - told == set()
    assert len(read) > 10


async def test_a_runtime_that_is_told_nonsense_makes_nothing_either(tmp_path: Path) -> None:
    journal = f"sqlite:///{tmp_path / 'log.sqlite3'}"
    runtime = await run("--headless", "--host", "", "--journal", journal, program=RUNTIME)
    assert (runtime.returncode, runtime.stdout) == (1, "")
    assert runtime.stderr.startswith("exeunt-runtime: the address to listen at is empty")
    assert entries(tmp_path) == []


@pytest.mark.parametrize(
    ("main", "arguments", "status"),
    [
        ("exeunt.cli", ("serve", "--port", "0"), 2),
        ("exeunt.cli.serve.runtime", ("--stdio",), 1),
        ("exeunt.cli.serve.runtime", ("--port", "0"), 1),
    ],
)
async def test_without_the_extra_a_server_says_so_and_makes_nothing(
    main: str, arguments: tuple[str, ...], status: int, tmp_path: Path
) -> None:
    without = f"import sys; sys.modules['jsonschema_rs'] = None; from {main} import main; main()"
    served = await run(
        *arguments, "--journal", f"sqlite:///{tmp_path}/s.sqlite3", program=(sys.executable, "-c", without)
    )
    assert served.returncode == status
    assert served.stderr.endswith('a server for clients needs an extra: pip install "exeunt[wire]"\n')
    assert made_in(tmp_path) == []


def made_in(folder: Path) -> list[Path]:
    """What there is in a folder."""
    return list(folder.iterdir())
