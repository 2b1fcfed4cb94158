"""Providers whose tokens clients get: who is asked, and by which name."""

import json
from typing import Any

import pytest
from trio.testing import MockClock

from exeunt.testing import ScriptedModel
from exeunt.testing.http_double import HttpReply, open_http_double
from exeunt.wire.serving.models import DefaultProvider
from tests.wire.test_wire_models import ANSWER
from tests.wire.wire_client import WireClient, WireFailure, open_wire


def gives_tokens(client: WireClient, asked: list[str], token: str) -> None:
    """Let the client answer with a token, and note by which names it was asked."""

    def answer(params: dict[str, Any]) -> dict[str, Any]:
        asked.append(f"{token} for {params['providerName']}")
        return {"token": token}

    client.handlers["providerToken.getToken"] = answer


async def test_the_client_that_gave_a_provider_is_asked_for_its_token() -> None:
    asked: list[str] = []
    async with open_http_double() as double, open_wire(default=DefaultProvider()) as wire:
        double.otherwise = HttpReply(body=json.dumps(ANSWER).encode())
        one, two = await wire.connect(), await wire.connect()
        gives_tokens(one, asked, "of-one")
        gives_tokens(two, asked, "of-two")
        url = f"http://127.0.0.1:{double.port}/v1"
        provider: dict[str, Any] = {"type": "openai", "baseUrl": url, "hasBearerTokenProvider": True}
        await one.create(providers=[{**provider, "name": "first"}], models=[{"id": "m", "provider": "first"}])
        await two.call("session.resume", sessionId="s")
        await two.call(
            "session.provider.add",
            sessionId="s",
            providers=[{**provider, "name": "second"}],
            models=[{"id": "n", "provider": "second"}],
        )
        for number, model in enumerate(("second/n", "first/m"), 1):
            await one.call("session.model.switchTo", sessionId="s", modelId=model)
            await one.say()
            await one.event("session.idle", number)
        # Another that brings a provider of that name takes its place, and leaves it again.
        await two.call("session.resume", sessionId="s", providers=[{**provider, "name": "first"}])
        for number in (3, 4):
            await one.say()
            await one.event("session.idle", number)
            if number == 3:
                await two.leave()
        sent = [request.headers["authorization"] for request in double.requests]
    assert asked == ["of-two for second", "of-one for first", "of-two for first", "of-one for first"]
    assert sent == ["Bearer of-two", "Bearer of-one", "Bearer of-two", "Bearer of-one"]


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("session.provider.add", {"providers": [{"name": "p", "hasBearerTokenProvider": True}]}),
        ("session.options.update", {"provider": {"hasBearerTokenProvider": True}, "model": "m"}),
    ],
)
async def test_who_is_not_attached_gives_no_provider_with_tokens(
    method: str, params: dict[str, Any], autojump_clock: MockClock
) -> None:
    async with open_wire(ScriptedModel(["hi"])) as wire:
        client, stranger = await wire.connect(), await wire.connect()
        await client.create()
        before = wire.server.hub.served("s").config
        with pytest.raises(WireFailure, match="only a client that is attached"):
            await stranger.call(method, sessionId="s", **params)
        assert wire.server.hub.served("s").config is before


async def test_a_provider_that_is_refused_leaves_no_trace(autojump_clock: MockClock) -> None:
    async with open_wire(ScriptedModel(["hi"])) as wire:
        client = await wire.connect()
        await client.create()
        served = wire.server.hub.served("s")
        before = served.config
        wrong = {"name": "p", "type": "unheard-of", "hasBearerTokenProvider": True}
        with pytest.raises(WireFailure, match="unheard-of"):
            await client.call(
                "session.provider.add",
                sessionId="s",
                providers=[wrong],
                models=[{"id": "m", "provider": "p"}],
            )
        (one,) = served.clients.values()
        assert (served.config, one.token_providers()) == (before, [])


@pytest.mark.parametrize("answer", [None, {}, {"token": ""}, {"token": 7}, "token"])
async def test_an_answer_without_a_token_is_an_error_of_the_model_and_nothing_is_sent(answer: Any) -> None:
    async with open_http_double() as double, open_wire(default=DefaultProvider()) as wire:
        client = await wire.connect()
        client.handlers["providerToken.getToken"] = lambda params: answer
        url = f"http://127.0.0.1:{double.port}/v1"
        await client.create(
            provider={"type": "openai", "baseUrl": url, "hasBearerTokenProvider": True}, model="m"
        )
        await client.say()
        await client.event("session.idle")
        assert "answered without a token" in client.events("session.error")[0]["data"]["message"]
        assert double.requests == []
