"""Prices that a server's provider tells: when it is asked, and what becomes of those who wait for the answer."""

import json
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from exeunt import Price
from exeunt.supervisor.journal.durable import DurableJournal
from exeunt.testing.faulty_store import MemoryStore
from exeunt.testing.http_double import HttpReply, open_http_double
from exeunt.wire.connection import LAST_WORDS
from exeunt.wire.serving.models import DefaultProvider
from exeunt.wire.serving.pricing import price_from_billing
from tests.wire.wire_client import Wire, WireFailure, open_wire

LIMIT = {"sessionLimits": {"maxAiCredits": 5}}

ANSWER = {
    "choices": [{"index": 0, "message": {"content": "hello"}, "finish_reason": "stop"}],
    "usage": {
        "prompt_tokens": 1_000,
        "completion_tokens": 100,
        "prompt_tokens_details": {"cached_tokens": 400},
    },
}
CATALOGUE = {
    "data": [
        {
            "id": "m",
            "billing": {
                "multiplier": 3,
                "tokenPrices": {
                    "inputPrice": 20, "outputPrice": 100, "cacheReadPrice": 2, "batchSize": 1_000
                },
            },
        },
        {"id": "n", "billing": {"multiplier": 0.33}},
        {"id": "o"},
    ]
}  # fmt: skip


async def test_prices_that_only_the_provider_tells_are_asked_for_once() -> None:
    async with open_http_double() as double:
        url = f"http://127.0.0.1:{double.port}/v1"
        default = DefaultProvider(provider={"type": "openai", "base_url": url}, model="m")
        async with open_wire(default=default) as wire:
            client = await wire.connect()
            double.otherwise = HttpReply(body=json.dumps(CATALOGUE).encode())
            await client.create(sessionLimits={"maxAiCredits": 50})
            await client.create("t", sessionLimits={"maxAiCredits": 50})
            with pytest.raises(WireFailure, match="'o' has no price"):
                await client.create("u", model="o", sessionLimits={"maxAiCredits": 50})
            double.otherwise = HttpReply(body=json.dumps(ANSWER).encode())
            await client.turn()
            (paid,) = client.events("session.usage_checkpoint")
            assert paid["data"] == {"totalNanoAiu": round((600 * 20 + 400 * 2 + 100 * 100) / 1_000 * 10**9)}
        assert [request.target for request in double.requests] == ["/v1/models", "/v1/chat/completions"]


async def test_the_list_of_models_tells_their_prices_those_of_the_server_first() -> None:
    async with open_http_double() as double:
        url = f"http://127.0.0.1:{double.port}/v1"
        double.otherwise = HttpReply(body=json.dumps(CATALOGUE).encode())
        default = DefaultProvider(
            provider={"type": "openai", "base_url": url}, model="m", prices={"n": {"input": 7, "output": 8}}
        )
        async with open_wire(default=default) as wire:
            client = await wire.connect()
            listed = {one["id"]: one.get("billing") for one in (await client.call("models.list"))["models"]}
    assert listed == {
        "m": {
            "tokenPrices": {
                "inputPrice": 20_000, "outputPrice": 100_000, "cacheReadPrice": 2_000, "batchSize": 1_000_000
            }
        },
        "n": {"tokenPrices": {"inputPrice": 7, "outputPrice": 8, "batchSize": 1_000_000}},
        "o": None,
    }  # fmt: skip


async def test_a_provider_that_tells_no_list_is_no_reason_to_hang() -> None:
    async with open_http_double() as double:
        double.otherwise = HttpReply(status=404)
        url = f"http://127.0.0.1:{double.port}/v1"
        default = DefaultProvider(provider={"type": "openai", "base_url": url}, model="m")
        async with open_wire(default=default) as wire:
            client = await wire.connect()
            for _ in range(2):
                with pytest.raises(WireFailure, match="no price"):
                    await client.create(**LIMIT)
        assert len(double.requests) == 1


@pytest.mark.parametrize(
    "billing",
    [
        None,
        3,
        {},
        {"multiplier": "much"},
        {"multiplier": -1},
        {"tokenPrices": {"inputPrice": 1, "batchSize": 0}},
        {"tokenPrices": {"inputPrice": "1"}},
        {"tokenPrices": {"inputPrice": 1e300, "batchSize": 1}},
        {"tokenPrices": {"outputPrice": []}},
    ],
)
def test_nonsense_of_a_provider_is_no_price(billing: Any) -> None:
    assert price_from_billing(billing) is None


