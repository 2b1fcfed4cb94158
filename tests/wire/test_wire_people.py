"""What clients do for a session's people: forms, commands, hooks, questions."""

from typing import Any

import pytest
import trio
from trio.testing import MockClock

from exeunt.testing import ScriptedModel, after, call
from tests.wire.wire_client import WireFailure, open_wire, tool

PROVIDER = {"type": "openai", "baseUrl": "http://127.0.0.1:9/v1", "apiKey": "k"}


async def test_a_form_is_filled_in_by_a_client_that_shows_forms(autojump_clock: MockClock) -> None:
    schema = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    async with open_wire(ScriptedModel([])) as wire:
        asks, shows = await wire.connect(), await wire.connect()
        made = await asks.create()
        assert made["capabilities"]["ui"]["elicitation"] is False
        with pytest.raises(WireFailure, match="no client of the session shows forms"):
            await asks.call("session.ui.elicitation", sessionId="s", message="Name?", requestedSchema=schema)
        back = await shows.call("session.resume", sessionId="s", requestElicitation=True)
        assert back["capabilities"]["ui"]["elicitation"] is True
        assert asks.events("capabilities.changed")[0]["data"] == {"ui": {"elicitation": True}}
        waiting = await asks.start(
            "session.ui.elicitation", sessionId="s", message="Name?", requestedSchema=schema
        )
        shown = (await shows.event("elicitation.requested"))["data"]
        assert (shown["message"], shown["requestedSchema"], shown["mode"]) == ("Name?", schema, "form")
        filled = {"action": "accept", "content": {"name": "Ada"}}
        with pytest.raises(WireFailure, match=r"result\.action"):
            await shows.call(
                "session.ui.handlePendingElicitation",
                sessionId="s",
                requestId=shown["requestId"],
                result={"action": "eat"},
            )
        for success in (True, False):
            done = await shows.call(
                "session.ui.handlePendingElicitation",
                sessionId="s",
                requestId=shown["requestId"],
                result=filled,
            )
            assert done == {"success": success}
        assert (await asks.answer(waiting))["result"] == filled
        waiting = await asks.start("session.ui.elicitation", sessionId="s", message="Again?")
        await shows.event("elicitation.requested", 2)
        began = trio.current_time()
        await shows.leave()
        assert (await asks.answer(waiting))["result"] == {"action": "cancel"}
        assert trio.current_time() == began
        assert asks.events("capabilities.changed")[-1]["data"] == {"ui": {"elicitation": False}}


async def test_a_command_is_run_by_the_client_that_has_it(autojump_clock: MockClock) -> None:
    async with open_wire(ScriptedModel([])) as wire:
        asks, runs = await wire.connect(), await wire.connect()
        await asks.create()
        await runs.call(
            "session.resume", sessionId="s", commands=[{"name": "deploy", "description": "Deploys."}]
        )
        assert asks.events("commands.changed")[0]["data"] == {
            "commands": [{"name": "deploy", "description": "Deploys."}]
        }
        listed = (await asks.call("session.commands.list", sessionId="s"))["commands"]
        assert ("deploy", "client") in [(command["name"], command["kind"]) for command in listed]
        for number, error in enumerate([None, "no rights"], 1):
            waiting = await asks.start(
                "session.commands.execute", sessionId="s", commandName="deploy", args="prod"
            )
            asked = (await runs.event("command.execute", number))["data"]
            assert (asked["command"], asked["commandName"], asked["args"]) == (
                "/deploy prod",
                "deploy",
                "prod",
            )
            answer = {} if error is None else {"error": error}
            done = await runs.call(
                "session.commands.handlePendingCommand",
                sessionId="s",
                requestId=asked["requestId"],
                **answer,
            )
            assert done == {"success": True}
            assert (await asks.answer(waiting))["result"] == answer
        waiting = await asks.start("session.commands.execute", sessionId="s", commandName="deploy", args="")
        await runs.event("command.execute", 3)
        began = trio.current_time()
        await runs.leave()
        assert (await asks.answer(waiting))["result"] == {"error": "client disconnected"}
        assert trio.current_time() == began
        unknown = await asks.call("session.commands.execute", sessionId="s", commandName="fly", args="")
        assert unknown == {"error": "Unknown command: fly"}
        with pytest.raises(WireFailure, match="Unknown command: fly"):
            await asks.call("session.commands.invoke", sessionId="s", name="/fly")


