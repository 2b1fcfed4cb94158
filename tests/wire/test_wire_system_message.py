"""Sections of the system message: what clients make of the server's own, and rewrite with functions of their own."""

from typing import Any

import pytest
from trio.testing import MockClock

from exeunt.testing import ScriptedModel, say
from exeunt.wire.options import WireOptions
from tests.wire.wire_client import Wire, WireClient, WireFailure, open_wire

BASE = WireOptions(system_message="BASE")


def customized(**sections: dict[str, str]) -> dict[str, Any]:
    return {"mode": "customize", "sections": sections}


REWRITES = customized(
    identity={"action": "transform"}, tone={"action": "transform"}, safety={"content": "SAFE"}
)


def rewriting(client: WireClient) -> list[dict[str, Any]]:
    """Let the client put each section into brackets; return what it is asked."""
    asked: list[dict[str, Any]] = []

    def transform(params: dict[str, Any]) -> dict[str, Any]:
        asked.append(params)
        return {
            "sections": {name: {"content": f"[{one['content']}]"} for name, one in params["sections"].items()}
        }

    client.handlers["systemMessage.transform"] = transform
    return asked


async def told(wire: Wire, client: WireClient, model: ScriptedModel) -> str | None:
    """What stands in the system message of the next request."""
    before = len(model.requests)
    number = len(client.events("session.idle"))
    await client.say()
    await client.event("session.idle", number + 1)
    first = model.requests[before].messages[0]
    return first.content if first.role == "system" else None


@pytest.mark.parametrize(
    ("config", "text"),
    [
        (None, "BASE"),
        ({"content": "MORE"}, "BASE\n\nMORE"),
        ({"mode": "replace", "content": "ONLY"}, "ONLY"),
        (customized(tone={"content": "TONE"}), "BASE\n\nTONE"),
        (customized(identity={"content": "I AM"}), "I AM"),
        (customized(identity={"action": "append", "content": "MORE"}), "BASE\n\nMORE"),
        (customized(identity={"action": "remove"}, tone={"content": "TONE"}), "TONE"),
        (customized(identity={"action": "preserve"}), "BASE"),
    ],
)
async def test_the_servers_own_text_is_the_section_of_who_it_is(
    config: dict[str, Any] | None, text: str, autojump_clock: MockClock
) -> None:
    model = ScriptedModel(["hi"])
    async with open_wire(model, options=BASE) as wire:
        client = await wire.connect()
        await client.create(systemMessage=config)
        assert await told(wire, client, model) == text


async def test_a_client_rewrites_sections_with_functions_of_its_own(autojump_clock: MockClock) -> None:
    model = ScriptedModel([], default=say("hi"))
    async with open_wire(model, options=BASE) as wire:
        client = await wire.connect()
        asked = rewriting(client)
        await client.create(systemMessage=REWRITES)
        assert asked == [
            {"sessionId": "s", "sections": {"identity": {"content": "BASE"}, "tone": {"content": ""}}}
        ]
        assert await told(wire, client, model) == "[BASE]\n\n[]\n\nSAFE"
        # Another client that says nothing of it changes nothing of it.
        other = await wire.connect()
        await other.call("session.resume", sessionId="s")
        assert await told(wire, client, model) == "[BASE]\n\n[]\n\nSAFE"
        assert len(asked) == 1


async def test_who_takes_a_session_up_is_asked_anew(autojump_clock: MockClock) -> None:
    model = ScriptedModel([], default=say("hi"))
    async with open_wire(model, options=BASE, settled=False) as wire:
        client = await wire.connect()
        rewriting(client)
        await client.create(systemMessage=REWRITES)
        assert await told(wire, client, model) == "[BASE]\n\n[]\n\nSAFE"
        await client.call("session.detach", sessionId="s")
        asked = rewriting(client)
        await client.call("session.resume", sessionId="s", systemMessage=REWRITES)
        assert len(asked) == 1
        assert await told(wire, client, model) == "[BASE]\n\n[]\n\nSAFE"


@pytest.mark.parametrize("answer", [None, {}, {"sections": {"identity": "x"}}, {"sections": []}, 7])
async def test_without_an_answer_there_is_no_session(answer: Any, autojump_clock: MockClock) -> None:
    model = ScriptedModel(["hi"])
    async with open_wire(model, options=BASE) as wire:
        client = await wire.connect()
        client.handlers["systemMessage.transform"] = lambda params: answer
        with pytest.raises(WireFailure, match="the sections it transforms"):
            await client.create(systemMessage=REWRITES)
        assert wire.server.hub.sessions == {}
        await client.create()
        assert await told(wire, client, model) == "BASE"


async def test_a_section_that_the_answer_leaves_out_stays_as_it_is(autojump_clock: MockClock) -> None:
    model = ScriptedModel(["hi"])
    async with open_wire(model, options=BASE) as wire:
        client = await wire.connect()
        client.handlers["systemMessage.transform"] = lambda params: {"sections": {}}
        await client.create(systemMessage=REWRITES)
        assert await told(wire, client, model) == "BASE\n\nSAFE"
