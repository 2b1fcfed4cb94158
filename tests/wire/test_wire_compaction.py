"""Contexts that a session's own model sums up."""

from typing import Any

import pytest
from trio.testing import MockClock, wait_all_tasks_blocked

from exeunt.testing import ScriptedModel, after, call, fail, say
from exeunt.wire.options import WireOptions
from exeunt.wire.serving.compacting import OPENING
from tests.wire.wire_client import WireClient, WireFailure, open_wire, tool

SMALL = WireOptions(context_tokens=100)
ON = {"enabled": True, "backgroundCompactionThreshold": 0.5}


class TwoModels(ScriptedModel):
    """Sums up with one script, and answers with another."""

    def __init__(self, answers: list[Any], summaries: list[Any]) -> None:
        super().__init__(answers)
        self.summaries = ScriptedModel(summaries)

    async def complete(self, request: Any, /) -> Any:
        if request.turn_id == "compaction":
            return await self.summaries.complete(request)
        return await super().complete(request)


async def say_all(client: WireClient, *prompts: str) -> None:
    idle = len(client.events("session.idle"))
    for number, prompt in enumerate(prompts, idle + 1):
        await client.say(prompt)
        await client.event("session.idle", number)


async def test_a_client_has_the_conversation_summed_up(autojump_clock: MockClock) -> None:
    model = ScriptedModel([call("t", n=1), "one", "two", "SUMMARY", "three"])
    async with open_wire(model) as wire:
        client = await wire.connect()
        await client.create(systemMessage={"mode": "replace", "content": "SYS"}, tools=[tool("t")])
        await client.say("first")
        await client.give(await client.requested(), result="ok")
        await client.event("session.idle")
        await say_all(client, "second")
        done = await client.call("session.history.compact", sessionId="s", customInstructions="names")
        await say_all(client, "third")
        logged = (await client.call("session.getMessages", sessionId="s"))["events"]
    assert (done["success"], done["messagesRemoved"], done["summaryContent"]) == (True, 6, "SUMMARY")
    assert done["contextWindow"]["messagesLength"] == 1
    asked = model.requests[3]
    assert asked.contents[-1].startswith(OPENING)
    assert asked.contents[-1].endswith("names")
    assert asked.contents[:-1] == (*model.requests[2].contents, "two")
    assert model.requests[4].contents == (
        "SYS",
        (
            "Some of the conversation history has been summarized to free up context.\n\n"
            "You were originally given instructions from a user over one or more turns. Here were the user messages:\n"
            "<user_message>\nfirst\n</user_message>\n<user_message>\nsecond\n</user_message>\n\n"
            "Here is a summary of the prior context:\n<summary>\nSUMMARY\n</summary>"
        ),
        "third",
    )
    started = client.events("session.compaction_start")[0]["data"]
    assert (started["trigger"], started["tokenLimit"]) == ("manual", 128_000)
    (told,) = client.events("session.compaction_complete")
    assert told["data"]["success"] is True
    assert told["data"]["customInstructions"] == "names"
    assert told["data"]["compactionTokensUsed"]["inputTokens"] > 0
    assert told["id"] in [event["id"] for event in logged]
    model.verify()


async def test_a_model_that_fails_changes_nothing(autojump_clock: MockClock) -> None:
    model = ScriptedModel(["one", fail("bad_request", status=413), "  ", "two"])
    async with open_wire(model) as wire:
        client = await wire.connect()
        await client.create()
        assert (await client.call("session.history.compact", sessionId="s"))["success"] is False
        await say_all(client, "first")
        for _ in range(2):
            done = await client.call("session.history.compact", sessionId="s")
            assert done == {"success": False, "messagesRemoved": 0, "tokensRemoved": 0}
        await say_all(client, "second")
    failures = [event["data"] for event in client.events("session.compaction_complete")]
    assert [data["success"] for data in failures] == [False, False]
    assert failures[0]["statusCode"] == 413
    assert model.requests[-1].contents == ("first", "one", "second")
    model.verify()


