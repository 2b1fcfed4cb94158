"""Sessions that a server does not know, made again of the transcript that their client keeps."""

import json
from typing import Any

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import MockClock

from exeunt.actors.errors import TranscriptUnusable
from exeunt.actors.events.codec import SliceDecoder, encode_slices
from exeunt.actors.models import ModelRequest
from exeunt.actors.state import SessionState
from exeunt.policies.summaries import Said
from exeunt.testing import ScriptedModel, call, check_request, fail
from exeunt.wire.events.conversation import SEED_SOURCE
from exeunt.wire.files.rebuilding.rebuild import read_transcript
from exeunt.wire.serving.models import DefaultProvider
from tests.wire.client_files import ClientFiles
from tests.wire.wire_client import CLEAR, WireClient, WireFailure, open_wire, tool


def shown(events: list[dict[str, Any]]) -> list[Any]:
    """What a conversation is to its clients: all but ids of events, times, and what takes a session up or ends it."""
    left_out = {
        "session.start",
        "session.resume",
        "session.shutdown",
        "permission.requested",
        "permission.completed",
    }
    # The message's id of a seed is that of its event.
    ids = {"interactionId", "requestId", "messageId", "originatingMessageId"}
    return [
        (event["type"], {name: value for name, value in event["data"].items() if name not in ids})
        for event in events
        if event["type"] not in left_out
    ]


async def log_of(client: WireClient) -> list[dict[str, Any]]:
    """The session's events so far."""
    events: list[dict[str, Any]] = (await client.call("session.getMessages", sessionId="s"))["events"]
    return events


async def two_servers(files: ClientFiles, first: Any, model: ScriptedModel, **config: Any) -> Any:
    """Let *first* use a session at one server, then take it up at another one that answers from *model*."""
    async with open_wire(first[0]) as wire:
        client = await wire.connect()
        await files.register(client)
        await client.create(**config)
        before = await first[1](client)
        await client.call("session.destroy", sessionId="s")
    async with open_wire(model) as wire:
        client = await wire.connect()
        await files.register(client)
        await client.call("session.resume", sessionId="s", requestPermission=True, **config)
        history = await log_of(client)
        await client.say("and now?")
        await client.event("session.idle")
        await client.call("session.destroy", sessionId="s")
    return before, history


async def test_another_server_goes_on_with_the_same_conversation(autojump_clock: MockClock) -> None:
    files = ClientFiles()

    async def use(client: WireClient) -> list[dict[str, Any]]:
        await client.say("first", attachments=[{"type": "file", "path": "/x", "displayName": "x"}])
        await client.give(await client.requested(1), result="found")
        await client.give(await client.requested(2), error="broken")
        await client.event("session.idle")
        return await log_of(client)

    first = ScriptedModel([[call("t", n=1), call("t", n=2)], "answer"])
    second = ScriptedModel(["more"])
    config = {"systemMessage": {"mode": "replace", "content": "SYS"}, "tools": [tool("t")]}
    before, history = await two_servers(files, (first, use), second, **config)
    assert shown(history) == shown(before)
    asked = second.requests[0]
    results = [event["data"] for event in before if event["type"] == "tool.execution_complete"]
    (failed,) = [data["error"]["message"] for data in results if not data["success"]]
    assert asked.contents == (*first.requests[-1].contents[:4], failed, "answer", "and now?")
    # The transcript is the new log's, and what the first server wrote stays beside it.
    assert [event["type"] for event in files.lines()][-1] == "session.shutdown"
    assert "and now?" in files.text("events.jsonl")
    (kept,) = [
        path for _, path in files.files if path.startswith("/state/events.") and path != "/state/events.jsonl"
    ]
    assert json.loads(files.files["s", kept].splitlines()[-1])["type"] == "session.shutdown"


async def test_a_clear_and_a_compaction_are_made_again(autojump_clock: MockClock) -> None:
    files = ClientFiles()

    async def use(client: WireClient) -> list[dict[str, Any]]:
        await client.say("old")
        request = await client.requested()
        await client.call("session.history.clearContext", sessionId="s", prompt="the seed")
        await client.give(request, result="cleared")
        await client.event("session.idle")
        await client.call("session.history.compact", sessionId="s")
        await client.say("last")
        await client.event("session.idle", 2)
        return await log_of(client)

    first = ScriptedModel([call("clear_context", prompt="the seed"), "fresh", "SUMMARY", "ok"])
    second = ScriptedModel(["more"])
    before, history = await two_servers(files, (first, use), second, tools=[CLEAR])
    assert shown(history) == shown(before)
    *kept, now = second.requests[0].contents
    assert now == "and now?"
    assert tuple(kept[:-2]) == (first.requests[-1].contents[0],)
    assert kept[-2:] == ["last", "ok"]


