"""The methods beside a turn: model, mode, name, options, log, queue, questions, commands, agents, all sessions."""

from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from exeunt.testing import ScriptedModel, after, call, say
from exeunt.wire.serving.models import DefaultProvider
from exeunt.wire.table import METHODS
from tests.wire.wire_client import WireFailure, open_wire, tool

PROVIDER = {"type": "openai", "baseUrl": "http://127.0.0.1:9/v1", "apiKey": "k"}


async def test_the_handshake_and_what_runs_here(autojump_clock: MockClock) -> None:
    async with open_wire(ScriptedModel([])) as wire:
        client = wire.raw()
        shaken = await client.call("connect", supportedTaskKinds=["agent"])
        assert (shaken["ok"], shaken["protocolVersion"]) == (True, 3)
        assert (await client.call("ping"))["protocolVersion"] == 3
        assert await client.call("status.get") == {"version": shaken["version"], "protocolVersion": 3}
        assert (await client.call("auth.getStatus"))["isAuthenticated"] is True
        assert [model["id"] for model in (await client.call("models.list"))["models"]] == ["scripted"]
        assert await client.call("tools.list") == {"tools": []}


async def test_without_a_provider_there_is_no_model(autojump_clock: MockClock) -> None:
    async with open_wire(default=DefaultProvider()) as wire:
        client = await wire.connect()
        assert (await client.call("auth.getStatus"))["isAuthenticated"] is False
        with pytest.raises(WireFailure, match="Not authenticated"):
            await client.call("models.list")
        with pytest.raises(WireFailure, match="no model provider") as refused:
            await client.create()
        assert refused.value.data == {"type": "InvalidConfiguration"}


@pytest.mark.parametrize("method", ["session.fleet.start", "session.shell.exec", "no.such", "session.", ""])
async def test_what_is_not_served_is_named(method: str, autojump_clock: MockClock) -> None:
    async with open_wire(ScriptedModel([])) as wire:
        client = await wire.connect()
        with pytest.raises(WireFailure) as refused:
            await client.call(method, sessionId="s")
        assert (refused.value.code, str(refused.value)) == (-32601, f"Unhandled method {method}")


@pytest.mark.parametrize("method", [name for name, method in METHODS.items() if method.needs_session])
async def test_a_method_of_a_session_needs_one_that_exists(method: str, autojump_clock: MockClock) -> None:
    async with open_wire(ScriptedModel([])) as wire:
        client = await wire.connect()
        with pytest.raises(WireFailure, match=f"Missing sessionId in {method} request"):
            await client.call(method)
        with pytest.raises(WireFailure, match="Missing sessionId"):
            await client.call(method, sessionId=5)


@pytest.mark.parametrize(
    ("method", "params", "words"),
    [
        ("session.send", {"sessionId": "s", "prompt": 5}, "`$.prompt`"),
        ("session.send", {"sessionId": "s", "prompt": "x", "mode": "later"}, "`$.mode`"),
        ("session.create", {"sessionId": 5}, "`$.sessionId`"),
        ("session.create", {"tools": {"a": 1}}, "tools"),
        ("session.create", {"tools": [{"description": "nameless"}]}, "name"),
        ("session.create", {"systemMessage": {"mode": "shout"}}, "systemMessage"),
        ("session.mode.set", {"sessionId": "s", "mode": "shell"}, "params.mode"),
        ("session.model.switchTo", {"sessionId": "s", "modelId": 1}, "params.modelId"),
        ("session.name.set", {"sessionId": "s"}, "name"),
        ("sessions.bulkDelete", {"sessionIds": ["a", 1]}, "sessionIds"),
    ],
)
async def test_wrong_parameters_are_named_and_change_nothing(
    method: str, params: dict[str, Any], words: str, autojump_clock: MockClock
) -> None:
    async with open_wire(ScriptedModel([])) as wire:
        client = await wire.connect()
        await client.create()
        logged = len((await client.call("session.getMessages", sessionId="s"))["events"])
        with pytest.raises(WireFailure) as refused:
            await client.call(method, **params)
        assert words in str(refused.value)
        assert len((await client.call("session.getMessages", sessionId="s"))["events"]) == logged