async def test_a_command_that_two_clients_have_is_run_by_the_last_alone(autojump_clock: MockClock) -> None:
    deploy = [{"name": "deploy", "description": "Deploys."}]
    async with open_wire(ScriptedModel([])) as wire:
        first, watcher, last = [await wire.connect() for _ in range(3)]
        await first.create(commands=deploy)
        await watcher.call("session.resume", sessionId="s")
        await last.call("session.resume", sessionId="s", commands=deploy)
        waiting = await watcher.start(
            "session.commands.execute", sessionId="s", commandName="deploy", args=""
        )
        asked = (await last.event("command.execute"))["data"]["requestId"]
        assert (await watcher.event("command.execute"))["data"]["requestId"] == asked
        done = await last.call("session.commands.handlePendingCommand", sessionId="s", requestId=asked)
        assert done == {"success": True}
        assert (await watcher.answer(waiting))["result"] == {}
        await first.event("command.completed")
        assert first.events("command.execute") == []


async def test_hooks_of_the_client_take_part_in_a_turn(autojump_clock: MockClock) -> None:
    model = ScriptedModel([call("t", n=1), "done"])
    asked: list[tuple[str, dict[str, Any]]] = []

    def hook(params: dict[str, Any]) -> dict[str, Any]:
        asked.append((params["hookType"], params["input"]))
        outputs: dict[str, Any] = {
            "userPromptSubmitted": {"modifiedPrompt": "changed"},
            "preToolUse": {"modifiedArgs": {"n": 2}},
            "postToolUse": {"additionalContext": "well done"},
        }
        return {"output": outputs.get(params["hookType"])}

    async with open_wire(model) as wire:
        client = await wire.connect()
        client.handlers["hooks.invoke"] = hook
        await client.create(tools=[tool("t")], hooks=True, workingDirectory="/here")
        await client.say("original")
        await client.give(await client.requested(), result="ok")
        await client.event("session.idle")
    assert [kind for kind, _ in asked] == [
        "sessionStart",
        "userPromptSubmitted",
        "userPromptTransformed",
        "preToolUse",
        "postToolUse",
        "agentStop",
        "sessionEnd",
    ]
    pre = dict(asked)["preToolUse"]
    assert (pre["toolName"], pre["toolArgs"], pre["cwd"], pre["sessionId"]) == ("t", {"n": 1}, "/here", "s")
    assert isinstance(pre["timestamp"], int)
    # These are all; names are those of the protocol, in which one has another case than the others.
    everywhere = {"sessionId", "timestamp", "cwd"}
    assert {kind: set(given) - everywhere for kind, given in asked} == {
        "sessionStart": {"source", "initialPrompt"},
        "userPromptSubmitted": {"prompt"},
        "userPromptTransformed": {"prompt", "transformedPrompt"},
        "preToolUse": {"toolName", "toolArgs", "toolCallId"},
        "postToolUse": {"toolName", "toolArgs", "toolResult", "toolCallId"},
        "agentStop": {"stopReason", "stop_hook_active"},
        "sessionEnd": {"reason", "finalMessage"},
    }
    assert dict(asked)["agentStop"]["stop_hook_active"] is False
    assert dict(asked)["postToolUse"]["toolResult"]["textResultForLlm"] == "ok"
    assert client.events("external_tool.requested")[0]["data"]["arguments"] == {"n": 2}
    assert model.requests[0].messages[-1].content == "changed"
    (text,) = model.requests[1].results.values()
    assert text.endswith("guidance from postToolUse hooks:\nwell done")
    assert client.events("user.message")[0]["data"]["content"] == "changed"


async def test_a_hook_whose_client_is_gone_denies_the_call(autojump_clock: MockClock) -> None:
    model = ScriptedModel([after(5, call("t")), "done"])
    async with open_wire(model) as wire:
        hooks, watcher = await wire.connect(), await wire.connect()
        hooks.handlers["hooks.invoke"] = lambda params: {}
        await hooks.create(tools=[tool("t")], hooks=True)
        await hooks.say()
        await hooks.leave()
        await watcher.call("session.resume", sessionId="s", tools=[tool("t")], hooks=True)
        # It has hooks of its own now, and answers nothing.
        await watcher.event("hook.start")
        await watcher.leave()
        await trio.sleep(600)
        assert wire.host.actors() == []
    (text,) = model.requests[-1].results.values()
    assert text.startswith("Denied by preToolUse hook: ")


