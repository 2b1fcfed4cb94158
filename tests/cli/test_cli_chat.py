"""`exeunt chat` against a server that speaks the OpenAI API, through a pipe; and which sessions it keeps."""

import signal
import subprocess
from pathlib import Path
from typing import Any

import attrs
import msgspec
import pytest
import trio

from exeunt.testing.http_double import HttpReply, HttpRequest, open_http_double
from tests.cli.chats import answer, at, contents, endless, failure, needs_terminals, piece
from tests.cli.programs import EXEUNT, LONGEST, at_a_terminal, environment, run


async def test_piped_lines_are_answered_one_by_one_on_the_standard_output() -> None:
    async with open_http_double(answer("Hello", " Ada."), answer("You said hello.")) as double:
        lines = b"hello\n\n  \nwhat did I say?"
        done = await run(*at(double), "--system", "Be kind.", stdin=lines, EXEUNT_API_KEY="key-1")
    assert (done.returncode, done.stdout, done.stderr) == (0, "Hello Ada.\nYou said hello.\n", "")
    assert contents(double, 0) == ["Be kind.", "hello"]
    assert contents(double, 1) == ["Be kind.", "hello", "Hello Ada.", "what did I say?"]
    assert double.requests[0].headers["authorization"] == "Bearer key-1"
    assert [tool["function"]["name"] for tool in double.requests[0].json["tools"]] == ["clear_context"]


async def test_an_error_of_the_model_is_one_line_and_the_session_goes_on() -> None:
    async with open_http_double(failure(400, "too much\nof it"), answer("Fine.")) as double:
        done = await run(*at(double), stdin=b"a\nb\n")
    assert (done.returncode, done.stdout) == (1, "Fine.\n")
    assert done.stderr.startswith("no answer (bad_request)")
    assert "too much of it" in done.stderr
    assert len(done.stderr.splitlines()) == 1


async def test_an_answer_cannot_write_control_codes() -> None:
    async with open_http_double(answer("red \x1b[31m", "alert\x07\x9b2J\tend")) as double:
        done = await run(*at(double), stdin=b"a\n")
    assert done.stdout == "red [31malert2J\tend\n"


async def test_clear_starts_a_new_context_and_its_seed_is_answered() -> None:
    async with open_http_double(answer("One."), answer("Two."), answer("Three.")) as double:
        done = await run(*at(double), "--system", "S", stdin=b"a\n/clear  go on with b\nc\n")
    assert (done.returncode, done.stdout) == (0, "One.\nTwo.\nThree.\n")
    assert contents(double, 1) == ["S", "go on with b"]
    assert contents(double, 2) == ["S", "go on with b", "Two.", "c"]


@pytest.mark.parametrize("line", ["/clear", "/nope", "/clear   "])
async def test_a_wrong_command_is_named_and_the_chat_goes_on(line: str) -> None:
    async with open_http_double(answer("One.")) as double:
        done = await run(*at(double), stdin=f"{line}\na\n".encode())
    assert (done.returncode, done.stdout) == (1, "One.\n")
    assert line.strip() in done.stderr


async def test_a_message_may_begin_with_a_slash_behind_a_space() -> None:
    async with open_http_double(answer("One.")) as double:
        await run(*at(double), stdin=b" /etc/hosts is a file\n")
    assert contents(double, 0) == ["/etc/hosts is a file"]


async def test_context_and_events_are_shown_in_80_columns() -> None:
    async with open_http_double(answer("word " * 40)) as double:
        lines = f"{'long ' * 40}\n/context\n/events 3\n/events many\n/help\n/abort\n".encode()
        done = await run(*at(double), "--system", "S", stdin=lines)
    shown = done.stdout.splitlines()[1:]
    assert shown[0] == "system     S"
    assert shown[1].startswith("user       long long")
    assert shown[2].startswith("assistant  word word")
    assert [line.split()[2] for line in shown[3:6]] == ["assistant.message", "assistant.turn_end", "turn.end"]
    assert shown[6] == "/events takes a number of events, not 'many'"
    assert shown[-1] == "nothing is under way"
    assert max(map(len, shown)) <= 80


