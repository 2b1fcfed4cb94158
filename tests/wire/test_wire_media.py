"""Pictures and documents of clients: to the model, into the events, and what is said of those that do not get there."""

import json
import threading
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from trio.testing import MockClock

from exeunt import MediaLimits
from exeunt.actors.errors import InvalidConfiguration
from exeunt.testing import ScriptedModel, call
from exeunt.testing.http_double import HttpDouble, HttpReply, open_http_double
from exeunt.wire.events.media import MOST_IN_EVENT
from exeunt.wire.options import WireOptions
from exeunt.wire.serving import attached_files
from exeunt.wire.serving.attached_files import LONGEST_TEXT, AttachedFiles
from exeunt.wire.serving.models import DefaultProvider
from tests.actors.media_support import PAPER, PDF, PIXEL, PNG
from tests.wire.wire_client import WireClient, WireFailure, open_wire, tool

ANSWER = {"choices": [{"index": 0, "message": {"content": "seen"}, "finish_reason": "stop"}]}
BLOB = {"type": "blob", "data": PIXEL.base64, "mimeType": "image/png", "displayName": "pixel.png"}
IMAGE = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL.base64}"}}
RESULT = {"type": "image", "data": PIXEL.base64, "mimeType": "image/png", "description": "pixel.png"}