async def test_the_session_goes_on_with_another_model(autojump_clock: MockClock) -> None:
    async with open_wire(ScriptedModel([])) as wire:
        client = await wire.connect()
        await client.create(provider=PROVIDER, model="one")
        assert await client.call("session.model.getCurrent", sessionId="s") == {"modelId": "one"}
        switched = await client.call(
            "session.model.switchTo", sessionId="s", modelId="two", reasoningEffort="high"
        )
        assert switched["modelId"] == "two"
        state = await client.call("session.model.getCurrent", sessionId="s")
        assert state == {"modelId": "two", "reasoningEffort": "high"}
        actor = wire.host.find("s")
        assert actor is not None
        assert actor.options.model_name == "two"
        assert client.events("session.model_change")[0]["data"] == {"newModel": "two", "previousModel": "one"}


async def test_a_registry_of_providers_gives_the_session_its_model(autojump_clock: MockClock) -> None:
    registry = {
        "providers": [{**PROVIDER, "name": "near"}, {"name": "far", "baseUrl": "https://far.example/v1"}],
        "models": [
            {"id": "small", "provider": "near", "wireModel": "small-v2"},
            {"id": "big", "provider": "far"},
        ],
    }
    async with open_wire(ScriptedModel([])) as wire:
        client = await wire.connect()
        await client.create(model="near/small", **registry)
        actor = wire.host.find("s")
        assert actor is not None
        assert actor.options.model_name == "small-v2"
        await client.call("session.model.switchTo", sessionId="s", modelId="far/big")
        endpoint = await client.call("session.provider.getEndpoint", sessionId="s")
        assert endpoint["baseUrl"] == "https://far.example/v1"
        added = await client.call(
            "session.provider.add",
            sessionId="s",
            providers=[{"name": "new", "baseUrl": "https://new.example/v1"}],
            models=[{"id": "m", "provider": "new"}],
        )
        assert added == {"models": [{"id": "new/m"}]}
        with pytest.raises(WireFailure, match="unknown provider 'nobody'"):
            await client.call(
                "session.provider.add", sessionId="s", models=[{"id": "m", "provider": "nobody"}]
            )


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"provider": {"type": "anthropic", "baseUrl": "http://x"}, "model": "m"}, "anthropic"),
        ({"provider": {**PROVIDER, "wireApi": "responses"}, "model": "m"}, "responses"),
        ({"provider": {"type": "openai", "baseUrl": "ftp://x"}, "model": "m"}, "base_url"),
        ({"mcpServers": {"a": {"command": "x"}}}, "mcpServers"),
        ({"cloud": {"repository": "x"}}, "cloud"),
        ({"agent": "nobody"}, "agent 'nobody'"),
    ],
)
async def test_what_a_session_cannot_have_is_refused_when_it_is_made(
    config: dict[str, Any], words: str, autojump_clock: MockClock
) -> None:
    async with open_wire(ScriptedModel([])) as wire:
        client = await wire.connect()
        with pytest.raises(WireFailure, match=words):
            await client.create(**config)
        assert wire.server.hub.sessions == {}
        await client.create()


