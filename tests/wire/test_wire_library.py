"""Sessions in memory and stored: made, listed, known, forked, ended."""

from typing import Any

import pytest
from trio.testing import MockClock

from exeunt.testing import ScriptedModel, after, call
from tests.wire.wire_client import WireFailure, open_wire, tool

PROVIDER = {"type": "openai", "baseUrl": "http://127.0.0.1:9/v1", "apiKey": "k"}


async def test_a_session_is_truncated_and_forked(autojump_clock: MockClock) -> None:
    model = ScriptedModel(["one", "two", "again", "of the fork"])
    async with open_wire(model) as wire:
        client = await wire.connect()
        await client.create()
        for number in (1, 2):
            await client.say(f"message {number}")
            await client.event("session.idle", number)
        second = client.events("user.message")[1]["id"]
        forked = await client.call("sessions.fork", sessionId="s", toEventId=second)
        back = await client.call("session.history.truncate", sessionId="s", eventId=second)
        assert back["eventsRemoved"] > 0
        assert client.events("session.snapshot_rewind")[0]["data"]["upToEventId"] == second
        kept = (await client.call("session.getMessages", sessionId="s"))["events"]
        assert [event["data"]["content"] for event in kept if event["type"] == "user.message"] == [
            "message 1"
        ]
        await client.say("message 3")
        await client.event("session.idle", 3)
        assert [m.content for m in model.requests[-1].messages] == ["message 1", "one", "message 3"]
        with pytest.raises(WireFailure, match="event nothing not found"):
            await client.call("sessions.fork", sessionId="s", toEventId="nothing")
        with pytest.raises(WireFailure, match="the first of the log"):
            await client.call("sessions.fork", sessionId="s", toEventId=kept[0]["id"])
        await client.call("session.resume", sessionId=forked["sessionId"])
        copied = (await client.call("session.getMessages", sessionId=forked["sessionId"]))["events"]
        assert second not in [event["id"] for event in copied]
        await client.say("message 4", session=forked["sessionId"])
        await client.event("session.idle", 4)
        assert [m.content for m in model.requests[-1].messages] == ["message 1", "one", "message 4"]


async def test_a_fork_has_no_message_that_waits_in_the_other_session(autojump_clock: MockClock) -> None:
    model = ScriptedModel([after(5, "one"), "two", "of the fork"])
    async with open_wire(model) as wire:
        client = await wire.connect()
        await client.create()
        await client.say("message 1")
        await client.say("message 2")
        await client.event("session.idle")
        second = client.events("user.message")[1]["id"]
        for boundary in ({"toEventId": second}, {}):
            forked = await client.call("sessions.fork", sessionId="s", **boundary)
            await client.call("session.resume", sessionId=forked["sessionId"])
            pending = await client.call("session.queue.pendingItems", sessionId=forked["sessionId"])
            assert pending["items"] == []
            copied = (await client.call("session.getMessages", sessionId=forked["sessionId"]))["events"]
            said = [event["data"]["content"] for event in copied if event["type"] == "user.message"]
            assert said == (["message 1"] if boundary else ["message 1", "message 2"])
            assert len({event["id"] for event in copied}) == len(copied)


async def test_what_is_known_of_a_session(autojump_clock: MockClock) -> None:
    async with open_wire(ScriptedModel([after(5, "the answer")])) as wire:
        client = await wire.connect()
        await client.create(workingDirectory="/here", clientName="tests")
        await client.say("a question")
        assert await client.call("session.metadata.isProcessing", sessionId="s") == {"processing": True}
        await client.event("session.idle")
        activity = await client.call("session.metadata.activity", sessionId="s")
        assert activity == {"abortable": False, "hasActiveWork": False}
        about = await client.call("session.metadata.snapshot", sessionId="s")
        assert (about["workingDirectory"], about["clientName"], about["selectedModel"]) == (
            "/here",
            "tests",
            "scripted",
        )
        heavy = await client.call("session.metadata.getContextHeaviestMessages", sessionId="s")
        assert [message["role"] for message in heavy["messages"]] == ["user", "assistant"]
        await client.call("session.metadata.setWorkingDirectory", sessionId="s", workingDirectory="/there")
        about = await client.call("session.metadata.snapshot", sessionId="s")
        assert about["workingDirectory"] == "/there"
        metrics = await client.call("session.usage.getMetrics", sessionId="s")
        (used,) = client.events("assistant.usage")
        assert metrics["modelMetrics"][used["data"]["model"]]["requests"]["count"] == 1


async def test_the_folder_of_a_session_is_what_a_client_has_said_last(autojump_clock: MockClock) -> None:
    async with open_wire(ScriptedModel([])) as wire:
        client, other = await wire.connect(), await wire.connect()
        await client.create(workingDirectory="/a")

        async def folder() -> Any:
            return (await client.call("session.metadata.snapshot", sessionId="s"))["workingDirectory"]

        await client.call("session.options.update", sessionId="s", workingDirectory="/b", streaming=True)
        assert await folder() == "/b"
        with pytest.raises(WireFailure, match="absolute path"):
            await client.call("session.options.update", sessionId="s", workingDirectory="c", streaming=False)
        await other.call("session.resume", sessionId="s")
        assert await folder() == "/b"
        await other.call("session.resume", sessionId="s", workingDirectory="/c")
        assert await folder() == "/c"
        assert wire.server.hub.served("s").config.streaming is True
        moved = [event["data"] for event in client.events("session.context_changed")]
        assert moved == [{"cwd": "/b"}, {"cwd": "/c"}]
        assert client.events("session.resume")[-1]["data"]["context"] == {"cwd": "/c"}


