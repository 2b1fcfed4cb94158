"""What counts for the turn is the outcome after the hooks."""

from typing import Any

import pytest
import trio
from trio.testing import MockClock

from exeunt import ToolResult, Waits, tool
from exeunt.actors.events import HookEnd, ToolExecutionComplete
from exeunt.testing import ScriptedModel, Sleepy, Swallowing, call, checked_host
from tests.actors.turn_support import (
    broken,
    calls_counted,
    logged,
    noting,
    open_session,
    outcomes,
    read,
    submit,
)

FAILED = "The checker found a mistake."


@pytest.mark.parametrize(
    ("modified", "outcome"),
    [
        (ToolResult(FAILED, "failure"), "failure"),
        (ToolResult(FAILED, "denied"), "denied"),
        (ToolResult(FAILED, "rejected"), "rejected"),
        (ToolResult(FAILED, "timeout"), "timeout"),
        ({"text_result_for_llm": FAILED, "result_type": "failure"}, "failure"),
        ({"textResultForLlm": FAILED, "resultType": "failure"}, "failure"),
    ],
)
async def test_a_post_hook_that_takes_the_success_away_lets_the_turn_go_on(
    autojump_clock: MockClock, modified: Any, outcome: str
) -> None:
    def check(hook_input: Any, invocation: Any) -> dict[str, Any]:
        return {"modified_result": modified}

    model = ScriptedModel([call("submit", answer=42), "I see."])
    async with checked_host() as host:
        session = await open_session(host, model, submit, on_post_tool_use=check)
        reply = await session.send_and_wait("solve it")

        assert (reply.content, reply.reason) == ("I see.", "completed")
        assert model.requests[1].results == {"call_1": FAILED}
        assert calls_counted(host) == {("submit", outcome, "true"): 1}
    model.verify()


@pytest.mark.parametrize("modified", ["better", ToolResult("better"), {"text_result_for_llm": "better"}])
async def test_a_post_hook_that_changes_the_text_changes_the_reply_of_a_terminal_tool(
    autojump_clock: MockClock, modified: Any
) -> None:
    def improve(hook_input: Any, invocation: Any) -> dict[str, Any]:
        assert hook_input.tool_result == ToolResult("accepted 42")
        assert hook_input.tool_args == {"answer": 42}
        return {"modified_result": modified}

    model = ScriptedModel([call("submit", answer=42)])
    async with checked_host() as host:
        session = await open_session(host, model, submit, on_post_tool_use=improve)
        reply = await session.send_and_wait("solve it")

        assert (reply.content, reply.reason) == ("better", "terminal_tool")
        assert session.history.messages()[-1].content == "better"
    model.verify()


async def test_a_failure_hook_cannot_make_a_success(autojump_clock: MockClock) -> None:
    seen: list[str] = []

    def forgive(hook_input: Any, invocation: Any) -> dict[str, Any]:
        seen.append(hook_input.error)
        return {"modified_result": ToolResult("forgiven")}

    model = ScriptedModel([call("submit", answer=41), "I see."])
    async with checked_host() as host:
        session = await open_session(host, model, submit, on_post_tool_use_failure=forgive)
        reply = await session.send_and_wait("solve it")

        assert reply.reason == "completed"
        assert seen == ["ValueError: 41 is wrong"]
        assert await outcomes(session) == [("submit", "failure")]
        (end,) = await logged(session, HookEnd)
        assert end.error is not None
        assert "unknown field `modified_result`" in end.error
    model.verify()


async def test_only_a_handlers_failure_reaches_the_failure_hook(autojump_clock: MockClock) -> None:
    seen: list[str] = []

    def note(hook_input: Any, invocation: Any) -> None:
        seen.append(hook_input.tool_name)

    @tool
    async def claims(kind: str) -> dict[str, str]:
        return {"text_result_for_llm": kind, "result_type": kind}

    slow = tool("slow", timeout=1)(Sleepy())
    calls = [call("claims", kind=kind) for kind in ("success", "denied", "rejected", "timeout", "failure")]
    model = ScriptedModel(
        [[*calls, call("slow"), call("claims", kind=1), call("none"), call("broken")], "done"]
    )
    async with checked_host() as host:
        session = await open_session(
            host, model, claims, broken, slow, on_post_tool_use=note, on_post_tool_use_failure=note
        )
        await session.send_and_wait("go")

        # One success and two failures: of the result's own word, and of an exception.
        assert sorted(seen) == ["broken", "claims", "claims"]
    model.verify()


