"""What handlers do in a program of any kind: tools, hooks, approvals, clears."""

from contextvars import ContextVar
from typing import Any

import pytest

from exeunt import (
    ApproveForSession,
    HookInvocation,
    NoToolCallInFlight,
    PermissionRequest,
    PromptBlocked,
    Reject,
    ToolInvocation,
    WouldDeadlock,
    approve_all,
    tool,
)
from exeunt.testing import ScriptedModel, call
from tests.embed.worlds import World, in_each_world, in_each_world_in_real_time

WHO: ContextVar[str] = ContextVar("who", default="nobody")


@in_each_world
async def test_a_tool_is_called_with_its_arguments(world: World) -> None:
    async def add(a: int, b: int = 2) -> int:
        """Add."""
        return a + b

    model = ScriptedModel([[call("add", a=1), call("add", a=3, b=4)], "done"])
    async with world.host() as host:
        session = await host.create_session(model=model, tools=[world.tool(add)])
        assert (await session.send_and_wait("add")).content == "done"
    assert list(model.requests[1].results.values()) == ["3", "7"]


@in_each_world
async def test_an_invocation_says_where_the_handler_is_called(world: World) -> None:
    seen: list[Any] = []

    async def look(word: str, invocation: ToolInvocation) -> str:
        """Look."""
        seen.append((invocation.session_id, invocation.session.session_id, invocation.tool_name))
        seen.append((invocation.arguments, invocation.cancelled, invocation.session.statistics().in_flight))
        seen.append([event.type for event in await invocation.session.get_events()][-1])
        return word

    async with world.host() as host:
        session = await host.create_session(
            model=ScriptedModel([call("look", word="exit"), "done"]),
            tools=[world.tool(look)],
            session_id="ada",
        )
        await session.send_and_wait("look")
    assert seen == [
        ("ada", "ada", "look"),
        ({"word": "exit"}, False, ("look",)),
        "tool.execution_start",
    ]


@in_each_world
async def test_context_variables_of_the_caller_are_those_of_the_handlers(world: World) -> None:
    seen: list[tuple[str, str]] = []

    async def look() -> str:
        """Look."""
        seen.append(("tool", WHO.get()))
        WHO.set("the handler")
        return "looked"

    async def before(data: Any, invocation: HookInvocation) -> None:
        seen.append((data["tool_name"], WHO.get()))

    async with world.host() as host:
        session = await host.create_session(
            model=ScriptedModel([call("look"), "done", call("look"), "done"]),
            tools=[world.tool(look)],
            hooks=world.hooks(on_pre_tool_use=before),
        )
        WHO.set("ada")
        await session.send_and_wait("look")
        WHO.set("bob")
        await session.send_and_wait("look")
        assert WHO.get() == "bob"
    assert seen == [("look", "ada"), ("tool", "ada"), ("look", "bob"), ("tool", "bob")]


@in_each_world
async def test_an_exception_of_a_handler_is_an_outcome_of_its_type(world: World) -> None:
    class Own(Exception):
        pass

    async def work() -> str:
        """Work."""
        raise Own("broken")

    model = ScriptedModel([call("work"), "I see"])
    async with world.host() as host:
        session = await host.create_session(model=model, tools=[world.tool(work)])
        assert (await session.send_and_wait("go")).content == "I see"
        (end,) = [e for e in await session.get_events() if e.type == "tool.execution_complete"]
    assert (end.payload()["outcome"], end.payload()["error_message"]) == ("failure", "Own: broken")
    assert "broken" in model.requests[1].results["call_1"]


@in_each_world
async def test_a_clear_in_a_tool_begins_a_new_context(world: World) -> None:
    async def clear_context(prompt: str, invocation: ToolInvocation) -> str:
        """Clear."""
        result = await invocation.session.history.clear_context(prompt)
        with pytest.raises(WouldDeadlock):
            await result.settled()
        return f"Cleared {result.messages_cleared} messages."

    model = ScriptedModel([call("clear_context", prompt="step 2"), "on step 2"])
    async with world.host() as host:
        session = await host.create_session(
            model=model, tools=[world.tool(clear_context, is_terminal=True)], system_message="Brief."
        )
        reply = await session.send_and_wait("start over")
        assert (reply.content, [turn.reason for turn in reply.turns]) == (
            "on step 2",
            ["terminal_tool", "completed"],
        )
        assert session.statistics().generation == 1
        with pytest.raises(NoToolCallInFlight):
            await session.history.clear_context("now")
    assert model.requests[1].contents == ("Brief.", "step 2")


@in_each_world
async def test_a_handler_that_waits_for_its_own_session_is_told_so(world: World) -> None:
    seen: list[Exception] = []

    async def ask(invocation: ToolInvocation) -> str:
        """Ask."""
        for wait in (
            lambda: invocation.session.send_and_wait("x"),
            lambda: invocation.session.call_tool("ask"),
        ):
            try:
                await wait()
            except WouldDeadlock as error:
                seen.append(error)
        await invocation.session.send("but this is queued")
        return "asked"

    async with world.host() as host:
        session = await host.create_session(
            model=ScriptedModel([call("ask"), "done", "queued"]), tools=[world.tool(ask)]
        )
        await session.send_and_wait("go")
        while session.statistics().phase != "idle":
            await world.settled(host)
    assert len(seen) == 2


