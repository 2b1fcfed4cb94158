"""What happens in a session, as clients see it, write into it, and take back of it."""

from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from exeunt.testing import ScriptedModel, after, call, say
from tests.wire.wire_client import WireFailure, open_wire, tool

PROVIDER = {"type": "openai", "baseUrl": "http://127.0.0.1:9/v1", "apiKey": "k"}


async def test_what_clients_write_into_the_log_is_read_back(autojump_clock: MockClock) -> None:
    async with open_wire(ScriptedModel(["hi"])) as wire:
        client = await wire.connect()
        await client.create()
        for level in ("info", "warning", "error"):
            await client.call("session.log", sessionId="s", message=f"an {level}", level=level)
        shown = await client.call("session.log", sessionId="s", message="of the moment", ephemeral=True)
        kept = (await client.call("session.getMessages", sessionId="s"))["events"]
        assert [(event["type"], event["data"]["message"]) for event in kept[1:]] == [
            ("session.info", "an info"),
            ("session.warning", "an warning"),
            ("session.error", "an error"),
        ]
        assert client.events("session.info")[-1]["id"] == shown["eventId"]
        assert client.events("session.info")[-1]["ephemeral"] is True


async def test_the_log_is_read_in_parts_from_a_cursor_on(autojump_clock: MockClock) -> None:
    async with open_wire(ScriptedModel(["hi", "again"])) as wire:
        client = await wire.connect()
        await client.create()
        await client.say()
        await client.event("session.idle")
        whole = (await client.call("session.getMessages", sessionId="s"))["events"]
        seen, cursor, more = list[Any](), "", True
        while more:
            part = await client.call("session.eventLog.read", sessionId="s", cursor=cursor, max=2)
            seen, cursor, more = seen + part["events"], part["cursor"], part["hasMore"]
        assert seen == whole
        end = await client.call("session.eventLog.tail", sessionId="s")
        assert end["cursor"] == whole[-1]["id"]
        users = await client.call("session.eventLog.read", sessionId="s", types=["user.message"])
        assert [event["type"] for event in users["events"]] == ["user.message"]
        with pytest.raises(WireFailure, match="types are texts"):
            await client.call("session.eventLog.read", sessionId="s", types=[{}])
        back = await client.call("session.eventLog.read", sessionId="s", direction="backward", max=2)
        assert back["events"] == whole[-2:]
        lost = await client.call("session.eventLog.read", sessionId="s", cursor="no-such-event")
        assert (lost["cursorStatus"], lost["events"]) == ("expired", whole)
        waiting = await client.start(
            "session.eventLog.read", sessionId="s", cursor=end["cursor"], waitMs=30_000
        )
        await wait_all_tasks_blocked()
        await client.say("more")
        news = (await client.answer(waiting))["result"]["events"]
        assert news[0]["type"] == "user.message"
        began = trio.current_time()
        await client.event("session.idle", 2)
        tail = (await client.call("session.eventLog.tail", sessionId="s"))["cursor"]
        empty = await client.call("session.eventLog.read", sessionId="s", cursor=tail, waitMs=30_000)
        assert empty["events"] == []
        assert trio.current_time() - began == pytest.approx(30)


async def test_the_events_form_an_unbroken_chain(autojump_clock: MockClock) -> None:
    model = ScriptedModel([call("t"), "hi"])
    async with open_wire(model) as wire:
        client = await wire.connect()
        await client.create(tools=[tool("t")])
        await client.say()
        await client.give(await client.requested(), result="ok")
        await client.event("session.idle")
        kept = (await client.call("session.getMessages", sessionId="s"))["events"]
    assert kept[0]["parentId"] is None
    assert [event["parentId"] for event in kept[1:]] == [event["id"] for event in kept[:-1]]
    shown = [event for event in client.events() if not event.get("ephemeral")]
    assert shown == kept
    everything = client.events()
    assert len({event["id"] for event in everything}) == len(everything)


