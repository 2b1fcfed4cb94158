"""Files of sessions in a folder of the server."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import wait_all_tasks_blocked

from exeunt.actors.errors import (
    InvalidConfiguration,
    InvalidFilePath,
    SessionFileNotFound,
    SessionFilesError,
    SessionFilesUnavailable,
    SessionFileTooLarge,
)
from exeunt.testing import ScriptedModel
from exeunt.wire.files import paths
from exeunt.wire.files.folder import Disk, FolderStore, folder_name
from exeunt.wire.files.store import READ_AT_MOST
from exeunt.wire.options import WireOptions
from tests.wire.wire_client import WireFailure, open_wire


@pytest.fixture
def store(tmp_path: Path) -> FolderStore:
    return FolderStore(Disk(tmp_path / "made", 30), "", "s")


async def test_a_session_that_is_made_while_the_files_of_its_predecessor_are_removed_keeps_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, may = trio.Event(), trio.Event()
    remove = FolderStore.rm

    async def slow(store: FolderStore, path: str, **how: bool) -> None:
        asked.set()
        await may.wait()
        await remove(store, path, **how)

    monkeypatch.setattr(FolderStore, "rm", slow)
    options = WireOptions(session_files=tmp_path)
    async with open_wire(ScriptedModel(["one", "two"]), options=options) as wire:
        client, other = await wire.connect(), await wire.connect()
        await client.create()
        await client.say("old")
        await client.event("session.idle")
        deleting = await client.start("session.delete", sessionId="s")
        await asked.wait()
        creating = await other.start("session.create", sessionId="s")
        await wait_all_tasks_blocked()
        assert creating not in other.answers
        may.set()
        assert (await client.answer(deleting))["result"] == {"success": True}
        assert "result" in await other.answer(creating)
        await other.say("new")
        await other.event("session.idle")
        await other.call("session.destroy", sessionId="s")
    assert '"new"' in (tmp_path / "s" / "events.jsonl").read_text()


async def test_a_server_keeps_the_files_of_sessions_whose_clients_do_not(tmp_path: Path) -> None:
    options = WireOptions(session_files=tmp_path)
    async with open_wire(ScriptedModel(["one"]), options=options) as wire:
        client = await wire.connect()
        made = await client.create("a/b")
        folder = tmp_path / "a%2Fb"
        assert made["workspacePath"] == str(folder)
        await client.say(session="a/b")
        await client.event("session.idle")
        await client.call("session.plan.update", sessionId="a/b", content="# Plan")
        await client.call("session.destroy", sessionId="a/b")
        assert {path.name for path in folder.iterdir()} >= {
            "events.jsonl",
            "workspace.yaml",
            "checkpoints",
            "plan.md",
        }
        assert (folder.stat().st_mode & 0o777, (folder / "events.jsonl").stat().st_mode & 0o777) == (
            0o700,
            0o600,
        )
        await client.call("session.delete", sessionId="a/b")
        assert not folder.exists()


async def test_a_server_without_a_journal_makes_sessions_again_of_its_own_folder(tmp_path: Path) -> None:
    options, tokens = WireOptions(session_files=tmp_path), {"a": "ada", "b": "bob"}
    async with open_wire(ScriptedModel(["one"]), options=options, tokens=tokens) as wire:
        client = await wire.connect(token="a")
        await client.create()
        await client.say("first")
        await client.event("session.idle")
        await client.call("session.destroy", sessionId="s")
    model = ScriptedModel(["two"])
    async with open_wire(model, options=options, tokens=tokens) as wire:
        # Of another tenant's folder nobody learns anything.
        thief = await wire.connect(token="b")
        with pytest.raises(WireFailure, match="Session not found"):
            await thief.call("session.resume", sessionId="s")
        client = await wire.connect(token="a")
        await client.call("session.resume", sessionId="s")
        await client.say("second")
        await client.event("session.idle")
        assert wire.server.statistics().files.sessions_rebuilt == 1
    assert model.requests[0].contents == ("first", "one", "second")


async def test_the_end_of_a_server_leaves_whole_transcripts(tmp_path: Path) -> None:
    async with open_wire(ScriptedModel(["one"]), options=WireOptions(session_files=tmp_path)) as wire:
        client = await wire.connect()
        await client.create()
        await client.say()
        await client.event("session.idle")
    lines = (tmp_path / "s" / "events.jsonl").read_text().splitlines()
    assert '"session.start"' in lines[0]
    assert '"session.shutdown"' in lines[-1]


async def test_what_a_disk_cannot_do_is_no_harm_to_the_session(tmp_path: Path) -> None:
    async with open_wire(ScriptedModel(["one"]), options=WireOptions(session_files=tmp_path)) as wire:
        (tmp_path / "s").write_text("somebody's file")
        client = await wire.connect()
        await client.create()
        await client.say()
        await client.event("session.idle")
        with pytest.raises(WireFailure, match="leads through a link or a file"):
            await client.call("session.plan.update", sessionId="s", content="x")
        await client.call("session.destroy", sessionId="s")
    assert (tmp_path / "s").read_text() == "somebody's file"


async def test_files_are_written_read_listed_moved_and_removed(store: FolderStore) -> None:
    await store.append("a/b/c.txt", "one\n")
    await store.append("a/b/c.txt", "zwei ä\n")
    assert await store.read("a/b/c.txt") == "one\nzwei ä\n"
    await store.write("a/b/c.txt", "three")
    assert (await store.stat("a/b/c.txt")).size == 5
    assert [(entry.name, entry.is_directory) for entry in await store.readdir("a")] == [("b", True)]
    await store.rename("a/b/c.txt", "x/y.txt")
    assert not await store.exists("a/b/c.txt")
    await store.mkdir("x/z")
    await store.mkdir("x/z")
    with pytest.raises(SessionFilesUnavailable, match="exists"):
        await store.mkdir("x/z", recursive=False)
    with pytest.raises(SessionFilesUnavailable, match="not empty"):
        await store.rm("x")
    await store.rm("x", recursive=True)
    await store.rm("x", force=True)
    for missing in (
        store.read("x"),
        store.stat("x"),
        store.readdir("x"),
        store.rm("x"),
        store.rename("x", "y"),
    ):
        with pytest.raises(SessionFileNotFound):
            await missing
    assert [entry.name for entry in await store.readdir("")] == ["a"]


async def test_no_link_leads_out_of_a_folder(store: FolderStore, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "key").write_text("the key")
    await store.mkdir("")
    root = Path(store.place(""))
    (root / "folder").symlink_to(secret)
    (root / "file").symlink_to(secret / "key")
    tries: list[Callable[[], Any]] = [
        lambda: store.read("file"),
        lambda: store.read("folder/key"),
        lambda: store.append("file", "x"),
        lambda: store.write("folder/key", "x"),
        lambda: store.readdir("folder"),
        lambda: store.stat("folder/key"),
        lambda: store.rm("folder/key"),
        lambda: store.rename("folder/key", "mine"),
        lambda: store.mkdir("folder/new"),
    ]
    for attempt in tries:
        with pytest.raises(InvalidFilePath):
            await attempt()
    assert (await store.stat("file")).is_file is False
    # A link can be replaced, and removed, which is not what it leads to.
    await store.write("file", "mine")
    await store.rm("", recursive=True)
    assert not await store.exists("")
    assert [(path.name, path.read_text()) for path in secret.iterdir()] == [("key", "the key")]


async def test_what_is_no_file_is_neither_read_nor_waited_for(store: FolderStore) -> None:
    await store.mkdir("")
    os.mkfifo(store.place("pipe"))
    with trio.fail_after(5):
        for attempt in (store.append("pipe", "x"), store.write("pipe/x", "x"), store.read("")):
            with pytest.raises(SessionFilesError):
                await attempt
    await store.mkdir("d")
    with pytest.raises(SessionFilesUnavailable, match="it is a folder"):
        await store.write("d", "x")


async def test_files_are_bounded(store: FolderStore) -> None:
    await store.write("long", "x" * (READ_AT_MOST + 1))
    with pytest.raises(SessionFileTooLarge):
        await store.read("long")


async def test_a_folder_that_cannot_be_written_to_is_refused_at_once(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(InvalidConfiguration, match="cannot be kept"):
        Disk(tmp_path / "file", 1)
    with pytest.raises(InvalidConfiguration, match="cannot be kept"):
        Disk(tmp_path / "file" / "below", 1)


@given(st.text(min_size=1, max_size=128))
def test_every_session_has_a_folder_of_its_own_and_none_leaves_the_base(session_id: str) -> None:
    try:
        session_id.encode()
    except UnicodeEncodeError:
        return
    name = folder_name(session_id)
    assert "/" not in name
    assert "\x00" not in name
    assert not name.startswith(".")
    assert 0 < len(name.encode()) <= 255
    assert name != folder_name(session_id + "x")


@given(
    st.lists(st.sampled_from(["..", ".", "", "a", "b c", "é", "\\", "\x00", "C:", "a" * 300]), max_size=40)
)
def test_a_path_is_below_its_folder_or_refused(steps: list[str]) -> None:
    for conventions in ("posix", "windows"):
        try:
            path = paths.relative("/".join(steps), conventions)
        except InvalidFilePath:
            continue
        assert os.path.normpath(path) == path
        assert not path.startswith(("/", ".."))
        assert "\\" not in path
