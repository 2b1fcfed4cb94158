"""`exeunt chat` against a server that speaks the OpenAI API: through a pipe, and at a terminal."""

import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import attrs
import msgspec
import pytest
import trio

from exeunt.cli.chat.choice import ApiChoice, LocalChoice, WrongChoice, choose_model
from exeunt.testing.http_double import HttpDouble, HttpReply, HttpRequest, event_stream, open_http_double
from tests.cli.programs import EXEUNT, LONGEST, Terminal, at_a_terminal, environment, run
from tests.models.anthropic_support import recovered as messages_recovered
from tests.models.strict_server import RECOVERED

needs_terminals = pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals are a matter of POSIX")


def chunk(text: str, finish_reason: str | None = None) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": finish_reason}]}


def answer(*parts: str | float) -> HttpReply:
    """A streamed answer in pieces; a number is a pause in seconds."""
    whole = event_stream(chunk("", "stop"))
    body: list[bytes | float] = [_event(part) if isinstance(part, str) else part for part in parts]
    return attrs.evolve(whole, body=[*body, *whole.packets])


def _event(text: str) -> bytes:
    return b"data: " + msgspec.json.encode(chunk(text)) + b"\n\n"


def endless(*words: str) -> HttpReply:
    """The beginning of a streamed answer that goes on for ever."""
    return HttpReply(body=[*map(_event, words), 3600.0], content_type="text/event-stream", framing="chunked")


def failure(status: int, message: str) -> HttpReply:
    return HttpReply(status=status, body=msgspec.json.encode({"error": {"message": message}}))


def at(double: HttpDouble) -> Sequence[str]:
    return ("chat", "--base-url", f"http://127.0.0.1:{double.port}/v1", "--model", "test-model")


def contents(double: HttpDouble, number: int) -> list[str]:
    return [message["content"] for message in double.requests[number].json["messages"]]


# --- Which model ---------------------------------------------------------------------------------------------


async def test_without_a_model_the_three_ways_are_shown() -> None:
    done = await run("chat")
    assert (done.returncode, done.stdout) == (2, "")
    assert all(way in done.stderr for way in ("--local", "--gguf PATH", "--base-url URL --model NAME"))


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"model": "m"}, "--model needs --base-url"),
        ({"base_url": "http://x/v1"}, "--base-url needs --model"),
        ({"local": True, "model": "m"}, "do not go with"),
        ({"local": True, "provider": "anthropic"}, "do not go with"),
        ({"provider": "oracle", "base_url": "http://x", "model": "m"}, "use one of openai, anthropic"),
        ({"provider": "anthropic"}, "needs --model"),
        ({"local": True, "wire_api": "responses"}, "do not go with"),
        ({"wire_api": "soap", "base_url": "http://x", "model": "m"}, "use one of completions, responses"),
        ({"wire_api": "responses", "provider": "anthropic", "model": "m"}, "of type openai"),
        ({"gguf": Path("x.gguf"), "base_url": "http://x/v1"}, "do not go with"),
        ({"local": True, "api_key_env": "K"}, "--api-key-env goes with"),
        ({"base_url": "http://x/v1", "model": "m", "api_key_env": "UNSET"}, "UNSET"),
    ],
)
def test_options_that_do_not_fit_are_refused(options: dict[str, Any], named: str) -> None:
    with pytest.raises(WrongChoice, match=named):
        choose_model(**options, environment={})


@pytest.mark.parametrize(
    ("environment", "named", "key", "variable"),
    [
        ({}, None, None, None),
        ({"OPENAI_API_KEY": "o"}, None, "o", "OPENAI_API_KEY"),
        ({"OPENAI_API_KEY": "o", "EXEUNT_API_KEY": "e"}, None, "e", "EXEUNT_API_KEY"),
        ({"OPENAI_API_KEY": "o", "EXEUNT_API_KEY": ""}, None, "o", "OPENAI_API_KEY"),
        ({"OPENAI_API_KEY": "o", "MINE": "m"}, "MINE", "m", "MINE"),
    ],
)
def test_the_key_comes_from_the_first_variable_that_is_set(
    environment: dict[str, str], named: str | None, key: str | None, variable: str | None
) -> None:
    chosen = choose_model(base_url="http://x/v1", model="m", api_key_env=named, environment=environment)
    assert isinstance(chosen, ApiChoice)
    assert (chosen.api_key, chosen.key_variable) == (key, variable)


