"""Asking people, and policies, in a program of any kind."""

from typing import Any

import pytest

from exeunt import (
    HookInvocation,
    NotInToolCall,
    PermissionRequest,
    ToolInvocation,
    UserInputRequest,
    ask_user_tool,
    leave_pending,
    tool,
)
from exeunt.policies import HandoffPolicy, Phase, PhasePolicy, clear_context_tool, handoff_tool, messages
from exeunt.testing import ScriptedModel, call
from tests.embed.worlds import World, in_each_world, in_each_world_in_real_time


@in_each_world
async def test_an_approval_is_answered_from_anywhere(world: World) -> None:
    async def delete() -> str:
        """Delete."""
        return "deleted"

    model = ScriptedModel([call("delete"), "done"])
    async with world.host() as host:
        session = await host.create_session(
            model=model, tools=[tool(world.handler(delete))], on_permission_request=leave_pending
        )
        waiting = world.start(session.send_and_wait, "go")
        while not session.pending_requests():
            await world.settled(host)
        (asked,) = host.pending_requests()
        assert (asked.kind, asked.tool_name, asked.session_id) == ("permission", "delete", session.session_id)
        assert isinstance(asked.request, PermissionRequest)
        await session.answer(asked.request_id, "approved")
        assert (await waiting.result()).content == "done"
        assert session.pending_requests() == ()
    assert model.requests[1].results == {"call_1": "deleted"}


@in_each_world
async def test_a_handler_asks_the_user_and_a_handler_of_the_host_answers(world: World) -> None:
    async def answer(request: UserInputRequest, invocation: HookInvocation) -> str:
        assert invocation.session.statistics().pending_requests == 1
        return request.choices[0]

    async def choose(invocation: ToolInvocation) -> str:
        """Choose."""
        first = await invocation.ask_user("Which one?", ["red", "blue"])
        second = await invocation.session.ask_user("Sure?", ["yes"], allow_freeform=False)
        return f"{first.text}; {second.answer}"

    model = ScriptedModel([call("choose"), "done"])
    async with world.host() as host:
        session = await host.create_session(
            model=model, tools=[world.tool(choose)], on_user_input_request=world.handler(answer)
        )
        await session.send_and_wait("go")
        with pytest.raises(NotInToolCall):
            await session.ask_user("From nowhere?")
    assert model.requests[1].results == {"call_1": "User selected: red; yes"}


@in_each_world
async def test_the_ready_made_tools_run_in_each_host(world: World) -> None:
    model = ScriptedModel(
        [call("ask_user", question="Go on?"), call("clear_context", prompt="step 2"), "on step 2"]
    )
    async with world.host() as host:
        session = await host.create_session(
            model=model, tools=[ask_user_tool(), clear_context_tool()], on_user_input_request=leave_pending
        )
        waiting = world.start(session.send_and_wait, "go")
        while not session.pending_requests():
            await world.settled(host)
        await session.answer(session.pending_requests()[0].request_id, "yes")
        assert (await waiting.result()).content == "on step 2"
    assert model.requests[1].results == {"call_1": "User responded: yes"}
    assert model.requests[2].contents == ("step 2",)


@in_each_world
async def test_a_policy_stands_beside_the_hooks_of_the_program(world: World) -> None:
    seen: list[str] = []

    async def after(data: Any, invocation: HookInvocation) -> dict[str, str]:
        seen.append(f"{data.tool_name} {invocation.session.statistics().phase}")
        return {"additional_context": "said by the program"}

    async def look() -> str:
        """Look."""
        return "looked"

    model = ScriptedModel([call("look"), call("clear_context", prompt="a note"), "fresh"])
    policy = HandoffPolicy(at=messages(1), remind_every=1, force_after=None)
    async with world.host() as host:
        options = policy.extend(model=model, tools=[world.tool(look)], on_post_tool_use=world.handler(after))
        session = await host.create_session(**options)
        assert (await session.send_and_wait("go")).content == "fresh"
    assert seen[0] == "look tools"
    result = model.requests[1].results["call_1"]
    assert "said by the program" in result
    assert "clear_context" in result  # the reminder
    assert model.requests[2].contents == ("a note",)


@in_each_world
async def test_work_is_handed_to_another_session(world: World) -> None:
    other_model = ScriptedModel(["taken over"])
    async with world.host() as host:
        other = await host.create_session(model=other_model, session_id="other")
        session = await host.create_session(
            model=ScriptedModel([call("handoff", prompt="go on")]), tools=[handoff_tool(to=other)]
        )
        await session.send_and_wait("go")
        while other.statistics().phase != "idle" or not other_model.calls:
            await world.settled(host)
        session.record_handoff("sent", detail="by the program")
        (first, second) = [e for e in await session.get_events() if e.type == "session.handoff"]
        assert (first.payload()["session_id"], second.payload()["detail"]) == ("other", "by the program")
    assert other_model.requests[0].contents == ("go on",)


@in_each_world_in_real_time
async def test_a_session_goes_through_its_phases(world: World) -> None:
    async def look() -> str:
        """Look."""
        return "looked"

    policy = PhasePolicy(
        [
            Phase(name="plan", developer_message="Plan.", tools=[world.tool(look)]),
            Phase(name="build", developer_message="Build."),
        ]
    )
    model = ScriptedModel([call("look"), call("next_phase", decisions="Rename it."), "built", "built more"])
    journal = f"sqlite:///{world.folder}/phases.db"
    async with world.host(journal=journal) as host:
        options = policy.first_options(host, model=model)
        session = await host.create_session(session_id="s", **options)
        assert (await session.send_and_wait("go")).content == "built"
    async with world.host(journal=journal) as host:
        options = await world.on_trio(host, policy.options_for, host, "s", model=model)
        session = await host.resume_session("s", **options)
        assert (await session.send_and_wait("more")).content == "built more"
    names = [[definition.name for definition in request.tools] for request in model.requests]
    assert names == [["look", "next_phase"], ["look", "next_phase"], [], []]
    assert [next(m.content for m in r.messages if m.role == "developer") for r in model.requests] == [
        "Plan.",
        "Plan.",
        "Build.",
        "Build.",
    ]
