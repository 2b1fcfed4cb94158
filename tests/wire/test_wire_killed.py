"""The server is killed in any state of a session; its client comes back to another process with the same journal."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio

from exeunt.supervisor.journal.durable import DurableJournal
from exeunt.testing import ScriptedModel, call, hang
from exeunt.testing.faulty_store import MemoryStore
from exeunt.wire.options import WireOptions
from tests.wire.wire_client import CLEAR, Wire, WireClient, open_wire, tool

WAITS = WireOptions(wait_for_clients=True)
T = tool("t")
ASKS = tool("t", skipPermission=False)


async def until(condition: Callable[[], object]) -> None:
    """Wait for something that a thread brings about."""
    with trio.fail_after(10):
        await trio.lowlevel.checkpoint()
        while not condition():  # noqa: ASYNC110
            await trio.sleep(0.001)


@asynccontextmanager
async def served(store: MemoryStore, model: ScriptedModel, **options: Any) -> AsyncGenerator[Wire]:
    async with open_wire(model, options=WAITS, journal=DurableJournal(store), **options) as wire:
        yield wire


async def copy_of(wire: Wire, store: MemoryStore) -> MemoryStore:
    """The database as a kill at this instant leaves it."""
    actor = wire.host.find("s")
    assert actor is not None
    await actor.log.wait_durable(actor.state.seq)
    return store.copy()


async def come_back(wire: Wire, *tools: dict[str, Any], go_on: bool) -> WireClient:
    client = await wire.connect()
    await client.call(
        "session.resume", sessionId="s", tools=list(tools), requestPermission=True, continuePendingWork=go_on
    )
    return client


async def test_a_call_waits_for_the_answer_to_the_old_request() -> None:
    store, model = MemoryStore(), ScriptedModel([call("t"), "done"])
    async with served(store, model, settled=False) as wire:
        client = await wire.connect()
        request = await client.calling(T)
        killed = await copy_of(wire, store)
    async with served(killed, model) as wire:
        client = await come_back(wire, T, go_on=True)
        await until(lambda: wire.server.hub.sessions["s"].asking.calls)
        # The client may be at work on it: it is not asked again.
        assert client.events("external_tool.requested") == []
        assert await client.give(request, result="kept")
        await client.event("session.idle")
    assert model.requests[-1].results == {"call_1": "kept"}


async def test_without_the_pending_work_the_call_is_interrupted_and_nothing_runs_by_itself() -> None:
    store, model = MemoryStore(), ScriptedModel([call("t"), "done"])
    async with served(store, model, settled=False) as wire:
        client = await wire.connect()
        request = await client.calling(T)
        killed = await copy_of(wire, store)
    async with served(killed, model) as wire:
        client = await come_back(wire, T, go_on=False)
        assert not await client.give(request, result="late")
        assert len(model.requests) == 1
        await client.say("next")
        await client.event("assistant.message")
        await client.event("session.idle")
    (text,) = model.requests[-1].results.values()
    assert text == "The execution of this tool, or a previous tool was interrupted."


async def test_the_first_idle_that_a_client_sees_ends_its_own_message() -> None:
    """The SDKs wait for one, whatever it ends, and would return before there is an answer."""
    store, model = MemoryStore(), ScriptedModel([hang(), "the answer"])
    async with served(store, model, settled=False) as wire:
        client = await wire.connect()
        await client.create()
        await client.say()
        await client.event("assistant.turn_start")
        killed = await copy_of(wire, store)
    async with served(killed, model) as wire:
        client = await come_back(wire, go_on=False)
        # The answer to the request that follows comes behind all that the first has brought about.
        await client.call("session.getMessages", sessionId="s")
        assert client.kinds() == ["session.resume", "assistant.turn_end"]
        await client.turn("next")
        assert [event["data"]["content"] for event in client.events("assistant.message")] == ["the answer"]


async def test_an_approval_waits_on_under_the_same_request() -> None:
    store, model = MemoryStore(), ScriptedModel([call("t"), "done"])
    async with served(store, model, settled=False) as wire:
        client = await wire.connect()
        await client.create(tools=[ASKS])
        await client.say()
        asked = (await client.event("permission.requested"))["data"]["requestId"]
        killed = await copy_of(wire, store)
    async with served(killed, model) as wire:
        client = await come_back(wire, ASKS, go_on=True)
        done = await client.call(
            "session.permissions.handlePendingPermissionRequest",
            sessionId="s",
            requestId=asked,
            result={"kind": "approve-once"},
        )
        assert done == {"success": True}
        assert await client.give(await client.requested(), result="ok")
        await client.event("session.idle")
    assert model.requests[-1].results == {"call_1": "ok"}


async def test_a_staged_clear_is_gone_and_the_call_waits_on() -> None:
    store, model = MemoryStore(), ScriptedModel([call("clear_context", prompt="seed"), "done"])
    async with served(store, model, settled=False) as wire:
        client = await wire.connect()
        request = await client.calling(CLEAR)
        await client.call("session.history.clearContext", sessionId="s", prompt="seed")
        killed = await copy_of(wire, store)
    async with served(killed, model) as wire:
        client = await come_back(wire, CLEAR, go_on=True)
        await until(lambda: wire.server.hub.sessions["s"].asking.calls)
        # A terminal tool that is finished like this ends the turn, as any.
        assert await client.give(request, result="ok")
        await client.event("session.idle")
        kept = (await client.call("session.getMessages", sessionId="s"))["events"]
    assert [event for event in kept if event["type"] == "session.context_cleared"] == []
    assert len(model.requests) == 1


async def test_a_committed_clear_is_whole() -> None:
    store = MemoryStore()
    model = ScriptedModel([call("clear_context", prompt="seed"), hang(), "after the kill"])
    async with served(store, model, settled=False) as wire:
        client = await wire.connect()
        request = await client.calling(CLEAR)
        await client.call("session.history.clearContext", sessionId="s", prompt="seed")
        await client.give(request, result="ok")
        await client.event("session.context_cleared")
        killed = await copy_of(wire, store)
    async with served(killed, model) as wire:
        client = await come_back(wire, CLEAR, go_on=True)
        await client.event("session.idle")
    assert [message.content for message in model.requests[-1].messages] == ["seed"]


@pytest.mark.parametrize("go_on", [True, False])
async def test_a_model_call_is_made_again_if_the_client_wants_it(go_on: bool) -> None:
    store, model = MemoryStore(), ScriptedModel([hang(), "the answer"])
    async with served(store, model, settled=False) as wire:
        client = await wire.connect()
        await client.create()
        await client.say("a question")
        killed = await copy_of(wire, store)
    async with served(killed, model) as wire:
        client = await come_back(wire, go_on=go_on)
        if go_on:
            await client.event("session.idle")
        assert len(model.requests) == 1 + go_on
        resumed = (await client.event("session.resume"))["data"]
        assert resumed["continuePendingWork"] is go_on
