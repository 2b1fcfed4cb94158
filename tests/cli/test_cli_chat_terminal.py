"""`exeunt chat` at a terminal: what a person types, and what Ctrl-C and Ctrl-D do."""

from exeunt.testing.http_double import open_http_double
from tests.cli.chats import answer, at, contents, endless, needs_terminals
from tests.cli.programs import Terminal, at_a_terminal


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