async def test_mode_and_name_are_kept_and_told(autojump_clock: MockClock) -> None:
    async with open_wire(ScriptedModel(["hi"])) as wire:
        client = await wire.connect()
        await client.create()
        assert await client.call("session.mode.get", sessionId="s") == "interactive"
        assert (await client.call("session.mode.set", sessionId="s", mode="plan"))["status"] == "applied"
        conflict = await client.call(
            "session.mode.set", sessionId="s", mode="autopilot", expectedMode="interactive"
        )
        assert conflict["status"] == "conflict"
        assert await client.call("session.name.get", sessionId="s") == {"name": None}
        assert await client.call("session.name.setAuto", sessionId="s", summary="first") == {"applied": True}
        assert await client.call("session.name.setAuto", sessionId="s", summary="second") == {
            "applied": False
        }
        await client.call("session.name.set", sessionId="s", name=" Our plan ")
        with pytest.raises(WireFailure, match="1 to 200 characters"):
            await client.call("session.name.set", sessionId="s", name="  ")
        listed = (await client.call("session.list"))["sessions"]
        assert listed[0]["name"] == "Our plan"
        await client.call("session.detach", sessionId="s")
        await client.call("session.resume", sessionId="s")
        assert await client.call("session.mode.get", sessionId="s") == "plan"
        assert await client.call("session.name.get", sessionId="s") == {"name": "Our plan"}
        await client.say()
        assert (await client.event("session.idle"))["data"] == {"mode": "plan"}
    changes = [event["data"] for event in client.events("session.mode_changed")]
    assert changes == [{"previousMode": "interactive", "newMode": "plan"}]
    assert [event["data"]["title"] for event in client.events("session.title_changed")] == [
        "first",
        "Our plan",
    ]


async def test_the_system_message_is_what_the_client_says(autojump_clock: MockClock) -> None:
    model = ScriptedModel(["hi"] * 4)
    sections = {"tone": {"action": "replace", "content": "Be brief."}, "safety": {"action": "remove"}}
    configs: dict[str, Any] = {
        "a": {"systemMessage": {"mode": "append", "content": "More."}},
        "b": {"systemMessage": {"mode": "replace", "content": "Only this."}},
        "c": {"systemMessage": {"mode": "customize", "sections": sections, "content": "And this."}},
        "d": {},
    }
    async with open_wire(model) as wire:
        client = await wire.connect()
        for session, config in configs.items():
            await client.create(session, **config)
            await client.say(session=session)
            await wait_all_tasks_blocked()
    first = [request.messages[0].content for request in model.requests]
    assert first == ["More.", "Only this.", "Be brief.\n\nAnd this.", "go"]


async def test_an_agent_of_the_session_has_its_prompt_and_its_tools(autojump_clock: MockClock) -> None:
    model = ScriptedModel(["as itself", "as the critic", "as itself"])
    agents = [{"name": "critic", "displayName": "The critic", "prompt": "Criticise.", "tools": ["one"]}]
    async with open_wire(model) as wire:
        client = await wire.connect()
        await client.create(tools=[tool("one"), tool("two")], customAgents=agents)
        listed = (await client.call("session.agent.list", sessionId="s"))["agents"]
        assert [agent["name"] for agent in listed] == ["critic"]
        assert await client.call("session.agent.getCurrent", sessionId="s") == {"agent": None}
        await client.say()
        await client.event("session.idle")
        await client.call("session.agent.select", sessionId="s", name="critic")
        assert (await client.call("session.agent.getCurrent", sessionId="s"))["agent"]["id"] == "critic"
        await client.say()
        await client.event("session.idle", 2)
        with pytest.raises(WireFailure, match="no agent named 'nobody'"):
            await client.call("session.agent.select", sessionId="s", name="nobody")
        await client.call("session.agent.deselect", sessionId="s")
        await client.say()
        await client.event("session.idle", 3)
    assert [[each.name for each in request.tools] for request in model.requests] == [
        ["one", "two"],
        ["one"],
        ["one", "two"],
    ]
    assert model.requests[1].messages[0].content == "Criticise."
    assert client.events("subagent.selected")[0]["data"]["tools"] == ["one"]