async def test_events_of_the_host_itself_come_to_who_asks_for_them(autojump_clock: MockClock) -> None:
    async with open_wire(ScriptedModel(["one", "two", "three"])) as wire:
        client, other = await wire.connect(), await wire.connect()
        await client.create()
        await other.call("session.resume", sessionId="s")
        await client.say()
        await client.event("session.idle")
        assert client.events("turn.end") == []
        handle = await client.call("session.eventLog.registerInterest", sessionId="s", eventType="turn.end")
        await client.say()
        await client.event("session.idle", 2)
        assert [event["data"]["reason"] for event in client.events("turn.end")] == ["completed"]
        assert other.events("turn.end") == []
        released = await client.call(
            "session.eventLog.releaseInterest", sessionId="s", handle=handle["handle"]
        )
        assert released == {"success": True}
        await client.say()
        await client.event("session.idle", 3)
        assert len(client.events("turn.end")) == 1


async def test_messages_that_wait_are_listed_and_taken_back(autojump_clock: MockClock) -> None:
    model = ScriptedModel([after(10, "first"), "the rest"])
    async with open_wire(model) as wire:
        client = await wire.connect()
        await client.create()
        await client.say("now")
        second, third = await client.say("second"), await client.say("third")
        await client.say("aside", mode="immediate")
        listed = await client.call("session.queue.pendingItems", sessionId="s")
        assert [item["displayText"] for item in listed["items"]] == ["second", "third"]
        assert listed["steeringMessages"] == ["aside"]
        assert await client.call("session.queue.hasPending", sessionId="s") == {"hasPending": True}
        assert await client.call("session.queue.removeAt", sessionId="s", id=second) == {"removed": True}
        assert await client.call("session.queue.removeAt", sessionId="s", id=second) == {"removed": False}
        last = await client.call("session.queue.removeMostRecent", sessionId="s")
        assert last == {"removed": True}
        listed = await client.call("session.queue.pendingItems", sessionId="s")
        assert [item["id"] for item in listed["items"]] == [third]
        await client.call("session.queue.clear", sessionId="s")
        assert await client.call("session.queue.hasPending", sessionId="s") == {"hasPending": False}
        await client.event("session.idle")
    assert len(model.requests) == 1


async def test_an_abort_ends_the_turn_and_drops_what_waits(autojump_clock: MockClock) -> None:
    model = ScriptedModel([call("t"), "next"])
    async with open_wire(model) as wire:
        client = await wire.connect()
        await client.create(tools=[tool("t")])
        assert await client.call("session.abort", sessionId="s") == {"success": True}
        assert client.events("abort", "session.idle") == []
        waiting = await client.start("session.sendAndWait", sessionId="s", prompt="go")
        request = await client.requested()
        await client.say("dropped")
        assert await client.call("session.abort", sessionId="s") == {"success": True}
        assert (await client.answer(waiting))["result"]["aborted"] is True
        assert client.events("abort")[0]["data"] == {"reason": "user_initiated"}
        interrupted = client.events("agent.interrupted")[0]["data"]
        assert (interrupted["activity"], interrupted["toolNames"]) == ("tool_call", ["t"])
        assert (await client.event("session.idle"))["data"] == {"aborted": True, "mode": "interactive"}
        # The client's handler is told to stop.
        assert client.events("external_tool.completed")[0]["data"] == {"requestId": request}
        assert not await client.give(request, result="late")
        await client.say("next")
        await client.event("session.idle", 2)
    assert model.requests[-1].results == {
        "call_1": "The execution of this tool, or a previous tool was interrupted."
    }