async def test_what_went_wrong_and_what_was_spent_is_known_at_the_other_server(
    autojump_clock: MockClock,
) -> None:
    files = ClientFiles()

    async def use(client: WireClient) -> list[dict[str, Any]]:
        await client.say("first")
        await client.event("session.idle", 1)
        await client.say("second")
        await client.event("session.error")
        await client.event("session.idle", 2)
        return await log_of(client)

    weekly = fail("rate_limited", "the week is over", status=429, code="user_weekly_rate_limited")
    priced = {"ScriptedModel": {"request": 10}}
    first = DefaultProvider(client=ScriptedModel(["one", weekly]), model="scripted", prices=priced)
    second = DefaultProvider(client=ScriptedModel([]), model="scripted", prices=priced)
    async with open_wire(default=first) as wire:
        client = await wire.connect()
        await files.register(client)
        await client.create(sessionLimits={"maxAiCredits": 15})
        before = await use(client)
        await client.call("session.destroy", sessionId="s")
    async with open_wire(default=second) as wire:
        client = await wire.connect()
        await files.register(client)
        await client.call("session.resume", sessionId="s")
        assert shown(await log_of(client)) == shown(before)
        metrics = await client.call("session.usage.getMetrics", sessionId="s")
        assert metrics["totalNanoAiu"] == 10 * 10**9
        snapshot = await client.call("session.metadata.snapshot", sessionId="s")
        assert snapshot["sessionLimits"] == {"maxAiCredits": 15}
    (error,) = [event["data"] for event in before if event["type"] == "session.error"]
    assert (error["errorType"], error["errorCode"]) == ("rate_limit", "user_weekly_rate_limited")


async def test_a_call_that_was_open_waits_on_at_the_other_server(autojump_clock: MockClock) -> None:
    files = ClientFiles()
    async with open_wire(ScriptedModel([call("t", n=1)]), settled=False) as wire:
        client = await wire.connect()
        await files.register(client)
        await client.create(tools=[tool("t")])
        await client.say("go")
        request = await client.requested()
        await trio.sleep(1)
        kept = dict(files.files)
    files.files = kept
    model = ScriptedModel(["done"])
    async with open_wire(model) as wire:
        client = await wire.connect()
        await files.register(client)
        await client.call("session.resume", sessionId="s", tools=[tool("t")], continuePendingWork=True)
        assert await client.give(request, result="late")
        await client.event("session.idle")
    assert model.requests[0].contents == ("go", "", "late")


def line(kind: str, /, **data: Any) -> str:
    """One line of a transcript."""
    return json.dumps({"type": kind, "data": data, "id": "x", "timestamp": "2026-01-01T00:00:00.000Z"}) + "\n"


START = line("session.start", sessionId="s", version=1, selectedModel="m")
ASK = line("user.message", content="hi", delivery="idle", messageId="1")
CALL = line("assistant.message", content="", toolRequests=[{"toolCallId": "c", "name": "t", "arguments": {}}])


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "its transcript is empty"),
        ("{}\n", "line 1: it is no event"),
        ("\x00\xff\n", "line 1: it is no event"),
        (ASK, "line 1: a session begins with session.start"),
        (line("session.start", sessionId="other", version=1), "it is the transcript of session 'other'"),
        (line("session.start", sessionId="s", version=2), "its format is 2"),
        (START + START, "line 2: a session begins only once"),
        (START + line("assistant.message", content="hi"), "line 2: an answer stands before any message"),
        (START + ASK + line("assistant.message", content=7), "line 3: its content is no text"),
        (
            START + ASK + line("assistant.message", toolRequests={"a": 1}),
            "line 3: its toolRequests are no list",
        ),
        (START + ASK + line("assistant.message", toolRequests=[1]), "line 3: a call is no object"),
        (START + ASK + CALL + line("user.message", content="x", delivery="steering"), "line 4: user message"),
        (START.replace("2026-01-01", "someday"), "line 1"),
        (START + "[" * 100_000 + "\n", "line 2"),
    ],
)
def test_a_transcript_that_is_none_is_refused_with_the_line(text: str, why: str) -> None:
    with pytest.raises(TranscriptUnusable) as refused:
        read_transcript(text, "s")
    assert why in str(refused.value)
    assert "'s' is not known here" in str(refused.value)


