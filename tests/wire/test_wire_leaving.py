"""Clients that come and go, in every state of a session."""

from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from exeunt import Session
from exeunt.actors.errors import JournalUnavailable
from exeunt.supervisor.journal import MemoryJournal
from exeunt.testing import ScriptedModel, after, call, hang
from exeunt.wire.connection import LAST_WORDS
from exeunt.wire.options import WireOptions
from exeunt.wire.serving import changing, opening
from tests.wire.wire_client import CLEAR, Wire, WireClient, WireFailure, open_wire, tool

WAITS = WireOptions(wait_for_clients=True)

T = tool("t")


async def test_the_pending_calls_of_a_client_that_leaves_fail(autojump_clock: MockClock) -> None:
    model = ScriptedModel([call("t"), "it is gone"])
    async with open_wire(model) as wire:
        client = await wire.connect()
        await client.calling(T)
        watcher = await wire.connect()
        await watcher.call("session.resume", sessionId="s")
        await client.leave()
        await watcher.event("session.idle")
        complete = watcher.events("tool.execution_complete")[0]["data"]
        assert complete["error"] == {"message": "client disconnected", "code": "failure"}
    assert model.requests[-1].results == {"call_1": "client disconnected"}
    # Its tools went with it.
    assert model.requests[-1].tools == ()


async def test_where_the_server_waits_the_call_is_answered_by_the_client_that_comes_back(
    autojump_clock: MockClock,
) -> None:
    model = ScriptedModel([call("t"), "welcome back"])
    async with open_wire(model, options=WAITS) as wire:
        first = await wire.connect()
        request = await first.calling(T)
        await first.leave()
        await trio.sleep(600)
        second = await wire.connect()
        await second.call("session.resume", sessionId="s", tools=[T], continuePendingWork=True)
        assert second.events("external_tool.requested") == []
        assert await second.give(request, result="after all")
        await second.event("session.idle")
    assert model.requests[-1].results == {"call_1": "after all"}


async def test_a_client_that_comes_back_without_the_pending_work_ends_it(autojump_clock: MockClock) -> None:
    model = ScriptedModel([call("t"), "next"])
    async with open_wire(model, options=WAITS) as wire:
        first = await wire.connect()
        request = await first.calling(T)
        await first.leave()
        second = await wire.connect()
        await second.call("session.resume", sessionId="s", tools=[T])
        assert not await second.give(request, result="late")
        # The SDKs take the first idle that they see for the end of what they send.
        assert second.events("abort")
        assert second.events("assistant.idle", "session.idle") == []
        await second.turn("next")
        assert second.events("assistant.message")
    assert model.requests[-1].results == {
        "call_1": "The execution of this tool, or a previous tool was interrupted."
    }


async def test_an_approval_waits_for_the_client_that_comes_back(autojump_clock: MockClock) -> None:
    model = ScriptedModel([call("t"), "done"])
    async with open_wire(model, options=WAITS) as wire:
        first = await wire.connect()
        await first.create(tools=[tool("t", skipPermission=False)])
        await first.say()
        asked = (await first.event("permission.requested"))["data"]["requestId"]
        await first.leave()
        second = await wire.connect()
        await second.call(
            "session.resume", sessionId="s", tools=[T], requestPermission=True, continuePendingWork=True
        )
        done = await second.call(
            "session.permissions.handlePendingPermissionRequest",
            sessionId="s",
            requestId=asked,
            result={"kind": "approve-once"},
        )
        assert done == {"success": True}
        assert await second.give(await second.requested(), result="ok")
        await second.event("session.idle")


async def test_an_approval_of_a_client_that_leaves_is_a_denial(autojump_clock: MockClock) -> None:
    model = ScriptedModel([call("t"), "done"])
    async with open_wire(model) as wire:
        first, watcher = await wire.connect(), await wire.connect()
        await first.create(tools=[tool("t", skipPermission=False)])
        await watcher.call("session.resume", sessionId="s")
        await first.say()
        await watcher.event("permission.requested")
        await first.leave()
        await watcher.event("session.idle")
    assert model.requests[-1].results == {
        "call_1": "Permission denied and could not request permission from user"
    }


async def test_a_turn_goes_on_when_its_client_leaves_during_the_model_call(autojump_clock: MockClock) -> None:
    model = ScriptedModel([after(30, "the answer"), "next"])
    async with open_wire(model) as wire:
        first = await wire.connect()
        await first.create()
        await first.say()
        await first.leave()
        assert list(wire.server.hub.sessions) == ["s"]
        await trio.sleep(60)
        # It is idle and has no client: it has left memory, its log has not.
        assert wire.server.hub.sessions == {}
        assert wire.host.actors() == []
        second = await wire.connect()
        await second.call("session.resume", sessionId="s")
        history = (await second.call("session.getMessages", sessionId="s"))["events"]
        answers = [event["data"]["content"] for event in history if event["type"] == "assistant.message"]
        assert answers == ["the answer"]
        await second.turn("next")


