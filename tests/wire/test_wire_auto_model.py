"""Another model in the place of one whose provider is at a limit, as clients are asked for it."""

from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from exeunt.supervisor.journal.durable import DurableJournal
from exeunt.testing import Reply, ScriptedModel, fail
from exeunt.testing.faulty_store import MemoryStore
from exeunt.wire.options import WireOptions
from exeunt.wire.serving.models import DefaultProvider
from tests.wire.wire_client import WireClient, WireFailure, open_wire

WAITS = WireOptions(wait_for_clients=True)
REQUESTED, COMPLETED = "auto_mode_switch.requested", "auto_mode_switch.completed"
WEEKLY = fail(
    "rate_limited",
    "the week is over",
    retry=True,
    status=429,
    code="user_weekly_rate_limited",
    limited_for=0.2,
)


class Named(ScriptedModel):
    """A scripted model with a name."""

    def __init__(self, name: str, replies: list[Reply]) -> None:
        super().__init__(replies)
        self.model = name


def two_models(*others: Reply, own: tuple[Reply, ...] = (WEEKLY,)) -> DefaultProvider:
    """A server with the models `own`, which is at a limit, and `auto`."""
    return DefaultProvider(
        client=Named("own", list(own)),
        model="own",
        auto_model="auto",
        auto_client=Named("auto", list(others)),
    )


async def answering(client: WireClient, response: Any, **config: Any) -> list[dict[str, Any]]:
    """Let a client ask to be asked, and answer so; a list of what it is asked."""
    asked: list[dict[str, Any]] = []

    def answer(params: dict[str, Any]) -> Any:
        asked.append(params)
        return {"response": response}

    client.handlers["autoModeSwitch.request"] = answer
    await client.create(requestAutoModeSwitch=True, **config)
    return asked


async def test_the_client_is_asked_and_the_turn_goes_on(autojump_clock: MockClock) -> None:
    async with open_wire(default=two_models("hello", "again")) as wire:
        client = await wire.connect()
        asked = await answering(client, "yes")
        await client.say()
        await client.event("session.idle")
        about = {"errorCode": "user_weekly_rate_limited", "retryAfterSeconds": 1}
        assert asked == [{"sessionId": "s", **about}]
        (requested,), (completed,) = client.events(REQUESTED), client.events(COMPLETED)
        request_id = requested["data"]["requestId"]
        assert requested["data"] == {"requestId": request_id, **about}
        assert completed["data"] == {"requestId": request_id, "response": "yes"}
        assert requested["ephemeral"] is completed["ephemeral"] is True
        (change,) = client.events("session.model_change")
        assert change["data"] == {
            "newModel": "auto",
            "previousModel": "own",
            "cause": "rate_limit_auto_switch",
        }
        assert client.events("session.error") == []
        assert client.events("assistant.message")[-1]["data"]["model"] == "auto"
        # It stays, whatever is configured anew of the rest.
        await client.call("session.options.update", sessionId="s", streaming=False)
        assert (await client.call("session.model.getCurrent", sessionId="s"))["modelId"] == "auto"
        await client.say()
        await client.event("session.idle", 2)


async def test_the_other_model_stays_also_where_the_limited_one_was_a_custom_agents(
    autojump_clock: MockClock,
) -> None:
    agents = [{"name": "thinker", "model": "own"}]
    async with open_wire(default=two_models("hello")) as wire:
        client = await wire.connect()
        await answering(client, "yes", customAgents=agents, agent="thinker")
        await client.say()
        await client.event("session.idle")
        await client.call("session.options.update", sessionId="s", streaming=False)
        assert (await client.call("session.model.getCurrent", sessionId="s"))["modelId"] == "auto"


@pytest.mark.parametrize("response", ["no", "perhaps", None])
async def test_the_turn_fails_where_the_client_does_not_say_yes(
    autojump_clock: MockClock, response: Any
) -> None:
    async with open_wire(default=two_models()) as wire:
        client = await wire.connect()
        await answering(client, response)
        await client.say()
        await client.event("session.idle")
        (error,) = client.events("session.error")
        assert error["data"]["errorType"] == "rate_limit"
        assert error["data"]["errorCode"] == "user_weekly_rate_limited"
        assert error["data"]["statusCode"] == 429
        assert client.events(COMPLETED)[0]["data"]["response"] == "no"


