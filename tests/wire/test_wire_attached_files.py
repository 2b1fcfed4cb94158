"""Files that clients attach by their path, where the server was told which it may read."""

import threading
from pathlib import Path
from typing import Any

import pytest
from trio.testing import MockClock

from exeunt import MediaLimits
from exeunt.actors.errors import InvalidConfiguration
from exeunt.testing import ScriptedModel
from exeunt.wire.options import WireOptions
from exeunt.wire.serving import attached_files
from exeunt.wire.serving.attached_files import LONGEST_TEXT, AttachedFiles
from tests.actors.media_support import PDF, PNG
from tests.wire.wire_client import open_wire
from tests.wire.wire_media import BLOB, stored


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
