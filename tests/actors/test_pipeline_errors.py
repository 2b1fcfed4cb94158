"""What a handler raises goes no further than its own call; only an interrupt of the process does."""

from typing import Any, NoReturn

import pytest
import trio
from trio.testing import MockClock

from exeunt import tool
from exeunt.actors.events import SessionShutdown, ToolExecutionComplete, TurnEnd
from exeunt.actors.text import cause_of
from exeunt.testing import Gate, ScriptedModel, Sleepy, call, checked_host
from tests.actors.turn_support import calls_counted, ends, logged, open_session, outcomes, watch


async def text_of(error: BaseException) -> tuple[str, str | None]:
    """What the model reads of a tool that raises *error*, and what the log says."""

    @tool
    async def act() -> NoReturn:
        raise error

    model = ScriptedModel([call("act"), "noted"])
    async with checked_host() as host:
        session = await open_session(host, model, act)
        reply = await session.send_and_wait("go")

        assert reply.content == "noted"
        assert calls_counted(host) == {("act", "failure", "false"): 1}
        assert session.statistics().restarts == 0
        (end,) = await logged(session, ToolExecutionComplete)
    model.verify()
    shown = model.requests[1].results["call_1"]
    return shown.removeprefix(
        "Failed to execute `act` tool with arguments: {} due to error: "
    ), end.error_message


class Unprintable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (OSError("disk full"), "OSError: disk full"),
        (ExceptionGroup("nursery", [ValueError("a")]), "ValueError: a"),
        (
            ExceptionGroup(
                "outer", [KeyError("k"), ExceptionGroup("inner", [OSError("b"), ValueError("c")])]
            ),
            "KeyError: 'k'; OSError: b; ValueError: c",
        ),
        (
            ExceptionGroup("many", [ValueError(str(number)) for number in range(9)]),
            "ValueError: 0; ValueError: 1; ValueError: 2; ValueError: 3; ValueError: 4; and 4 more",
        ),
        (Unprintable(), "Unprintable: its text cannot be shown"),
        (ValueError("half a pair \ud83d"), "ValueError: half a pair \ufffd"),
        (trio.TooSlowError("upstream"), "TooSlowError: upstream"),
    ],
)
async def test_the_model_and_the_log_read_the_true_cause(
    autojump_clock: MockClock, error: Exception, text: str
) -> None:
    assert await text_of(error) == (text, text)


async def test_errors_of_a_handlers_own_nursery_are_a_failure_that_names_them(
    autojump_clock: MockClock,
) -> None:
    nap = Sleepy()

    @tool
    async def fan_out() -> None:
        async def one() -> None:
            await trio.sleep(1)
            raise ConnectionError("peer gone")

        async with trio.open_nursery() as nursery:
            nursery.start_soon(one)
            nursery.start_soon(nap)

    model = ScriptedModel([call("fan_out"), "noted"])
    async with checked_host() as host:
        session = await open_session(host, model, fan_out)
        await session.send_and_wait("go")

        assert model.requests[1].results["call_1"].endswith("due to error: ConnectionError: peer gone")
        assert [trace.how for trace in nap.calls] == ["cancelled"]
        assert session.statistics().restarts == 0
    model.verify()


async def test_a_handler_with_a_nursery_of_its_own_can_time_out_and_be_aborted(
    autojump_clock: MockClock,
) -> None:
    nap = Sleepy()

    @tool(timeout=5)
    async def fan_out() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(nap)
            nursery.start_soon(nap)

    model = ScriptedModel([call("fan_out"), "noted", call("fan_out")])
    async with checked_host() as host:
        session = await open_session(host, model, fan_out)
        await session.send_and_wait("go")
        assert model.requests[1].results == {"call_1": "The tool 'fan_out' timed out after 5 s."}

        await session.send("again")
        await nap.entered(4)
        await session.abort()
        assert await outcomes(session) == [("fan_out", "timeout"), ("fan_out", "cancelled")]
        assert [trace.how for trace in nap.calls] == ["cancelled"] * 4
        assert session.statistics().restarts == 0
    model.verify()


async def fails_while_cancelled() -> None:
    """A nursery in which one task hears the cancellation, and another answers it with an error."""

    async def untidy() -> None:
        try:
            await trio.sleep_forever()
        finally:
            raise OSError("cannot close")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(untidy)
        nursery.start_soon(trio.sleep_forever)


@pytest.mark.parametrize("where", ["handler", "on_pre_tool_use", "on_post_tool_use", "on_permission_request"])
async def test_an_error_beside_the_cancellation_harms_nobody(autojump_clock: MockClock, where: str) -> None:
    began = trio.Event()

    @tool
    async def act() -> str:
        if where == "handler":
            began.set()
            await fails_while_cancelled()
        return "acted"

    async def foreign(first: Any, invocation: Any) -> None:
        began.set()
        await fails_while_cancelled()

    options = {} if where == "handler" else {where: foreign}
    model = ScriptedModel([call("act"), "hi"])
    async with checked_host() as host:
        session = await open_session(host, model, act, **options)
        await session.send("go")
        await began.wait()
        await session.abort()

        # After the post hook has begun the work is done, and stays done.
        assert await outcomes(session) == [("act", "success" if where == "on_post_tool_use" else "cancelled")]
        assert await ends(session) == ["aborted"]
        assert session.statistics().restarts == 0
        assert (await session.send_and_wait("hello")).content == "hi"
    model.verify()