def test_the_spelling_of_the_providers_own_interface_is_understood_too() -> None:
    billing = {"token_prices": {"input_price": 1, "output_price": 2, "cache_price": 0.5, "batch_size": 500}}
    price = price_from_billing(billing)
    assert price is not None
    assert (price.input, price.output, price.cached_input) == (2_000, 4_000, 1_000)


class SlowList:
    """A provider's list of models, which comes when the test lets it."""

    def __init__(self, wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked = 0
        self.answers = trio.Event()
        self._models = wire.server.hub.handlers.models
        monkeypatch.setattr(self._models, "entries", self._entries)

    async def _entries(self) -> None:
        self.asked += 1
        await self.answers.wait()
        self._models.book.learn([{"id": name, "billing": {"multiplier": 1}} for name in "mn"])


FAR = DefaultProvider(provider={"type": "openai", "base_url": "http://127.0.0.1:9/v1"}, model="m")
"""A provider that only a `SlowList` is asked of."""


async def test_a_client_that_leaves_while_prices_are_asked_for_spoils_it_for_nobody(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_wire(default=FAR) as wire:
        prices = SlowList(wire, monkeypatch)
        client, other = await wire.connect(), await wire.connect()
        await client.start("session.create", sessionId="s", **LIMIT)
        await wait_all_tasks_blocked()
        await client.leave()
        await trio.sleep(LAST_WORDS)
        assert wire.server.hub.sessions == {}
        prices.answers.set()
        await other.create(**LIMIT)
        assert prices.asked == 2


async def test_who_comes_while_prices_are_asked_for_waits_for_the_same_answer(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_wire(default=FAR) as wire:
        prices = SlowList(wire, monkeypatch)
        client = await wire.connect()
        created = [await client.start("session.create", sessionId=name, **LIMIT) for name in "st"]
        await wait_all_tasks_blocked()
        prices.answers.set()
        assert ["result" in await client.answer(key) for key in created] == [True, True]
        assert prices.asked == 1


async def test_what_others_choose_while_one_asks_for_prices_stands(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_wire(default=FAR) as wire:
        prices = SlowList(wire, monkeypatch)
        client, coming = await wire.connect(), await wire.connect()
        await client.create()
        attaching = await coming.start("session.resume", sessionId="s", clientName="late", **LIMIT)
        changing = await client.start("session.options.update", sessionId="s", clientName="mine", **LIMIT)
        await wait_all_tasks_blocked()
        await client.call("session.model.switchTo", sessionId="s", modelId="n")
        served = wire.server.hub.served("s")
        await coming.leave()
        await trio.sleep(LAST_WORDS)
        assert attaching not in coming.answers
        prices.answers.set()
        assert (await client.answer(changing))["result"] == {"success": True}
        assert (served.config.model, served.config.sessionLimits) == ("n", LIMIT["sessionLimits"])
        assert len(served.clients) == 1


async def test_a_session_that_ends_while_one_asks_for_prices_is_taken_up_again(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_wire(default=FAR) as wire:
        prices = SlowList(wire, monkeypatch)
        client, coming = await wire.connect(), await wire.connect()
        await client.create()
        await client.call("session.name.set", sessionId="s", name="ours")
        attaching = await coming.start("session.resume", sessionId="s", **LIMIT)
        changing = await client.start("session.options.update", sessionId="s", **LIMIT)
        await wait_all_tasks_blocked()
        await client.call("session.destroy", sessionId="s")
        prices.answers.set()
        assert "result" in await coming.answer(attaching)
        assert "error" in await client.answer(changing)
        assert len(wire.server.hub.served("s").clients) == 1
        await coming.leave()
        await wait_all_tasks_blocked()
        assert wire.server.hub.sessions == {}


async def test_a_limit_in_the_log_goes_on_counting_with_the_prices_of_the_provider(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = MemoryStore()
    async with open_wire(default=FAR, journal=DurableJournal(store)) as wire:
        SlowList(wire, monkeypatch).answers.set()
        client = await wire.connect()
        await client.create(**LIMIT)
        await client.call("session.name.set", sessionId="s", name="ours")
    async with open_wire(default=FAR, journal=DurableJournal(store)) as wire:
        prices = SlowList(wire, monkeypatch)
        prices.answers.set()
        client = await wire.connect()
        await client.call("session.resume", sessionId="s")
        actor = wire.host.find("s")
        assert actor is not None
        assert (prices.asked, actor.options.price) == (1, Price(request=1))
