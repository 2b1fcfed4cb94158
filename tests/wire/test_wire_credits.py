"""Limits in credits, as clients set them, see them, and decide about them."""

from collections.abc import Mapping
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from exeunt import HostOptions, ModelRequest, ModelResponse, Usage
from exeunt.supervisor.journal.durable import DurableJournal
from exeunt.testing import Reply, ScriptedModel, checked_host, say
from exeunt.testing.faulty_store import MemoryStore
from exeunt.wire.options import WireOptions
from exeunt.wire.serving.compacting import summarize
from exeunt.wire.serving.models import DefaultProvider
from tests.wire.test_wire_auto_model import Named
from tests.wire.wire_client import WireClient, WireFailure, open_wire, tool

PRICES = {"ScriptedModel": {"request": 10}}
LIMIT = {"sessionLimits": {"maxAiCredits": 5}}
REQUESTED, COMPLETED = "session_limits_exhausted.requested", "session_limits_exhausted.completed"


def priced(*replies: Reply, prices: Mapping[str, Any] = PRICES) -> DefaultProvider:
    """A server whose model answers with *replies*, and whose calls cost ten credits."""
    return DefaultProvider(client=ScriptedModel(list(replies)), model="scripted", prices=prices)


async def exhausted(client: WireClient, **config: Any) -> dict[str, Any]:
    """Spend the credits of a session; return what is asked then."""
    await client.create(**{**LIMIT, **config})
    await client.say()
    await client.event("session.idle")
    await client.say("more")
    return dict((await client.event(REQUESTED))["data"])


async def interested(client: WireClient, kind: str = REQUESTED) -> str:
    registered = await client.call("session.eventLog.registerInterest", sessionId="s", eventType=kind)
    return str(registered["handle"])


async def decide(client: WireClient, request_id: str, **response: Any) -> bool:
    done = await client.call(
        "session.ui.handlePendingSessionLimitsExhausted",
        sessionId="s",
        requestId=request_id,
        response=response,
    )
    return bool(done["success"])


async def test_a_limit_is_told_to_the_client_and_to_the_model(autojump_clock: MockClock) -> None:
    default = priced("hello")
    async with open_wire(default=default) as wire:
        client = await wire.connect()
        await client.create(sessionLimits={"maxAiCredits": 30})
        await client.say()
        await client.event("session.idle")
        (changed,) = client.events("session.session_limits_changed")
        assert changed["data"] == {"sessionLimits": {"maxAiCredits": 30}}
        snapshot = await client.call("session.metadata.snapshot", sessionId="s")
        assert snapshot["sessionLimits"] == {"maxAiCredits": 30}
        (paid,) = client.events("session.usage_checkpoint")
        assert paid["data"] == {"totalNanoAiu": 10 * 10**9}
        users = [e["data"]["content"] for e in client.events("user.message")]
        assert users == ["go"]
    model: Any = default.client
    assert "Remaining session limits: 30 AI credits." in model.requests[0].contents[-1]


async def test_usage_tells_credits_and_tokens_by_model_also_after_a_restart() -> None:
    store = MemoryStore()
    usage = say("hello", usage=Usage(70, 7, cache_read_tokens=20))
    async with open_wire(default=priced(usage), journal=DurableJournal(store)) as wire:
        client = await wire.connect()
        await client.create(**LIMIT)
        await client.say()
        await client.event("session.idle")
    async with open_wire(default=priced(), journal=DurableJournal(store)) as wire:
        client = await wire.connect()
        await client.call("session.resume", sessionId="s")
        metrics = await client.call("session.usage.getMetrics", sessionId="s")
        assert metrics["totalNanoAiu"] == 10 * 10**9
        assert metrics["totalUserRequests"] == 1
        assert metrics["modelMetrics"]["ScriptedModel"] == {
            "requests": {"count": 1, "cost": 0},
            "usage": {"inputTokens": 70, "outputTokens": 7, "cacheReadTokens": 20, "cacheWriteTokens": 0},
            "totalNanoAiu": 10 * 10**9,
        }
        # The limit is in the log: nobody has to say it again.
        snapshot = await client.call("session.metadata.snapshot", sessionId="s")
        assert snapshot["sessionLimits"] == {"maxAiCredits": 5}