async def test_what_clients_write_into_the_log_is_read_back(autojump_clock: MockClock) -> None:
    async with open_wire(ScriptedModel(["hi"])) as wire:
        client = await wire.connect()
        await client.create()
        for level in ("info", "warning", "error"):
            await client.call("session.log", sessionId="s", message=f"an {level}", level=level)
        shown = await client.call("session.log", sessionId="s", message="of the moment", ephemeral=True)
        kept = (await client.call("session.getMessages", sessionId="s"))["events"]
        assert [(event["type"], event["data"]["message"]) for event in kept[1:]] == [
            ("session.info", "an info"),
            ("session.warning", "an warning"),
            ("session.error", "an error"),
        ]
        assert client.events("session.info")[-1]["id"] == shown["eventId"]
        assert client.events("session.info")[-1]["ephemeral"] is True


async def test_the_log_is_read_in_parts_from_a_cursor_on(autojump_clock: MockClock) -> None:
    async with open_wire(ScriptedModel(["hi", "again"])) as wire:
        client = await wire.connect()
        await client.create()
        await client.say()
        await client.event("session.idle")
        whole = (await client.call("session.getMessages", sessionId="s"))["events"]
        seen, cursor, more = list[Any](), "", True
        while more:
            part = await client.call("session.eventLog.read", sessionId="s", cursor=cursor, max=2)
            seen, cursor, more = seen + part["events"], part["cursor"], part["hasMore"]
        assert seen == whole
        end = await client.call("session.eventLog.tail", sessionId="s")
        assert end["cursor"] == whole[-1]["id"]
        users = await client.call("session.eventLog.read", sessionId="s", types=["user.message"])
        assert [event["type"] for event in users["events"]] == ["user.message"]
        back = await client.call("session.eventLog.read", sessionId="s", direction="backward", max=2)
        assert back["events"] == whole[-2:]
        lost = await client.call("session.eventLog.read", sessionId="s", cursor="no-such-event")
        assert (lost["cursorStatus"], lost["events"]) == ("expired", whole)
        waiting = await client.start(
            "session.eventLog.read", sessionId="s", cursor=end["cursor"], waitMs=30_000
        )
        await wait_all_tasks_blocked()
        await client.say("more")
        news = (await client.answer(waiting))["result"]["events"]
        assert news[0]["type"] == "user.message"
        began = trio.current_time()
        await client.event("session.idle", 2)
        tail = (await client.call("session.eventLog.tail", sessionId="s"))["cursor"]
        empty = await client.call("session.eventLog.read", sessionId="s", cursor=tail, waitMs=30_000)
        assert empty["events"] == []
        assert trio.current_time() - began == pytest.approx(30)


async def test_the_events_form_an_unbroken_chain(autojump_clock: MockClock) -> None:
    model = ScriptedModel([call("t"), "hi"])
    async with open_wire(model) as wire:
        client = await wire.connect()
        await client.create(tools=[tool("t")])
        await client.say()
        await client.give(await client.requested(), result="ok")
        await client.event("session.idle")
        kept = (await client.call("session.getMessages", sessionId="s"))["events"]
    assert kept[0]["parentId"] is None
    assert [event["parentId"] for event in kept[1:]] == [event["id"] for event in kept[:-1]]
    shown = [event for event in client.events() if not event.get("ephemeral")]
    assert shown == kept
    everything = client.events()
    assert len({event["id"] for event in everything}) == len(everything)


async def test_events_of_the_host_itself_come_to_who_asks_for_them(autojump_clock: MockClock) -> None:
    async with open_wire(ScriptedModel(["one", "two", "three"])) as wire:
        client, other = await wire.connect(), await wire.connect()
        await client.create()
        await other.call("session.resume", sessionId="s")
        await client.say()
        await client.event("session.idle")
        assert client.events("turn.end") == []
        handle = await client.call("session.eventLog.registerInterest", sessionId="s", eventType="turn.end")
        await client.say()
        await client.event("session.idle", 2)
        assert [event["data"]["reason"] for event in client.events("turn.end")] == ["completed"]
        assert other.events("turn.end") == []
        released = await client.call(
            "session.eventLog.releaseInterest", sessionId="s", handle=handle["handle"]
        )
        assert released == {"success": True}
        await client.say()
        await client.event("session.idle", 3)
        assert len(client.events("turn.end")) == 1