async def test_a_request_that_waits_can_be_given_up(autojump_clock: MockClock) -> None:
    async with open_wire(ScriptedModel([after(60, "late")])) as wire:
        client = await wire.connect()
        await client.create()
        waiting = await client.start("session.sendAndWait", sessionId="s", prompt="go")
        await wait_all_tasks_blocked()
        await client.send({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": waiting}})
        assert (await client.answer(waiting))["error"]["code"] == -32800
        # The turn goes on.
        await client.event("assistant.message")


async def test_a_streamed_answer_comes_in_pieces_and_as_a_whole(autojump_clock: MockClock) -> None:
    async with open_wire(ScriptedModel([say("one two three", chunks=3)])) as wire:
        client = await wire.connect()
        await client.create(streaming=True)
        await client.say()
        await client.event("session.idle")
    pieces = [event["data"] for event in client.events("assistant.message_delta")]
    (whole,) = client.events("assistant.message")
    assert "".join(piece["deltaContent"] for piece in pieces) == whole["data"]["content"] == "one two three"
    assert {piece["messageId"] for piece in pieces} == {whole["data"]["messageId"]}
    started = [event["data"]["messageId"] for event in client.events("assistant.message_start")]
    assert started == [whole["data"]["messageId"]]
    sizes = [event["data"]["totalResponseSizeBytes"] for event in client.events("assistant.streaming_delta")]
    assert sizes == sorted(sizes)
    assert sizes[-1] == len("one two three")


async def test_what_is_attached_to_a_message_is_named_in_its_text(autojump_clock: MockClock) -> None:
    model = ScriptedModel(["hi"])
    async with open_wire(model) as wire:
        client = await wire.connect()
        await client.create()
        await client.say(
            "look",
            attachments=[
                {"type": "file", "path": "/a/b.txt"},
                {
                    "type": "selection",
                    "filePath": "/c.py",
                    "text": "x = 1",
                    "selection": {"start": {"line": 1}, "end": {"line": 2}},
                },
                {
                    "type": "selection",
                    "displayName": "d.py",
                    "text": "y",
                    "selection": {"start": {"line": 4}},
                },
                {
                    "type": "github_reference",
                    "number": 7,
                    "title": "Broken",
                    "referenceType": "issue",
                    "state": "open",
                    "url": "https://example.com/7",
                },
            ],
        )
        await client.event("session.idle")
    assert model.requests[0].messages[-1].content == (
        "<ide_selection>\n"
        "The user has the following text selected in their IDE. This may or may not be related to their request.\n"
        "File: /c.py (lines 2-3)\n```\nx = 1\n```\n"
        "File: d.py (line 5)\n```\ny\n```\n</ide_selection>\n\n\n\n"
        "look\n\n\n\n<tagged_files>\n* /a/b.txt\n</tagged_files>\n\n\n\n"
        "<github_references>\n#7 - Broken [issue] [open] (https://example.com/7)\n</github_references>"
    )
    shown = client.events("user.message")[0]["data"]
    assert shown["content"] == "look"
    assert shown["attachments"][0]["type"] == "file"


async def test_a_model_that_fails_ends_the_turn_with_its_error(autojump_clock: MockClock) -> None:
    from exeunt import ModelErrorKind
    from exeunt.testing import fail

    model = ScriptedModel([fail(ModelErrorKind.BAD_REQUEST, "no such parameter")] * 2)
    async with open_wire(model) as wire:
        client = await wire.connect()
        await client.create()
        with pytest.raises(WireFailure, match="no such parameter"):
            await client.call("session.sendAndWait", sessionId="s", prompt="go")
        await client.event("session.idle")
        kinds = [kind for kind in client.kinds() if not kind.startswith("pending")]
        assert kinds[-4:] == ["assistant.turn_end", "session.error", "assistant.idle", "session.idle"]
        assert client.events("session.error")[0]["data"]["errorType"] == "bad_request"


async def test_a_reader_that_waits_is_not_woken_by_what_the_log_does_not_keep(
    autojump_clock: MockClock,
) -> None:
    async with open_wire(ScriptedModel([])) as wire:
        client, reader = await wire.connect(), await wire.connect()
        await client.create()
        tail = (await reader.call("session.eventLog.tail", sessionId="s"))["cursor"]
        began = trio.current_time()
        waiting = await reader.start("session.eventLog.read", sessionId="s", cursor=tail, waitMs=30_000)
        await wait_all_tasks_blocked()
        with pytest.raises(WireFailure, match="no tool call is in flight"):
            await client.call("session.history.clearContext", sessionId="s", prompt="seed")
        assert (await reader.answer(waiting))["result"]["events"] == []
        assert trio.current_time() - began == pytest.approx(30)
