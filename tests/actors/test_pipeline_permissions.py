"""Who may say yes: the host's handler, and the pre hook before it."""

from typing import Any

import pytest
from trio.testing import MockClock

from exeunt import (
    ApproveForSession,
    ApproveOnce,
    PermissionRequest,
    Reject,
    UserNotAvailable,
    approve_all,
    tool,
)
from exeunt.actors.events import PermissionCompleted, PermissionRequested, ToolExecutionComplete
from exeunt.testing import ScriptedModel, call, checked_host, say
from tests.actors.turn_support import answering, calls_counted, logged, open_session, outcomes, read, submit

NOBODY = "Permission denied and could not request permission from user"


@tool
async def write(path: str) -> str:
    """Write a file."""
    return f"wrote {path}"


@tool(skip_permission=True)
async def look() -> str:
    """Look around."""
    return "seen"


class Approver:
    """Answers as it is told, and keeps what it was asked."""

    def __init__(self, *answers: Any) -> None:
        self.asked: list[PermissionRequest] = []
        self._answers = list(answers)

    async def __call__(self, request: PermissionRequest, invocation: Any) -> Any:
        self.asked.append(request)
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


async def test_a_permission_handler_is_told_what_wants_to_run(autojump_clock: MockClock) -> None:
    seen: list[tuple[Any, ...]] = []

    def approve(request: PermissionRequest, invocation: Any) -> ApproveOnce:
        seen.append((request, invocation.session_id, invocation["tool_call_id"]))
        return ApproveOnce()

    model = ScriptedModel([call("write", path="a.txt"), "done"])
    async with checked_host() as host:
        session = await open_session(host, model, write, on_permission_request=approve)
        await session.send_and_wait("go")

        request = PermissionRequest("call_1", "write", {"path": "a.txt"}, "Write a file.")
        assert seen == [(request, session.session_id, "call_1")]
        (asked,) = await logged(session, PermissionRequested)
        assert (asked.tool_call_id, asked.tool_name, asked.arguments_json) == (
            "call_1",
            "write",
            '{"path":"a.txt"}',
        )
        (answered,) = await logged(session, PermissionCompleted)
        assert (answered.request_id, answered.kind) == (asked.request_id, "approved")
    model.verify()


@pytest.mark.parametrize("once", [ApproveOnce(), "approve-once", "approved", {"kind": "approve-once"}])
async def test_approving_once_is_asked_again_next_time(autojump_clock: MockClock, once: Any) -> None:
    approver = Approver(once)
    model = ScriptedModel([call("write", path="a"), call("write", path="b"), "done"])
    async with checked_host() as host:
        session = await open_session(host, model, write, on_permission_request=approver)
        await session.send_and_wait("go")

        assert [request.arguments for request in approver.asked] == [{"path": "a"}, {"path": "b"}]
        assert [e.kind for e in await logged(session, PermissionCompleted)] == ["approved", "approved"]
        assert calls_counted(host) == {("write", "success", "false"): 2}
    model.verify()


@pytest.mark.parametrize(
    "always", [ApproveForSession(), "approve-for-session", {"kind": "approve-for-session"}]
)
async def test_approving_for_the_session_is_asked_once_for_each_tool(
    autojump_clock: MockClock, always: Any
) -> None:
    approver = Approver(always)
    model = ScriptedModel(
        [call("write", path="a"), "one", call("write", path="b"), call("read"), "two", call("read"), "3"]
    )
    async with checked_host() as host:
        session = await open_session(host, model, write, read, on_permission_request=approver)
        for prompt in ("first", "second", "third"):
            await session.send_and_wait(prompt)
        other = await open_session(
            host, ScriptedModel([call("read"), "x"]), write, read, on_permission_request=approver
        )
        await other.send_and_wait("go")

        assert [request.tool_name for request in approver.asked] == ["write", "read", "read"]
        assert [e.kind for e in await logged(session, PermissionCompleted)] == ["approved-for-session"] * 2
    model.verify()


@pytest.mark.parametrize(
    ("no", "text", "feedback"),
    [
        (Reject(), "The user rejected this tool call.", None),
        ("reject", "The user rejected this tool call.", None),
        (Reject("not today"), "The user rejected this tool call. User feedback: not today", "not today"),
        (
            {"kind": "reject", "feedback": "not\ud83d"},
            "The user rejected this tool call. User feedback: not\ufffd",
            "not\ufffd",
        ),
    ],
)
async def test_a_rejection_goes_to_the_model_with_its_feedback(
    autojump_clock: MockClock, no: Any, text: str, feedback: str | None
) -> None:
    model = ScriptedModel([call("submit", answer=42), "I see."])
    async with checked_host() as host:
        session = await open_session(host, model, submit, on_permission_request=Approver(no))
        reply = await session.send_and_wait("go")

        assert reply.reason == "completed"
        assert model.requests[1].results == {"call_1": text}
        (end,) = await logged(session, PermissionCompleted)
        assert (end.kind, end.feedback) == ("rejected", feedback)
        assert calls_counted(host) == {("submit", "rejected", "true"): 1}
    model.verify()


