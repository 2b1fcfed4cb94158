"""What may come with a message: its place in the queue, what is shown of it, headers, a wait for its end."""

import json
import re
from typing import Any

import pytest
from trio.testing import MockClock, wait_all_tasks_blocked

from exeunt.testing import ScriptedModel, after, call, say
from exeunt.testing.http_double import HttpReply, open_http_double
from exeunt.wire.options import WireOptions
from exeunt.wire.serving.models import DefaultProvider
from tests.wire.wire_client import CLEAR, WireFailure, open_wire, tool

ANSWER = {"choices": [{"index": 0, "message": {"content": "answered"}, "finish_reason": "stop"}]}


async def test_a_message_may_go_before_those_that_wait_and_be_shown_in_other_words(
    autojump_clock: MockClock,
) -> None:
    model = ScriptedModel([call("t"), "one done", "two done", "three done"])
    async with open_wire(model) as wire:
        client = await wire.connect()
        await client.create(tools=[tool("t")])
        await client.say("one")
        request = await client.requested()
        await client.say("three", source="agent-x", agentMode="plan")
        await client.say("two", prepend=True, displayPrompt="shown")
        await client.give(request, result="ok")
        await client.event("session.idle")
        live = [event["data"] for event in client.events("user.message")]
        logged = await client.call("session.getMessages", sessionId="s")
    stored = [event["data"] for event in logged["events"] if event["type"] == "user.message"]
    for shown in (live, stored):
        assert [data["content"] for data in shown] == ["one", "shown", "three"]
        assert [data["transformedContent"] for data in shown] == ["one", "two", "three"]
        assert [data.get("source") for data in shown] == [None, None, "agent-x"]
        assert [data.get("agentMode") for data in shown] == [None, None, "plan"]
    model.verify()


async def test_a_sender_that_waits_is_answered_when_the_turn_has_ended_through_a_clear(
    autojump_clock: MockClock,
) -> None:
    model = ScriptedModel([call("clear_context", prompt="seed"), after(5, say("seeded")), "next"])
    async with open_wire(model) as wire:
        client = await wire.connect()
        await client.create(tools=[CLEAR])
        sent = await client.start("session.send", sessionId="s", prompt="go", wait=True)
        request = await client.requested()
        await client.call("session.history.clearContext", sessionId="s", prompt="seed")
        await client.give(request, result="cleared")
        answer = await client.answer(sent)
        assert answer["result"]["messageId"]
        assert client.events("assistant.message")[-1]["data"]["content"] == "seeded"
        assert client.events("session.context_cleared")


@pytest.mark.parametrize("end", ["session.abort", "session.destroy", "session.queue.clear"])
async def test_a_sender_that_waits_is_answered_when_its_message_is_dropped(
    end: str, autojump_clock: MockClock
) -> None:
    model = ScriptedModel([call("t"), "done"])
    # A session that is left keeps what waits.
    async with open_wire(model, settled=end != "session.destroy") as wire:
        client = await wire.connect()
        await client.create(tools=[tool("t")])
        await client.say("one")
        request = await client.requested()
        sent = await client.start("session.send", sessionId="s", prompt="two", wait=True)
        await wait_all_tasks_blocked()
        await client.call(end, sessionId="s")
        assert (await client.answer(sent))["result"]["messageId"]
        if end == "session.queue.clear":
            await client.give(request, result="ok")
            await client.event("session.idle")


async def test_headers_of_a_message_go_with_the_requests_of_its_turn_only() -> None:
    async with open_http_double() as double:
        double.otherwise = HttpReply(body=json.dumps(ANSWER).encode())
        provider = {"type": "openai", "base_url": f"http://127.0.0.1:{double.port}/v1", "api_key": "key"}
        async with open_wire(default=DefaultProvider(provider=provider, model="m")) as wire:
            client = await wire.connect()
            await client.create()
            every: list[dict[str, Any]] = [
                {},
                {"requestHeaders": {"X-Trace": "secret-1", "authorization": "mine"}},
                {},
            ]
            for number, more in enumerate(every, 1):
                await client.say(f"message {number}", **more)
                await client.event("session.idle", number)
            logged = json.dumps(await client.call("session.getMessages", sessionId="s"))
            with pytest.raises(WireFailure, match="header"):
                await client.say("x", requestHeaders={"content-length": "3"})
        sent = [request.headers for request in double.requests]
    assert [headers.get("x-trace") for headers in sent] == [None, "secret-1", None]
    assert {headers["authorization"] for headers in sent} == {"Bearer key"}
    assert "secret-1" not in logged


