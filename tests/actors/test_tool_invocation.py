"""What a handler is told about its call, and how a synchronous one calls back."""

import threading
from collections.abc import Callable
from typing import Any, cast

import pytest
import trio

from exeunt.actors.errors import NotInWorkerThread
from exeunt.actors.tools import ToolInvocation
from exeunt.actors.user_input import UserInputResponse


class Call:
    def __init__(self) -> None:
        self.cancelled = False
        self.idempotency_key = "key-1"

    async def ask_user(
        self, question: str, choices: Any, allow_freeform: bool, seconds: float | None
    ) -> UserInputResponse:
        await trio.lowlevel.checkpoint()
        return UserInputResponse(f"{question} {choices} {allow_freeform} {seconds}")


def invocation(arguments: str = "{}", call: Call | None = None) -> ToolInvocation:
    return ToolInvocation(
        "s1", "call_1", "work", arguments, call or Call(), session=cast("Any", "the session")
    )


async def double(number: int) -> int:
    await trio.lowlevel.checkpoint()
    return 2 * number


def test_an_invocation_says_which_call_it_is() -> None:
    made: Any = invocation('{"a": 1}')

    assert (made.session, made.session_id, made.tool_call_id) == ("the session", "s1", "call_1")
    assert (made.tool_name, made.idempotency_key) == ("work", "key-1")
    assert (made.arguments_json, made.arguments) == ('{"a": 1}', {"a": 1})


def test_arguments_are_decoded_once() -> None:
    made = invocation(r'{"a": "\ud83d"}')

    assert made.arguments == {"a": "\ufffd"}
    assert made.arguments is made.arguments
    assert invocation(" ").arguments == {}


def test_cancelled_follows_the_call() -> None:
    call = Call()
    made = invocation(call=call)

    assert not made.cancelled
    call.cancelled = True
    assert made.cancelled


async def test_a_question_is_the_call_s() -> None:
    answer = await invocation().ask_user("Which?", ["red"], allow_freeform=False, timeout=5)
    assert answer.answer == "Which? ['red'] False 5"


async def test_a_synchronous_handler_runs_async_functions_on_the_loop() -> None:
    assert await trio.to_thread.run_sync(lambda: invocation().run(double, 21)) == 42


async def test_an_exception_of_the_async_function_comes_back() -> None:
    async def fail() -> None:
        raise RuntimeError("inner")

    with pytest.raises(RuntimeError, match="inner"):
        await trio.to_thread.run_sync(lambda: invocation().run(fail))


async def test_running_on_the_loop_itself_is_refused() -> None:
    with pytest.raises(NotInWorkerThread, match="wait for itself") as caught:
        invocation().run(double, 1)

    assert caught.value.session_id == "s1"


def in_foreign_thread(function: Callable[[], Any]) -> BaseException | None:
    caught: list[BaseException] = []

    def body() -> None:
        try:
            function()
        except NotInWorkerThread as error:
            caught.append(error)

    thread = threading.Thread(target=body)
    thread.start()
    thread.join()
    return caught[0] if caught else None


def test_running_in_a_foreign_thread_is_refused() -> None:
    error = in_foreign_thread(lambda: invocation().run(double, 1))

    assert isinstance(error, NotInWorkerThread)
    assert "did not start" in str(error)


async def test_after_a_cancellation_nothing_is_run_any_more() -> None:
    entered, leave = threading.Event(), threading.Event()
    ran: list[int] = []
    ended = trio.Event()
    token = trio.lowlevel.current_trio_token()
    outcome: list[BaseException] = []

    async def note() -> None:
        ran.append(1)

    def handler() -> None:
        entered.set()
        leave.wait(30)
        try:
            invocation().run(note)
        except trio.Cancelled as error:  # noqa: ASYNC103 - in a thread, where nothing is to be cancelled
            outcome.append(error)
        token.run_sync_soon(ended.set)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(lambda: trio.to_thread.run_sync(handler, abandon_on_cancel=True))
        await trio.to_thread.run_sync(entered.wait, 30)
        nursery.cancel_scope.cancel()
    leave.set()
    with trio.fail_after(30):
        await ended.wait()

    assert [type(error) for error in outcome] == [trio.Cancelled]
    assert ran == []
