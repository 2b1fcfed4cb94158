"""Another server takes a session up that is at work at the first one: clients of that are told, and may come back."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio
import trio.testing

from exeunt.host import open_host
from exeunt.supervisor.journal.durable import DurableJournal
from exeunt.testing import ScriptedModel, call, hang
from exeunt.testing.faulty_store import MemoryStore
from exeunt.wire.options import WireOptions
from exeunt.wire.server import WireServer
from exeunt.wire.serving.models import DefaultProvider
from tests.wire.test_wire_killed import WAITS, T, come_back, copy_of
from tests.wire.wire_client import Wire, WireFailure


@asynccontextmanager
async def unchecked(
    store: MemoryStore, model: ScriptedModel, options: WireOptions = WAITS
) -> AsyncGenerator[Wire]:
    """A server that may lose its sessions to another one: it has shown events then that are not in the log."""
    default = DefaultProvider(client=model, model="scripted")
    async with open_host(journal=DurableJournal(store)) as host, trio.open_nursery() as nursery:
        yield Wire(WireServer(host, options=options, default=default), host, nursery)
        nursery.cancel_scope.cancel()


async def test_a_session_that_another_server_has_taken_up_can_be_taken_back() -> None:
    store, model = MemoryStore(), ScriptedModel(["an answer"] * 10)
    async with unchecked(store, model) as one, unchecked(store, model) as two:
        first = await one.connect()
        await first.create()
        await first.say("one")
        await first.event("session.idle")
        await copy_of(one, store)  # clients see events some milliseconds before they are kept
        second = await come_back(two, go_on=False)
        await second.say("two")
        await second.event("session.idle")
        await copy_of(two, store)
        with pytest.raises(WireFailure, match="was taken over by another host"):
            await first.say("lost")
        first.notifications.clear()
        await first.call("session.resume", sessionId="s")
        await first.say("three")
        await first.event("session.idle")
        # So can one who was not there before.
        other = await come_back(one, go_on=False)
        await other.say("four")
        await other.event("session.idle")
    said = [message.content for message in model.requests[-1].messages if message.role == "user"]
    assert said == ["one", "two", "three", "four"]


async def test_clients_of_a_turn_that_another_server_goes_on_with_are_told_at_once() -> None:
    store = MemoryStore()
    model = ScriptedModel([call("t")], default=hang())
    async with unchecked(store, model) as one, unchecked(store, model) as two:
        first = await one.connect()
        await first.create(tools=[T])
        await first.say()
        request = await first.requested()
        await copy_of(one, store)
        second = await come_back(two, T, go_on=True)
        await copy_of(two, store)
        # What the first server is given it cannot write any more.
        await first.give(request, result="here")
        told = await first.event("session.error")
        assert told["data"]["errorType"] == "session_taken_over"
        assert "session.resume" in told["data"]["message"]
        assert told["ephemeral"] is True
        assert first.kinds().count("session.error") == 1
        assert "session.idle" not in first.kinds()
        # Who has it now hears nothing of that, and goes on.
        assert await second.give(request, result="there")
        await second.event("assistant.turn_start")
        assert second.events("session.error") == []
        with pytest.raises(WireFailure, match="Session not found"):
            await first.say("is it here?")
        assert one.server.hub.sessions == {}


async def test_a_client_that_leaves_a_server_does_not_take_its_lost_session_back() -> None:
    store, model = MemoryStore(), ScriptedModel([], default="an answer")
    async with unchecked(store, model) as one, unchecked(store, model) as two:
        leaving, staying = await one.connect(), await one.connect()
        await leaving.create(tools=[T])
        await staying.call("session.resume", sessionId="s")
        await copy_of(one, store)
        second = await come_back(two, go_on=False)
        await second.say("two")
        await second.event("session.idle")
        await copy_of(two, store)
        with pytest.raises(WireFailure, match="was taken over"):
            await leaving.say("lost")
        for client in (leaving, staying):
            assert (await client.event("session.error"))["data"]["errorType"] == "session_taken_over"
        await leaving.stream.aclose()
        await trio.testing.wait_all_tasks_blocked()
        await second.say("three")
        await second.event("session.idle")
        assert one.host.actors() == []


async def test_files_of_a_session_are_left_to_the_server_that_has_it(tmp_path: Path) -> None:
    store, model = MemoryStore(), ScriptedModel([], default="an answer")
    options = WireOptions(wait_for_clients=True, session_files=tmp_path)
    async with unchecked(store, model, options) as one, unchecked(store, model, options) as two:
        first = await one.connect()
        await first.create()
        await first.say("one")
        await first.event("session.idle")
        await copy_of(one, store)
        second = await come_back(two, go_on=False)
        await second.say("two")
        await second.event("session.idle")
        await copy_of(two, store)
        with pytest.raises(WireFailure, match="was taken over"):
            await first.say("unheard")
        await first.event("session.error")
        with trio.fail_after(10):
            await first.call("session.resume", sessionId="s")
        await first.say("three")
        await first.event("session.idle")
    (transcript,) = await trio.to_thread.run_sync(lambda: list(tmp_path.rglob("*.jsonl")))
    text = await trio.Path(transcript).read_text()
    assert [word in text for word in ("one", "two", "three", "unheard")] == [True, True, True, False]