async def test_messages_that_wait_are_listed_and_taken_back(autojump_clock: MockClock) -> None:
    model = ScriptedModel([after(10, "first"), "the rest"])
    async with open_wire(model) as wire:
        client = await wire.connect()
        await client.create()
        await client.say("now")
        second, third = await client.say("second"), await client.say("third")
        await client.say("aside", mode="immediate")
        listed = await client.call("session.queue.pendingItems", sessionId="s")
        assert [item["displayText"] for item in listed["items"]] == ["second", "third"]
        assert listed["steeringMessages"] == ["aside"]
        assert await client.call("session.queue.hasPending", sessionId="s") == {"hasPending": True}
        assert await client.call("session.queue.removeAt", sessionId="s", id=second) == {"removed": True}
        assert await client.call("session.queue.removeAt", sessionId="s", id=second) == {"removed": False}
        last = await client.call("session.queue.removeMostRecent", sessionId="s")
        assert last == {"removed": True}
        listed = await client.call("session.queue.pendingItems", sessionId="s")
        assert [item["id"] for item in listed["items"]] == [third]
        await client.call("session.queue.clear", sessionId="s")
        assert await client.call("session.queue.hasPending", sessionId="s") == {"hasPending": False}
        await client.event("session.idle")
    assert len(model.requests) == 1


async def test_an_abort_ends_the_turn_and_drops_what_waits(autojump_clock: MockClock) -> None:
    model = ScriptedModel([call("t"), "next"])
    async with open_wire(model) as wire:
        client = await wire.connect()
        await client.create(tools=[tool("t")])
        assert await client.call("session.abort", sessionId="s") == {"success": True}
        assert client.events("abort", "session.idle") == []
        waiting = await client.start("session.sendAndWait", sessionId="s", prompt="go")
        request = await client.requested()
        await client.say("dropped")
        assert await client.call("session.abort", sessionId="s") == {"success": True}
        assert (await client.answer(waiting))["result"]["aborted"] is True
        assert client.events("abort")[0]["data"] == {"reason": "user_initiated"}
        assert (await client.event("session.idle"))["data"] == {"aborted": True, "mode": "interactive"}
        # The client's handler is told to stop.
        assert client.events("external_tool.completed")[0]["data"] == {"requestId": request}
        assert not await client.give(request, result="late")
        await client.say("next")
        await client.event("session.idle", 2)
    assert model.requests[-1].results == {
        "call_1": "The execution of this tool, or a previous tool was interrupted."
    }


