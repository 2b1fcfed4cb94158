"""Clearing the context from a client's tool: the semantics of the host hold on the wire."""

from typing import Any

import pytest
import trio
from trio.testing import MockClock

from exeunt.testing import ScriptedModel, call
from exeunt.testing.scripted import RecordedRequest
from tests.wire.wire_client import CLEAR, Silence, WireClient, WireFailure, open_wire, tool

NO_CALL = "session.history.clearContext must be called from inside a tool handler: no tool call is in flight"


def roles(request: RecordedRequest) -> list[str]:
    return [message.role for message in request.messages]


async def clear(client: WireClient, prompt: object = "seed", session: str = "s") -> int:
    result = await client.call("session.history.clearContext", sessionId=session, prompt=prompt)
    return int(result["messagesCleared"])


async def test_a_clear_of_a_terminal_tool_is_answered_by_the_seeded_turn(autojump_clock: MockClock) -> None:
    model = ScriptedModel(["hi", call("clear_context", prompt="Continue with step 2"), "on step 2"])
    async with open_wire(model) as wire:
        client = await wire.connect()
        await client.create(tools=[CLEAR], systemMessage={"mode": "replace", "content": "SYS"})
        await client.say("hello")
        await client.event("session.idle")
        waiting = await client.start("session.sendAndWait", sessionId="s", prompt="please start over")
        request = await client.requested()
        assert await clear(client, "Continue with step 2") == 4
        assert await client.give(request, result="Cleared 4 messages.")
        reply = (await client.answer(waiting))["result"]
        assert reply["response"]["data"]["content"] == "on step 2"
        assert reply["aborted"] is False
    assert roles(model.requests[-1]) == ["system", "user"]
    assert model.requests[-1].messages[-1].content == "Continue with step 2"
    cleared = client.events("session.context_cleared")
    assert [event["data"] for event in cleared] == [
        {"messagesCleared": 4, "initialMessage": "Continue with step 2"}
    ]
    seed = client.events("user.message")[-1]["data"]
    assert seed["content"] == "Continue with step 2"
    assert seed["source"] == "session-memory-rollover"
    assert client.kinds().count("session.idle") == 2


async def test_a_clear_whose_tool_fails_leaves_the_context_as_it_was(autojump_clock: MockClock) -> None:
    model = ScriptedModel([call("clear_context", prompt="seed"), "it failed"])
    async with open_wire(model) as wire:
        client = await wire.connect()
        request = await client.calling(CLEAR)
        await clear(client)
        await client.give(request, error="disk full")
        await client.event("session.idle")
    assert client.events("session.context_cleared") == []
    assert roles(model.requests[-1]) == ["user", "assistant", "tool"]
    assert model.requests[-1].messages[-1].content == (
        'Failed to execute `clear_context` tool with arguments: {"prompt":"seed"} '
        "due to error: Error: Tool execution failed"
    )


async def test_a_second_clear_of_a_batch_is_refused(autojump_clock: MockClock) -> None:
    model = ScriptedModel([call("clear_context", prompt="seed"), "done"])
    async with open_wire(model) as wire:
        client = await wire.connect()
        request = await client.calling(CLEAR)
        await clear(client, "one")
        with pytest.raises(WireFailure, match="staged in this batch already") as refused:
            await clear(client, "two")
        assert refused.value.code == -32603
        assert refused.value.data == {"type": "ClearAlreadyStaged"}
        await client.give(request, result="ok")
        await client.event("session.idle")
    assert [event["data"]["initialMessage"] for event in client.events("session.context_cleared")] == ["one"]


async def test_a_clear_without_a_call_in_flight_is_refused_in_the_words_that_clients_know(
    autojump_clock: MockClock,
) -> None:
    async with open_wire(ScriptedModel([])) as wire:
        client = await wire.connect()
        await client.create(tools=[CLEAR])
        with pytest.raises(WireFailure, match=NO_CALL) as refused:
            await clear(client)
    assert refused.value.code == -32603
    assert client.events("session.context_cleared") == []


@pytest.mark.parametrize("prompt", ["", "  \n"])
async def test_a_blank_seed_is_refused_before_anything_else_is_looked_at(
    prompt: str, autojump_clock: MockClock
) -> None:
    async with open_wire(ScriptedModel([])) as wire:
        client = await wire.connect()
        await client.create(tools=[CLEAR])
        with pytest.raises(WireFailure, match="requires a non-empty 'prompt'"):
            await clear(client, prompt)