async def test_a_staged_clear_of_a_client_that_leaves_is_rolled_back(autojump_clock: MockClock) -> None:
    model = ScriptedModel([call("clear_context", prompt="seed"), "nothing was cleared"])
    async with open_wire(model) as wire:
        first, watcher = await wire.connect(), await wire.connect()
        await first.create(tools=[CLEAR])
        await watcher.call("session.resume", sessionId="s")
        await first.say()
        await first.requested()
        await first.call("session.history.clearContext", sessionId="s", prompt="seed")
        await first.leave()
        await watcher.event("session.idle")
    assert watcher.events("session.context_cleared") == []
    assert [message.role for message in model.requests[-1].messages] == ["user", "assistant", "tool"]


async def test_who_detaches_last_ends_the_turn_and_the_log_stays(autojump_clock: MockClock) -> None:
    model = ScriptedModel([call("t"), "next"])
    async with open_wire(model, options=WAITS) as wire:
        client = await wire.connect()
        await client.calling(T)
        assert await client.call("session.detach", sessionId="s") == {"success": True}
        assert wire.host.actors() == []
        with pytest.raises(WireFailure, match="Session not found for sessionId: s"):
            await client.say()
        await client.call("session.resume", sessionId="s", tools=[T])
        await client.turn("next")
    assert model.requests[-1].results == {
        "call_1": "The execution of this tool, or a previous tool was interrupted."
    }


async def test_detaching_one_of_two_clients_leaves_the_session_to_the_other(
    autojump_clock: MockClock,
) -> None:
    async with open_wire(ScriptedModel(["hi"])) as wire:
        one, two = await wire.connect(), await wire.connect()
        await one.create()
        await two.call("session.resume", sessionId="s")
        assert await one.call("session.destroy", sessionId="s") == {"success": True}
        assert await one.call("session.destroy", sessionId="s") == {"success": False}
        assert await one.call("session.detach", sessionId="s") == {"success": True}
        seen = len(one.notifications)
        await two.turn()
        assert len(one.notifications) == seen


async def test_two_clients_bring_tools_of_their_own_and_the_model_has_both(autojump_clock: MockClock) -> None:
    model = ScriptedModel([[call("one"), call("two")], "both", "one is left"])
    async with open_wire(model) as wire:
        first, second = await wire.connect(), await wire.connect()
        await first.create(tools=[tool("one")])
        await second.call("session.resume", sessionId="s", tools=[tool("two")])
        await first.say()
        asked = {event["data"]["toolName"]: event["data"]["requestId"] for event in await two_calls(first)}
        assert not await first.give(asked["two"], result="wrong one")
        assert await first.give(asked["one"], result="1")
        assert await second.give(asked["two"], result="2")
        await first.event("session.idle")
        assert list(model.requests[-1].results.values()) == ["1", "2"]
        await second.leave()
        await first.turn()
    assert [definition.name for definition in model.requests[-1].tools] == ["one"]


async def two_calls(client: WireClient) -> list[dict[str, dict[str, str]]]:
    await client.requested(2)
    return client.events("external_tool.requested")


async def test_a_thousand_clients_at_once_come_and_go(autojump_clock: MockClock) -> None:
    async with open_wire(ScriptedModel(["hi"])) as wire:
        clients = [await wire.connect() for _ in range(1_000)]
        await clients[0].create()
        await clients[0].say()
        await clients[0].event("session.idle")
        for client in clients[1:]:
            await client.stream.aclose()
        await wait_all_tasks_blocked()
        assert wire.server.statistics().connections == 1


async def test_a_hanging_model_does_not_keep_a_server_from_ending(autojump_clock: MockClock) -> None:
    async with open_wire(ScriptedModel([hang()]), settled=False) as wire:
        client = await wire.connect()
        await client.create()
        await client.say()


async def test_a_session_that_nothing_was_done_with_is_forgotten_when_its_last_client_says_goodbye(
    autojump_clock: MockClock,
) -> None:
    async with open_wire(ScriptedModel(["done"])) as wire:
        one, two = await wire.connect(), await wire.connect()
        for session in ("unused", "used", "lost"):
            await one.create(session)
            await two.call("session.resume", sessionId=session)
            await one.call("session.detach", sessionId=session)
            assert (await two.call("session.getMessages", sessionId=session))["events"]
        await two.say(session="used")
        await two.event("session.idle")
        for session in ("unused", "used"):
            await two.call("session.destroy", sessionId=session)
        with pytest.raises(WireFailure, match="Session not found for sessionId: unused"):
            await one.call("session.getMessages", sessionId="unused")
        assert (await one.call("session.getMessages", sessionId="used"))["events"]
        # Who is only cut off may come back.
        await two.leave()
        assert (await one.call("session.resume", sessionId="lost"))["sessionId"] == "lost"


