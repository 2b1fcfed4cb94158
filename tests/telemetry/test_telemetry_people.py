"""Waits for people, and hooks, in traces."""

import pytest
import trio
from trio.testing import MockClock

from exeunt import ToolInvocation, leave_pending, tool
from exeunt.actors.hooks import PreToolUseInput, UserPromptSubmittedInput
from exeunt.testing import ScriptedModel, call, checked_host, say
from tests.actors.session_support import open_session, plain_tool
from tests.telemetry.traced import Traces, about, happened, seconds


async def _nothing() -> str:
    await trio.lowlevel.checkpoint()
    return "done"


async def test_an_approval_is_two_events_of_its_call_and_the_wait_between_them(
    autojump_clock: MockClock,
) -> None:
    traces = Traces()
    model = ScriptedModel([call("deploy"), say("done")])
    async with checked_host(telemetry=traces.telemetry()) as host:
        deploy = plain_tool("deploy", _nothing, skip_permission=False)
        session = await open_session(host, model, deploy, on_permission_request=leave_pending)
        await session.send("go")
        await trio.sleep(30)
        (request,) = session.pending_requests()
        await session.answer(request.request_id, "approved")
        await trio.sleep(1)
    traces.check()
    (tool_call,) = traces.calls
    (asked, _), (told, how) = happened(tool_call)
    assert (asked, told) == ("permission.requested", "permission.completed")
    assert how == {
        "exeunt.request.id": request.request_id,
        "exeunt.request.end": "approved",
        "exeunt.seconds": pytest.approx(30.0),
    }
    assert seconds(tool_call) == pytest.approx(30.0)


async def test_a_question_is_two_events_of_its_call(autojump_clock: MockClock) -> None:
    traces = Traces()

    @tool(skip_permission=True)
    async def decide(invocation: ToolInvocation) -> str:
        """Decide."""
        return (await invocation.ask_user("Really?")).answer

    async with checked_host(telemetry=traces.telemetry()) as host:
        model = ScriptedModel([call("decide"), say("done")])
        session = await open_session(host, model, decide, on_user_input_request=leave_pending)
        await session.send("go")
        await trio.sleep(7)
        for request in session.pending_requests():
            await session.answer(request.request_id, "yes")
        await trio.sleep(1)
    traces.check()
    assert [name for name, _ in happened(traces.calls[0])] == ["user_input.requested", "user_input.completed"]


async def test_a_hook_is_an_event_of_the_call_or_the_turn_that_waits_for_it(
    autojump_clock: MockClock,
) -> None:
    traces = Traces()

    async def slow(_: PreToolUseInput, __: object) -> None:
        await trio.sleep(2)

    async def prompt(_: UserPromptSubmittedInput, __: object) -> None:
        await trio.sleep(3)

    async with checked_host(telemetry=traces.telemetry()) as host:
        model = ScriptedModel([call("deploy"), say("done")])
        session = await open_session(
            host,
            model,
            plain_tool("deploy", _nothing),
            on_pre_tool_use=slow,
            on_user_prompt_submitted=prompt,
        )
        await session.send_and_wait("go")
    traces.check()
    (turn,), (tool_call,) = traces.turns, traces.calls
    told = {"exeunt.hook.success": True, "exeunt.seconds": pytest.approx(3.0)}
    assert happened(turn) == [("hook.end", {"exeunt.hook.type": "userPromptSubmitted", **told})]
    assert happened(tool_call)[0][1]["exeunt.hook.type"] == "preToolUse"
    assert seconds(turn) == pytest.approx(5.0)


async def test_a_message_that_a_hook_blocks_has_a_turn_without_a_model_call(
    autojump_clock: MockClock,
) -> None:
    traces = Traces()

    async def block(_: UserPromptSubmittedInput, __: object) -> dict[str, str]:
        await trio.sleep(3)
        return {"decision": "block", "reason": "not here"}

    async with checked_host(telemetry=traces.telemetry()) as host:
        session = await open_session(host, ScriptedModel([]), on_user_prompt_submitted=block)
        with traces.tracer.start_as_current_span("request") as request:
            await session.send("go")
        await trio.sleep(10)
    traces.check()
    (turn,) = traces.turns
    assert about(turn)["exeunt.turn.reason"] == "aborted"
    assert turn.parent is not None
    assert turn.parent.span_id == request.get_span_context().span_id
    assert seconds(turn) == pytest.approx(3.0)
