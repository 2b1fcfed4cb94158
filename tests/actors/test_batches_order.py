"""Sequential tools, and ids that a context can hold."""

from collections import Counter

import trio
from trio.testing import MockClock

from exeunt import Tool, ToolInvocation, tool
from exeunt.actors.events import AssistantMessage, ToolExecutionStart
from exeunt.testing import ScriptedModel, call, checked_host, raw_call
from tests.actors.turn_support import ends, logged, open_session, outcomes, read


def timed(
    name: str, seconds: float, spans: dict[str, tuple[float, float]], *, sequential: bool
) -> Tool[[], object]:
    async def handler() -> None:
        began = trio.current_time()
        await trio.sleep(seconds)
        spans[name] = (began, trio.current_time())

    return tool(name, sequential=sequential)(handler)


async def test_a_sequential_call_runs_alone(autojump_clock: MockClock) -> None:
    spans: dict[str, tuple[float, float]] = {}
    names = [("a", 2, False), ("b", 1, False), ("s", 3, True), ("c", 4, False), ("d", 1, False)]
    tools = [timed(name, seconds, spans, sequential=alone) for name, seconds, alone in names]
    model = ScriptedModel([[call(name) for name, _, _ in names], "done"])
    async with checked_host() as host:
        session = await open_session(host, model, *tools)
        await session.send_and_wait("go")

        assert spans == {"a": (0, 2), "b": (0, 1), "s": (2, 5), "c": (5, 9), "d": (5, 6)}
    model.verify()


async def test_sequential_calls_run_in_call_order(autojump_clock: MockClock) -> None:
    spans: dict[str, tuple[float, float]] = {}
    tools = [timed(name, seconds, spans, sequential=True) for name, seconds in (("a", 3), ("b", 1), ("c", 2))]
    model = ScriptedModel([[call("a"), call("b"), call("c")], "done"])
    async with checked_host() as host:
        session = await open_session(host, model, *tools)
        await session.send_and_wait("go")

        assert spans == {"a": (0, 3), "b": (3, 4), "c": (4, 6)}
    model.verify()


async def test_a_sequential_call_that_fails_lets_the_next_one_run(autojump_clock: MockClock) -> None:
    @tool(sequential=True)
    async def step(works: bool) -> str:
        if not works:
            raise OSError("disk full")
        return "worked"

    model = ScriptedModel([[call("step", works=False), call("step", works=True)], "done"])
    async with checked_host() as host:
        session = await open_session(host, model, step)
        await session.send_and_wait("go")

        assert await outcomes(session) == [("step", "failure"), ("step", "success")]
    model.verify()


async def test_calls_behind_a_sequential_one_are_in_flight_while_they_wait(autojump_clock: MockClock) -> None:
    spans: dict[str, tuple[float, float]] = {}
    first, second = (timed(name, 10, spans, sequential=True) for name in ("first", "second"))
    model = ScriptedModel([[call("first"), call("second")], "hello again"])
    async with checked_host() as host:
        session = await open_session(host, model, first, second)
        await session.send("go")
        await trio.sleep(1)
        assert session.statistics().in_flight == ("first", "second")

        receipt = await session.abort()
        assert set(receipt.tools_cancelled) == {"call_1", "call_2"}
        assert spans == {}
        await session.send_and_wait("hello")
        assert set(model.requests[1].results.values()) == {
            "The execution of this tool, or a previous tool was interrupted."
        }
    model.verify()


async def test_calls_without_an_id_or_with_the_same_one_get_ids_of_their_own(
    autojump_clock: MockClock,
) -> None:
    ids: list[str] = []

    @tool
    async def note(number: int, invocation: ToolInvocation) -> str:
        ids.append(invocation.tool_call_id)
        return str(number)

    calls = [call("note", number=number).with_id(id) for number, id in enumerate(["x", "x", "", "", "y"])]
    model = ScriptedModel([calls, "done"])
    async with checked_host() as host:
        session = await open_session(host, model, note)
        await session.send_and_wait("go")

        (message, _) = await logged(session, AssistantMessage)
        sent = [each.id for each in message.tool_calls]
        assert (sent[0], sent[4]) == ("x", "y")
        assert "" not in sent
        assert max(Counter(sent).values()) == 1
        assert sorted(ids) == sorted(sent)
        assert list(model.requests[1].results.items()) == [
            (id, str(number)) for number, id in enumerate(sent)
        ]
    model.verify()


async def test_an_id_of_an_earlier_turn_is_not_used_again(autojump_clock: MockClock) -> None:
    model = ScriptedModel([call("read").with_id("0"), "one", call("read").with_id("0"), "two"])
    async with checked_host() as host:
        session = await open_session(host, model, read)
        await session.send_and_wait("first")
        await session.send_and_wait("second")

        first, second = (e.tool_call_id for e in await logged(session, ToolExecutionStart))
        assert first == "0"
        assert second not in ("0", "")
        assert set(model.requests[3].results) == {first, second}
        assert await ends(session) == ["completed", "completed"]
    model.verify()


async def test_half_a_surrogate_pair_in_a_call_does_not_brick_the_session(autojump_clock: MockClock) -> None:
    model = ScriptedModel([raw_call("re\ud83dad", '{"a": "\ud83d"}', id="\ud83d"), "done"])
    async with checked_host() as host:
        session = await open_session(host, model, read)
        reply = await session.send_and_wait("go")

        assert reply.content == "done"
        (message, _) = await logged(session, AssistantMessage)
        (sent,) = message.tool_calls
        assert (sent.id, sent.name, sent.arguments_json) == ("\ufffd", "re\ufffdad", '{"a": "\ufffd"}')
        assert await outcomes(session) == [("re\ufffdad", "failure")]
    model.verify()
