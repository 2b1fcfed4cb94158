"""Clients that attach to a session anew: what they keep, and what a refusal leaves as it was."""

from typing import Any

import pytest
import trio
from trio.testing import MockClock

from exeunt.testing import ScriptedModel, after, call
from exeunt.wire.options import WireOptions
from exeunt.wire.serving.opening import TAIL
from tests.wire.test_wire_credits import LIMIT, decide, exhausted, priced
from tests.wire.test_wire_system_message import customized, rewriting
from tests.wire.wire_client import CLEAR, WireFailure, open_wire, tool

T = tool("t")
WRONG = {"provider": {"type": "unheard-of"}, "model": "m"}
"""With which no session can run."""


async def test_a_client_whose_coming_anew_is_refused_stays_what_it_was(autojump_clock: MockClock) -> None:
    model = ScriptedModel([call("t"), "done"])
    async with open_wire(model) as wire:
        client = await wire.connect()
        await client.create(tools=[T])
        with pytest.raises(WireFailure, match="unheard-of"):
            await client.call("session.resume", sessionId="s", tools=[tool("other")], **WRONG)
        await client.say()
        assert await client.give(await client.requested(), result="ok")
        await client.event("session.idle")
    assert [[one.name for one in request.tools] for request in model.requests] == [["t"], ["t"]]
    assert model.requests[-1].results == {"call_1": "ok"}


async def test_a_client_that_comes_anew_is_sent_what_it_had_asked_for(autojump_clock: MockClock) -> None:
    async with open_wire(ScriptedModel([])) as wire:
        client = await wire.connect()
        await client.create()
        interest = {"sessionId": "s", "eventType": "command.queued"}
        handle = (await client.call("session.eventLog.registerInterest", **interest))["handle"]
        await client.call("session.resume", sessionId="s")
        await client.call("session.commands.enqueue", sessionId="s", command="/deploy")
        asked = await client.event("command.queued")
        assert asked["data"]["command"] == "/deploy"
        await client.call("session.eventLog.releaseInterest", sessionId="s", handle=handle)
        assert not wire.server.hub.served("s").mapper.wants_own


async def test_what_only_one_who_has_left_had_asked_for_is_not_made_any_more(
    autojump_clock: MockClock,
) -> None:
    async with open_wire(ScriptedModel([])) as wire:
        client, curious = await wire.connect(), await wire.connect()
        await client.create()
        await curious.call("session.resume", sessionId="s")
        await curious.call("session.eventLog.registerInterest", sessionId="s", eventType="turn.end")
        mapper = wire.server.hub.served("s").mapper
        assert mapper.wants_own
        await curious.leave()
        assert not mapper.wants_own


async def test_a_client_that_comes_anew_clears_for_the_call_that_it_was_asked_for(
    autojump_clock: MockClock,
) -> None:
    model = ScriptedModel([call("clear_context", prompt="seed"), "on the seed"])
    async with open_wire(model) as wire:
        client, other = await wire.connect(), await wire.connect()
        await client.create(tools=[CLEAR])
        await other.call("session.resume", sessionId="s")
        await client.say()
        request = await client.requested()
        await client.call("session.resume", sessionId="s", tools=[CLEAR])
        await client.call("session.history.clearContext", sessionId="s", prompt="seed")
        assert await client.give(request, result="ok")
        await client.event("session.idle")
    assert [message.content for message in model.requests[-1].messages] == ["seed"]


async def test_a_call_ends_with_the_client_that_has_come_anew_since_it_was_asked(
    autojump_clock: MockClock,
) -> None:
    model = ScriptedModel([call("t"), "it is gone"])
    async with open_wire(model) as wire:
        client, watcher = await wire.connect(), await wire.connect()
        await client.create(tools=[T])
        await watcher.call("session.resume", sessionId="s")
        await client.say()
        await client.requested()
        await client.call("session.resume", sessionId="s", tools=[T])
        began = trio.current_time()
        await client.leave()
        await watcher.event("session.idle")
        # At once, and not when the time of the call is over.
        assert trio.current_time() == began
    assert model.requests[-1].results == {"call_1": "client disconnected"}