@pytest.mark.parametrize("prompt", [None, 5, ["seed"], {"text": "seed"}])
async def test_a_seed_that_is_no_text_is_refused(prompt: object, autojump_clock: MockClock) -> None:
    async with open_wire(ScriptedModel([])) as wire:
        client = await wire.connect()
        await client.create(tools=[CLEAR])
        with pytest.raises(WireFailure, match="missing or non-string parameter 'prompt'"):
            await clear(client, prompt)


async def test_a_clear_of_an_unknown_session_or_of_none_says_so(autojump_clock: MockClock) -> None:
    async with open_wire(ScriptedModel([])) as wire:
        client = await wire.connect()
        with pytest.raises(WireFailure, match="Session not found for sessionId: nobody"):
            await clear(client, session="nobody")
        with pytest.raises(
            WireFailure, match="Missing sessionId in session\\.history\\.clearContext request"
        ):
            await client.call("session.history.clearContext", prompt="seed")


async def test_a_clear_belongs_to_the_call_that_this_client_still_owes(autojump_clock: MockClock) -> None:
    """Of two calls in flight, one answered: the clear stands or falls with the other."""
    model = ScriptedModel([[call("plain", id="a"), call("slow", id="b")], "after"])
    async with open_wire(model) as wire:
        client = await wire.connect()
        await client.create(tools=[tool("plain"), tool("slow")])
        await client.say("go")
        first, second = await client.requested(1), await client.requested(2)
        await client.give(first, result="fast")
        await clear(client)
        await client.give(second, error="broken")
        await client.event("session.idle")
    # The owner failed, so nothing is cleared, though its sibling had succeeded.
    assert client.events("session.context_cleared") == []
    assert model.requests[-1].messages[-2].content == "fast"


async def test_another_client_cannot_clear_for_a_call_that_is_not_its_own(autojump_clock: MockClock) -> None:
    model = ScriptedModel([call("clear_context", prompt="seed"), "done"])
    async with open_wire(model) as wire:
        owner = await wire.connect()
        await owner.create(tools=[CLEAR])
        stranger = await wire.connect()
        await stranger.call("session.resume", sessionId="s")
        await owner.say("go")
        request = await owner.requested()
        with pytest.raises(WireFailure, match=NO_CALL):
            await clear(stranger)
        await owner.give(request, result="ok")
        await owner.event("session.idle")
    assert owner.events("session.context_cleared") == []


async def test_while_a_call_waits_for_approval_the_client_that_is_asked_may_clear(
    autojump_clock: MockClock,
) -> None:
    model = ScriptedModel([call("clear_context", prompt="seed"), "done"])
    async with open_wire(model) as wire:
        client = await wire.connect()
        await client.create(tools=[{**CLEAR, "skipPermission": False}])
        await client.say("go")
        await client.event("permission.requested")
        assert await clear(client) == 2
        await client.approve()
        await client.give(await client.requested(), result="ok")
        await client.event("session.idle")
    assert len(client.events("session.context_cleared")) == 1


async def test_a_hook_clears_for_its_call_while_it_runs_and_not_afterwards(autojump_clock: MockClock) -> None:
    """The call is another client's by then, which alone still owes an answer."""
    model = ScriptedModel([call("clear_context", prompt="seed"), "done"])
    async with open_wire(model) as wire:
        hooks, owner = await wire.connect(), await wire.connect()
        hooks.handlers["hooks.invoke"] = lambda params: {}
        await hooks.create(hooks=True)
        await owner.call("session.resume", sessionId="s", tools=[CLEAR])
        await hooks.say("go")
        request = await owner.requested()
        with pytest.raises(WireFailure, match=NO_CALL):
            await clear(hooks)
        await owner.give(request, result="ok")
        await hooks.event("session.idle")
    assert hooks.events("session.context_cleared") == []


async def test_while_a_hook_runs_only_the_client_that_runs_it_may_clear(autojump_clock: MockClock) -> None:
    model = ScriptedModel([call("clear_context", prompt="seed"), "on the seed"])
    async with open_wire(model) as wire:
        hooks, other = await wire.connect(), await wire.connect()
        running = trio.Event()

        def slow(params: dict[str, Any]) -> dict[str, Any]:
            if params["hookType"] != "preToolUse":
                return {}
            running.set()
            raise Silence

        hooks.handlers["hooks.invoke"] = slow
        await hooks.create(hooks=True, tools=[CLEAR])
        await other.call("session.resume", sessionId="s")
        await hooks.say("go")
        await running.wait()
        with pytest.raises(WireFailure, match=NO_CALL):
            await clear(other)
        assert await clear(hooks) == 2
