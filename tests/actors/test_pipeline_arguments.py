"""Arguments: what the model wrote, what a hook made of it, and who sees which."""

from typing import Any

import pytest
from trio.testing import MockClock

from exeunt import PermissionRequest, ToolInvocation, tool
from exeunt.actors.events import AssistantMessage, ToolExecutionComplete, ToolExecutionStart
from exeunt.testing import ScriptedModel, call, checked_host, raw_call
from tests.actors.turn_support import answering, calls_counted, logged, open_session, outcomes, read, submit


@pytest.mark.parametrize(
    ("written", "complaint"),
    [
        ('{"answer": 4', "were not valid JSON: the text ends too early."),
        ("answer=42", "were not valid JSON: invalid character"),
        ("[42]", "must be an object but got array."),
        ('"42"', "must be an object but got str."),
        ('{"answer": 42} {"answer": 43}', "were not valid JSON: trailing characters"),
        ('{"answer": NaN}', "were not valid JSON: invalid character"),
        ("[" * 100_000, "must be an object but got array."),
        ("", "are not valid: answer: required but missing"),
    ],
)
async def test_malformed_arguments_are_explained_to_the_model_and_kept_as_they_came(
    autojump_clock: MockClock, written: str, complaint: str
) -> None:
    model = ScriptedModel([raw_call("submit", written), call("submit", answer=42)])
    async with checked_host() as host:
        session = await open_session(host, model, submit)
        reply = await session.send_and_wait("go")

        shown = model.requests[1].results["call_1"]
        assert shown.startswith(f"The arguments for the tool call 'submit' {complaint}")
        assert model.requests[1].messages[1].tool_calls[0].arguments_json == written
        assert reply.reason == "terminal_tool"
        assert calls_counted(host) == {("submit", "invalid", "true"): 1, ("submit", "success", "true"): 1}
    model.verify()


async def test_a_text_of_blanks_is_an_object_without_properties(autojump_clock: MockClock) -> None:
    model = ScriptedModel([[raw_call("read", ""), raw_call("read", " \n")], "done"])
    async with checked_host() as host:
        session = await open_session(host, model, read)
        await session.send_and_wait("go")

        assert await outcomes(session) == [("read", "success")] * 2
    model.verify()


async def test_without_any_tools_the_model_is_told_that_there_is_none(autojump_clock: MockClock) -> None:
    model = ScriptedModel([call("report_intent", intent="x"), "fine"])
    async with checked_host() as host:
        session = await open_session(host, model)
        await session.send_and_wait("go")

        assert model.requests[1].results == {"call_1": "Tool 'report_intent' does not exist."}
        assert calls_counted(host) == {("other", "failure", "false"): 1}
    model.verify()


async def test_modified_arguments_reach_everybody_but_the_record_of_what_the_model_wrote(
    autojump_clock: MockClock,
) -> None:
    seen: dict[str, Any] = {}

    @tool
    async def write(path: str, invocation: ToolInvocation) -> str:
        seen["handler"] = path
        seen["invocation"] = invocation.arguments
        return path

    def redirect(hook_input: Any, invocation: Any) -> dict[str, Any]:
        seen["pre hook"] = hook_input.tool_args
        return {"modified_args": {"path": "/safe"}}

    def approve(request: PermissionRequest, invocation: Any) -> str:
        seen["approval"] = request.arguments
        return "approved"

    def note(hook_input: Any, invocation: Any) -> None:
        seen["post hook"] = hook_input.tool_args

    model = ScriptedModel([call("write", path="/etc"), "done", "later"])
    async with checked_host() as host:
        session = await open_session(
            host,
            model,
            write,
            on_pre_tool_use=redirect,
            on_permission_request=approve,
            on_post_tool_use=note,
        )
        await session.send_and_wait("go")
        await session.send_and_wait("and?")

        assert seen == {
            "pre hook": {"path": "/etc"},
            "approval": {"path": "/safe"},
            "handler": "/safe",
            "invocation": {"path": "/safe"},
            "post hook": {"path": "/safe"},
        }
        # The model reads back what was done, in this request and in all later ones.
        for request in model.requests[1:]:
            assert request.messages[1].tool_calls[0].arguments == {"path": "/safe"}
        (message, *_) = await logged(session, AssistantMessage)
        assert message.tool_calls[0].arguments == {"path": "/etc"}
        (start,) = await logged(session, ToolExecutionStart)
        assert start.arguments == {"path": "/etc"}
        (end,) = await logged(session, ToolExecutionComplete)
        assert end.modified_arguments == '{"path":"/safe"}'
    model.verify()


async def test_modified_arguments_of_one_call_leave_its_siblings_alone(autojump_clock: MockClock) -> None:
    def redirect(hook_input: Any, invocation: Any) -> dict[str, Any] | None:
        return {"modified_args": {"answer": 42}} if hook_input.tool_args == {"answer": 1} else None

    model = ScriptedModel([[call("submit", answer=2), call("submit", answer=1)], "never"])
    async with checked_host() as host:
        session = await open_session(host, model, submit, on_pre_tool_use=redirect)
        reply = await session.send_and_wait("go")

        assert reply.content == "accepted 42"
        calls = session.history.messages()[1].tool_calls
        assert [each.arguments for each in calls] == [{"answer": 2}, {"answer": 42}]
    model.verify(all_given=False)


@pytest.mark.parametrize(
    ("modified", "complaint"),
    [
        (
            {"answer": "many"},
            "The arguments for the tool call 'submit' are not valid: answer: expected int, got str",
        ),
        ({}, "The arguments for the tool call 'submit' are not valid: answer: required but missing"),
        ([42], "The arguments for the tool call 'submit' must be an object but got array."),
        (object(), "a preToolUse hook gave arguments that are no JSON: "),
    ],
)
async def test_modified_arguments_are_validated_like_the_models_own(
    autojump_clock: MockClock, modified: Any, complaint: str
) -> None:
    model = ScriptedModel([call("submit", answer=42), "I see."])
    async with checked_host() as host:
        session = await open_session(
            host,
            model,
            submit,
            on_pre_tool_use=answering({"modified_args": modified}),
        )
        reply = await session.send_and_wait("go")

        assert reply.reason == "completed"
        assert model.requests[1].results["call_1"].startswith(complaint)
        assert calls_counted(host) == {("submit", "invalid", "true"): 1}
    model.verify()


async def test_a_hook_that_changes_its_input_in_place_changes_nothing(autojump_clock: MockClock) -> None:
    def meddle(hook_input: Any, invocation: Any) -> None:
        hook_input.tool_args["answer"] = 1

    model = ScriptedModel([call("submit", answer=42)])
    async with checked_host() as host:
        session = await open_session(host, model, submit, on_pre_tool_use=meddle)
        reply = await session.send_and_wait("go")

        assert reply.content == "accepted 42"
        assert session.history.messages()[1].tool_calls[0].arguments == {"answer": 42}
    model.verify()


async def test_a_denied_call_is_read_back_with_its_modified_arguments(autojump_clock: MockClock) -> None:
    def redact(hook_input: Any, invocation: Any) -> dict[str, Any]:
        return {"modified_args": {"answer": 0}, "permission_decision": "deny"}

    model = ScriptedModel([call("submit", answer=42), "I see."])
    async with checked_host() as host:
        session = await open_session(host, model, submit, on_pre_tool_use=redact)
        await session.send_and_wait("go")

        assert model.requests[1].messages[1].tool_calls[0].arguments == {"answer": 0}
    model.verify()