@in_each_world
async def test_a_handler_may_ask_another_session_and_not_in_a_circle(world: World) -> None:
    async with world.host() as host:

        async def ask(invocation: ToolInvocation) -> str:
            """Ask."""
            return (await host.get_session("expert").send_and_wait("what?")).content

        async def ask_back(invocation: ToolInvocation) -> str:
            """Ask back."""
            try:
                return (await host.get_session("front").send_and_wait("who?")).content
            except WouldDeadlock:
                return "no circle"

        expert = ScriptedModel([call("ask_back"), "an answer"])
        front = ScriptedModel([call("ask"), "done"])
        await host.create_session(model=expert, tools=[world.tool(ask_back)], session_id="expert")
        session = await host.create_session(model=front, tools=[world.tool(ask)], session_id="front")
        assert (await session.send_and_wait("go")).content == "done"
    assert front.requests[1].results == {"call_1": "an answer"}
    assert expert.requests[1].results == {"call_1": "no circle"}


@in_each_world
async def test_hooks_take_part_in_a_turn(world: World) -> None:
    async def look(word: str) -> str:
        """Look."""
        return f"saw {word}"

    async def submitted(data: Any, invocation: HookInvocation) -> dict[str, str]:
        if data.prompt == "bad":
            return {"decision": "block", "reason": "not here"}
        return {"modified_prompt": data.prompt.upper()}

    async def before(data: Any, invocation: HookInvocation) -> dict[str, Any]:
        assert invocation.session.session_id == invocation["session_id"] == data.session_id
        return {"modified_args": {"word": "changed"}}

    async def after(data: Any, invocation: HookInvocation) -> dict[str, str]:
        return {"modified_result": f"{data.tool_result.text_result_for_llm}!"}

    model = ScriptedModel([call("look", word="exit"), "done"])
    async with world.host() as host:
        session = await host.create_session(
            model=model,
            tools=[world.tool(look)],
            hooks=world.hooks(
                on_user_prompt_submitted=submitted, on_pre_tool_use=before, on_post_tool_use=after
            ),
        )
        await session.send_and_wait("go")
        with pytest.raises(PromptBlocked):
            await session.send_and_wait("bad")
    assert model.requests[0].contents == ("GO",)
    assert model.requests[1].results == {"call_1": "saw changed!"}


@in_each_world
async def test_approvals_are_asked_for(world: World) -> None:
    asked: list[str] = []

    async def answer(request: PermissionRequest, invocation: HookInvocation) -> ApproveForSession | Reject:
        asked.append(request.tool_name)
        assert invocation.session.statistics().phase == "tools"
        return Reject("not that") if request.tool_name == "delete" else ApproveForSession()

    async def save() -> str:
        """Save."""
        return "saved"

    async def delete() -> str:
        """Delete."""
        return "deleted"

    model = ScriptedModel([call("save"), call("save"), call("delete"), "done"])
    async with world.host() as host:
        session = await host.create_session(
            model=model,
            tools=[tool(world.handler(save)), tool(world.handler(delete))],
            on_permission_request=world.handler(answer),
        )
        await session.send_and_wait("go")
    assert asked == ["save", "delete"]
    assert "not that" in model.requests[3].results["call_3"]


@in_each_world_in_real_time
async def test_a_synchronous_handler_runs_in_a_worker_thread_and_can_use_its_session(world: World) -> None:
    def work(invocation: ToolInvocation) -> str:
        """Work."""
        invocation.run(invocation.session.send, "queued by the tool")
        return "worked"

    model = ScriptedModel([call("work"), "done", "the other"])
    async with world.host() as host:
        session = await host.create_session(
            model=model, tools=[tool(work)], on_permission_request=approve_all
        )
        assert (await session.send_and_wait("go")).content == "done"
        while session.statistics().phase != "idle":
            await world.settled(host)
    assert model.requests[2].contents[-1] == "queued by the tool"


@in_each_world
async def test_the_host_calls_a_tool_by_its_own_will(world: World) -> None:
    async def clear_context(prompt: str, invocation: ToolInvocation) -> str:
        """Clear."""
        await invocation.session.history.clear_context(prompt)
        return "cleared"

    async with world.host() as host:
        session = await host.create_session(
            model=ScriptedModel(["hello", "fresh"]), tools=[world.tool(clear_context)]
        )
        await session.send_and_wait("hi")
        outcome = await session.call_tool("clear_context", {"prompt": "begin anew"})
        assert (outcome.tool_name, outcome.outcome, outcome.content) == (
            "clear_context",
            "success",
            "cleared",
        )
        while session.statistics().phase != "idle":
            await world.settled(host)
        assert [message.content for message in session.history.messages()] == ["begin anew", "fresh"]
