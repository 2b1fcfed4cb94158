"""Calls that the host runs by its own will: the same pipeline, no turn, and nothing of it in the context."""

from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from exeunt import (
    InvalidConfiguration,
    Outcome,
    PermissionRequest,
    Reject,
    SessionClosed,
    ToolInvocation,
    ToolOutcome,
    TurnAborted,
    WouldDeadlock,
    tool,
)
from exeunt.actors.events import (
    PermissionRequested,
    SessionIdle,
    ToolExecutionComplete,
    ToolExecutionStart,
    ToolResultStale,
    TurnEnd,
    UserMessage,
)
from exeunt.testing import Gate, ScriptedModel, Shielded, Sleepy, call, checked_host
from tests.actors.turn_support import (
    answering,
    broken,
    calls_counted,
    ends,
    logged,
    open_session,
    outcomes,
    read,
    submit,
    turns_counted,
    watch,
)


async def test_a_call_of_the_host_is_no_turn_and_leaves_nothing_in_the_context(
    autojump_clock: MockClock,
) -> None:
    model = ScriptedModel(["hi", "again"])
    async with checked_host() as host:
        session = await open_session(host, model, submit, read)
        await session.send_and_wait("hello")
        before = session.history.messages()
        result = await session.call_tool("submit", {"answer": 42})

        assert isinstance(result, ToolOutcome)
        assert (result.tool_name, result.outcome, result.content) == (
            "submit",
            Outcome.SUCCESS,
            "accepted 42",
        )
        assert session.history.messages() == before
        assert turns_counted(host) == {"completed": 1}
        assert calls_counted(host) == {("submit", "success", "true"): 1}
        (start,) = await logged(session, ToolExecutionStart)
        assert (start.tool_call_id, start.turn_id, start.terminal) == (result.tool_call_id, None, True)
        await session.send_and_wait("more")
        assert model.requests[1].contents == ("hello", "hi", "more")
    model.verify()


async def test_a_call_of_the_host_works_before_the_first_message(autojump_clock: MockClock) -> None:
    async with checked_host() as host:
        session = await open_session(host, ScriptedModel([]), read)
        result = await session.call_tool("read")

        assert (result.outcome, result.content) == (Outcome.SUCCESS, "what was read")
        assert session.history.messages() == ()


@tool
async def act(how: str) -> Any:
    if how == "raise":
        raise RuntimeError("it broke")
    if how == "sleep":
        await trio.sleep_forever()
    return {"text_result_for_llm": how, "result_type": how}


@pytest.mark.parametrize(
    ("arguments", "outcome", "text"),
    [
        ({"how": "success"}, "success", "success"),
        ({"how": "failure"}, "failure", "failure"),
        (
            {"how": "raise"},
            "failure",
            'Failed to execute `act` tool with arguments: {"how":"raise"} due to error: RuntimeError: it broke',
        ),
        ({}, "invalid", "The arguments for the tool call 'act' are not valid: how: required but missing"),
        (
            '{"how": "success"',
            "invalid",
            "The arguments for the tool call 'act' were not valid JSON: the text ends too early.",
        ),
        ({"how": "deny"}, "denied", "Denied by preToolUse hook: policy X"),
        ({"how": "reject"}, "rejected", "The user rejected this tool call."),
        ({"how": "sleep"}, "timeout", "The tool 'act' timed out after 300 s."),
    ],
)
async def test_a_call_of_the_host_ends_in_each_way_a_models_call_can(
    autojump_clock: MockClock, arguments: Any, outcome: str, text: str
) -> None:
    def policy(hook_input: Any, invocation: Any) -> Any:
        if hook_input.tool_args == {"how": "deny"}:
            return {"permission_decision": "deny", "permission_decision_reason": "policy X"}
        return None

    def person(request: PermissionRequest, invocation: Any) -> Any:
        return Reject() if request.arguments == {"how": "reject"} else "approved"

    async with checked_host() as host:
        session = await open_session(
            host, ScriptedModel([]), act, on_pre_tool_use=policy, on_permission_request=person
        )
        result = await session.call_tool("act", arguments)

        assert (str(result.outcome), result.content) == (outcome, text)
        assert calls_counted(host) == {("act", outcome, "false"): 1}
        assert turns_counted(host) == {}
        assert session.statistics().phase == "idle"


