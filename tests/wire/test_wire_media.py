"""Pictures and documents of clients: to the model, into the events, and what is said of those that do not get there."""

import base64
from typing import Any

import pytest
from trio.testing import MockClock

from exeunt import MediaLimits
from exeunt.actors.errors import InvalidConfiguration
from exeunt.testing import ScriptedModel, call
from exeunt.wire.events.media import MOST_IN_EVENT
from exeunt.wire.options import WireOptions
from tests.actors.media_support import PAPER, PIXEL
from tests.wire.wire_client import WireFailure, open_wire, tool
from tests.wire.wire_media import BLOB, of_kind, stored

RESULT = {"type": "image", "data": PIXEL.base64, "mimeType": "image/png", "description": "pixel.png"}


async def test_a_blob_reaches_the_model_and_the_events_once(autojump_clock: MockClock) -> None:
    model = ScriptedModel(["a pixel"])
    async with open_wire(model) as wire:
        client = await wire.connect()
        await client.create()
        await client.say("what is this?", attachments=[BLOB])
        await client.event("session.idle")
        assert [data["attachments"] for data in of_kind(client.events(), "user.message")] == [[BLOB]]
        assert [data["attachments"] for data in await stored(client, "user.message")] == [[BLOB]]
    assert model.requests[0].messages[-1].content == "what is this?"
    assert model.requests[0].messages[-1].media == (PIXEL,)


async def test_blobs_keep_their_place_among_what_is_attached(autojump_clock: MockClock) -> None:
    file = {"type": "file", "path": "/a/b.txt", "displayName": "b.txt"}
    paper = {"type": "blob", "data": PAPER.base64, "mimeType": "application/pdf"}
    model = ScriptedModel(["ok"])
    async with open_wire(model) as wire:
        client = await wire.connect()
        await client.create()
        await client.say("look", attachments=[BLOB, file, paper])
        await client.event("session.idle")
        (shown,) = await stored(client, "user.message")
    assert shown["attachments"] == [BLOB, file, paper]
    assert shown["content"] == "look"
    assert shown["transformedContent"] == "look\n\n\n\n<tagged_files>\n* /a/b.txt\n</tagged_files>"


@pytest.mark.parametrize(
    ("attachment", "said"),
    [
        ({"type": "blob", "mimeType": "image/png"}, "attachment 0 is a blob without data in base64"),
        ({"type": "blob", "data": "?", "mimeType": "image/png"}, "no base64"),
        ({"type": "blob", "data": "aGk="}, "a MIME type is a text"),
        ({"type": "blob", "data": "", "mimeType": "image/png"}, "at least one; not none"),
        ({"type": "hologram"}, "attachment 0 has the type 'hologram'"),
        ({"path": "/a"}, "attachment 0 has the type None"),
    ],
)
async def test_what_cannot_be_attached_is_refused_and_nothing_is_sent(
    attachment: dict[str, Any], said: str, autojump_clock: MockClock
) -> None:
    async with open_wire(ScriptedModel([])) as wire:
        client = await wire.connect()
        await client.create()
        with pytest.raises(WireFailure, match=said) as caught:
            await client.say("look", attachments=[attachment])
        assert caught.value.data == {"type": "InvalidMedia"}
        assert await stored(client, "user.message") == []


async def test_a_server_says_how_much_its_sessions_take_in(autojump_clock: MockClock) -> None:
    options = WireOptions(media_limits=MediaLimits(item=69))
    model = ScriptedModel([call("draw"), "hm"])
    async with open_wire(model, options=options) as wire:
        client = await wire.connect()
        await client.create(tools=[tool("draw")])
        with pytest.raises(WireFailure, match=r"pixel\.png, image/png, 70 bytes is more than") as caught:
            await client.say("look", attachments=[BLOB])
        assert caught.value.data == {"type": "MediaTooLarge"}
        await client.say("draw")
        await client.give(
            await client.requested(), result={"textResultForLlm": "", "binaryResultsForLlm": [RESULT]}
        )
        await client.event("session.idle")
    assert model.requests[1].messages[-1].content == (
        "[image left out: pixel.png, image/png, 70 bytes; larger than 69 bytes]"
    )