async def test_the_end_of_a_session_tells_what_it_has_taken_also_in_a_log_that_is_read_again() -> None:
    store = MemoryStore()
    usage = say("hello", usage=Usage(70, 7, cache_read_tokens=20, reasoning_tokens=3))
    tokens = {"inputTokens": 70, "outputTokens": 7, "cacheReadTokens": 20, "cacheWriteTokens": 0}
    cost = {"requests": {"count": 1, "cost": 0}, "totalNanoAiu": 10 * 10**9}
    async with open_wire(default=priced(usage), journal=DurableJournal(store)) as wire:
        client, other = await wire.connect(), await wire.connect()
        await client.create(
            **LIMIT, tools=[tool("t")], systemMessage={"mode": "replace", "content": "x" * 400}
        )
        await other.call("session.resume", sessionId="s", tools=[tool("t")])
        await client.say("a" * 40)
        await client.event("session.idle")
        await client.call("session.shutdown", sessionId="s")
        ended = (await other.event("session.shutdown"))["data"]
        assert ended["modelMetrics"] == {"ScriptedModel": {**cost, "usage": {**tokens, "reasoningTokens": 3}}}
        assert ended["totalNanoAiu"] == 10 * 10**9
        assert ended["systemTokens"] == 100
        assert ended["conversationTokens"] == 11
        assert ended["toolDefinitionsTokens"] > 0
        parts = ("systemTokens", "conversationTokens", "toolDefinitionsTokens")
        assert ended["currentTokens"] == sum(ended[part] for part in parts)
        assert isinstance(ended["totalApiDurationMs"], int)
    async with open_wire(default=priced(), journal=DurableJournal(store)) as wire:
        client = await wire.connect()
        await client.call("session.resume", sessionId="s")
        events = (await client.call("session.getMessages", sessionId="s"))["events"]
        (read,) = [event["data"] for event in events if event["type"] == "session.shutdown"]
        assert read["modelMetrics"] == {"ScriptedModel": {**cost, "usage": tokens}}
        assert read["totalNanoAiu"] == 10 * 10**9


async def test_the_end_of_a_session_tells_calls_of_models_without_a_price() -> None:
    model = ScriptedModel([say("hello", usage=Usage(70, 7)), say("again", usage=Usage(80, 8))])
    async with open_wire(model) as wire:
        client, other = await wire.connect(), await wire.connect()
        await client.create()
        await other.call("session.resume", sessionId="s")
        for number in (1, 2):
            await client.say()
            await client.event("session.idle", number)
        await client.call("session.shutdown", sessionId="s")
        ended = (await other.event("session.shutdown"))["data"]
    (sums,) = ended["modelMetrics"].values()
    assert sums == {
        "requests": {"count": 2, "cost": 0},
        "usage": {"inputTokens": 150, "outputTokens": 15, "cacheReadTokens": 0, "cacheWriteTokens": 0},
    }
    assert "totalNanoAiu" not in ended


async def test_usage_tells_tokens_of_the_cache_and_of_reasoning_by_model_without_prices(
    autojump_clock: MockClock,
) -> None:
    own = say("hello", usage=Usage(70, 7, cache_read_tokens=20, cache_write_tokens=5, reasoning_tokens=3))
    default = DefaultProvider(
        client=Named("own", [own, own]),
        model="own",
        auto_model="auto",
        auto_client=Named("auto", [say("hi", usage=Usage(1, 1))]),
        prices={"auto": {"request": 10}},
    )
    async with open_wire(default=default) as wire:
        client = await wire.connect()
        await client.create()
        for number in (1, 2, 3):
            await client.say()
            await client.event("session.idle", number)
            if number == 2:
                await client.call("session.model.switchTo", sessionId="s", modelId="auto")
        metrics = await client.call("session.usage.getMetrics", sessionId="s")
    assert metrics["modelMetrics"] == {
        "own": {
            "requests": {"count": 2, "cost": 0},
            "usage": {
                "inputTokens": 140,
                "outputTokens": 14,
                "cacheReadTokens": 40,
                "cacheWriteTokens": 10,
                "reasoningTokens": 6,
            },
        },
        "auto": {
            "requests": {"count": 1, "cost": 0},
            "usage": {"inputTokens": 1, "outputTokens": 1, "cacheReadTokens": 0, "cacheWriteTokens": 0},
            "totalNanoAiu": 10 * 10**9,
        },
    }
    assert (metrics["totalUserRequests"], metrics["lastCallInputTokens"]) == (3, 1)


@pytest.mark.parametrize(
    ("response", "limit"),
    [
        ({"action": "add", "additionalAiCredits": 20}, {"maxAiCredits": 25}),
        ({"action": "set", "maxAiCredits": 12.5}, {"maxAiCredits": 12.5}),
        ({"action": "unset"}, None),
    ],
)
async def test_a_client_gives_more_credits_and_the_turn_goes_on(
    autojump_clock: MockClock, response: dict[str, Any], limit: Any
) -> None:
    async with open_wire(default=priced("hello", "done")) as wire:
        client = await wire.connect()
        asked = await exhausted(client)
        assert (asked["usedAiCredits"], asked["maxAiCredits"]) == (10, 5)
        assert await decide(client, asked["requestId"], **response)
        assert not await decide(client, asked["requestId"], **response)
        await client.event("session.idle", 2)
        (completed,) = client.events(COMPLETED)
        assert completed["data"] == {"requestId": asked["requestId"], "response": response}
        assert client.events("session.session_limits_changed")[-1]["data"] == {"sessionLimits": limit}
        assert client.events("assistant.message")[-1]["data"]["content"] == "done"
        # What was decided holds, whatever is configured anew of the rest.
        await client.call("session.options.update", sessionId="s", streaming=True)
        snapshot = await client.call("session.metadata.snapshot", sessionId="s")
        assert snapshot["sessionLimits"] == limit