async def test_sessions_are_listed_found_closed_and_deleted(autojump_clock: MockClock) -> None:
    async with open_wire(ScriptedModel(["hi"])) as wire:
        client = await wire.connect()
        for session in ("session-a", "session-b"):
            await client.create(session)
        assert await client.call("session.getLastId") in (
            {"sessionId": "session-b"},
            {"sessionId": "session-a"},
        )
        listed = {one["sessionId"] for one in (await client.call("sessions.list"))["sessions"]}
        assert listed == {"session-a", "session-b"}
        assert await client.call("sessions.findByPrefix", prefix="session-a") == {"sessionId": "session-a"}
        assert await client.call("sessions.findByPrefix", prefix="session-") == {}
        await client.call("sessions.save", sessionId="session-a")
        await client.call("sessions.close", sessionId="session-a")
        with pytest.raises(WireFailure, match="Session not found"):
            await client.say(session="session-a")
        await client.call("session.resume", sessionId="session-a")
        assert await client.call("session.delete", sessionId="session-a") == {"success": True}
        gone = await client.call("session.delete", sessionId="session-a")
        assert gone == {"success": False, "error": "Session file not found for session-a"}
        with pytest.raises(WireFailure, match="Session not found: session-a"):
            await client.call("session.resume", sessionId="session-a")
        assert (await client.call("session.getMetadata", sessionId="session-b"))["session"][
            "isRemote"
        ] is False
        assert await client.call("session.getMetadata", sessionId="nobody") == {}
        await client.call("session.name.set", sessionId="session-b", name="Kept")
        await client.call("session.detach", sessionId="session-b")
        with pytest.raises(WireFailure, match="exists already"):
            await client.create("session-b")


async def test_a_session_gets_an_id_where_the_client_gives_none(autojump_clock: MockClock) -> None:
    async with open_wire(ScriptedModel([])) as wire:
        client = await wire.connect()
        one, two = await client.call("session.create"), await client.call("session.create", sessionId="")
        assert len({one["sessionId"], two["sessionId"], ""}) == 3
        for bad in ("x" * 200, "a\nb"):
            with pytest.raises(WireFailure, match="session id"):
                await client.create(bad)


async def test_creating_a_session_in_memory_attaches_to_it(autojump_clock: MockClock) -> None:
    async with open_wire(ScriptedModel(["hi"])) as wire:
        one, two = await wire.connect(), await wire.connect()
        await one.create()
        assert (await two.create())["sessionId"] == "s"
        await one.say()
        await two.event("session.idle")


async def test_the_first_message_sums_a_session_up_that_has_no_name(autojump_clock: MockClock) -> None:
    async with open_wire(ScriptedModel(["done"])) as wire:
        client = await wire.connect()
        await client.create()
        assert "summary" not in (await client.call("session.getMetadata", sessionId="s"))["session"]
        await client.say("first " + "x" * 300)
        await client.event("session.idle")
        about = (await client.call("session.getMetadata", sessionId="s"))["session"]
        assert about["summary"] == ("first " + "x" * 300)[:200]
        await client.call("session.name.set", sessionId="s", name="Named")
        assert (await client.call("session.getMetadata", sessionId="s"))["session"]["summary"] == "Named"


async def test_going_back_to_the_middle_of_a_turn_takes_the_whole_turn_away(
    autojump_clock: MockClock,
) -> None:
    model = ScriptedModel(["one", call("t"), "two", "three"])
    async with open_wire(model) as wire:
        client = await wire.connect()
        await client.create(tools=[tool("t")])
        await client.say("message 1")
        await client.event("session.idle")
        await client.say("message 2")
        await client.give(await client.requested(), result="ok")
        await client.event("session.idle", 2)
        answer = client.events("assistant.message")[-1]["id"]
        await client.call("session.history.truncate", sessionId="s", eventId=answer)
        await client.say("message 3")
        await client.event("session.idle", 3)
    assert [m.content for m in model.requests[-1].messages] == ["message 1", "one", "message 3"]


async def test_what_the_host_goes_back_to_is_told_by_its_own_event(autojump_clock: MockClock) -> None:
    async with open_wire(ScriptedModel(["one", "two", "three"])) as wire:
        client = await wire.connect()
        await client.create()
        await client.call("session.eventLog.registerInterest", sessionId="s", eventType="turn.end")
        for number in (1, 2, 3):
            await client.say(f"message {number}")
            await client.event("session.idle", number)
        third = client.events("user.message")[2]["id"]
        await client.call("session.history.truncate", sessionId="s", eventId=third)
        # The program in which the server runs has its own way to the session.
        handle = wire.server.hub.served("s").handle
        await handle.history.truncate(client.events("turn.end")[0]["id"])
        await client.event("session.snapshot_rewind", 2)
        rewound = [event["data"]["upToEventId"] for event in client.events("session.snapshot_rewind")]
    assert rewound[0] == third
    assert rewound[1] != third


async def test_sessions_that_are_not_there_are_passed_over_and_who_deletes_is_told_of_each(
    autojump_clock: MockClock,
) -> None:
    async with open_wire(ScriptedModel(["hi", "hi"])) as wire:
        client, deletes = await wire.connect(), await wire.connect()
        for name in ("a", "b"):
            await client.create(name)
            await client.turn(session=name)
        await client.call("session.detach", sessionId="b")
        done = await deletes.call("sessions.bulkDelete", sessionIds=["a", "nobody", "b"])
        assert done == {"freedBytes": {"a": 0, "b": 0}}
        told = [
            [
                notification["params"]["sessionId"]
                for notification in one.notifications
                if notification["method"] == "session.lifecycle"
                and notification["params"]["type"] == "session.deleted"
            ]
            for one in (client, deletes)
        ]
        assert told == [["a"], ["a", "b"]]
        assert (await deletes.call("session.list"))["sessions"] == []