async def test_messages_that_wait_are_kept_where_the_turn_before_them_is_not_gone_on_with(
    autojump_clock: MockClock,
) -> None:
    model = ScriptedModel([call("t"), "to the second"])
    async with open_wire(model, options=WireOptions(wait_for_clients=True)) as wire:
        first = await wire.connect()
        await first.create(tools=[T])
        await first.say("one")
        await first.requested()
        await first.say("two")
        await first.leave()
        second = await wire.connect()
        await second.call("session.resume", sessionId="s")
        await second.event("assistant.message")
    assert [one.content for one in model.requests[-1].messages if one.role == "user"] == ["one", "two"]


async def test_a_session_of_another_tenant_tells_nothing_of_itself_to_who_guesses_its_id(
    autojump_clock: MockClock,
) -> None:
    tokens = {"ada's token": "ada", "bob's token": "bob"}
    async with open_wire(ScriptedModel([]), tokens=tokens) as wire:
        ada = await wire.connect(token="ada's token")
        bob = await wire.connect(token="bob's token")
        await ada.create(organizationCustomInstructions="hers alone")
        asked = rewriting(bob)
        wanted: dict[str, Any] = {"systemMessage": customized(custom_instructions={"action": "transform"})}
        with pytest.raises(WireFailure, match="is taken"):
            await bob.create(**wanted)
        with pytest.raises(WireFailure, match="Session not found: s"):
            await bob.call("session.resume", sessionId="s", **wanted)
        assert [one["sections"] for one in asked] == [{"custom_instructions": {"content": ""}}] * 2


async def test_who_comes_to_a_session_in_memory_is_told_to_all_unless_it_does_not_want_that(
    autojump_clock: MockClock,
) -> None:
    async with open_wire(ScriptedModel([]), options=WireOptions(wait_for_clients=True)) as wire:
        one, two, three = await wire.connect(), await wire.connect(), await wire.connect()
        await one.create()
        await two.call("session.resume", sessionId="s", suppressResumeEvent=True)
        await three.call("session.resume", sessionId="s", continuePendingWork=True)
        await three.event("session.resume")
        told = [event["data"] for event in one.events("session.resume")]
    assert [(data["sessionWasActive"], data["continuePendingWork"]) for data in told] == [(True, True)]


async def test_who_comes_to_a_session_that_all_have_left_is_told_so(autojump_clock: MockClock) -> None:
    async with open_wire(ScriptedModel([after(10, "hi")])) as wire:
        one, two = await wire.connect(), await wire.connect()
        await one.create()
        await one.say()
        await one.leave()
        await two.call("session.resume", sessionId="s")
        assert (await two.event("session.resume"))["data"]["sessionWasActive"] is False
        await two.event("session.idle")


async def test_a_limit_that_a_client_says_anew_holds_against_what_was_decided_meanwhile(
    autojump_clock: MockClock,
) -> None:
    async with open_wire(default=priced("hello", "more")) as wire:
        client = await wire.connect()
        request = (await exhausted(client))["requestId"]
        assert await decide(client, request, action="set", maxAiCredits=40)
        await client.event("session.idle", 2)
        await client.call("session.resume", sessionId="s", **LIMIT)
        snapshot = await client.call("session.metadata.snapshot", sessionId="s")
        assert snapshot["sessionLimits"] == LIMIT["sessionLimits"]


async def test_what_was_chosen_long_ago_holds_when_the_session_is_taken_up(autojump_clock: MockClock) -> None:
    async with open_wire(ScriptedModel(["hi"] * 40)) as wire:
        client = await wire.connect()
        await client.create()
        await client.call("session.mode.set", sessionId="s", mode="plan")
        for _ in range(40):
            await client.turn()
        assert wire.server.hub.served("s").handle.statistics().events > TAIL
        await client.call("session.detach", sessionId="s")
        assert (await client.call("session.resume", sessionId="s"))["mode"] == "plan"