async def test_s13_a_rejection_does_not_stick_to_the_next_call(autojump_clock: MockClock) -> None:
    approver = Approver(Reject("policy X"), ApproveOnce())
    model = ScriptedModel([call("write", path="a"), call("write", path="b"), "done"])
    async with checked_host() as host:
        session = await open_session(host, model, write, on_permission_request=approver)
        await session.send_and_wait("go")

        assert "policy X" in model.requests[1].results["call_1"]
        assert await outcomes(session) == [("write", "rejected"), ("write", "success")]
        assert len(approver.asked) == 2
    model.verify()


@pytest.mark.parametrize(
    ("answer", "cause"),
    [
        (UserNotAvailable(), NOBODY),
        ("user-not-available", NOBODY),
        (OSError("no terminal"), "the permission handler failed: OSError: no terminal"),
    ],
)
async def test_where_nobody_answers_the_call_is_denied(
    autojump_clock: MockClock, answer: Any, cause: str
) -> None:
    model = ScriptedModel([call("submit", answer=42), "I see."])
    async with checked_host() as host:
        session = await open_session(host, model, submit, on_permission_request=Approver(answer))
        reply = await session.send_and_wait("go")

        assert reply.reason == "completed"
        assert model.requests[1].results == {"call_1": NOBODY}
        assert calls_counted(host) == {("submit", "denied", "true"): 1}
        (end,) = await logged(session, ToolExecutionComplete)
        assert end.error_message == cause
        assert [e.kind for e in await logged(session, PermissionCompleted)] == ["unavailable"]
    model.verify()


@pytest.mark.parametrize("junk", [None, True, "yes", "approve-permanently", {"kind": 1}, {}, 42, object()])
async def test_an_answer_that_is_no_decision_denies(autojump_clock: MockClock, junk: Any) -> None:
    ran: list[str] = []

    @tool
    async def act() -> None:
        ran.append("act")

    model = ScriptedModel([call("act"), "I see."])
    async with checked_host() as host:
        session = await open_session(host, model, act, on_permission_request=Approver(junk))
        await session.send_and_wait("go")

        assert ran == []
        assert model.requests[1].results == {"call_1": NOBODY}
        (end,) = await logged(session, ToolExecutionComplete)
        assert end.error_message is not None
        assert end.error_message.startswith(
            "the permission handler failed: InvalidConfiguration: a permission handler answered"
        )
    model.verify()


async def test_without_a_handler_only_tools_that_skip_permission_run(autojump_clock: MockClock) -> None:
    model = ScriptedModel([[call("read"), call("look")], "I see."])
    async with checked_host() as host:
        session = await open_session(host, model, read, look, on_permission_request=None)
        await session.send_and_wait("go")

        assert model.requests[1].results == {"call_1": NOBODY, "call_2": "seen"}
        assert calls_counted(host) == {("read", "denied", "false"): 1, ("look", "success", "false"): 1}
        assert await logged(session, PermissionRequested) == []
        (denied,) = [e for e in await logged(session, ToolExecutionComplete) if not e.success]
        assert denied.error_message == "no permission handler, and the tool does not skip permission"
    model.verify()


async def test_a_tool_that_skips_permission_is_not_asked_for(autojump_clock: MockClock) -> None:
    approver = Approver(Reject())
    model = ScriptedModel([call("look"), "done"])
    async with checked_host() as host:
        session = await open_session(host, model, look, on_permission_request=approver)
        await session.send_and_wait("go")

        assert approver.asked == []
        assert await outcomes(session) == [("look", "success")]
        assert await logged(session, PermissionRequested) == []
    model.verify()


async def test_approve_all_asks_nobody_and_says_nothing(autojump_clock: MockClock) -> None:
    model = ScriptedModel([call("read"), "done"])
    async with checked_host() as host:
        session = await open_session(host, model, read, on_permission_request=approve_all)
        await session.send_and_wait("go")

        assert await outcomes(session) == [("read", "success")]
        assert await logged(session, PermissionRequested) == []
        assert await logged(session, PermissionCompleted) == []
    model.verify()