async def test_a_tool_that_the_host_does_not_have_is_a_failure(autojump_clock: MockClock) -> None:
    async with checked_host() as host:
        session = await open_session(host, ScriptedModel([]), read)
        result = await session.call_tool("write")

        assert (result.outcome, result.content) == (
            Outcome.FAILURE,
            "Tool 'write' does not exist. Available tools that can be called are read.",
        )


async def test_calls_of_the_host_and_messages_run_in_the_order_in_which_they_came(
    autojump_clock: MockClock,
) -> None:
    order: list[str] = []
    gate = Gate()

    @tool
    async def note(what: str) -> None:
        order.append(what)

    def heard(request: Any) -> str:
        order.append(request.messages[-1].content)
        return "heard"

    model = ScriptedModel([call("gate"), heard, heard, heard])
    async with checked_host() as host:
        session = await open_session(host, model, note, tool("gate")(gate))
        async with trio.open_nursery() as nursery:

            async def in_order() -> None:
                await session.send("first")
                await gate.entered()
                nursery.start_soon(session.call_tool, "note", {"what": "call 1"})
                await wait_all_tasks_blocked()
                await session.send("second")
                nursery.start_soon(session.call_tool, "note", {"what": "call 2"})
                await wait_all_tasks_blocked()
                await session.send("third")
                assert session.statistics().mailbox_depth == 4
                gate.open()

            nursery.start_soon(in_order)
        await wait_all_tasks_blocked()

        assert order == ["passed", "call 1", "second", "call 2", "third"]
    model.verify()


async def test_a_message_that_comes_while_the_host_calls_a_tool_waits_for_its_turn(
    autojump_clock: MockClock,
) -> None:
    gate = Gate()
    model = ScriptedModel(["one", "two"])
    async with checked_host() as host:
        session = await open_session(host, model, tool("gate")(gate))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(session.call_tool, "gate")
            await gate.entered()
            assert session.statistics().phase == "host_call"
            assert session.statistics().in_flight == ("gate",)
            await session.send("first", mode="immediate")
            await session.send("second")
            await wait_all_tasks_blocked()
            assert model.calls == 0
            gate.open()
        await wait_all_tasks_blocked()

        assert [m.content for m in await logged(session, UserMessage)] == ["first", "second"]
        assert await ends(session) == ["completed", "completed"]
    model.verify()


async def test_calls_of_the_host_run_one_at_a_time(autojump_clock: MockClock) -> None:
    sleepy = Sleepy(5)
    async with checked_host() as host:
        session = await open_session(host, ScriptedModel([]), tool("nap")(sleepy))
        async with trio.open_nursery() as nursery:
            for _ in range(3):
                nursery.start_soon(session.call_tool, "nap")

        assert sorted((trace.began, trace.ended) for trace in sleepy.calls) == [(0, 5), (5, 10), (10, 15)]


async def test_a_call_of_the_host_owes_no_idle(autojump_clock: MockClock) -> None:
    model = ScriptedModel(["hi"])
    async with checked_host() as host:
        session = await open_session(host, model, read)
        idle = watch(session, SessionIdle)
        await session.call_tool("read")
        assert idle == []
        await session.send_and_wait("hello")
        await session.call_tool("read")
        assert len(idle) == 1
    model.verify()


async def test_an_approval_for_the_session_that_the_host_got_counts_for_the_model(
    autojump_clock: MockClock,
) -> None:
    model = ScriptedModel([call("read"), "done"])
    async with checked_host() as host:
        session = await open_session(
            host, model, read, on_permission_request=answering("approve-for-session")
        )
        await session.call_tool("read")
        await session.send_and_wait("go")

        assert len(await logged(session, PermissionRequested)) == 1
        assert await outcomes(session) == [("read", "success")] * 2
    model.verify()


