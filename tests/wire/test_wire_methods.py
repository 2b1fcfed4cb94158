"""The methods beside a turn: handshake, parameters, model, mode, name, system message, agents."""

from typing import Any

import pytest
from trio.testing import MockClock, wait_all_tasks_blocked

from exeunt.testing import ScriptedModel
from exeunt.wire.serving.models import DefaultProvider
from exeunt.wire.table import METHODS
from tests.wire.wire_client import WireFailure, open_wire, tool

PROVIDER_OF_OURS = {"type": "openai", "base_url": "http://127.0.0.1:9/v1"}
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
        assert [one["name"] for one in (await client.call("tools.list"))["tools"]] == ["ask_user"]


async def test_without_a_provider_there_is_no_model(autojump_clock: MockClock) -> None:
    async with open_wire(default=DefaultProvider()) as wire:
        client = await wire.connect()
        assert (await client.call("auth.getStatus"))["isAuthenticated"] is False
        with pytest.raises(WireFailure, match="Not authenticated"):
            await client.call("models.list")
        await client.create()
        await client.say()
        await client.event("session.idle")
        (error,) = client.events("session.error")
        assert error["data"]["errorType"] == "authentication"
        assert "no model provider" in error["data"]["message"]
        assert client.events("assistant.turn_retry") == []


async def test_a_session_without_a_model_gets_one_later(autojump_clock: MockClock) -> None:
    async with open_wire(default=DefaultProvider(provider=dict(PROVIDER_OF_OURS))) as wire:
        client = await wire.connect()
        await client.create()
        await client.say()
        assert "no model: name one" in (await client.event("session.error"))["data"]["message"]
        await client.call("session.model.switchTo", sessionId="s", modelId="m")
        assert (await client.call("session.model.getCurrent", sessionId="s"))["modelId"] == "m"


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
        assert client.events("session.model_change")[0]["data"] == {
            "newModel": "two",
            "previousModel": "one",
            "reasoningEffort": "high",
        }


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
        assert added == {"models": [{"id": "new/m", "name": "m"}]}
        with pytest.raises(WireFailure, match="unknown provider 'nobody'"):
            await client.call(
                "session.provider.add", sessionId="s", models=[{"id": "m", "provider": "nobody"}]
            )


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"provider": {"type": "oracle", "baseUrl": "http://x"}, "model": "m"}, "oracle"),
        ({"provider": {**PROVIDER, "wireApi": "messages"}, "model": "m"}, "completions, responses"),
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
        with pytest.raises(WireFailure, match="must not be empty"):
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