async def test_clients_are_told_how_much_of_its_room_the_context_takes(autojump_clock: MockClock) -> None:
    model = ScriptedModel(["x" * 400])
    async with open_wire(model) as wire:
        client = await wire.connect()
        await client.create(
            systemMessage={"mode": "replace", "content": "s" * 40}, tools=[tool("t")], models=None
        )
        await client.say("p" * 80)
        told = (await client.event("session.usage_info"))["data"]
        assert (told["tokenLimit"], told["messagesLength"]) == (128_000, 2)
        assert told["currentTokens"] >= 30
        about = (await client.call("session.metadata.getContextAttribution", sessionId="s"))[
            "contextAttribution"
        ]
        sizes = {entry["id"]: entry["tokens"] for entry in about["entries"]}
        assert (sizes["system:system"], sizes["message:user"], sizes["message:assistant"]) == (10, 20, 100)
        assert about["totalTokens"] == sum(sizes.values())
        assert set(sizes) == {"system:system", "message:user", "message:assistant", "toolDefinition:t"}


async def test_of_two_who_wait_each_is_answered_with_the_answer_to_its_own_message(
    autojump_clock: MockClock,
) -> None:
    async with open_wire(ScriptedModel(["first", "second"])) as wire:
        one, two = await wire.connect(), await wire.connect()
        # Its hooks are never answered: between the answer and the end of the turn time passes.
        await one.create(hooks=True)
        await two.call("session.resume", sessionId="s")
        first = await one.start("session.sendAndWait", sessionId="s", prompt="1")
        await one.event("assistant.message")
        second = await two.start("session.sendAndWait", sessionId="s", prompt="2")
        contents = [
            (await client.answer(key))["result"]["response"]["data"]["content"]
            for client, key in ((one, first), (two, second))
        ]
    assert contents == ["first", "second"]


async def test_with_date_and_time_clients_see_what_was_sent_and_what_the_model_saw(
    autojump_clock: MockClock,
) -> None:
    model = ScriptedModel(["one", "two"])
    async with open_wire(model, options=WireOptions(current_datetime=True)) as wire:
        client = await wire.connect()
        await client.create()
        await client.say("as typed")
        await client.event("session.idle")
        await client.say("as sent", displayPrompt="as shown")
        await client.event("session.idle", 2)
    seen = [event["data"] for event in client.events("user.message")]
    assert [data["content"] for data in seen] == ["as typed", "as shown"]
    assert [request.messages[-1].content for request in model.requests] == [
        data["transformedContent"] for data in seen
    ]
    for data, sent in zip(seen, ("as typed", "as sent"), strict=True):
        assert re.fullmatch(
            rf"<current_datetime>20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00</current_datetime>\n\n{sent}",
            data["transformedContent"],
        )


async def test_headers_are_forgotten_with_their_message_however_that_ends(autojump_clock: MockClock) -> None:
    """They may be secrets."""
    model = ScriptedModel([after(10, "one")])
    async with open_wire(model) as wire:
        client = await wire.connect()
        await client.create()
        secret: dict[str, Any] = {"requestHeaders": {"x-trace": "secret"}}
        await client.say("first", **secret)
        waits = await client.say("second", **secret)
        assert await client.call("session.queue.removeAt", sessionId="s", id=waits) == {"removed": True}
        for _ in range(256):
            await client.say("one of many", **secret)
        with pytest.raises(WireFailure, match="256 messages that wait") as refused:
            await client.say("one too many", **secret)
        assert refused.value.data == {"type": "MailboxFull"}
        await client.call("session.abort", sessionId="s")
        headers = wire.server.hub.served("s").headers
        assert headers is not None
        assert not any(vars(headers).values())


async def test_answers_are_kept_for_those_only_who_wait_for_one(autojump_clock: MockClock) -> None:
    async with open_wire(ScriptedModel(["one", "two"])) as wire:
        client = await wire.connect()
        await client.create()
        for expected in ("one", "two"):
            reply = await client.call("session.sendAndWait", sessionId="s", prompt="go")
            assert reply["response"]["data"]["content"] == expected
            assert wire.server.hub.served("s").answers is None


async def test_messages_that_are_sent_together_join_the_turn_that_runs_if_they_are_to(
    autojump_clock: MockClock,
) -> None:
    model = ScriptedModel([call("t"), "done"])
    async with open_wire(model) as wire:
        client = await wire.connect()
        request = await client.calling(tool("t"))
        messages = [{"prompt": "also"}, {"prompt": "and"}]
        await client.call("session.sendMessages", sessionId="s", messages=messages, mode="immediate")
        await client.give(request, result="ok")
        await client.event("session.idle")
    assert [one.content for one in model.requests[1].messages if one.role == "user"] == ["go", "also", "and"]
    assert len(model.requests) == 2


async def test_who_waited_for_the_end_of_a_message_watches_no_longer(autojump_clock: MockClock) -> None:
    async with open_wire(ScriptedModel(["one"])) as wire:
        client = await wire.connect()
        await client.create()
        session = wire.server.hub.served("s").handle
        before = session.statistics().subscribers
        await client.say(wait=True)
        assert session.statistics().subscribers == before