async def test_a_quota_that_is_used_up_is_no_limit_of_the_rate(autojump_clock: MockClock) -> None:
    empty = fail("rate_limited", "pay first", status=429, code="insufficient_quota")
    async with open_wire(default=two_models(own=(empty,))) as wire:
        client = await wire.connect()
        await client.create()
        await client.say()
        error = (await client.event("session.error"))["data"]
        assert (error["errorType"], error["errorCode"]) == ("quota", "insufficient_quota")


async def test_nobody_is_asked_who_has_not_said_so(autojump_clock: MockClock) -> None:
    weekly = fail("rate_limited", status=429, code="user_weekly_rate_limited")
    async with open_wire(default=two_models(own=(weekly,))) as wire:
        client = await wire.connect()
        await client.create()
        await client.say()
        await client.event("session.error")
        assert client.events(REQUESTED) == []


async def test_a_session_with_a_provider_of_its_own_is_not_moved_to_the_servers(
    autojump_clock: MockClock,
) -> None:
    async with open_wire(default=two_models()) as wire:
        client = await wire.connect()
        await answering(
            client, "yes", model="m", provider={"type": "openai", "baseUrl": "http://127.0.0.1:9/v1"}
        )
        actor = wire.host.find("s")
        assert actor is not None
        assert actor.options.auto_model is None


async def test_a_client_answers_the_event_itself_where_it_has_said_so(autojump_clock: MockClock) -> None:
    async with open_wire(default=two_models("hello")) as wire:
        client = await wire.connect()
        asked = await answering(client, "no")
        direct = await client.call("session.ui.registerDirectAutoModeSwitchHandler", sessionId="s")
        await client.say()
        request_id = (await client.event(REQUESTED))["data"]["requestId"]
        await trio.sleep(60)
        for success in (True, False):
            done = await client.call(
                "session.ui.handlePendingAutoModeSwitch",
                sessionId="s",
                requestId=request_id,
                response="yes",
            )
            assert done == {"success": success}
        await client.event("session.idle")
        assert asked == []
        for known in (True, False):
            ended = await client.call(
                "session.ui.unregisterDirectAutoModeSwitchHandler", sessionId="s", handle=direct["handle"]
            )
            assert ended == {"unregistered": known}


async def test_an_interest_in_the_event_does_the_same(autojump_clock: MockClock) -> None:
    async with open_wire(default=two_models("hello")) as wire:
        client = await wire.connect()
        await client.create()
        await client.call("session.eventLog.registerInterest", sessionId="s", eventType=REQUESTED)
        await client.say()
        request_id = (await client.event(REQUESTED))["data"]["requestId"]
        await client.call(
            "session.ui.handlePendingAutoModeSwitch", sessionId="s", requestId=request_id, response="yes"
        )
        await client.event("session.idle")
        assert client.events("session.error") == []


async def test_direct_handlers_are_those_of_who_registered_them(autojump_clock: MockClock) -> None:
    async with open_wire(default=two_models()) as wire:
        client, other, stranger = await wire.connect(), await wire.connect(), await wire.connect()
        await client.create()
        await other.call("session.resume", sessionId="s")
        handle = (await client.call("session.ui.registerDirectAutoModeSwitchHandler", sessionId="s"))[
            "handle"
        ]
        theirs = await other.call(
            "session.ui.unregisterDirectAutoModeSwitchHandler", sessionId="s", handle=handle
        )
        assert theirs == {"unregistered": False}
        with pytest.raises(WireFailure, match="attached"):
            await stranger.call("session.ui.registerDirectAutoModeSwitchHandler", sessionId="s")
        await client.leave()
        served = wire.server.hub.sessions["s"]
        assert served.asking.direct is None