def test_what_other_servers_write_is_read() -> None:
    # A clear that stands before the result of its call, kinds of events that nobody knows here, a sub-agent's words,
    # and a last line that was cut off.
    text = (
        START
        + ASK
        + CALL
        + line("sandbox.decision", verdict=1)
        + line("session.context_cleared", messagesCleared=2, initialMessage="seed")
        + line("tool.execution_complete", toolCallId="c", success=True, result={"content": "ok"})
        + line("assistant.turn_end", turnId="0")
        + line(
            "user.message",
            content="",
            transformedContent="seed",
            source="session-memory-rollover",
            delivery="queued",
        )
        + line("assistant.message", content="fresh")
        + line("assistant.message", content="inner").replace('"id"', '"agentId": "a", "id"')
        + '{"type": "user.mess'
    )
    state = SessionState.replay(read_transcript(text, "s"))
    assert [message.content for message in state.context.visible()] == ["seed", "fresh"]
    assert state.at_rest


async def test_without_a_transcript_the_session_is_not_found(autojump_clock: MockClock) -> None:
    files = ClientFiles()
    async with open_wire(ScriptedModel([])) as wire:
        client = await wire.connect()
        await files.register(client)
        with pytest.raises(WireFailure, match="Session not found"):
            await client.call("session.resume", sessionId="s")
        files.files["s", "/state/events.jsonl"] = START + "nonsense\n"
        with pytest.raises(WireFailure, match="line 2: it is no event") as refused:
            await client.call("session.resume", sessionId="s")
        # Nothing has changed: the id is free.
        await client.create()
    assert refused.value.data == {"type": "TranscriptUnusable"}


LINES = [
    ASK,
    CALL,
    line("user.message", content="more", delivery="steering", messageId="2"),
    line("user.message", content="more", delivery="queued", messageId="1"),
    line("user.message", content="seed", source=SEED_SOURCE),
    line("user.message", content="hint", source="hook"),
    line("assistant.turn_start", turnId="0"),
    line("assistant.message", content="answer"),
    line("assistant.message", content="", toolRequests=[{"toolCallId": i, "name": i} for i in "ab"]),
    line("tool.execution_start", toolCallId="a"),
    line("external_tool.requested", toolCallId="b", requestId="r"),
    line("tool.execution_complete", toolCallId="a", success=True, result={"content": "ok"}),
    line(
        "tool.execution_complete", toolCallId="b", success=False, error={"message": "no", "code": "timeout"}
    ),
    line("tool.execution_complete", toolCallId="c", success=False),
    line("assistant.turn_end", turnId="0"),
    line("session.context_cleared", messagesCleared=2**70, initialMessage="seed"),
    line("session.compaction_complete", success=True, messagesRemoved=1, summaryContent="sum", other=[2**70]),
    line("session.error", errorType="x", message="y", statusCode=10**40),
    line("session.error", errorType="rate_limit", message="y", statusCode=429, errorCode="weekly"),
    line("session.session_limits_changed", sessionLimits={"maxAiCredits": 5}),
    line("session.session_limits_changed", sessionLimits=None),
    line("session.usage_checkpoint", totalNanoAiu=10**9),
    line("session.usage_checkpoint", totalNanoAiu=2**70),
    line("session.resume", continuePendingWork=True),
    line("session.shutdown"),
    line("session.model_change", newModel="m"),
    line("session.mode_changed", newMode="plan"),
    line("session.warning", warningType="w", message="m"),
    line("system.message", content="S"),
    line("system.message", content="D", role="developer"),
    line("abort", reason="user_initiated"),
]


@given(st.lists(st.sampled_from(LINES), max_size=30), st.sets(st.sampled_from("abct")))
def test_whatever_the_order_there_is_a_log_that_can_be_gone_on_with_or_a_refusal(
    lines: list[str], terminal: set[str]
) -> None:
    try:
        events = read_transcript(START + "".join(lines), "s", "ada", terminal)
    except TranscriptUnusable:
        return
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    slices = encode_slices(events)
    assert SliceDecoder().decode_all(slices) == list(events)
    state = SessionState.replay(events)
    if state.turn_id is None:
        assert state.at_rest or state.context.unanswered_seed is not None
        check_request(ModelRequest((*state.context.request(), Said("user", "next")), (), "s", "t"))