@pytest.mark.parametrize(
    ("environment", "key"),
    [
        ({"ANTHROPIC_API_KEY": "a", "OPENAI_API_KEY": "o"}, "a"),
        ({"ANTHROPIC_API_KEY": "a", "EXEUNT_API_KEY": "e"}, "e"),
        ({"OPENAI_API_KEY": "o"}, None),
    ],
)
def test_the_key_of_another_maker_is_not_sent_to_anthropic(
    environment: dict[str, str], key: str | None
) -> None:
    chosen = choose_model(provider="anthropic", model="m", environment=environment)
    assert isinstance(chosen, ApiChoice)
    assert (chosen.api_key, chosen.base_url) == (key, "https://api.anthropic.com")


async def test_a_chat_with_a_responses_api() -> None:
    async with open_http_double() as double:
        double.otherwise = HttpReply(status=400)
        done = await run(*at(double), "--wire-api", "responses", stdin=b"hello\n")
        assert done.returncode == 1
        assert {request.target for request in double.requests} == {"/v1/responses"}


async def test_a_chat_with_a_messages_api() -> None:
    async with open_http_double() as double:
        double.otherwise = messages_recovered
        url = f"http://127.0.0.1:{double.port}"
        chosen = ("--provider", "anthropic", "--base-url", url, "--model", "claude-m", "--journal", "memory:")
        done = await run("chat", *chosen, stdin=b"hello\n")
        (request,) = double.requests
    assert done.returncode == 0
    assert RECOVERED in done.stdout
    assert (request.target, request.json["model"]) == ("/v1/messages", "claude-m")


def test_a_key_is_not_shown_by_accident() -> None:
    chosen = choose_model(base_url="http://x/v1", model="m", environment={"EXEUNT_API_KEY": "very-secret"})
    assert "very-secret" not in repr(chosen)


def test_a_file_is_a_model_on_this_machine() -> None:
    assert choose_model(gguf=Path("m.gguf")) == LocalChoice(gguf=Path("m.gguf"))
    assert choose_model(local=True) == LocalChoice(gguf=None)


async def test_a_model_file_that_is_none_is_named_in_one_line(tmp_path: Path) -> None:
    done = await run("chat", "--gguf", str(tmp_path / "none.gguf"))
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("exeunt: ")
    assert len(done.stderr.splitlines()) == 1


async def test_a_base_url_that_is_none_is_named_in_one_line() -> None:
    done = await run("chat", "--base-url", "nonsense", "--model", "m")
    assert done.returncode == 1
    assert done.stderr.startswith("exeunt: ")
    assert "base_url" in done.stderr
    assert "Traceback" not in done.stderr


# --- Through a pipe ------------------------------------------------------------------------------------------


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
    cut = attrs.evolve(endless("One "), body=[_event("One ")], end="reset")
    async with open_http_double(cut, answer("Two.")) as double:
        done = await run(*at(double), stdin=b"a\n")
    assert (done.returncode, done.stdout, done.stderr) == (0, "Two.\n", "")
    assert len(double.requests) == 2


# --- At a terminal -------------------------------------------------------------------------------------------


async def greeted(terminal: Terminal) -> None:
    await terminal.expect("/help lists the commands.")
    await terminal.expect("> ")


@needs_terminals
async def test_a_person_gets_a_prompt_answers_and_notes() -> None:
    async with (
        open_http_double(answer("Hello."), answer("Afresh.")) as double,
        at_a_terminal(*at(double)) as terminal,
    ):
        await greeted(terminal)
        await terminal.type("hi\n")
        await terminal.expect("Hello.")
        await terminal.expect("> ")
        await terminal.type("/clear again\n")
        await terminal.expect("a new context; 2 messages left the old one")
        await terminal.expect("Afresh.")
        await terminal.expect("> ")
        await terminal.type("\x04")
        assert await terminal.ended() == 0