async def test_a_cancelled_request_ends_the_turn_with_an_error(autojump_clock: MockClock) -> None:
    async with open_wire(default=priced("hello")) as wire:
        client = await wire.connect()
        asked = await exhausted(client)
        assert await decide(client, asked["requestId"], action="cancel")
        await client.event("session.idle", 2)
        (error,) = client.events("session.error")
        assert error["data"]["errorType"] == "quota"
        assert error["data"]["errorCode"] == "session_quota_exceeded"
        assert "10 of its 5 credits" in error["data"]["message"]


async def test_an_answer_that_gives_too_little_is_refused_and_the_request_stays(
    autojump_clock: MockClock,
) -> None:
    async with open_wire(default=priced("hello", "done")) as wire:
        client = await wire.connect()
        asked = await exhausted(client)
        for wrong in ({"action": "add", "additionalAiCredits": 5}, {"action": "set"}, {"action": "add"}):
            with pytest.raises(WireFailure, match="credits"):
                await decide(client, asked["requestId"], **wrong)
        said = r"expected one of add, set, unset, cancel, got 'double' @ params\.response\.action"
        with pytest.raises(WireFailure, match=said):
            await decide(client, asked["requestId"], action="double")
        assert await decide(client, asked["requestId"], action="unset")
        await client.event("session.idle", 2)


async def test_a_client_that_has_said_that_it_answers_is_waited_for_and_others_for_a_moment(
    autojump_clock: MockClock,
) -> None:
    async with open_wire(default=priced("hello", "done")) as wire:
        client = await wire.connect()
        began = trio.current_time()
        await exhausted(client)
        await client.event("session.error")
        assert 10 <= trio.current_time() - began < 11
        handle = await interested(client)
        await client.say("and now?")
        asked = (await client.event(REQUESTED, 2))["data"]
        await trio.sleep(1_000)
        assert client.events(COMPLETED)[1:] == []
        assert await decide(client, asked["requestId"], action="unset")
        await client.event("session.idle", 3)
        await client.call("session.eventLog.releaseInterest", sessionId="s", handle=handle)


async def test_the_question_ends_when_who_was_to_answer_it_leaves(autojump_clock: MockClock) -> None:
    async with open_wire(default=priced("hello")) as wire:
        client, watcher = await wire.connect(), await wire.connect()
        await client.create(**LIMIT)
        await watcher.call("session.resume", sessionId="s")
        await interested(client)
        await client.say()
        await client.event("session.idle")
        await client.say("more")
        await client.event(REQUESTED)
        await wait_all_tasks_blocked()
        await client.leave()
        await watcher.event("session.error")


async def test_a_client_that_comes_back_sees_the_question_and_answers_it(autojump_clock: MockClock) -> None:
    default = priced("hello", "done")
    async with open_wire(default=default, options=WireOptions(wait_for_clients=True)) as wire:
        client = await wire.connect()
        await client.create(**LIMIT)
        await interested(client)
        await client.say()
        await client.event("session.idle")
        await client.say("more")
        asked = (await client.event(REQUESTED))["data"]
        await client.leave()
        await trio.sleep(100)
        back = await wire.connect()
        await back.call("session.resume", sessionId="s", continuePendingWork=True)
        assert (await back.event(REQUESTED))["data"] == asked
        assert await decide(back, asked["requestId"], action="add", additionalAiCredits=100)
        await back.event("session.idle")


async def test_a_limit_may_be_changed_and_taken_away_at_any_time(autojump_clock: MockClock) -> None:
    async with open_wire(default=priced("hello", "done")) as wire:
        client = await wire.connect()
        await exhausted(client)
        await client.call("session.options.update", sessionId="s", sessionLimits={"maxAiCredits": 100})
        await client.event("session.idle", 2)
        await client.call("session.options.update", sessionId="s", sessionLimits=None)
        limits = [event["data"]["sessionLimits"] for event in client.events("session.session_limits_changed")]
        assert limits == [{"maxAiCredits": 5}, {"maxAiCredits": 100}, None]
        for wrong in (3, {"maxAiCredits": 0}, {"maxAiCredits": "many"}):
            with pytest.raises(WireFailure, match="sessionLimits"):
                await client.call("session.options.update", sessionId="s", sessionLimits=wrong)
        assert (await client.call("session.metadata.snapshot", sessionId="s"))["sessionLimits"] is None


