"""Only the success of a terminal tool ends a turn. Every other end of its call goes to the model, which goes on."""

from typing import Any

import pytest
import trio
from trio.testing import MockClock

from exeunt import PermissionRequest, Reject, Tool, ToolResult, approve_all, tool
from exeunt.actors.events import SessionIdle, ToolExecutionComplete
from exeunt.testing import ScriptedModel, call, checked_host, raw_call, say
from exeunt.testing.replies import Call
from tests.actors.turn_support import (
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


async def test_a_terminal_success_ends_the_turn_without_a_further_model_call(
    autojump_clock: MockClock,
) -> None:
    model = ScriptedModel([call("submit", answer=42)])
    async with checked_host() as host:
        session = await open_session(host, model, submit)
        idle = watch(session, SessionIdle)
        reply = await session.send_and_wait("solve it")

        assert model.calls == 1
        assert (reply.content, reply.reason) == ("accepted 42", "terminal_tool")
        assert [(turn.reason, turn.content) for turn in reply.turns] == [("terminal_tool", "accepted 42")]
        assert [message.role for message in session.history.messages()] == ["user", "assistant", "tool"]
        assert [event.aborted for event in idle] == [False]
        assert calls_counted(host) == {("submit", "success", "true"): 1}
        assert turns_counted(host) == {"terminal_tool": 1}
    model.verify()


@pytest.mark.parametrize(
    ("returned", "content"),
    [
        ("text", "text"),
        (None, ""),
        ({"rows": [1, 2]}, '{"rows":[1,2]}'),
        (ToolResult("shown", "success", error="kept for the log"), "shown"),
        ({"text_result_for_llm": "shown", "result_type": "success"}, "shown"),
    ],
)
async def test_every_value_that_is_a_success_is_the_reply(
    autojump_clock: MockClock, returned: Any, content: str
) -> None:
    @tool(is_terminal=True)
    async def finish() -> Any:
        return returned

    model = ScriptedModel([call("finish")])
    async with checked_host() as host:
        session = await open_session(host, model, finish)
        reply = await session.send_and_wait("go")

        assert (reply.content, reply.reason) == (content, "terminal_tool")
    model.verify()


async def test_the_text_beside_a_terminal_call_is_not_the_reply(autojump_clock: MockClock) -> None:
    model = ScriptedModel([[say("I hand it in."), call("submit", answer=42)]])
    async with checked_host() as host:
        session = await open_session(host, model, submit)
        reply = await session.send_and_wait("solve it")

        assert reply.content == "accepted 42"
        assert session.history.messages()[1].content == "I hand it in."
    model.verify()


# --- S4: seven ways not to succeed, and none of them ends the turn -------------------------------------------


async def goes_on(first: Call, outcome: str, text: str, finish: Tool[..., Any], **options: Any) -> str | None:
    """Let *first* end as it does and a second call succeed; return what the log has as the cause of the first."""
    model = ScriptedModel([first, call(finish.name, answer=42)])
    async with checked_host() as host:
        session = await open_session(host, model, finish, read, **options)
        reply = await session.send_and_wait("solve it", timeout=None)

        assert model.calls == 2
        assert model.requests[1].results == {"call_1": text}
        assert (reply.content, reply.reason) == ("accepted 42", "terminal_tool")
        assert await outcomes(session) == [(first.name, outcome), (finish.name, "success")]
        known = first.name == finish.name
        assert calls_counted(host) == {
            (first.name if known else "other", outcome, "true" if known else "false"): 1,
            (finish.name, "success", "true"): 1,
        }
        assert turns_counted(host) == {"terminal_tool": 1}
        failed = (await logged(session, ToolExecutionComplete))[0]
        assert failed.success is False
        assert failed.error is not None
        assert failed.error["code"] == outcome
    model.verify()
    return failed.error_message


async def test_s4_a_terminal_tool_that_raises_does_not_end_the_turn(autojump_clock: MockClock) -> None:
    cause = await goes_on(
        call("submit", answer=41),
        "failure",
        'Failed to execute `submit` tool with arguments: {"answer":41} due to error: ValueError: 41 is wrong',
        submit,
    )

    assert cause == "ValueError: 41 is wrong"


async def test_s4_a_terminal_tool_that_returns_a_failure_does_not_end_the_turn(
    autojump_clock: MockClock,
) -> None:
    @tool(is_terminal=True)
    async def submit(answer: int) -> ToolResult:
        if answer == 42:
            return ToolResult("accepted 42")
        return ToolResult("Try a larger one.", "failure", error="too small")

    cause = await goes_on(call("submit", answer=41), "failure", "Try a larger one.", submit)

    assert cause == "too small"


async def test_s4_a_terminal_tool_with_invalid_arguments_does_not_end_the_turn(
    autojump_clock: MockClock,
) -> None:
    text = "The arguments for the tool call 'submit' are not valid: answer: expected int, got str"
    cause = await goes_on(call("submit", answer="41"), "invalid", text, submit)

    assert cause == text


async def test_s4_a_terminal_tool_that_times_out_does_not_end_the_turn(autojump_clock: MockClock) -> None:
    @tool(is_terminal=True, timeout=2)
    async def submit(answer: int) -> str:
        if answer != 42:
            await trio.sleep_forever()
        return "accepted 42"

    text = "The tool 'submit' timed out after 2 s."
    cause = await goes_on(call("submit", answer=41), "timeout", text, submit)

    assert cause == text
    assert trio.current_time() == 2


async def test_s4_a_terminal_tool_that_is_denied_does_not_end_the_turn(autojump_clock: MockClock) -> None:
    def deny_41(hook_input: Any, invocation: Any) -> dict[str, str] | None:
        if hook_input.tool_args == {"answer": 41}:
            return {"permission_decision": "deny", "permission_decision_reason": "policy X"}
        return None

    text = "Denied by preToolUse hook: policy X"
    cause = await goes_on(call("submit", answer=41), "denied", text, submit, on_pre_tool_use=deny_41)

    assert cause == text


async def test_s4_a_terminal_tool_that_a_person_rejects_does_not_end_the_turn(
    autojump_clock: MockClock,
) -> None:
    def reject_41(request: PermissionRequest, invocation: Any) -> Any:
        return Reject("one more") if request.arguments == {"answer": 41} else approve_all(request, invocation)

    text = "The user rejected this tool call. User feedback: one more"
    cause = await goes_on(
        call("submit", answer=41), "rejected", text, submit, on_permission_request=reject_41
    )

    assert cause == text


async def test_s4_an_unknown_tool_does_not_end_the_turn(autojump_clock: MockClock) -> None:
    text = "Tool 'hand_in' does not exist. Available tools that can be called are submit, read."
    cause = await goes_on(call("hand_in", answer=42), "failure", text, submit)

    assert cause == text


async def test_a_result_that_claims_denial_rejection_or_time_out_does_not_end_the_turn(
    autojump_clock: MockClock,
) -> None:
    @tool(is_terminal=True)
    async def submit(claim: str) -> ToolResult:
        return ToolResult(f"ended as {claim}", claim)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]

    claims = ["denied", "rejected", "timeout", "failure", "success"]
    model = ScriptedModel([call("submit", claim=claim) for claim in claims])
    async with checked_host() as host:
        session = await open_session(host, model, submit)
        reply = await session.send_and_wait("go")

        assert [outcome for _, outcome in await outcomes(session)] == claims
        assert (reply.content, reply.reason) == ("ended as success", "terminal_tool")
    model.verify()