async def test_invalid_arguments_are_not_asked_for(autojump_clock: MockClock) -> None:
    approver = Approver(ApproveOnce())
    model = ScriptedModel([[call("write"), call("nothing")], "done"])
    async with checked_host() as host:
        session = await open_session(host, model, write, on_permission_request=approver)
        await session.send_and_wait("go")

        assert approver.asked == []
        assert await outcomes(session) == [("write", "invalid"), ("nothing", "failure")]
    model.verify()


# --- The pre hook ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("decision", "asked", "outcome"),
    [
        ("allow", 0, "success"),
        ("ask", 1, "success"),
        ("deny", 0, "denied"),
        (None, 1, "success"),
        ("perhaps", 0, "denied"),
        (True, 0, "denied"),
    ],
)
async def test_the_pre_hook_decides_whether_somebody_is_asked(
    autojump_clock: MockClock, decision: Any, asked: int, outcome: str
) -> None:
    approver = Approver(ApproveOnce())
    model = ScriptedModel([call("read"), "done"])
    async with checked_host() as host:
        session = await open_session(
            host,
            model,
            read,
            on_permission_request=approver,
            on_pre_tool_use=answering({"permission_decision": decision}),
        )
        await session.send_and_wait("go")

        assert len(approver.asked) == asked
        assert await outcomes(session) == [("read", outcome)]
    model.verify()


async def test_the_pre_hook_can_ask_about_a_tool_that_skips_permission(autojump_clock: MockClock) -> None:
    approver = Approver(Reject())
    model = ScriptedModel([call("look"), "done"])
    async with checked_host() as host:
        session = await open_session(
            host,
            model,
            look,
            on_permission_request=approver,
            on_pre_tool_use=answering({"permission_decision": "ask"}),
        )
        await session.send_and_wait("go")

        assert len(approver.asked) == 1
        assert await outcomes(session) == [("look", "rejected")]
    model.verify()


async def test_a_question_of_the_pre_hook_is_denied_where_nobody_can_be_asked(
    autojump_clock: MockClock,
) -> None:
    model = ScriptedModel([call("look"), "done"])
    async with checked_host() as host:
        session = await open_session(
            host,
            model,
            look,
            on_permission_request=None,
            on_pre_tool_use=answering({"permission_decision": "ask"}),
        )
        await session.send_and_wait("go")

        assert await outcomes(session) == [("look", "denied")]
        assert model.requests[1].results == {"call_1": NOBODY}
    model.verify()


async def test_the_pre_hook_can_allow_where_there_is_no_permission_handler(autojump_clock: MockClock) -> None:
    model = ScriptedModel([call("read"), "done"])
    async with checked_host() as host:
        session = await open_session(
            host,
            model,
            read,
            on_permission_request=None,
            on_pre_tool_use=answering({"permission_decision": "allow"}),
        )
        await session.send_and_wait("go")

        assert await outcomes(session) == [("read", "success")]
    model.verify()


@pytest.mark.parametrize(("reason", "shown"), [("policy X", "policy X"), (None, "No reason provided")])
async def test_a_denial_of_the_pre_hook_goes_to_the_model_with_its_reason(
    autojump_clock: MockClock, reason: str | None, shown: str
) -> None:
    def deny(hook_input: Any, invocation: Any) -> dict[str, Any]:
        return {"permission_decision": "deny", "permission_decision_reason": reason}

    model = ScriptedModel([call("submit", answer=42), "I see."])
    async with checked_host() as host:
        session = await open_session(host, model, submit, on_pre_tool_use=deny)
        reply = await session.send_and_wait("go")

        assert reply.reason == "completed"
        assert model.requests[1].results == {"call_1": f"Denied by preToolUse hook: {shown}"}
        assert calls_counted(host) == {("submit", "denied", "true"): 1}
    model.verify()


async def test_a_pre_hook_that_wants_to_ask_asks_also_after_an_approval_for_the_session(
    autojump_clock: object,
) -> None:
    asked: list[str] = []

    async def approve(request: PermissionRequest, invocation: object) -> ApproveForSession:
        asked.append(request.tool_call_id)
        return ApproveForSession()

    def ask(hook_input: object, invocation: object) -> dict[str, str]:
        return {"permission_decision": "ask"}

    model = ScriptedModel([call("read").with_id("1"), call("read").with_id("2"), say("done")])
    async with checked_host() as host:
        session = await open_session(host, model, read, on_permission_request=approve, on_pre_tool_use=ask)
        await session.send_and_wait("go")

    assert asked == ["1", "2"]
    model.verify()
