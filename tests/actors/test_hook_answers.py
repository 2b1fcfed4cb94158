"""What hooks may answer. An answer that is only nearly right is an error of the hook, and never taken for another."""

from typing import Any

import pytest
from trio.testing import MockClock

from exeunt import ToolResult
from exeunt.actors.events import HookEnd
from exeunt.actors.hook_outputs import (
    ERROR_OCCURRED,
    POST_TOOL_USE,
    POST_TOOL_USE_FAILURE,
    PRE_TOOL_USE,
    SESSION_END,
    SESSION_START,
    USER_PROMPT_SUBMITTED,
    HookKind,
    PreToolUseOutput,
    WrongAnswer,
)
from exeunt.testing import ScriptedModel, call, checked_host
from tests.actors.turn_support import answering, logged, open_session, outcomes, read

ALL: list[HookKind[Any]] = [
    SESSION_START,
    USER_PROMPT_SUBMITTED,
    PRE_TOOL_USE,
    POST_TOOL_USE,
    POST_TOOL_USE_FAILURE,
    SESSION_END,
    ERROR_OCCURRED,
]

MEANT_AS_NO: list[Any] = [
    {"permissionDecision": "deny"},
    {"permission_decison": "deny"},
    {"permission_decision": "Deny"},
    {"permission_decision": False},
    {"permission_decision": "deny", "permission_decision_reason": 3},
    {"decision": "deny"},
    {1: "deny"},
    "deny",
    False,
]


@pytest.mark.parametrize("answer", MEANT_AS_NO, ids=repr)
async def test_a_pre_hook_whose_answer_is_only_nearly_a_denial_denies_and_says_what_is_wrong(
    autojump_clock: MockClock, answer: Any
) -> None:
    model = ScriptedModel([call("read"), "done"])
    async with checked_host() as host:
        session = await open_session(host, model, read, on_pre_tool_use=answering(answer))
        await session.send_and_wait("go")

        assert await outcomes(session) == [("read", "denied")]
        (end,) = await logged(session, HookEnd)
        assert not end.success
        assert end.error is not None
        assert "the hook" in end.error
        assert end.error in model.requests[1].results["call_1"]
    model.verify()


async def test_the_error_names_the_field_and_those_that_there_are(autojump_clock: MockClock) -> None:
    model = ScriptedModel([call("read"), "done"])
    async with checked_host() as host:
        hook = answering({"permissionDecision": "deny"})
        session = await open_session(host, model, read, on_pre_tool_use=hook)
        await session.send_and_wait("go")

        (end,) = await logged(session, HookEnd)
        assert end.error == (
            "the hook's answer is wrong: Object contains unknown field `permissionDecision`. Its fields are "
            "suppress_output, permission_decision, permission_decision_reason, modified_args, additional_context"
        )


async def test_a_post_hook_with_a_wrong_answer_leaves_the_result_as_it_is(autojump_clock: MockClock) -> None:
    model = ScriptedModel([call("read"), "done"])
    async with checked_host() as host:
        hook = answering({"modifiedResult": ToolResult("changed", "failure")})
        session = await open_session(host, model, read, on_post_tool_use=hook)
        await session.send_and_wait("go")

        assert await outcomes(session) == [("read", "success")]
        (end,) = await logged(session, HookEnd)
        assert not end.success


async def test_a_hook_may_answer_with_the_class_of_its_output(autojump_clock: MockClock) -> None:
    model = ScriptedModel([call("read"), "done"])
    async with checked_host() as host:
        hook = answering(PreToolUseOutput(permission_decision="deny", permission_decision_reason="not now"))
        session = await open_session(host, model, read, on_pre_tool_use=hook)
        await session.send_and_wait("go")

        assert model.requests[1].results == {"call_1": "Denied by preToolUse hook: not now"}


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: str(kind.name))
def test_every_field_of_an_answer_may_be_left_out(kind: HookKind[Any]) -> None:
    assert kind.read(None) == kind.read({}) == kind.output()
    assert kind.read({"suppress_output": True}).suppress_output is True
    with pytest.raises(WrongAnswer, match="unknown field `surprise`"):
        kind.read({"surprise": 1})
    with pytest.raises(WrongAnswer, match="returned list"):
        kind.read([])


@pytest.mark.parametrize("handling", ["skip", "abort"])
def test_what_the_sdk_names_and_has_no_effect_here_is_taken(handling: str) -> None:
    answer = {"error_handling": handling, "user_notification": "Sorry."}
    assert ERROR_OCCURRED.read(answer).error_handling == handling
    assert SESSION_START.read({"modified_config": {"model": "other"}}).additional_context is None
    ended = SESSION_END.read({"cleanup_actions": ["close"], "session_summary": "well"})
    assert ended.session_summary == "well"