async def test_a_result_type_that_does_not_exist_is_a_failure_and_does_not_end_the_turn(
    autojump_clock: MockClock,
) -> None:
    @tool(is_terminal=True)
    async def submit() -> dict[str, str]:
        return {"text_result_for_llm": "fine", "result_type": "great"}

    model = ScriptedModel([call("submit"), "I give up."])
    async with checked_host() as host:
        session = await open_session(host, model, submit)
        reply = await session.send_and_wait("go")

        assert await outcomes(session) == [("submit", "failure")]
        assert (reply.content, reply.reason) == ("I give up.", "completed")
    model.verify()


async def test_an_exception_named_stop_ends_no_turn(autojump_clock: MockClock) -> None:
    @tool
    async def halt() -> None:
        raise StopAsyncIteration("no more")

    model = ScriptedModel([call("halt"), "on we go"])
    async with checked_host() as host:
        session = await open_session(host, model, halt)
        reply = await session.send_and_wait("go")

        assert await outcomes(session) == [("halt", "failure")]
        assert reply.content == "on we go"
    model.verify()


async def test_a_tool_that_is_not_terminal_never_ends_a_turn(autojump_clock: MockClock) -> None:
    model = ScriptedModel([call("read"), call("read"), "done"])
    async with checked_host() as host:
        session = await open_session(host, model, read)
        reply = await session.send_and_wait("go")

        assert (reply.content, reply.reason) == ("done", "completed")
        assert calls_counted(host) == {("read", "success", "false"): 2}
        assert await ends(session) == ["completed"]
    model.verify()


async def test_a_terminal_tool_ends_the_turn_under_any_way_of_writing_its_name(
    autojump_clock: MockClock,
) -> None:
    model = ScriptedModel([raw_call(" functions.submit ", '{"answer": 42}')])
    async with checked_host() as host:
        session = await open_session(host, model, submit)
        reply = await session.send_and_wait("go")

        assert (reply.content, reply.reason) == ("accepted 42", "terminal_tool")
        assert calls_counted(host) == {("submit", "success", "true"): 1}
    model.verify()
