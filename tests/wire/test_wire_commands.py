"""Slash commands that are queued: their place among the messages, who runs them, and what ends them."""

from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from exeunt.testing import ScriptedModel, after
from exeunt.wire.methods import ui
from exeunt.wire.options import WireOptions
from exeunt.wire.serving.asking import ANSWER_WAIT
from tests.wire.wire_client import WireClient, WireFailure, open_wire


async def watching(client: WireClient) -> None:
    """Let a client run the queued commands of the session."""
    await client.call("session.eventLog.registerInterest", sessionId="s", eventType="command.queued")


async def enqueue(client: WireClient, *queued: str) -> None:
    """Queue commands."""
    for command in queued:
        done = await client.call("session.commands.enqueue", sessionId="s", command=command)
        assert done == {"queued": True}


async def handled(client: WireClient, number: int = 1, **result: Any) -> bool:
    """Say that the queued command with this number was handled; return whether that counted."""
    asked = (await client.event("command.queued", number))["data"]
    done = await client.call(
        "session.commands.respondToQueuedCommand",
        sessionId="s",
        requestId=asked["requestId"],
        result={"handled": True, **result},
    )
    return bool(done["success"])


async def listed(client: WireClient) -> list[tuple[str, str]]:
    """What waits, in order."""
    found = await client.call("session.queue.pendingItems", sessionId="s")
    assert all(item["agentMode"] == "interactive" and item["id"] for item in found["items"])
    return [(item["kind"], item["displayText"]) for item in found["items"]]


def said(client: WireClient) -> list[str]:
    """What has happened, in order, as far as it matters here."""
    names = {"user.message": "content", "command.queued": "command", "assistant.message": "content"}
    return [event["data"][names[event["type"]]] for event in client.events(*names)]


async def test_commands_and_messages_have_one_order(autojump_clock: MockClock) -> None:
    model = ScriptedModel([after(10, "1"), "2", "3", "4"])
    async with open_wire(model) as wire:
        client = await wire.connect()
        await client.create()
        await watching(client)
        await client.say("first")
        await client.say("second")
        await enqueue(client, "/one", " /two with words ")
        await client.say("third")
        await client.say("aside", mode="immediate")
        assert await listed(client) == [
            ("message", "second"),
            ("command", "/one"),
            ("command", "/two with words"),
            ("message", "third"),
        ]
        assert await client.call("session.queue.hasPending", sessionId="s") == {"hasPending": True}
        assert await handled(client, 1)
        assert await listed(client) == [("message", "third")]
        working = await client.call("session.metadata.isProcessing", sessionId="s")
        assert working == {"processing": True}
        assert await handled(client, 2)
        await client.event("session.idle")
        assert await client.call("session.queue.hasPending", sessionId="s") == {"hasPending": False}
        assert said(client) == [
            "first", "1", "aside", "2", "second", "3", "/one", "/two with words", "third", "4",
        ]  # fmt: skip
        assert len(client.events("session.idle")) == 1
        asked = [event["data"]["requestId"] for event in client.events("command.queued")]
        assert [event["data"]["requestId"] for event in client.events("command.completed")] == asked


async def test_what_was_queued_last_is_taken_back_first_whichever_it_is(autojump_clock: MockClock) -> None:
    async with open_wire(ScriptedModel([after(10, "done")])) as wire:
        client = await wire.connect()
        await client.create()
        await watching(client)
        await client.say("runs")
        await client.say("message one")
        await enqueue(client, "/one")
        await client.say("message two")
        await enqueue(client, "/two", "/three")
        shown = await client.call("session.queue.pendingItems", sessionId="s")
        three = shown["items"][-1]["id"]
        for removed in (True, False):
            assert await client.call("session.queue.removeAt", sessionId="s", id=three) == {
                "removed": removed
            }
        seen = [[text for _, text in await listed(client)]]
        for _ in range(4):
            last = await client.call("session.queue.removeMostRecent", sessionId="s")
            assert last == {"removed": True}
            seen.append([text for _, text in await listed(client)])
        assert seen == [
            ["message one", "/one", "message two", "/two"],
            ["message one", "/one", "message two"],
            ["message one", "/one"],
            ["message one"],
            [],
        ]
        last = await client.call("session.queue.removeMostRecent", sessionId="s")
        assert last == {"removed": False}
        await enqueue(client, "/four")
        await client.say("message three")
        await client.call("session.queue.clear", sessionId="s")
        assert await listed(client) == []
        await client.event("session.idle")
        assert client.events("command.queued") == []