async def test_what_stands_on_github_and_what_extensions_say_is_told_as_text(
    autojump_clock: MockClock,
) -> None:
    repo = {"owner": "o", "name": "n"}
    side = {"repo": repo, "ref": "main", "path": "a.py"}
    attachments: list[dict[str, Any]] = [
        {"type": "github_commit", "repo": repo, "oid": "0123456789abcdef", "message": "Fix", "url": "u1"},
        {"type": "github_release", "repo": repo, "tagName": "v1", "name": "One", "url": "u2"},
        {
            "type": "github_actions_job",
            "repo": repo,
            "jobId": 1,
            "jobName": "test",
            "workflowName": "CI",
            "url": "u3",
            "conclusion": "failure",
        },
        {"type": "github_repository", "repo": repo, "url": "u4", "description": "A thing", "ref": "dev"},
        {"type": "github_file_diff", "url": "u5", "base": side, "head": {**side, "ref": "new"}},
        {
            "type": "github_tree_comparison",
            "url": "u6",
            "base": {"repo": repo, "revision": "a"},
            "head": {"repo": repo, "revision": "b"},
        },
        {"type": "github_url", "url": "https://example.com/x"},
        {"type": "github_file", **side, "url": "u7"},
        {"type": "github_snippet", **side, "url": "u8", "lineRange": {"start": 2, "end": 4}},
        {
            "type": "extension_context",
            "extensionId": "e",
            "title": "T",
            "payload": {"k": 1},
            "capturedAt": "t",
        },
    ]
    model = ScriptedModel(["ok"])
    async with open_wire(model) as wire:
        client = await wire.connect()
        await client.create()
        await client.say("look", attachments=attachments)
        await client.event("session.idle")
        (shown,) = await stored(client, "user.message")
    assert shown["attachments"] == attachments
    assert model.requests[0].messages[-1].content == (
        "look\n\n\n\n<github_references>\n"
        "o/n@0123456789ab - Fix [commit] (u1)\n"
        "o/n v1 - One [release] (u2)\n"
        "o/n CI / test: failure [job] (u3)\n"
        "o/n@dev - A thing [repository] (u4)\n"
        "o/n@main:a.py -> o/n@new:a.py [diff] (u5)\n"
        "o/n@a...o/n@b [comparison] (u6)\n"
        "https://example.com/x\n"
        "o/n@main:a.py [file] (u7)\n"
        "o/n@main:a.py (lines 2-4) [snippet] (u8)\n"
        "</github_references>\n\n\n\n"
        '<extension_context extension="e" title="T">\n{"k":1}\n</extension_context>'
    )


async def test_a_tools_binary_results_reach_the_model_and_the_events(autojump_clock: MockClock) -> None:
    contents = [{"type": "text", "text": "for people"}]
    answer = {
        "textResultForLlm": "drawn",
        "resultType": "success",
        "binaryResultsForLlm": [
            RESULT,
            {
                "type": "resource",
                "data": PAPER.base64,
                "mimeType": "application/pdf",
                "description": "paper.pdf",
            },
        ],
        "contents": contents,
    }
    model = ScriptedModel([call("draw"), "nice"])
    async with open_wire(model) as wire:
        client = await wire.connect()
        await client.create(tools=[tool("draw")])
        await client.say("draw")
        await client.give(await client.requested(), result=answer)
        await client.event("session.idle")
        for events in (
            of_kind(client.events(), "tool.execution_complete"),
            await stored(client, "tool.execution_complete"),
        ):
            (complete,) = events
            assert complete["result"] == {
                "content": "drawn",
                "detailedContent": "drawn",
                "contents": contents,
                "binaryResultsForLlm": answer["binaryResultsForLlm"],
            }
    result = model.requests[1].messages[-1]
    assert (result.content, result.media) == ("drawn", (PIXEL, PAPER))