async def test_what_a_client_says_when_it_comes_holds(autojump_clock: MockClock) -> None:
    async with open_wire(default=priced("hello", "done")) as wire:
        client, other = await wire.connect(), await wire.connect()
        asked = await exhausted(client)
        await decide(client, asked["requestId"], action="unset")
        await client.event("session.idle", 2)
        await other.call("session.resume", sessionId="s")
        assert (await other.call("session.metadata.snapshot", sessionId="s"))["sessionLimits"] is None
        await other.call("session.resume", sessionId="s", **LIMIT)
        snapshot = await other.call("session.metadata.snapshot", sessionId="s")
        assert snapshot["sessionLimits"] == {"maxAiCredits": 5}


async def test_a_limit_that_a_client_names_again_holds_against_what_was_decided(
    autojump_clock: MockClock,
) -> None:
    async with open_wire(default=priced("hello", "done")) as wire:
        client, other = await wire.connect(), await wire.connect()
        asked = await exhausted(client)
        await decide(client, asked["requestId"], action="add", additionalAiCredits=100)
        await client.event("session.idle", 2)
        await other.call("session.resume", sessionId="s", **LIMIT)
        snapshot = await other.call("session.metadata.snapshot", sessionId="s")
        assert snapshot["sessionLimits"] == {"maxAiCredits": 5}


@pytest.mark.parametrize("prices", [{}, {"other": {"request": 1}}])
async def test_a_limit_that_nobody_could_count_is_refused(
    autojump_clock: MockClock, prices: dict[str, Any]
) -> None:
    async with open_wire(default=priced(prices=prices)) as wire:
        client = await wire.connect()
        with pytest.raises(WireFailure, match="no price"):
            await client.create(**LIMIT)
        assert wire.server.hub.sessions == {}
        await client.create()
        with pytest.raises(WireFailure, match="no price"):
            await client.call("session.options.update", sessionId="s", **LIMIT)
        assert (await client.call("session.metadata.snapshot", sessionId="s"))["sessionLimits"] is None


@pytest.mark.parametrize("limit", [0, -1, "30", True, 1e300])
async def test_a_limit_that_is_none_is_refused(autojump_clock: MockClock, limit: Any) -> None:
    async with open_wire(default=priced()) as wire:
        client = await wire.connect()
        with pytest.raises(WireFailure, match=r"sessionLimits\.maxAiCredits"):
            await client.create(sessionLimits={"maxAiCredits": limit})


async def test_a_summary_is_paid_for_and_not_made_without_credits(autojump_clock: MockClock) -> None:
    async with open_wire(default=priced("a", "b", "summary")) as wire:
        client = await wire.connect()
        await client.create(sessionLimits={"maxAiCredits": 25})
        for number in (1, 2):
            await client.say()
            await client.event("session.idle", number)
        done = await client.call("session.history.compact", sessionId="s")
        assert done["success"] is True
        metrics = await client.call("session.usage.getMetrics", sessionId="s")
        assert metrics["totalNanoAiu"] == 30 * 10**9
        with pytest.raises(WireFailure, match="30 of its 25 credits"):
            await client.call("session.history.compact", sessionId="s")


class SlowModel(ScriptedModel):
    """Answers after an hour."""

    async def complete(self, request: ModelRequest, /) -> ModelResponse:
        await trio.sleep(3600)
        return await super().complete(request)


async def test_a_summary_of_a_session_that_leaves_memory_and_is_back_meanwhile_is_paid_for(
    autojump_clock: MockClock,
) -> None:
    async with checked_host(options=HostOptions(passivate_after=60)) as host:
        waits = {"model_total": 86_400}
        model = SlowModel(["a", "summary", "b"])
        session = await host.create_session(model=model, prices={"*": {"request": 10}}, waits=waits)
        await session.send_and_wait("hi", timeout=None)
        actor = host.find(session.session_id)
        assert actor is not None
        async with trio.open_nursery() as nursery:
            nursery.start_soon(summarize, actor, session.history.messages())
            await trio.sleep(100)
            assert actor.status == "passive"
            assert (await session.send_and_wait("again", timeout=None)).content == "b"
        assert session.statistics().credits_spent == 30
        assert host.find(session.session_id) is not actor


async def test_a_session_that_has_ended_pays_no_summary_any_more(autojump_clock: MockClock) -> None:
    async with checked_host() as host:
        model = SlowModel(["summary"])
        session = await host.create_session(
            model=model, prices={"*": {"request": 10}}, waits={"model_total": 86_400}
        )
        actor = host.find(session.session_id)
        assert actor is not None
        async with trio.open_nursery() as nursery:
            nursery.start_soon(summarize, actor, session.history.messages())
            await wait_all_tasks_blocked()
            await session.disconnect()
        assert [event.type for event in await session.get_events()][-1] == "session.shutdown"