async def test_a_command_may_keep_what_waits_behind_it_until_something_comes_in(
    autojump_clock: MockClock,
) -> None:
    async with open_wire(ScriptedModel(["1", "2"])) as wire:
        client = await wire.connect()
        await client.create()
        await watching(client)
        await enqueue(client, "/stop", "/behind")
        await client.say("waits")
        assert await handled(client, 1, stopProcessingQueue=True)
        await trio.sleep(3600)
        assert said(client) == ["/stop"]
        assert await listed(client) == [("command", "/behind"), ("message", "waits")]
        await client.say("comes in")
        assert await handled(client, 2)
        await client.event("session.idle")
        assert said(client) == ["/stop", "/behind", "waits", "1", "comes in", "2"]


async def test_who_is_told_of_a_queued_command_answers_once_and_nobody_else_does(
    autojump_clock: MockClock,
) -> None:
    async with open_wire(ScriptedModel([])) as wire:
        one, two, stranger = [await wire.connect() for _ in range(3)]
        await one.create()
        await two.call("session.resume", sessionId="s")
        await watching(two)
        await enqueue(one, "/deploy")
        request = (await two.event("command.queued"))["data"]["requestId"]
        # An answer to a question of another kind is none to this.
        other = await two.call(
            "session.ui.handlePendingElicitation",
            sessionId="s",
            requestId=request,
            result={"action": "cancel"},
        )
        assert other == {"success": False}
        other = await two.call("session.commands.handlePendingCommand", sessionId="s", requestId=request)
        assert other == {"success": False}
        answer: dict[str, Any] = {"sessionId": "s", "requestId": request, "result": {"handled": False}}
        wrong = {**answer, "result": {"handled": "yes"}}
        with pytest.raises(WireFailure, match="result"):
            await two.call("session.commands.respondToQueuedCommand", **wrong)
        refused = await stranger.call("session.commands.respondToQueuedCommand", **answer)
        assert refused == {"success": False}
        for success in (True, False):
            done = await one.call("session.commands.respondToQueuedCommand", **answer)
            assert done == {"success": success}


@pytest.mark.parametrize("ends", ["leaves", "is silent"])
async def test_a_command_that_nobody_answers_ends_and_the_queue_goes_on(
    ends: str, autojump_clock: MockClock
) -> None:
    async with open_wire(ScriptedModel(["1"])) as wire:
        client, runner = await wire.connect(), await wire.connect()
        await client.create()
        await runner.call("session.resume", sessionId="s")
        await watching(runner)
        await enqueue(client, "/deploy")
        await client.say("waits")
        await runner.event("command.queued")
        began = trio.current_time()
        if ends == "leaves":
            await runner.leave()
        await client.event("session.idle")
        assert trio.current_time() - began == pytest.approx(0 if ends == "leaves" else ANSWER_WAIT)
        assert said(client) == ["/deploy", "waits", "1"]


async def test_without_one_that_runs_them_commands_are_those_of_clients_and_of_the_server(
    autojump_clock: MockClock,
) -> None:
    async with open_wire(ScriptedModel(["1"])) as wire:
        client = await wire.connect()
        await client.create(commands=[{"name": "deploy"}])
        await enqueue(client, "/deploy to prod", "/fly", "/model", "/compact")
        await client.say("behind them")
        asked = (await client.event("command.execute"))["data"]
        assert (asked["commandName"], asked["args"]) == ("deploy", "to prod")
        assert said(client) == []
        await client.call(
            "session.commands.handlePendingCommand", sessionId="s", requestId=asked["requestId"], error="no"
        )
        await client.event("session.idle")
        assert [event["data"] for event in client.events("session.warning")] == [
            {"warningType": "command", "message": "/deploy to prod: no"},
            {"warningType": "command", "message": "/fly: Unknown command: fly"},
        ]
        told = [event["data"]["message"] for event in client.events("session.info")]
        assert told[0].startswith("The model is scripted")
        assert told[1:] == ["The conversation was not compacted."]