async def test_a_request_that_there_is_not_is_not_answered(autojump_clock: MockClock) -> None:
    async with open_wire(default=two_models()) as wire:
        client = await wire.connect()
        await client.create()
        nobody = {"sessionId": "s", "requestId": "nobody"}
        done = await client.call("session.ui.handlePendingAutoModeSwitch", **nobody, response="no")
        assert done == {"success": False}
        done = await client.call(
            "session.ui.handlePendingSessionLimitsExhausted", **nobody, response={"action": "cancel"}
        )
        assert done == {"success": False}
        with pytest.raises(WireFailure, match="response"):
            await client.call("session.ui.handlePendingAutoModeSwitch", **nobody, response="sure")


async def test_a_client_that_leaves_while_it_is_asked_has_said_no(autojump_clock: MockClock) -> None:
    async with open_wire(default=two_models()) as wire:
        client, watcher = await wire.connect(), await wire.connect()
        await client.create(requestAutoModeSwitch=True)
        await watcher.call("session.resume", sessionId="s")
        await client.say()
        await client.event(REQUESTED)
        await wait_all_tasks_blocked()
        await client.leave()
        await watcher.event("session.error")
        assert watcher.events(COMPLETED)[0]["data"]["response"] == "no"


async def test_a_client_that_is_waited_for_is_asked_again_when_it_is_back(autojump_clock: MockClock) -> None:
    async with open_wire(default=two_models("hello"), options=WAITS) as wire:
        client = await wire.connect()
        await client.create(requestAutoModeSwitch=True)
        await client.say()
        await client.event(REQUESTED)
        await wait_all_tasks_blocked()
        await client.leave()
        await trio.sleep(600)
        back = await wire.connect()
        back.handlers["autoModeSwitch.request"] = lambda params: {"response": "yes"}
        await back.call("session.resume", sessionId="s", requestAutoModeSwitch=True, continuePendingWork=True)
        await back.event("session.idle")
        assert back.events("assistant.message")[-1]["data"]["content"] == "hello"
        assert len(back.events(REQUESTED)) == 1


async def test_one_client_is_asked_at_a_time(autojump_clock: MockClock) -> None:
    async with open_wire(default=two_models("hello")) as wire:
        client, other = await wire.connect(), await wire.connect()
        await client.create(requestAutoModeSwitch=True)
        asked: list[Any] = []
        other.handlers["autoModeSwitch.request"] = asked.append
        await client.say()
        await client.event(REQUESTED)
        await wait_all_tasks_blocked()
        await other.call(
            "session.resume", sessionId="s", requestAutoModeSwitch=True, continuePendingWork=True
        )
        request_id = (await other.event(REQUESTED))["data"]["requestId"]
        await wait_all_tasks_blocked()
        assert asked == []
        # Whoever answers first.
        await other.call(
            "session.ui.handlePendingAutoModeSwitch", sessionId="s", requestId=request_id, response="yes"
        )
        await client.event("session.idle")


async def test_the_question_outlives_the_process() -> None:
    store = MemoryStore()
    async with open_wire(
        default=two_models(), options=WAITS, journal=DurableJournal(store), settled=False
    ) as wire:
        client = await wire.connect()
        await client.create(requestAutoModeSwitch=True)
        await client.say()
        asked = (await client.event(REQUESTED))["data"]
        actor = wire.host.find("s")
        assert actor is not None
        await actor.log.wait_durable(actor.state.seq)
        killed = store.copy()
    async with open_wire(
        default=two_models("hello", own=()), options=WAITS, journal=DurableJournal(killed)
    ) as wire:
        back = await wire.connect()
        asked_again: list[Any] = []

        def yes(params: Any) -> Any:
            asked_again.append(params)
            return {"response": "yes"}

        back.handlers["autoModeSwitch.request"] = yes
        await back.call("session.resume", sessionId="s", requestAutoModeSwitch=True, continuePendingWork=True)
        await back.event("session.idle")
        assert len(asked_again) == 1
        assert back.events(REQUESTED)[0]["data"] == asked
        assert back.events(COMPLETED)[0]["data"]["requestId"] == asked["requestId"]
        assert back.events("assistant.message")[-1]["data"]["content"] == "hello"
