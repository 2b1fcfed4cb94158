"""The doubles misbehave as they say, and only so."""

from collections.abc import AsyncGenerator
from contextlib import aclosing

import pytest
import trio
from trio.testing import MockClock

from exeunt.actors.models import ModelClient, ModelDelta, ModelRequest, ModelResponse
from exeunt.testing import (
    Failing,
    Gate,
    Recorder,
    Shielded,
    SilentApprover,
    Sleepy,
    SlowSubscriber,
    StubbornModel,
    Swallowing,
    Traced,
)


def traces(double: Traced) -> list[tuple[float, float | None, str]]:
    return [(trace.began, trace.ended, trace.how) for trace in double.calls]


async def test_a_sleepy_tool_returns_in_its_time(autojump_clock: MockClock) -> None:
    tool = Sleepy(60)

    assert await tool() == "slept"
    assert traces(tool) == [(0, 60, "returned")]


async def test_a_sleepy_tool_hears_its_cancellation(autojump_clock: MockClock) -> None:
    tool = Sleepy(60)

    with trio.move_on_after(1):
        await tool()

    assert trio.current_time() == 1
    assert traces(tool) == [(0, 1, "cancelled")]


async def test_a_swallowing_tool_turns_its_cancellation_into_a_result(autojump_clock: MockClock) -> None:
    tool = Swallowing()
    results: list[str] = []

    with trio.move_on_after(1):
        results.append(await tool())

    assert results == ["done"]
    assert traces(tool) == [(0, 1, "returned")]


async def test_a_swallowing_tool_that_nobody_cancels_works() -> None:
    assert await Swallowing(0, "fine")() == "fine"


async def test_a_shielded_tool_returns_late(autojump_clock: MockClock) -> None:
    tool = Shielded(5)
    results: list[str] = []

    with trio.move_on_after(2):
        results.append(await tool())

    assert results == ["late"]
    assert traces(tool) == [(0, 5, "returned")]


async def test_a_failing_tool_works_after_so_many_failures() -> None:
    tool = Failing(2, "ok", error=lambda: ValueError("no"))

    for _ in range(2):
        with pytest.raises(ValueError, match="no"):
            await tool()

    assert await tool() == "ok"
    assert [trace.how for trace in tool.calls] == ["raised", "raised", "returned"]


async def test_a_failing_tool_fails_for_ever_by_default() -> None:
    tool = Failing()

    for _ in range(3):
        with pytest.raises(RuntimeError, match="it broke"):
            await tool()


async def test_a_gate_tells_who_has_entered_and_holds_them_until_it_opens(autojump_clock: MockClock) -> None:
    gate = Gate("through")
    results: list[str] = []

    async def enter(after: float) -> None:
        await trio.sleep(after)
        results.append(await gate())

    async with trio.open_nursery() as nursery:
        nursery.start_soon(enter, 1)
        nursery.start_soon(enter, 3)
        await gate.entered()
        assert trio.current_time() == 1
        await gate.entered(2)
        assert trio.current_time() == 3
        assert (gate.running, results) == (2, [])
        gate.open()

    assert results == ["through", "through"]
    assert await gate() == "through"


async def test_a_closed_gate_holds_later_calls(autojump_clock: MockClock) -> None:
    gate = Gate()
    gate.open()
    gate.close()

    with trio.move_on_after(1) as scope:
        await gate()

    assert scope.cancelled_caught
    assert gate.running == 0


async def test_entered_returns_at_once_when_it_is_so_already() -> None:
    tool = Sleepy(0)
    await tool()

    with trio.fail_after(1):
        await tool.entered()


async def test_a_recorder_notes_arguments_and_is_otherwise_its_function() -> None:
    async def add(a: int, b: int = 2, *, note: str = "") -> int:
        """Add."""
        await trio.lowlevel.checkpoint()
        return a + b

    tool = Recorder(add)

    assert await tool(1) == 3
    assert await tool(2, b=5, note="x") == 7

    assert tool.arguments == [{"a": 1, "b": 2, "note": ""}, {"a": 2, "b": 5, "note": "x"}]
    assert tool.results == [3, 7]
    assert (getattr(tool, "__name__", ""), tool.__doc__) == ("add", "Add.")
    assert list(tool.__signature__.parameters) == ["a", "b", "note"]


async def test_a_recorder_takes_synchronous_functions_and_lets_errors_pass() -> None:
    def divide(a: float, b: float) -> float:
        return a / b

    tool = Recorder(divide)

    assert await tool(1, 2) == 0.5
    with pytest.raises(ZeroDivisionError):
        await tool(1, 0)

    assert (len(tool.arguments), tool.results) == (2, [0.5])


async def test_a_silent_approver_keeps_the_question_and_never_answers(autojump_clock: MockClock) -> None:
    approver = SilentApprover()

    with trio.move_on_after(300) as scope:
        await approver("may I?", 7)

    assert scope.cancelled_caught
    assert approver.asked == [("may I?", 7)]
    assert traces(approver) == [(0, 300, "cancelled")]


async def test_a_stubborn_model_answers_after_its_cancellation(autojump_clock: MockClock) -> None:
    model = StubbornModel(5)
    answers: list[ModelResponse | ModelDelta] = []

    with trio.move_on_after(1):
        answers.append(await model.complete(ModelRequest([])))
    with trio.move_on_after(1):
        async for piece in model.stream(ModelRequest([])):
            answers.append(piece)

    assert isinstance(model, ModelClient)
    assert answers == [ModelResponse("late"), ModelDelta(text="late"), ModelResponse("late")]
    assert traces(model) == [(0, 5, "returned"), (5, 10, "returned")]


async def test_a_slow_subscriber_rests_after_each_event(autojump_clock: MockClock) -> None:
    async def numbers() -> AsyncGenerator[int, None]:
        for number in range(100):
            await trio.lowlevel.checkpoint()
            yield number

    subscriber = SlowSubscriber[int](10)

    async with aclosing(numbers()) as events:
        with trio.move_on_after(25):
            await subscriber.read(events)

    assert subscriber.seen == [0, 1, 2]