async def test_an_abort_ends_a_call_of_the_host(autojump_clock: MockClock) -> None:
    sleepy = Sleepy()
    results: list[ToolOutcome] = []
    async with checked_host() as host:
        session = await open_session(host, ScriptedModel([]), tool("nap")(sleepy), read)
        async with trio.open_nursery() as nursery:

            async def run() -> None:
                results.append(await session.call_tool("nap"))

            async def wait_behind() -> None:
                with pytest.raises(TurnAborted):
                    await session.call_tool("read")

            nursery.start_soon(run)
            await sleepy.entered()
            nursery.start_soon(wait_behind)
            await wait_all_tasks_blocked()
            receipt = await session.abort()
            assert receipt.turn is None
            assert len(receipt.tools_cancelled) == 1

        assert [result.outcome for result in results] == [Outcome.CANCELLED]
        assert sleepy.calls[0].how == "cancelled"
        assert turns_counted(host) == {}


async def test_a_stuck_call_of_the_host_is_fenced(autojump_clock: MockClock) -> None:
    model = ScriptedModel(["hi"])
    async with checked_host() as host:
        session = await open_session(host, model, tool("stuck", timeout=2)(Shielded(10)))
        stale = watch(session, ToolResultStale)
        result = await session.call_tool("stuck")
        assert (result.outcome, trio.current_time()) == (Outcome.TIMEOUT, 3)
        assert (await session.send_and_wait("hello")).content == "hi"
        await trio.sleep(10)

        assert [(e.tool_call_id, e.turn_id) for e in stale] == [(result.tool_call_id, None)]
    model.verify()


async def test_a_call_that_nobody_waits_for_any_more_runs_on(autojump_clock: MockClock) -> None:
    async with checked_host() as host:
        session = await open_session(host, ScriptedModel([]), tool("nap")(Sleepy(10)))
        with trio.move_on_after(1):
            await session.call_tool("nap")
        assert session.statistics().phase == "host_call"
        await trio.sleep(10)

        assert await outcomes(session) == [("nap", "success")]


async def test_a_handler_may_not_wait_for_a_call_of_its_own_session(autojump_clock: MockClock) -> None:
    refused: list[Exception] = []

    @tool
    async def nested(invocation: ToolInvocation) -> None:
        try:
            await invocation.session.call_tool("read")
        except WouldDeadlock as error:
            refused.append(error)

    model = ScriptedModel([call("nested"), "done"])
    async with checked_host() as host:
        session = await open_session(host, model, nested, read)
        await session.call_tool("nested")
        await session.send_and_wait("go")

        assert len(refused) == 2
        assert await outcomes(session) == [("nested", "success")] * 2
    model.verify()


async def test_guidance_of_hooks_for_a_call_of_the_host_reaches_no_model(autojump_clock: MockClock) -> None:
    def guide(hook_input: Any, invocation: Any) -> dict[str, str]:
        return {"additional_context": "for the model"}

    model = ScriptedModel(["hi"])
    async with checked_host() as host:
        session = await open_session(
            host, model, broken, on_pre_tool_use=guide, on_post_tool_use_failure=guide
        )
        await session.call_tool("broken")
        await session.send_and_wait("hello")

        assert model.requests[0].contents == ("hello",)
    model.verify()


@pytest.mark.parametrize(("name", "arguments"), [("", {}), (7, {}), ("read", {"a": object()})])
async def test_a_call_that_cannot_be_written_down_is_refused_and_changes_nothing(
    autojump_clock: MockClock, name: Any, arguments: Any
) -> None:
    async with checked_host() as host:
        session = await open_session(host, ScriptedModel([]), read)
        events = session.statistics().events
        with pytest.raises(InvalidConfiguration):
            await session.call_tool(name, arguments)
        assert session.statistics().events == events


async def test_a_session_that_is_gone_calls_no_tools(autojump_clock: MockClock) -> None:
    async with checked_host() as host:
        session = await open_session(host, ScriptedModel([]), read)
        await session.disconnect()
        with pytest.raises(SessionClosed):
            await session.call_tool("read")


async def test_the_log_of_a_call_of_the_host_says_that_it_has_no_turn(autojump_clock: MockClock) -> None:
    async with checked_host() as host:
        session = await open_session(host, ScriptedModel([]), broken)
        await session.call_tool("broken")

        (end,) = await logged(session, ToolExecutionComplete)
        assert (end.turn_id, end.error_message) == (None, "RuntimeError: it broke")
        assert await logged(session, TurnEnd) == []