async def detached_for_another(
    wire: Wire, one: WireClient, two: WireClient, moment: int, method: str
) -> None:
    """Let the one client detach, and the other come some steps of the scheduler later; then it has the session."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(lambda: one.call("session.detach", sessionId="s"))
        for _ in range(moment):
            await trio.lowlevel.checkpoint()
        await two.call(method, sessionId="s", requestPermission=True)
    await wait_all_tasks_blocked()
    await two.turn("next")
    assert list(wire.server.hub.sessions) == ["s"]


@pytest.mark.parametrize("moment", range(8))
async def test_who_comes_while_a_busy_session_leaves_memory_takes_it_up_again(
    moment: int, autojump_clock: MockClock
) -> None:
    async with open_wire(ScriptedModel([after(30, "never said"), "next"])) as wire:
        one, two = await wire.connect(), await wire.connect()
        await one.create()
        await one.say()
        await one.event("assistant.turn_start")
        await detached_for_another(wire, one, two, moment, "session.resume")


@pytest.mark.parametrize("moment", range(8))
async def test_who_makes_a_session_while_one_of_its_id_is_forgotten_has_it(
    moment: int, autojump_clock: MockClock
) -> None:
    # The order in which tasks run is a matter of chance.
    for _ in range(10):
        async with open_wire(ScriptedModel(["next"])) as wire:
            one, two = await wire.connect(), await wire.connect()
            await one.create()
            await detached_for_another(wire, one, two, moment, "session.create")


async def test_a_session_that_is_ended_with_a_reason_of_the_hosts_stays(autojump_clock: MockClock) -> None:
    async with open_wire(ScriptedModel(["hi"])) as wire:
        client = await wire.connect()
        await client.create()
        with pytest.raises(WireFailure, match="the reason of a disconnect"):
            await client.call("session.shutdown", sessionId="s", reason="host")
        await client.turn()


async def test_who_is_cut_off_while_it_attaches_changes_nothing_of_the_session(
    autojump_clock: MockClock,
) -> None:
    async with open_wire(ScriptedModel(["hi"])) as wire:
        client = await wire.connect()
        await client.create(tools=[T])
        served = wire.server.hub.served("s")
        actor = wire.host.find("s")
        assert actor is not None
        before = actor.options
        with trio.CancelScope() as scope:
            scope.cancel()
            await changing.reconfigure(wire.server.hub, served)
        await wait_all_tasks_blocked()
        assert scope.cancelled_caught
        assert actor.options is before


async def test_who_is_cut_off_while_its_coming_ends_a_turn_leaves_again(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    abort = Session.abort

    async def slow(session: Session, **how: Any) -> Any:
        await trio.sleep(5)
        return await abort(session, **how)

    monkeypatch.setattr(Session, "abort", slow)
    async with open_wire(ScriptedModel([call("t")]), options=WAITS, settled=False) as wire:
        client, coming = await wire.connect(), await wire.connect()
        await client.calling(T)
        await client.leave()
        await trio.sleep(LAST_WORDS)
        await coming.start("session.resume", sessionId="s")
        await wait_all_tasks_blocked()
        await coming.leave()
        await trio.sleep(10)
        assert wire.server.hub.sessions == {}


async def test_a_session_whose_clients_leave_while_one_comes_that_is_refused_leaves_memory(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuses(*_: Any) -> None:
        await trio.sleep(5)
        raise JournalUnavailable("no room")

    async with open_wire(ScriptedModel(["hi"])) as wire:
        client, coming = await wire.connect(), await wire.connect()
        await client.create()
        await client.turn()
        monkeypatch.setattr(opening, "reconfigure", refuses)
        asked = await coming.start("session.resume", sessionId="s")
        await wait_all_tasks_blocked()
        # It counts on the one that comes.
        await client.leave()
        assert list(wire.server.hub.sessions) == ["s"]
        assert "no room" in (await coming.answer(asked))["error"]["message"]
        await wait_all_tasks_blocked()
        assert wire.server.hub.sessions == {}


class SlowToForget(MemoryJournal):
    """Takes its time to delete a log."""

    async def delete(self, session_id: str) -> None:
        """Forget a session, a while later."""
        await trio.sleep(5)
        await super().delete(session_id)


@pytest.mark.parametrize("attached", [True, False])
async def test_who_asks_for_a_session_that_is_being_deleted_waits_and_finds_none(
    attached: bool, autojump_clock: MockClock
) -> None:
    async with open_wire(ScriptedModel(["hi"]), journal=SlowToForget()) as wire:
        one, two = await wire.connect(), await wire.connect()
        await one.create()
        await one.turn()
        if not attached:
            await one.call("session.detach", sessionId="s")
        deleting = await one.start("session.delete", sessionId="s")
        await wait_all_tasks_blocked()
        began = trio.current_time()
        if attached:
            with pytest.raises(WireFailure, match="Session not found: s"):
                await two.call("session.resume", sessionId="s")
            assert trio.current_time() - began == pytest.approx(5)
        assert (await one.answer(deleting))["result"] == {"success": True}
        assert wire.server.hub.sessions == {}
        await two.create()
        assert (await two.call("session.getMessages", sessionId="s"))["events"][-1]["type"] == "session.start"