async def test_a_request_that_waits_can_be_given_up(autojump_clock: MockClock) -> None:
    async with open_wire(ScriptedModel([after(60, "late")])) as wire:
        client = await wire.connect()
        await client.create()
        waiting = await client.start("session.sendAndWait", sessionId="s", prompt="go")
        await wait_all_tasks_blocked()
        await client.send({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": waiting}})
        assert (await client.answer(waiting))["error"]["code"] == -32800
        # The turn goes on.
        await client.event("assistant.message")


async def test_a_streamed_answer_comes_in_pieces_and_as_a_whole(autojump_clock: MockClock) -> None:
    async with open_wire(ScriptedModel([say("one two three", chunks=3)])) as wire:
        client = await wire.connect()
        await client.create(streaming=True)
        await client.say()
        await client.event("session.idle")
    pieces = [event["data"] for event in client.events("assistant.message_delta")]
    (whole,) = client.events("assistant.message")
    assert "".join(piece["deltaContent"] for piece in pieces) == whole["data"]["content"] == "one two three"
    assert {piece["messageId"] for piece in pieces} == {whole["data"]["messageId"]}
    started = [event["data"]["messageId"] for event in client.events("assistant.message_start")]
    assert started == [whole["data"]["messageId"]]
    sizes = [event["data"]["totalResponseSizeBytes"] for event in client.events("assistant.streaming_delta")]
    assert sizes == sorted(sizes)
    assert sizes[-1] == len("one two three")


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
        await shows.leave()
        assert (await asks.answer(waiting))["result"] == {"action": "cancel"}
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
        assert [(command["name"], command["kind"]) for command in listed] == [("deploy", "client")]
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
        unknown = await asks.call("session.commands.execute", sessionId="s", commandName="fly", args="")
        assert unknown == {"error": "Unknown command: fly"}
        with pytest.raises(WireFailure, match="Unknown command: fly"):
            await asks.call("session.commands.invoke", sessionId="s", name="/fly")


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
        "preToolUse",
        "postToolUse",
        "sessionEnd",
    ]
    pre = dict(asked)["preToolUse"]
    assert (pre["toolName"], pre["toolArgs"], pre["cwd"], pre["sessionId"]) == ("t", {"n": 1}, "/here", "s")
    assert isinstance(pre["timestamp"], int)
    assert dict(asked)["postToolUse"]["toolResult"]["textResultForLlm"] == "ok"
    assert client.events("external_tool.requested")[0]["data"]["arguments"] == {"n": 2}
    assert model.requests[0].messages[-1].content == "changed"
    (text,) = model.requests[1].results.values()
    assert text.endswith("guidance from postToolUse hooks:\nwell done")
    assert client.events("user.message")[0]["data"]["content"] == "original"


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


async def test_a_session_is_truncated_and_forked(autojump_clock: MockClock) -> None:
    model = ScriptedModel(["one", "two", "again", "of the fork"])
    async with open_wire(model) as wire:
        client = await wire.connect()
        await client.create()
        await client.call("session.eventLog.registerInterest", sessionId="s", eventType="turn.end")
        for number in (1, 2):
            await client.say(f"message {number}")
            await client.event("session.idle", number)
        first_end = client.events("turn.end")[0]["id"]
        forked = await client.call("sessions.fork", sessionId="s", toEventId=first_end)
        back = await client.call("session.history.truncate", sessionId="s", eventId=first_end)
        assert back["eventsRemoved"] > 0
        assert client.events("session.snapshot_rewind")[0]["data"]["upToEventId"] == first_end
        await client.say("message 3")
        await client.event("session.idle", 3)
        assert [m.content for m in model.requests[-1].messages] == ["message 1", "one", "message 3"]
        with pytest.raises(WireFailure, match="has no event"):
            await client.call("sessions.fork", sessionId="s", toEventId="nothing")
        await client.call("session.resume", sessionId=forked["sessionId"])
        await client.say("message 4", session=forked["sessionId"])
        await client.event("session.idle", 4)
        assert [m.content for m in model.requests[-1].messages] == ["message 1", "one", "message 4"]


async def test_what_is_known_of_a_session(autojump_clock: MockClock) -> None:
    async with open_wire(ScriptedModel([after(5, "the answer")])) as wire:
        client = await wire.connect()
        await client.create(workingDirectory="/here", clientName="tests")
        await client.say("a question")
        assert await client.call("session.metadata.isProcessing", sessionId="s") == {"processing": True}
        await client.event("session.idle")
        activity = await client.call("session.metadata.activity", sessionId="s")
        assert activity == {"abortable": False, "hasActiveWork": False}
        about = await client.call("session.metadata.snapshot", sessionId="s")
        assert (about["workingDirectory"], about["clientName"], about["selectedModel"]) == (
            "/here",
            "tests",
            "scripted",
        )
        heavy = await client.call("session.metadata.getContextHeaviestMessages", sessionId="s")
        assert [message["role"] for message in heavy["messages"]] == ["user", "assistant"]
        await client.call("session.metadata.setWorkingDirectory", sessionId="s", workingDirectory="/there")
        about = await client.call("session.metadata.snapshot", sessionId="s")
        assert about["workingDirectory"] == "/there"
        metrics = await client.call("session.usage.getMetrics", sessionId="s")
        assert metrics["modelMetrics"]["scripted"]["requests"]["count"] == 1


async def test_sessions_are_listed_found_closed_and_deleted(autojump_clock: MockClock) -> None:
    async with open_wire(ScriptedModel(["hi"])) as wire:
        client = await wire.connect()
        for session in ("session-a", "session-b"):
            await client.create(session)
        assert await client.call("session.getLastId") in (
            {"sessionId": "session-b"},
            {"sessionId": "session-a"},
        )
        listed = {one["sessionId"] for one in (await client.call("sessions.list"))["sessions"]}
        assert listed == {"session-a", "session-b"}
        assert await client.call("sessions.findByPrefix", prefix="session-a") == {"sessionId": "session-a"}
        assert await client.call("sessions.findByPrefix", prefix="session-") == {}
        await client.call("sessions.save", sessionId="session-a")
        await client.call("sessions.close", sessionId="session-a")
        with pytest.raises(WireFailure, match="Session not found"):
            await client.say(session="session-a")
        await client.call("session.resume", sessionId="session-a")
        assert await client.call("session.delete", sessionId="session-a") == {"success": True}
        gone = await client.call("session.delete", sessionId="session-a")
        assert gone == {"success": False, "error": "Session file not found for session-a"}
        with pytest.raises(WireFailure, match="Session not found: session-a"):
            await client.call("session.resume", sessionId="session-a")
        assert (await client.call("session.getMetadata", sessionId="session-b"))["session"][
            "isRemote"
        ] is False
        assert await client.call("session.getMetadata", sessionId="nobody") == {}
        await client.call("session.detach", sessionId="session-b")
        with pytest.raises(WireFailure, match="exists already"):
            await client.create("session-b")


async def test_a_session_gets_an_id_where_the_client_gives_none(autojump_clock: MockClock) -> None:
    async with open_wire(ScriptedModel([])) as wire:
        client = await wire.connect()
        one, two = await client.call("session.create"), await client.call("session.create", sessionId="")
        assert len({one["sessionId"], two["sessionId"], ""}) == 3
        for bad in ("x" * 200, "a\nb"):
            with pytest.raises(WireFailure, match="session id"):
                await client.create(bad)


async def test_creating_a_session_in_memory_attaches_to_it(autojump_clock: MockClock) -> None:
    async with open_wire(ScriptedModel(["hi"])) as wire:
        one, two = await wire.connect(), await wire.connect()
        await one.create()
        assert (await two.create())["sessionId"] == "s"
        await one.say()
        await two.event("session.idle")


async def test_what_is_attached_to_a_message_is_named_in_its_text(autojump_clock: MockClock) -> None:
    model = ScriptedModel(["hi"])
    async with open_wire(model) as wire:
        client = await wire.connect()
        await client.create()
        await client.say(
            "look",
            attachments=[
                {"type": "file", "path": "/a/b.txt"},
                {"type": "selection", "filePath": "/c.py", "text": "x = 1"},
            ],
        )
        await client.event("session.idle")
    assert model.requests[0].messages[-1].content == (
        "look\n\n<tagged_files>\n* /a/b.txt\n</tagged_files>\n\n"
        "<ide_selection>\nUser-selected lines from /c.py:\nx = 1\n</ide_selection>"
    )


async def test_a_model_that_fails_ends_the_turn_with_its_error(autojump_clock: MockClock) -> None:
    from exeunt import ModelErrorKind
    from exeunt.testing import fail

    model = ScriptedModel([fail(ModelErrorKind.BAD_REQUEST, "no such parameter")] * 2)
    async with open_wire(model) as wire:
        client = await wire.connect()
        await client.create()
        with pytest.raises(WireFailure, match="no such parameter"):
            await client.call("session.sendAndWait", sessionId="s", prompt="go")
        await client.event("session.idle")
        kinds = [kind for kind in client.kinds() if not kind.startswith("pending")]
        assert kinds[-4:] == ["assistant.turn_end", "session.error", "assistant.idle", "session.idle"]
        assert client.events("session.error")[0]["data"]["errorType"] == "bad_request"