async def test_a_binary_result_that_is_none_is_told_to_the_model(autojump_clock: MockClock) -> None:
    model = ScriptedModel([call("draw"), "hm"])
    async with open_wire(model) as wire:
        client = await wire.connect()
        await client.create(tools=[tool("draw")])
        await client.say("draw")
        answer = {"textResultForLlm": "drawn", "binaryResultsForLlm": [{"type": "image", "data": "?"}]}
        await client.give(await client.requested(), result=answer)
        await client.event("session.idle")
        (complete,) = await stored(client, "tool.execution_complete")
    assert complete["success"]
    assert complete["result"]["content"].startswith("drawn\n[binary result left out: ")


async def test_a_hook_is_shown_a_binary_result_and_may_give_it_back(autojump_clock: MockClock) -> None:
    model = ScriptedModel([call("draw"), "ok"])
    seen: list[Any] = []

    def hook(params: dict[str, Any]) -> Any:
        if params["hookType"] != "postToolUse":
            return {}
        result = params["input"]["toolResult"]
        seen.append(result["binaryResultsForLlm"])
        return {"output": {"modifiedResult": {**result, "textResultForLlm": "checked"}}}

    async with open_wire(model) as wire:
        client = await wire.connect()
        client.handlers["hooks.invoke"] = hook
        await client.create(tools=[tool("draw")], hooks=True)
        await client.say("draw")
        answer = {"textResultForLlm": "drawn", "binaryResultsForLlm": [RESULT]}
        await client.give(await client.requested(), result=answer)
        await client.event("session.idle")
    assert seen == [[RESULT]]
    result = model.requests[1].messages[-1]
    assert (result.content, result.media) == ("checked", (PIXEL,))


async def test_data_for_which_an_event_has_no_room_are_told_by_their_size(autojump_clock: MockClock) -> None:
    size = MOST_IN_EVENT // 2 + 1
    data = base64.b64encode(b"x" * size).decode()
    large = {"type": "blob", "data": data, "mimeType": "application/zip"}
    omitted = {"byteLength": size, "omittedReason": "too_large"}
    model = ScriptedModel([], default="ok")
    async with open_wire(model) as wire:
        client = await wire.connect()
        await client.create()
        await client.say("look", attachments=[large, large])
        await client.event("session.idle")
        shown = [
            large,
            {"type": "blob", **omitted, "mimeType": "application/zip"},
        ]
        assert of_kind(client.events(), "user.message")[0]["attachments"] == shown
        for number in range(4):
            await client.say("more", attachments=[large])
            await client.event("session.idle", number + 2)
        messages = await stored(client, "user.message")
    # 16 MiB of a log are shown, from the end.
    whole = [all("data" in one for one in message["attachments"]) for message in messages]
    assert whole == [False, False, True, True, True]
    assert "data" not in messages[0]["attachments"][0]


async def test_a_summary_of_the_conversation_names_what_was_attached(autojump_clock: MockClock) -> None:
    model = ScriptedModel(["one", "SUMMARY", "two"])
    async with open_wire(model) as wire:
        client = await wire.connect()
        await client.create()
        await client.say("look", attachments=[BLOB])
        await client.event("session.idle")
        await client.call("session.history.compact", sessionId="s")
        await client.say("go on")
        await client.event("session.idle", 2)
    assert model.requests[1].messages[0].media == (PIXEL,)
    summed_up = model.requests[2].messages[0]
    assert (
        "<user_message>\nlook\n[attached: pixel.png, image/png, 70 bytes]\n</user_message>"
        in summed_up.content
    )
    assert summed_up.media == ()


def test_limits_of_media_are_media_limits() -> None:
    with pytest.raises(InvalidConfiguration, match="media_limits must be MediaLimits"):
        WireOptions(media_limits={"item": 1})  # type: ignore[arg-type]