async def test_a_line_that_is_no_text_is_sent_as_well_as_it_can_be() -> None:
    async with open_http_double(answer("One.")) as double:
        done = await run(*at(double), stdin=b"caf\xe9\r\n")
    assert done.returncode == 0
    assert contents(double, 0) == ["caf\N{REPLACEMENT CHARACTER}"]


async def test_ctrl_c_ends_a_chat_in_a_pipe() -> None:
    asked = trio.Event()

    def keep_waiting(_: HttpRequest) -> HttpReply:
        asked.set()
        return endless("One ")

    async with open_http_double(keep_waiting) as double:
        with trio.fail_after(LONGEST):
            process = await trio.lowlevel.open_process(
                [*EXEUNT, *at(double)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment()
            )
            assert process.stdin is not None
            assert process.stdout is not None
            async with process.stdin, process.stdout:
                await process.stdin.send_all(b"a\n")
                await asked.wait()
                process.send_signal(signal.SIGINT)
                assert await process.wait() == 130
                assert await process.stdout.receive_some() == b"", "a piece is no answer"


async def test_an_answer_that_breaks_off_is_asked_for_again_and_only_the_whole_one_is_written() -> None:
    cut = attrs.evolve(endless("One "), body=[piece("One ")], end="reset")
    async with open_http_double(cut, answer("Two.")) as double:
        done = await run(*at(double), stdin=b"a\n")
    assert (done.returncode, done.stdout, done.stderr) == (0, "Two.\n", "")
    assert len(double.requests) == 2


# --- Kept sessions -------------------------------------------------------------------------------------------


async def sessions_in(folder: Path) -> list[dict[str, Any]]:
    done = await run("sessions", "list", "--json", XDG_DATA_HOME=str(folder))
    assert (done.returncode, done.stderr) == (0, "")
    found: list[dict[str, Any]] = msgspec.json.decode(done.stdout)
    return found


async def test_a_chat_is_kept_and_can_be_taken_up_again(tmp_path: Path) -> None:
    async with open_http_double(answer("one"), answer("two")) as double:
        done = await run(*at(double), stdin=b"first\n", XDG_DATA_HOME=str(tmp_path))
        assert (done.returncode, done.stdout) == (0, "one\n")
        [session] = await sessions_in(tmp_path)
        done = await run(
            *at(double), "--resume", session["session_id"], stdin=b"second\n", XDG_DATA_HOME=str(tmp_path)
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, "two\n", "")
        assert contents(double, 1) == ["first", "one", "second"]
        assert len(await sessions_in(tmp_path)) == 1


async def test_a_chat_in_memory_leaves_nothing(tmp_path: Path) -> None:
    async with open_http_double(answer("one")) as double:
        done = await run(*at(double), "--journal", "memory:", stdin=b"first\n", XDG_DATA_HOME=str(tmp_path))
    assert (done.returncode, done.stdout) == (0, "one\n")
    assert not (tmp_path / "exeunt").exists()


async def test_a_chat_that_is_not_there_cannot_be_taken_up(tmp_path: Path) -> None:
    async with open_http_double() as double:
        done = await run(*at(double), "--resume", "nobody", stdin=b"first\n", XDG_DATA_HOME=str(tmp_path))
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "exeunt: no session has the id 'nobody'\n"


async def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "exeunt").write_text("a file")
    async with open_http_double() as double:
        done = await run(*at(double), stdin=b"first\n", XDG_DATA_HOME=str(tmp_path))
    assert (done.returncode, done.stdout) == (1, "")
    assert str(tmp_path) in done.stderr
    assert done.stderr.count("\n") == 1


@needs_terminals
async def test_a_terminal_shows_what_was_said_before_and_how_to_come_back(tmp_path: Path) -> None:
    place = {"XDG_DATA_HOME": str(tmp_path)}
    async with open_http_double(answer("one")) as double:
        await run(*at(double), stdin=b"first\n", **place)
        [session] = await sessions_in(tmp_path)
        async with at_a_terminal(*at(double), "--resume", session["session_id"], **place) as terminal:
            await terminal.expect("assistant  one")
            await terminal.expect("> ")
            await terminal.type("/quit\n")
            await terminal.expect("Kept. To go on:")
            assert await terminal.ended() == 0