@pytest.mark.parametrize("gone", [False, True])
async def test_a_model_asks_the_user_through_the_client(gone: bool, autojump_clock: MockClock) -> None:
    model = ScriptedModel([call("ask_user", question="Which?", choices=["red", "blue"]), "noted"])
    async with open_wire(model) as wire:
        client = await wire.connect()
        asked: list[dict[str, Any]] = []

        def answer(params: dict[str, Any]) -> dict[str, Any]:
            asked.append(params)
            return {"answer": "blue", "wasFreeform": False}

        if not gone:
            client.handlers["userInput.request"] = answer
        await client.create(requestUserInput=True)
        assert [
            each["name"]
            for each in (await client.call("session.tools.getCurrentMetadata", sessionId="s"))["tools"]
        ] == ["ask_user"]
        watcher = await wire.connect()
        await watcher.call("session.resume", sessionId="s")
        await client.say()
        shown = (await watcher.event("user_input.requested"))["data"]
        assert (shown["question"], shown["choices"], shown["allowFreeform"]) == (
            "Which?",
            ["red", "blue"],
            True,
        )
        if gone:
            await client.leave()
        await watcher.event("session.idle")
    (text,) = model.requests[-1].results.values()
    assert text == ("The user cannot be asked." if gone else "User selected: blue")
    if not gone:
        assert asked == [
            {"sessionId": "s", "question": "Which?", "choices": ["red", "blue"], "allowFreeform": True}
        ]
        completed = watcher.events("user_input.completed")[0]["data"]
        assert (completed["answer"], completed["wasFreeform"]) == ("blue", False)


async def test_a_question_may_be_answered_by_any_client(autojump_clock: MockClock) -> None:
    model = ScriptedModel([call("ask_user", question="Who are you?"), "hello"])
    async with open_wire(model) as wire:
        client, other = await wire.connect(), await wire.connect()
        await client.create(requestUserInput=True)
        await other.call("session.resume", sessionId="s")
        await client.say()
        request = (await other.event("user_input.requested"))["data"]["requestId"]
        for success in (True, False):
            done = await other.call(
                "session.ui.handlePendingUserInput",
                sessionId="s",
                requestId=request,
                response={"answer": "Ada", "wasFreeform": True},
            )
            assert done == {"success": success}
        await client.event("session.idle")
    (text,) = model.requests[-1].results.values()
    assert text == "User responded: Ada"


async def test_the_filters_of_a_client_keep_its_questions_out(autojump_clock: MockClock) -> None:
    model = ScriptedModel(["hi"])
    async with open_wire(model) as wire:
        client = await wire.connect()
        await client.create(requestUserInput=True, availableTools=["custom:*"], tools=[tool("t")])
        await client.say()
        await client.event("session.idle")
    assert [definition.name for definition in model.requests[0].tools] == ["t"]


@pytest.mark.parametrize("reason", ["really?", ""])
async def test_a_question_that_a_hook_wants_asked_says_so(reason: str, autojump_clock: MockClock) -> None:
    model = ScriptedModel([call("t", n=1), "done"])

    def hook(params: dict[str, Any]) -> dict[str, Any]:
        if params["hookType"] != "preToolUse":
            return {}
        return {"output": {"permissionDecision": "ask", "permissionDecisionReason": reason or None}}

    async with open_wire(model) as wire:
        client = await wire.connect()
        client.handlers["hooks.invoke"] = hook
        await client.create(tools=[tool("t")], hooks=True)
        await client.say()
        asked = (await client.event("permission.requested"))["data"]["permissionRequest"]
        (listed,) = (await client.call("session.permissions.pendingRequests", sessionId="s"))["items"]
        await client.approve()
        await client.give(await client.requested(), result="ok")
        await client.event("session.idle")
    wanted = {"kind": "hook", "toolCallId": asked["toolCallId"], "toolName": "t", "toolArgs": {"n": 1}}
    assert asked == listed["request"] == wanted | ({"hookMessage": reason} if reason else {})


async def test_what_clients_can_do_is_told_when_it_changes_and_only_then(autojump_clock: MockClock) -> None:
    async with open_wire(ScriptedModel([])) as wire:
        watcher, one, two = await wire.connect(), await wire.connect(), await wire.connect()
        await watcher.create()

        def told() -> list[bool]:
            return [event["data"]["ui"]["elicitation"] for event in watcher.events("capabilities.changed")]

        for client in (one, two):
            await client.call("session.resume", sessionId="s", requestElicitation=True)
            assert told() == [True]
        await one.leave()
        assert told() == [True]
        await two.leave()
        assert told() == [True, False]