@pytest.mark.parametrize("how", ["raises", "hangs", "returns junk"])
async def test_a_post_hook_that_fails_changes_nothing(autojump_clock: MockClock, how: str) -> None:
    async def fails(hook_input: Any, invocation: Any) -> Any:
        if how == "raises":
            raise LookupError("no checker")
        if how == "hangs":
            await trio.sleep_forever()
        return "junk"

    errors = {
        "raises": "LookupError: no checker",
        "hangs": "the hook did not return within 5 s",
        "returns junk": "the hook returned str; it must return a mapping or None",
    }
    model = ScriptedModel([call("submit", answer=42)])
    async with checked_host() as host:
        session = await open_session(host, model, submit, on_post_tool_use=fails, waits=Waits(hook=5))
        reply = await session.send_and_wait("solve it")

        assert (reply.content, reply.reason) == ("accepted 42", "terminal_tool")
        (end,) = await logged(session, HookEnd)
        assert (end.hook_type, end.success, end.error) == ("postToolUse", False, errors[how])
        assert end.tool_call_id == "call_1"
    model.verify()


async def test_guidance_of_a_post_hook_stands_in_the_result(autojump_clock: MockClock) -> None:
    def guide(hook_input: Any, invocation: Any) -> dict[str, str]:
        return {"additional_context": "Mind the gap."}

    model = ScriptedModel([call("read"), "done"])
    async with checked_host() as host:
        session = await open_session(host, model, read, on_post_tool_use=guide)
        await session.send_and_wait("go")

        guidance = 'Tool "read" succeeded. Additional guidance from postToolUse hooks:\nMind the gap.'
        assert model.requests[1].results == {"call_1": f"what was read\n\n{guidance}"}
    model.verify()


async def test_guidance_beside_a_success_that_was_taken_away_does_not_speak_of_success(
    autojump_clock: MockClock,
) -> None:
    def guide(hook_input: Any, invocation: Any) -> dict[str, Any]:
        return {"modified_result": ToolResult(FAILED, "failure"), "additional_context": "Try again."}

    model = ScriptedModel([call("read"), "done"])
    async with checked_host() as host:
        session = await open_session(host, model, read, on_post_tool_use=guide)
        await session.send_and_wait("go")

        assert model.requests[1].results == {
            "call_1": f'{FAILED}\n\nTool "read" failed. Additional guidance from postToolUse hooks:\nTry again.'
        }
    model.verify()


@pytest.mark.parametrize("hooked", ["on_post_tool_use", "on_pre_tool_use", "on_session_start"])
async def test_a_late_success_is_a_time_out_whatever_hooks_there_are(
    autojump_clock: MockClock, hooked: str
) -> None:
    looked: list[Any] = []

    stubborn = tool("stubborn", is_terminal=True, timeout=2)(Swallowing())
    model = ScriptedModel([call("stubborn"), "it took too long"])
    async with checked_host() as host:
        hooks = {hooked: noting(looked)}
        session = await open_session(host, model, stubborn, hooks=hooks)
        reply = await session.send_and_wait("go")

        assert reply.reason == "completed"
        assert model.requests[1].results == {"call_1": "The tool 'stubborn' timed out after 2 s."}
        assert await outcomes(session) == [("stubborn", "timeout")]
        assert [type(each).__name__ for each in looked if "Post" in type(each).__name__] == []
    model.verify()


async def test_the_log_has_the_cause_that_a_hook_gave(autojump_clock: MockClock) -> None:
    def check(hook_input: Any, invocation: Any) -> dict[str, Any]:
        return {"modified_result": ToolResult("Not good enough.", "failure", error="score 0.3 of 0.5")}

    model = ScriptedModel([call("submit", answer=42), "I see."])
    async with checked_host() as host:
        session = await open_session(host, model, submit, on_post_tool_use=check)
        await session.send_and_wait("solve it")

        (end,) = await logged(session, ToolExecutionComplete)
        assert (end.content, end.error_message) == ("Not good enough.", "score 0.3 of 0.5")
    model.verify()