@pytest.mark.parametrize("by_itself", [True, False])
async def test_a_compaction_can_be_given_up(by_itself: bool, autojump_clock: MockClock) -> None:
    model = TwoModels(["x" * 400, "two"], [after(500, say("SUMMARY"))])
    async with open_wire(model, options=SMALL) as wire:
        client = await wire.connect()
        await client.create(infiniteSessions=ON if by_itself else None)
        await client.say("first")
        await client.event("session.idle")
        await client.say("second")
        await client.event("session.idle", 2)
        asked = None
        if not by_itself:
            asked = await client.start("session.history.compact", sessionId="s")
            await wait_all_tasks_blocked()
        cancelled = await client.call("session.history.cancelBackgroundCompaction", sessionId="s")
        aborted = await client.call("session.history.abortManualCompaction", sessionId="s")
        assert (cancelled, aborted) == ({"cancelled": by_itself}, {"aborted": not by_itself})
        if asked is not None:
            assert (await client.answer(asked))["result"]["success"] is False
        told = (await client.event("session.compaction_complete"))["data"]
        assert (told["success"], told["error"]) == (False, "the compaction was given up")


async def test_a_context_that_fills_its_room_is_compacted_while_the_session_goes_on(
    autojump_clock: MockClock,
) -> None:
    model = TwoModels(["x" * 400, after(5, say("two")), "three", "four"], [after(20, say("SUMMARY"))])
    async with open_wire(model, options=SMALL) as wire:
        client = await wire.connect()
        await client.create(infiniteSessions=ON)
        await say_all(client, "first", "second")
        assert client.events("session.compaction_start")[0]["data"]["trigger"] == "threshold"
        await client.event("session.compaction_complete")
        await say_all(client, "third", "fourth")
    assert model.summaries.requests[0].contents[:-1] == ("first", "x" * 400, "second")
    assert model.requests[2].contents[1:] == ("two", "third")
    assert "SUMMARY" in model.requests[2].contents[0]
    assert len(client.events("session.compaction_start")) == 1
    model.verify()
    model.summaries.verify()


async def test_without_being_asked_for_no_context_is_compacted(autojump_clock: MockClock) -> None:
    for settings in (None, {"enabled": False}, {"backgroundCompactionThreshold": 0.1}):
        model = ScriptedModel(["x" * 4000, "two", "three"])
        async with open_wire(model, options=SMALL) as wire:
            client = await wire.connect()
            await client.create(infiniteSessions=settings)
            await say_all(client, "first", "second", "third")
            assert client.events("session.compaction_start") == []


async def test_a_summary_for_a_handoff_changes_nothing(autojump_clock: MockClock) -> None:
    model = ScriptedModel(["one", "SUMMARY", "two"])
    async with open_wire(model) as wire:
        client = await wire.connect()
        await client.create()
        assert await client.call("session.history.summarizeForHandoff", sessionId="s") == {"summary": ""}
        await say_all(client, "first")
        assert await client.call("session.history.summarizeForHandoff", sessionId="s") == {
            "summary": "SUMMARY"
        }
        await say_all(client, "second")
    assert model.requests[-1].contents == ("first", "one", "second")
    model.verify()


async def test_a_session_at_work_is_not_summed_up(autojump_clock: MockClock) -> None:
    model = ScriptedModel([call("t"), "done"])
    async with open_wire(model) as wire:
        client = await wire.connect()
        await client.create(tools=[tool("t")])
        await client.say()
        request = await client.requested()
        for method in ("compact", "summarizeForHandoff"):
            with pytest.raises(WireFailure, match="at work"):
                await client.call(f"session.history.{method}", sessionId="s")
        await client.give(request, result="ok")
        await client.event("session.idle")


async def test_the_server_has_commands_of_its_own_which_a_client_may_replace(
    autojump_clock: MockClock,
) -> None:
    model = ScriptedModel(["one", "SUMMARY"])
    async with open_wire(model) as wire:
        client = await wire.connect()
        await client.create(commands=[{"name": "deploy"}])
        listed = (await client.call("session.commands.list", sessionId="s"))["commands"]
        kinds = {command["name"]: command["kind"] for command in listed}
        assert kinds == {"deploy": "client", "model": "builtin", "compact": "builtin"}
        told = await client.call("session.commands.invoke", sessionId="s", name="/model")
        assert (told["kind"], "scripted" in told["text"]) == ("text", True)
        switched = await client.call("session.commands.invoke", sessionId="s", name="model", input=" other ")
        assert switched == {"kind": "completed", "message": "The model is other now."}
        nothing = await client.call("session.commands.invoke", sessionId="s", name="compact")
        assert nothing["text"] == "The conversation was not compacted."
        await say_all(client, "first")
        done = await client.call("session.commands.invoke", sessionId="s", name="compact")
        assert done["message"] == "2 messages became a summary."
        await client.create("t", commands=[{"name": "model"}])
        own = (await client.call("session.commands.list", sessionId="t"))["commands"]
        assert [command["kind"] for command in own if command["name"] == "model"] == ["client"]