@needs_terminals
async def test_ctrl_c_aborts_the_answer_and_a_second_one_leaves() -> None:
    async with (
        open_http_double(endless("Once "), answer("Yes?")) as double,
        at_a_terminal(*at(double)) as terminal,
    ):
        await greeted(terminal)
        await terminal.type("tell me\n")
        await terminal.expect("Once")
        await terminal.type("\x03")
        await terminal.expect("aborted")
        await terminal.expect("> ")
        await terminal.type("still there?\n")
        await terminal.expect("Yes?")
        await terminal.expect("> ")
        await terminal.type("\x03")
        await terminal.expect("Ctrl-C again leaves.")
        await terminal.expect("> ")
        await terminal.type("\x03")
        assert await terminal.ended() == 130


@needs_terminals
async def test_a_line_that_is_typed_during_an_answer_is_taken_in_after_it() -> None:
    replies = answer("One ", 1.0, "two."), answer("Three.")
    async with open_http_double(*replies) as double, at_a_terminal(*at(double)) as terminal:
        await greeted(terminal)
        await terminal.type("count\n")
        await terminal.expect("One")
        await terminal.type("and then?\n")
        await terminal.expect("two.")
        await terminal.expect("Three.")
        await terminal.expect("> ")
        await terminal.type("/quit\n")
        assert await terminal.ended() == 0
    assert contents(double, 1) == ["count", "One two.", "and then?"]


@needs_terminals
async def test_a_line_that_ctrl_c_keeps_from_the_model_is_named() -> None:
    async with open_http_double(endless("Once ")) as double, at_a_terminal(*at(double)) as terminal:
        await greeted(terminal)
        await terminal.type("tell me\n")
        await terminal.expect("Once")
        await terminal.type("of a bear\n/help\n")
        await terminal.expect("during an answer there is only /abort")  # so the line before it is accepted
        await terminal.type("\x03")
        await terminal.expect("not taken in, aborted: of a bear")
        await terminal.expect("> ")
        await terminal.type("/quit\n")
        assert await terminal.ended() == 0
    assert len(double.requests) == 1


@needs_terminals
async def test_during_an_answer_abort_ends_it_and_other_commands_wait() -> None:
    async with (
        open_http_double(endless("Once "), answer("And you?")) as double,
        at_a_terminal(*at(double)) as terminal,
    ):
        await greeted(terminal)
        await terminal.type("tell me\n")
        await terminal.expect("Once")
        await terminal.type("/help\n")
        await terminal.expect("during an answer there is only /abort")
        await terminal.type("/abort\n")
        await terminal.expect("aborted")
        await terminal.expect("> ")
        await terminal.type("go on\n")
        await terminal.expect("And you?")
        await terminal.expect("> ")
        await terminal.type("/quit\n")
        assert await terminal.ended() == 0
    assert contents(double, 1)[-1] == "go on"


@needs_terminals
async def test_ctrl_d_during_an_answer_leaves_after_it() -> None:
    async with (
        open_http_double(answer("One ", 1.0, "two.")) as double,
        at_a_terminal(*at(double)) as terminal,
    ):
        await greeted(terminal)
        await terminal.type("count\n")
        await terminal.expect("One")
        await terminal.type("\x04")
        await terminal.expect("two.")
        assert await terminal.ended() == 0


@needs_terminals
async def test_lines_can_be_edited_and_come_back() -> None:
    async with (
        open_http_double(answer("One."), answer("Two.")) as double,
        at_a_terminal(*at(double)) as terminal,
    ):
        await greeted(terminal)
        await terminal.type("bc\x01a\n")  # Ctrl-A goes to the beginning of the line
        await terminal.expect("One.")
        await terminal.expect("> ")
        await terminal.type("\x1b[A\n")  # the arrow up
        await terminal.expect("Two.")
        await terminal.expect("> ")
        await terminal.type("/quit\n")
        assert await terminal.ended() == 0
    assert contents(double, 0) == ["abc"]
    assert contents(double, 1)[-1] == "abc"


@needs_terminals
async def test_the_terminal_is_left_as_it_was() -> None:
    import termios

    async with open_http_double() as double, at_a_terminal(*at(double)) as terminal:
        before = terminal.settings()
        await greeted(terminal)
        assert not terminal.settings()[3] & termios.ICANON, "the editor of lines has changed it"
        await terminal.type("half a line")
        await terminal.expect("half a line")
        await terminal.type("\x03")
        await terminal.expect("Ctrl-C again leaves.")
        await terminal.expect("> half a line")
        await terminal.type("\x03")
        assert await terminal.ended() == 130
        assert terminal.settings() == before


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
