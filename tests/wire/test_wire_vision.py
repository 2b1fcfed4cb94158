"""What a model is shown of images: as far as whoever named the model says that it takes them."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from exeunt.testing import ScriptedModel
from exeunt.testing.http_double import HttpDouble, HttpReply, open_http_double
from exeunt.wire.serving.models import DefaultProvider
from tests.actors.media_support import PIXEL
from tests.wire.wire_client import WireClient, open_wire
from tests.wire.wire_media import BLOB

ANSWER = {"choices": [{"index": 0, "message": {"content": "seen"}, "finish_reason": "stop"}]}
IMAGE = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL.base64}"}}


@asynccontextmanager
async def served_by_http(**options: Any) -> AsyncGenerator[tuple[HttpDouble, WireClient]]:
    async with open_http_double() as double:
        double.otherwise = HttpReply(body=json.dumps(ANSWER).encode())
        provider = {"type": "openai", "base_url": f"http://127.0.0.1:{double.port}/v1"}
        async with open_wire(default=DefaultProvider(provider=provider, model="m")) as wire:
            client = await wire.connect()
            await client.create(**options)
            yield double, client


def last_content(double: HttpDouble) -> Any:
    return double.requests[-1].json["messages"][-1]["content"]


async def test_a_model_is_shown_images_as_far_as_its_client_says_that_it_takes_them() -> None:
    no_vision = {"supports": {"vision": False}}
    async with served_by_http(modelCapabilities=no_vision) as (double, client):
        told: list[Any] = []

        async def say() -> None:
            await client.say("look", attachments=[BLOB])
            await client.event("session.idle", len(told) + 1)
            told.append(last_content(double))

        await say()
        await client.call(
            "session.model.switchTo",
            sessionId="s",
            modelId="m",
            modelCapabilities={"supports": {"vision": True}},
        )
        await say()
        limits = {"limits": {"vision": {"supported_media_types": ["image/jpeg"]}}}
        await client.call("session.options.update", sessionId="s", modelCapabilitiesOverrides=limits)
        await say()
        await client.call("session.model.switchTo", sessionId="s", modelId="other")
        await say()
    left_out = "look\n\n[image left out: pixel.png, image/png, 70 bytes; the model takes no {}]"
    whole = [{"type": "text", "text": "look"}, {"type": "text", "text": "pixel.png"}, IMAGE]
    assert told == [left_out.format("images"), whole, left_out.format("image/png"), whole]


@pytest.mark.parametrize("place", ["provider", "models"])
async def test_a_provider_and_a_registered_model_say_what_they_take(place: str) -> None:
    capabilities = {"supports": {"vision": False}}
    async with open_http_double() as double:
        double.otherwise = HttpReply(body=json.dumps(ANSWER).encode())
        provider = {"name": "p", "type": "openai", "baseUrl": f"http://127.0.0.1:{double.port}/v1"}
        options: dict[str, Any] = (
            {"provider": {**provider, "modelId": "m", "modelCapabilities": capabilities}}
            if place == "provider"
            else {
                "providers": [provider],
                "models": [{"id": "m", "provider": "p", "capabilities": capabilities}],
            }
        )
        async with open_wire(ScriptedModel([])) as wire:
            client = await wire.connect()
            await client.create(model="m", **options)
            await client.say("look", attachments=[BLOB])
            await client.event("session.idle")
        assert isinstance(last_content(double), str)