async def test_a_tool_that_does_not_expose_its_errors_keeps_them_for_the_log(
    autojump_clock: MockClock,
) -> None:
    seen: list[str] = []

    @tool(expose_errors=False)
    async def login(user: str) -> None:
        raise PermissionError("password 'hunter2' is wrong")

    def note(hook_input: Any, invocation: Any) -> None:
        seen.append(hook_input.error)

    model = ScriptedModel([call("login", user="ada"), "hm"])
    async with checked_host() as host:
        session = await open_session(
            host, model, login, on_error_occurred=note, on_post_tool_use_failure=note
        )
        await session.send_and_wait("go")

        assert model.requests[1].results == {
            "call_1": 'Failed to execute `login` tool with arguments: {"user":"ada"} '
            "due to error: Tool execution failed"
        }
        (end,) = await logged(session, ToolExecutionComplete)
        assert end.error_message == "PermissionError: password 'hunter2' is wrong"
        assert seen == [end.error_message] * 2
    model.verify()


async def test_the_error_hook_is_told_of_an_exception_and_of_nothing_else(autojump_clock: MockClock) -> None:
    seen: list[tuple[str, str]] = []

    @tool
    async def act(how: str) -> Any:
        if how == "raise":
            raise LookupError("none")
        return {"text_result_for_llm": how, "result_type": how}

    def note(hook_input: Any, invocation: Any) -> None:
        seen.append((hook_input.error, hook_input.error_context))

    model = ScriptedModel([[call("act", how=how) for how in ("raise", "failure", "denied")], "noted"])
    async with checked_host() as host:
        session = await open_session(host, model, act, on_error_occurred=note)
        await session.send_and_wait("go")

        assert seen == [("LookupError: none", "tool_execution")]
    model.verify()


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, SystemExit])
async def test_an_interrupt_raised_in_a_handler_ends_the_host(
    autojump_clock: MockClock, interrupt: type[BaseException]
) -> None:
    gate = Gate()

    @tool
    async def act() -> None:
        await gate.entered()
        raise interrupt

    model = ScriptedModel([[call("act"), call("gate")]])
    shutdowns: list[SessionShutdown] = []
    turns: list[TurnEnd] = []
    calls: list[ToolExecutionComplete] = []
    with pytest.RaisesGroup(interrupt, flatten_subgroups=True, allow_unwrapped=True):
        async with checked_host(settled=False) as host:
            session = await open_session(host, model, act, tool("gate")(gate))
            shutdowns = watch(session, SessionShutdown)
            turns = watch(session, TurnEnd)
            calls = watch(session, ToolExecutionComplete)
            await session.send("go")
            await trio.sleep_forever()

    # What was in flight has its end all the same, and nothing new began.
    assert sorted((event.tool_name, str(event.outcome)) for event in calls) == [
        ("act", "cancelled"),
        ("gate", "cancelled"),
    ]
    assert [str(event.reason) for event in turns] == ["aborted"]
    assert [event.reason for event in shutdowns] == ["host"]
    assert [trace.how for trace in gate.calls] == ["cancelled"]
    assert trio.current_time() < 5
    model.verify()


async def test_an_interrupt_in_a_group_is_not_swallowed_either(autojump_clock: MockClock) -> None:
    @tool(timeout=2)
    async def act() -> None:
        async def untidy() -> None:
            try:
                await trio.sleep_forever()
            finally:
                raise KeyboardInterrupt

        async with trio.open_nursery() as nursery:
            nursery.start_soon(untidy)
            nursery.start_soon(trio.sleep_forever)

    with pytest.RaisesGroup(KeyboardInterrupt, flatten_subgroups=True, allow_unwrapped=True):
        async with checked_host(settled=False) as host:
            session = await open_session(host, ScriptedModel([call("act")]), act)
            await session.send("go")
            await trio.sleep_forever()


@pytest.mark.parametrize("nursery", [False, True])
async def test_calls_of_a_host_that_is_cancelled_from_outside_have_their_end(
    autojump_clock: MockClock, nursery: bool
) -> None:
    @tool
    async def nap() -> None:
        if nursery:
            async with trio.open_nursery() as inner:
                inner.start_soon(trio.sleep_forever)
                inner.start_soon(trio.sleep_forever)
        else:
            await trio.sleep_forever()

    model = ScriptedModel([[call("nap"), call("nap")]])
    calls: list[ToolExecutionComplete] = []
    turns: list[TurnEnd] = []
    with trio.move_on_after(10):
        async with checked_host(settled=False) as host:
            session = await open_session(host, model, nap)
            calls, turns = watch(session, ToolExecutionComplete), watch(session, TurnEnd)
            await session.send("go")
            await trio.sleep_forever()

    assert trio.current_time() == 10
    assert [str(event.outcome) for event in calls] == ["cancelled", "cancelled"]
    assert [str(event.reason) for event in turns] == ["aborted"]
    model.verify()


def test_a_cause_without_a_text_is_its_type() -> None:
    assert cause_of(AssertionError()) == "AssertionError"