async def test_a_conversation_is_compacted_by_a_queued_command_before_what_waits_behind_it(
    autojump_clock: MockClock,
) -> None:
    model = ScriptedModel([after(5, "1"), "a summary", "2"])
    # The user's own words have no time in front of them.
    async with open_wire(model, options=WireOptions(current_datetime=True)) as wire:
        client = await wire.connect()
        await client.create()
        await client.say("first")
        await enqueue(client, "/compact")
        await client.say("second")
        await client.event("session.idle")
        assert client.events("session.compaction_complete")[0]["data"]["success"] is True
    before, last = (message.content for message in model.requests[-1].messages)
    assert "<user_message>\nfirst\n</user_message>" in before
    assert "<summary>\na summary\n</summary>" in before
    assert last.endswith("</current_datetime>\n\nsecond")


async def test_an_abort_ends_a_command_and_drops_those_that_wait(autojump_clock: MockClock) -> None:
    async with open_wire(ScriptedModel(["next"])) as wire:
        client = await wire.connect()
        await client.create()
        await watching(client)
        await enqueue(client, "/one", "/two")
        await client.event("command.queued")
        await client.call("session.abort", sessionId="s")
        await wait_all_tasks_blocked()
        assert await listed(client) == []
        assert len(client.events("command.completed")) == 1
        assert not await handled(client)
        await client.say("next")
        await client.event("session.idle")
        assert len(client.events("command.queued")) == 1


@pytest.mark.parametrize("way", ["session.detach", "session.delete", "connection"])
async def test_commands_go_with_their_session(way: str, autojump_clock: MockClock) -> None:
    async with open_wire(ScriptedModel([])) as wire:
        client = await wire.connect()
        await client.create()
        await watching(client)
        await enqueue(client, "/one", "/two")
        await client.event("command.queued")
        if way == "connection":
            await client.leave()
        else:
            await client.call(way, sessionId="s")
        await wait_all_tasks_blocked()
        assert wire.server.hub.sessions == {}
        assert wire.host.actors() == []


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("help", "behind a slash"),
        ("/", "behind a slash"),
        (" / ", "behind a slash"),
        ("/" + "x" * 10_001, "at most"),
    ],
)
async def test_what_is_no_command_is_refused(command: str, words: str, autojump_clock: MockClock) -> None:
    async with open_wire(ScriptedModel([])) as wire:
        client = await wire.connect()
        await client.create()
        with pytest.raises(WireFailure, match=words):
            await client.call("session.commands.enqueue", sessionId="s", command=command)
        assert await listed(client) == []


async def test_commands_that_wait_are_bounded_with_the_messages(autojump_clock: MockClock) -> None:
    async with open_wire(ScriptedModel([]), settled=False) as wire:
        client = await wire.connect()
        await client.create()
        await watching(client)
        await enqueue(client, *["/one"] * 256)
        for method, params in (
            ("session.commands.enqueue", {"command": "/more"}),
            ("session.send", {"prompt": "more"}),
        ):
            with pytest.raises(WireFailure, match="holds 256 messages that wait"):
                await client.call(method, sessionId="s", **params)
        assert len(await listed(client)) == 255


async def test_a_command_of_a_session_that_rests_brings_it_back(autojump_clock: MockClock) -> None:
    async with open_wire(ScriptedModel([]), options=None) as wire:
        client = await wire.connect()
        await client.create()
        await watching(client)
        actor = wire.host.find("s")
        assert actor is not None
        wire.host.passivate(actor)
        await enqueue(client, "/one")
        assert await handled(client)
        assert wire.host.find("s") is not None


async def test_a_command_that_fails_inside_holds_nobody_up(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, autojump_clock: MockClock
) -> None:
    async def broken(*_: Any) -> dict[str, Any]:
        await trio.lowlevel.checkpoint()
        raise RuntimeError("a mistake of ours")

    monkeypatch.setattr(ui, "run_command", broken)
    async with open_wire(ScriptedModel(["1"])) as wire:
        client = await wire.connect()
        await client.create()
        await enqueue(client, "/model")
        await client.say("behind")
        await client.event("session.idle")
        assert client.events("session.warning")[0]["data"]["message"] == "/model: internal error"
    assert "a mistake of ours" in caplog.text


async def test_who_has_not_handled_a_command_does_not_stop_the_queue(autojump_clock: MockClock) -> None:
    async with open_wire(ScriptedModel(["one"])) as wire:
        client = await wire.connect()
        await client.create()
        await watching(client)
        await enqueue(client, "/one")
        await client.event("command.queued")
        await client.say("behind it")
        assert await handled(client, handled=False, stopProcessingQueue=True)
        await client.event("session.idle")
    assert said(client) == ["/one", "behind it", "one"]
