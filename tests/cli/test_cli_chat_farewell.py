"""The last words of a chat are a command that goes on with it."""

import shlex
import sys
from pathlib import Path

import pytest

from exeunt.cli.chat.choice import choose_model
from exeunt.cli.chat.farewell import own_program, resume_command
from exeunt.testing.http_double import open_http_double
from tests.cli.chats import answer, at, contents, needs_terminals
from tests.cli.programs import at_a_terminal, run

URL = "http://x/v1"


@needs_terminals
@pytest.mark.parametrize("own_journal", [False, True])
async def test_the_command_of_the_farewell_goes_on_with_the_session(
    tmp_path: Path, own_journal: bool
) -> None:
    place = {"XDG_DATA_HOME": str(tmp_path), "MY_KEY": "key-1"}
    options = ["--system", 'Don\'t be "rude"; $HOME', "--api-key-env", "MY_KEY"]
    if own_journal:
        options += ["--journal", f"sqlite:///{tmp_path}/my journal.sqlite3"]
    async with open_http_double(answer("one"), answer("two")) as double:
        async with at_a_terminal(*at(double), *options, **place) as terminal:
            await terminal.expect("> ")
            await terminal.type("first\n")
            await terminal.expect("one")
            await terminal.expect("> ")
            await terminal.type("/quit\n")
            await terminal.expect("Kept. To go on:\n")
            assert await terminal.ended() == 0
        pasted = terminal.text.rstrip("\n").rpartition("\n")[2]
        program, *arguments = shlex.split(pasted)
        done = await run(*arguments, stdin=b"second\n", **place)
    assert program == "exeunt"
    assert (done.returncode, done.stdout, done.stderr) == (0, "two\n", "")
    assert contents(double, 1) == ['Don\'t be "rude"; $HOME', "first", "one", "second"]
    assert double.requests[1].headers["authorization"] == "Bearer key-1"


@needs_terminals
async def test_a_chat_that_is_not_kept_does_not_say_how_to_come_back(tmp_path: Path) -> None:
    async with (
        open_http_double() as double,
        at_a_terminal(*at(double), "--journal", "memory:", XDG_DATA_HOME=str(tmp_path)) as terminal,
    ):
        await terminal.expect("> ")
        await terminal.type("/quit\n")
        assert await terminal.ended() == 0
        assert "Kept" not in terminal.text


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"local": True}, "exeunt chat --local --resume a"),
        ({"gguf": Path("my model.gguf")}, "exeunt chat --gguf 'my model.gguf' --resume a"),
        ({"base_url": URL, "model": "m"}, f"exeunt chat --base-url {URL} --model m --resume a"),
        (
            {"base_url": URL, "model": "m", "provider": "anthropic"},
            f"exeunt chat --provider anthropic --base-url {URL} --model m --resume a",
        ),
        (
            {"base_url": URL, "model": "m", "wire_api": "responses"},
            f"exeunt chat --wire-api responses --base-url {URL} --model m --resume a",
        ),
    ],
)
def test_the_command_names_the_model(options: dict[str, object], expected: str) -> None:
    choice = choose_model(**options, environment={})  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    assert resume_command(choice, "a", platform="linux") == expected


def test_on_windows_the_command_is_quoted_as_its_shell_wants_it() -> None:
    choice = choose_model(gguf=Path("my model.gguf"), environment={})
    expected = 'exeunt chat --gguf "my model.gguf" --resume a'
    assert resume_command(choice, "a", platform="win32") == expected


def test_a_key_does_not_stand_in_the_command() -> None:
    choice = choose_model(base_url=URL, model="m", api_key_env="K", environment={"K": "very-secret"})
    command = resume_command(choice, "a", platform="linux")
    assert command == f"exeunt chat --base-url {URL} --model m --api-key-env K --resume a"


@pytest.mark.skipif(sys.platform == "win32", reason="there a program is found by its suffix")
def test_a_program_that_is_not_on_the_path_is_called_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "exeunt"
    program.touch(mode=0o700)
    monkeypatch.setenv("PATH", "")
    assert own_program(str(program)) == str(program)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert own_program(str(program)) == "exeunt"
    assert own_program("-c") == "exeunt"