def of_kind(events: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [event["data"] for event in events if event["type"] == kind]


async def stored(client: WireClient, kind: str) -> list[dict[str, Any]]:
    return of_kind((await client.call("session.getMessages", sessionId="s"))["events"], kind)


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
    import base64

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


@asynccontextmanager
async def served_by_http(**options: Any) -> AsyncGenerator[tuple[HttpDouble, WireClient]]:
    async with open_http_double() as double:
        double.otherwise = HttpReply(body=json.dumps(ANSWER).encode())
        provider = {"type": "openai", "base_url": f"http://127.0.0.1:{double.port}/v1"}
        async with open_wire(default=DefaultProvider(provider=provider, model="m")) as wire:
            client = await wire.connect()
            await client.create(**options)
            yield double, client


def last_content(double: HttpDouble) -> Any:
    return double.requests[-1].json["messages"][-1]["content"]


async def test_a_model_is_shown_images_as_far_as_its_client_says_that_it_takes_them() -> None:
    no_vision = {"supports": {"vision": False}}
    async with served_by_http(modelCapabilities=no_vision) as (double, client):
        told: list[Any] = []

        async def say() -> None:
            await client.say("look", attachments=[BLOB])
            await client.event("session.idle", len(told) + 1)
            told.append(last_content(double))

        await say()
        await client.call(
            "session.model.switchTo",
            sessionId="s",
            modelId="m",
            modelCapabilities={"supports": {"vision": True}},
        )
        await say()
        limits = {"limits": {"vision": {"supported_media_types": ["image/jpeg"]}}}
        await client.call("session.options.update", sessionId="s", modelCapabilitiesOverrides=limits)
        await say()
        await client.call("session.model.switchTo", sessionId="s", modelId="other")
        await say()
    left_out = "look\n\n[image left out: pixel.png, image/png, 70 bytes; the model takes no {}]"
    whole = [{"type": "text", "text": "look"}, {"type": "text", "text": "pixel.png"}, IMAGE]
    assert told == [left_out.format("images"), whole, left_out.format("image/png"), whole]


@pytest.mark.parametrize("place", ["provider", "models"])
async def test_a_provider_and_a_registered_model_say_what_they_take(place: str) -> None:
    capabilities = {"supports": {"vision": False}}
    async with open_http_double() as double:
        double.otherwise = HttpReply(body=json.dumps(ANSWER).encode())
        provider = {"name": "p", "type": "openai", "baseUrl": f"http://127.0.0.1:{double.port}/v1"}
        options: dict[str, Any] = (
            {"provider": {**provider, "modelId": "m", "modelCapabilities": capabilities}}
            if place == "provider"
            else {
                "providers": [provider],
                "models": [{"id": "m", "provider": "p", "capabilities": capabilities}],
            }
        )
        async with open_wire(ScriptedModel([])) as wire:
            client = await wire.connect()
            await client.create(model="m", **options)
            await client.say("look", attachments=[BLOB])
            await client.event("session.idle")
        assert isinstance(last_content(double), str)


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


# --- Files that the server may read ----------------------------------------------------------------------------


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "shared"
    folder.mkdir()
    (folder / "pixel.png").write_bytes(PNG)
    (folder / "paper.pdf").write_bytes(PDF)
    (folder / "notes.txt").write_text("one\ntwo\nthree\n")
    (folder / "long.txt").write_text("line\n" * (LONGEST_TEXT // 5 + 1))
    (folder / "data.bin").write_bytes(b"\x00\xff" * 10)
    (folder / "nul.txt").write_bytes(b"a\x00b")
    (folder / "empty.txt").write_bytes(b"")
    (tmp_path / "secret.txt").write_text("secret")
    (folder / "way-out").symlink_to(tmp_path / "secret.txt")
    (folder / "link.txt").symlink_to(folder / "notes.txt")
    return folder


async def told_of(root: Path, *attachments: dict[str, Any]) -> tuple[Any, list[dict[str, Any]]]:
    """The message that the model gets, and the attachments of its event."""
    model = ScriptedModel(["ok"])
    async with open_wire(model, options=WireOptions(attachments_root=root)) as wire:
        client = await wire.connect()
        await client.create()
        await client.say("look", attachments=list(attachments))
        await client.event("session.idle")
        (shown,) = await stored(client, "user.message")
    return model.requests[0].messages[-1], shown["attachments"]


async def test_files_below_the_folder_of_the_server_are_read(root: Path) -> None:
    file = {"type": "file", "path": str(root / "pixel.png")}
    paper = {"type": "file", "path": str(root / "paper.pdf"), "displayName": "Paper"}
    message, shown = await told_of(root, file, paper, {"type": "file", "path": str(root / "link.txt")})
    assert message.content == "look"
    assert [(media.mime_type, media.name, media.data) for media in message.media] == [
        ("image/png", str(root / "pixel.png"), PNG),
        ("application/pdf", str(root / "paper.pdf"), PDF),
        ("text/plain", str(root / "link.txt"), b"one\ntwo\nthree\n"),
    ]
    assert shown[:2] == [{**file, "displayName": "pixel.png"}, paper]


async def test_of_a_file_those_lines_are_read_that_are_named(root: Path) -> None:
    path = str(root / "notes.txt")
    message, _ = await told_of(root, {"type": "file", "path": path, "lineRange": {"start": 2, "end": 3}})
    assert [(media.name, media.text) for media in message.media] == [(f"{path} (lines 2-3)", "two\nthree\n")]


async def test_what_is_not_to_be_read_is_named_only(root: Path) -> None:
    names = ["way-out", "../secret.txt", "data.bin", "nul.txt", "gone.txt", "."]
    paths = [f"{root}/{name}" for name in names]
    paths.append("notes.txt")  # a relative path names nothing
    message, shown = await told_of(root, *({"type": "file", "path": path} for path in paths))
    assert message.media == ()
    lines = "\n".join(f"* {path}" for path in paths)
    assert message.content == f"look\n\n\n\n<tagged_files>\n{lines}\n</tagged_files>"
    assert [one["path"] for one in shown] == paths


async def test_long_texts_and_folders_are_named_with_how_much_they_hold(root: Path) -> None:
    message, _ = await told_of(
        root,
        {"type": "file", "path": str(root / "long.txt")},
        {"type": "file", "path": str(root / "empty.txt")},
        {"type": "directory", "path": str(root)},
    )
    assert message.media == ()
    assert message.content.splitlines()[4:8] == [
        "<tagged_files>",
        f"* {root}/long.txt ({LONGEST_TEXT // 5 + 1} lines)",
        f"* {root}/empty.txt (0 lines)",
        f"* {root} (9 items)",
    ]


async def test_a_folder_that_becomes_a_link_on_the_way_leads_nowhere(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "folder").symlink_to(root.parent)

    # As if the link had been put there after the path was looked at.
    def as_it_is(path: Path, strict: bool = False) -> Path:
        return path

    monkeypatch.setattr(Path, "resolve", as_it_is)
    paths = [str(root / "folder" / "secret.txt"), str(root / "folder")]
    message, _ = await told_of(root, *({"type": "file", "path": path} for path in paths))
    assert message.media == ()
    message, _ = await told_of(root, {"type": "directory", "path": str(root / "folder")})
    assert "items" not in message.content


async def test_a_disk_that_does_not_answer_holds_no_message_up(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = threading.Event()

    def never(*_: object) -> None:
        answers.wait()

    monkeypatch.setattr(attached_files, "_read_all", never)
    reader = AttachedFiles(root, MediaLimits(), seconds=0.01)
    assert await reader.read([{"type": "file", "path": str(root / "notes.txt")}]) == {}
    answers.set()


async def test_without_a_folder_nothing_is_read(root: Path, autojump_clock: MockClock) -> None:
    model = ScriptedModel(["ok"])
    async with open_wire(model) as wire:
        client = await wire.connect()
        await client.create()
        await client.say("look", attachments=[{"type": "file", "path": str(root / "pixel.png")}])
        await client.event("session.idle")
    assert model.requests[0].messages[-1].media == ()


@pytest.mark.parametrize("method", ["session.sendMessages", "session.sendAndWait", "session.send"])
async def test_every_way_to_send_brings_what_is_attached(method: str, root: Path) -> None:
    attachments = [{"type": "file", "path": str(root / "pixel.png")}, BLOB]
    message = {"prompt": "look", "attachments": attachments}
    params: dict[str, Any] = {"messages": [message]} if method == "session.sendMessages" else message
    if method == "session.send":
        params = {**params, "wait": True}
    model = ScriptedModel(["ok"])
    async with open_wire(model, options=WireOptions(attachments_root=root)) as wire:
        client = await wire.connect()
        await client.create()
        await client.call(method, sessionId="s", **params)
        await client.event("session.idle")
    assert [media.mime_type for media in model.requests[0].messages[-1].media] == ["image/png"] * 2


@pytest.mark.parametrize("path", ["relative", "/nowhere/at/all"])
def test_a_folder_of_attachments_must_be_there(path: str) -> None:
    with pytest.raises(InvalidConfiguration, match="attachments_root must be the absolute path of a folder"):
        WireOptions(attachments_root=path)


def test_limits_of_media_are_media_limits() -> None:
    with pytest.raises(InvalidConfiguration, match="media_limits must be MediaLimits"):
        WireOptions(media_limits={"item": 1})  # type: ignore[arg-type]
