"""Files of sessions that a client keeps: the transcript, the workspace, and what goes wrong."""

import re
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from exeunt.testing import ScriptedModel, after, call
from tests.wire.client_files import ROOT, ClientFiles
from tests.wire.wire_client import WireFailure, open_wire, tool


async def test_a_session_has_its_transcript_and_its_workspace_with_its_client(
    autojump_clock: MockClock,
) -> None:
    files = ClientFiles()
    async with open_wire(ScriptedModel([call("t", n=1), "done"])) as wire:
        client = await wire.connect()
        await files.register(client)
        made = await client.create(tools=[tool("t")], clientName="tester")
        await client.say("hello")
        await client.give(await client.requested(), result="ok")
        await client.event("session.idle")
        logged = await client.history()
        await trio.sleep(1)
        about = await client.call("session.metadata.snapshot", sessionId="s")
        before = files.lines()
        await client.call("session.destroy", sessionId="s")
        # What the client reads as soon as it is answered.
        after = files.lines()
    assert made["workspacePath"] == about["workspacePath"] == ROOT
    assert about["workspace"]["id"] == "s"
    assert about["workingDirectory"] == "/work"
    assert before == logged
    assert after[: len(before)] == before
    assert [event["type"] for event in after[len(before) :]] == ["session.shutdown"]
    assert files.text("workspace.yaml").splitlines()[:2] == ['id: "s"', 'cwd: "/work"']
    assert files.text("checkpoints/index.md").startswith("# Checkpoints")


async def test_a_provider_is_refused_while_sessions_have_their_files_elsewhere(
    autojump_clock: MockClock,
) -> None:
    files = ClientFiles()
    async with open_wire(ScriptedModel([]), tokens={"a": "ada", "b": "bob"}) as wire:
        first = await wire.connect(token="a")
        await first.create("one")
        second = await wire.connect(token="a")
        with pytest.raises(WireFailure, match="1 sessions exist already"):
            await files.register(second)
        # Sessions of others are none of its business, and sessions of clients with files of their own no obstacle.
        other = await wire.connect(token="b")
        await files.register(other)
        await other.create("two")
        third = await wire.connect(token="b")
        await files.register(third)
        await first.call("session.delete", sessionId="one")
        await files.register(second)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"conventions": "vms"}, "conventions"),
        ({"sessionStatePath": ""}, "absolute path"),
        ({"sessionStatePath": "state"}, "absolute path"),
        ({"sessionStatePath": "/st\x00ate"}, "absolute path"),
        ({"initialCwd": "/" + "x" * 5000}, "at most 4096"),
        ({"initialCwd": None}, "initialCwd"),
    ],
)
async def test_a_provider_that_is_none_is_refused(
    change: dict[str, Any], why: str, autojump_clock: MockClock
) -> None:
    params = {"initialCwd": "/w", "sessionStatePath": "/s", "conventions": "posix", **change}
    async with open_wire(ScriptedModel([])) as wire:
        client = await wire.connect()
        with pytest.raises(WireFailure, match=why):
            await client.call("sessionFs.setProvider", **params)
        assert "workspacePath" not in await client.create()


async def test_paths_are_those_of_the_client_on_windows(autojump_clock: MockClock) -> None:
    files = ClientFiles()
    async with open_wire(ScriptedModel(["hi"])) as wire:
        client = await wire.connect()
        await files.register(client, root="C:\\state", conventions="windows")
        made = await client.create()
        await client.turn()
        await client.call("session.plan.update", sessionId="s", content="x")
        for path in ("con.txt", "a:b", "dot.", "a/nul", "q?"):
            with pytest.raises(WireFailure, match="on Windows"):
                await client.call("session.workspaces.createFile", sessionId="s", path=path, content="")
        await client.call("session.destroy", sessionId="s")
    assert made["workspacePath"] == "C:\\state"
    assert "C:\\state\\events.jsonl" in {path for _, path in files.files}
    assert "C:\\state\\checkpoints\\index.md" in {path for _, path in files.files}


async def test_a_long_result_is_moved_to_a_file_and_the_model_reads_its_name(
    autojump_clock: MockClock,
) -> None:
    files = ClientFiles()
    model = ScriptedModel([call("t", n=1), call("t", n=2), call("t", n=3), "done"])
    long = "ä" * 30_000  # 60,000 bytes
    async with open_wire(model) as wire:
        client = await files.keeper(wire, tools=[tool("t")])
        await client.say()
        await client.give(await client.requested(1), result=long)
        await client.give(await client.requested(2), result="y" * 51_200)
        failure = {"textResultForLlm": "z" * 300_000, "resultType": "failure"}
        await client.give(await client.requested(3), result=failure)
        await client.event("session.idle")
        counts = wire.server.statistics().files
    _, _, first, _, second, _, third = model.requests[-1].contents
    place = re.search(r"Saved to: (/state/temp/\d+-copilot-tool-output-[a-z0-9]{6}\.txt)\n", first)
    assert place is not None
    assert first.startswith("Output too large to read at once (58.6 KB). Saved to: ")
    assert first.endswith("Preview (first 500 chars):\n" + "ä" * 500)
    assert files.files["s", place[1]] == long
    # At the bound it is read as it is; a longer one is written in pieces.
    assert second == "y" * 51_200
    assert third.startswith("Output too large to read at once (293.0 KB).")
    assert "z" * 300_000 in files.files.values()
    assert (counts.results_moved, counts.results_kept) == (2, 0)


@pytest.mark.parametrize(
    ("large", "is_moved"),
    [({"enabled": False}, False), ({"maxSizeBytes": 100}, True), ({"maxSizeBytes": 100_000}, False)],
)
async def test_what_is_long_is_for_the_client_to_say(
    large: dict[str, Any], is_moved: bool, autojump_clock: MockClock
) -> None:
    files = ClientFiles()
    model = ScriptedModel([call("t", n=1), "done"])
    async with open_wire(model) as wire:
        client = await files.keeper(wire, tools=[tool("t")], largeOutput=large)
        await client.say()
        await client.give(await client.requested(1), result="x" * 60_000)
        await client.event("session.idle")
    assert model.requests[-1].contents[-1].startswith("Output too large") is is_moved


async def test_a_summary_has_a_checkpoint(autojump_clock: MockClock) -> None:
    files = ClientFiles()
    summary = "S1\n<checkpoint_title>\nA [first] `title`\n</checkpoint_title>"
    async with open_wire(ScriptedModel(["one", summary, "two", "S2"])) as wire:
        client = await files.keeper(wire)
        for number in (1, 2):
            await client.say()
            await client.event("session.idle", number)
            await client.call("session.history.compact", sessionId="s")
        listed = (await client.call("session.workspaces.listCheckpoints", sessionId="s"))["checkpoints"]
        first = await client.call("session.workspaces.readCheckpoint", sessionId="s", number=1)
        missing = await client.call("session.workspaces.readCheckpoint", sessionId="s", number=9)
        await client.call("session.destroy", sessionId="s")
        # Another activation goes on behind them.
        await client.call("session.resume", sessionId="s")
        added = await client.call("session.workspaces.addSummary", sessionId="s", title="third", content="S3")
        await client.call("session.workspaces.truncateSummaries", sessionId="s", keepCount=1)
        left = (await client.call("session.workspaces.listCheckpoints", sessionId="s"))["checkpoints"]
    done = [event["data"] for event in files.lines() if event["type"] == "session.compaction_complete"]
    assert [data["checkpointNumber"] for data in done] == [1, 2]
    assert done[0]["checkpointPath"] == f"{ROOT}/checkpoints/001-a-first-title.md"
    assert [(one["number"], one["title"]) for one in listed] == [(1, "A [first] `title`"), (2, "Summary")]
    assert first == {"content": summary}
    assert missing == {"content": None}
    assert added["summary"]["number"] == 3
    assert added["workspace"]["summary_count"] == 3
    assert [one["number"] for one in left] == [3]
    assert {path for _, path in files.files if "/checkpoints/" in path} == {
        f"{ROOT}/checkpoints/index.md",
        f"{ROOT}/checkpoints/003-third.md",
    }


async def test_going_back_takes_events_out_of_the_transcript(autojump_clock: MockClock) -> None:
    files = ClientFiles()
    async with open_wire(ScriptedModel(["one", "two", "three"])) as wire:
        client = await files.keeper(wire)
        await client.turn("first")
        await client.turn("second")
        second = client.events("user.message")[1]["id"]
        await client.call("session.history.truncate", sessionId="s", eventId=second)
        await client.turn("third")
        logged = await client.history()
        await client.call("session.destroy", sessionId="s")
    assert files.lines()[:-1] == logged
    assert "second" not in files.text("events.jsonl")


async def test_the_transcript_is_there_when_the_agent_stop_hook_looks(autojump_clock: MockClock) -> None:
    files = ClientFiles()
    seen: list[Any] = []

    def hook(params: dict[str, Any]) -> Any:
        given = params["input"]
        seen.append((params["hookType"], given.get("transcriptPath")))
        if params["hookType"] == "agentStop":
            assert "assistant.message" in [event["type"] for event in files.lines()]
        return {"output": None}

    async with open_wire(ScriptedModel(["answer"])) as wire:
        client = await wire.connect()
        client.handlers["hooks.invoke"] = hook
        await files.register(client)
        await client.create(hooks=True)
        await client.turn()
    assert ("agentStop", f"{ROOT}/events.jsonl") in seen
    assert {path for kind, path in seen if kind != "agentStop"} == {None}


async def test_without_infinite_sessions_there_is_a_transcript_and_no_workspace(
    autojump_clock: MockClock,
) -> None:
    files = ClientFiles()
    async with open_wire(ScriptedModel(["hi"])) as wire:
        client = await wire.connect()
        await files.register(client)
        made = await client.create(infiniteSessions={"enabled": False})
        await client.turn()
        assert await client.call("session.plan.read", sessionId="s") == {
            "exists": False,
            "content": None,
            "path": None,
        }
        with pytest.raises(WireFailure, match="has no workspace") as refused:
            await client.call("session.plan.update", sessionId="s", content="x")
        assert await client.call("session.workspaces.saveLargePaste", sessionId="s", content="x") == {
            "saved": None
        }
        await client.call("session.destroy", sessionId="s")
    assert refused.value.data == {"type": "NoSessionFiles"}
    assert "workspacePath" not in made
    assert {path for _, path in files.files} == {f"{ROOT}/events.jsonl"}


async def test_a_session_without_files_says_so(autojump_clock: MockClock) -> None:
    async with open_wire(ScriptedModel([])) as wire:
        client = await wire.connect()
        await client.create()
        about = await client.call("session.metadata.snapshot", sessionId="s")
        assert (about["workspacePath"], about["workspace"]) == (None, None)
        assert await client.call("session.workspaces.getWorkspace", sessionId="s") == {"workspace": None}
        for method, params in (
            ("session.plan.update", {"content": "x"}),
            ("session.plan.delete", {}),
            ("session.workspaces.readFile", {"path": "x"}),
        ):
            with pytest.raises(WireFailure, match="--session-files"):
                await client.call(method, sessionId="s", **params)


async def test_the_plan_is_written_told_of_and_removed(autojump_clock: MockClock) -> None:
    files = ClientFiles()
    async with open_wire(ScriptedModel([])) as wire:
        client = await files.keeper(wire)
        for text in ("one", "two" * 200_000):
            await client.call("session.plan.update", sessionId="s", content=text)
        read = await client.call("session.plan.read", sessionId="s")
        with pytest.raises(WireFailure, match="at most 8388608 characters"):
            await client.call("session.plan.update", sessionId="s", content="x" * 8_388_609)
        await client.call("session.plan.delete", sessionId="s")
        await client.call("session.plan.delete", sessionId="s")
        gone = await client.call("session.plan.read", sessionId="s")
    assert read == {"exists": True, "content": "two" * 200_000, "path": f"{ROOT}/plan.md"}
    assert gone == {"exists": False, "content": None, "path": f"{ROOT}/plan.md"}
    told = [event["data"]["operation"] for event in client.events("session.plan_changed")]
    assert told == ["create", "update", "delete"]


async def test_files_of_clients_are_kept_below_a_folder_of_their_own(autojump_clock: MockClock) -> None:
    files = ClientFiles()
    async with open_wire(ScriptedModel([])) as wire:
        client = await files.keeper(wire)

        async def do(method: str, **params: Any) -> Any:
            return await client.call(f"session.workspaces.{method}", sessionId="s", **params)

        assert await do("listFiles") == {"files": []}
        await do("createFile", path="./a/b.txt", content="one")
        await do("createFile", path="a/b.txt", content="two")
        await do("createFile", path="c.txt", content="")
        await do("createDirectory", path="empty")
        assert await do("listFiles") == {"files": ["a/b.txt", "c.txt"]}
        assert await do("readFile", path="a//b.txt") == {"content": "two"}
        about = await do("statFile", path="a/b.txt")
        assert (about["isFile"], about["size"]) == (True, 3)
        await do("renamePath", source="a/b.txt", destination="d.txt")
        with pytest.raises(WireFailure, match="no such file") as refused:
            await do("readFile", path="a/b.txt")
        assert refused.value.data == {"type": "SessionFileNotFound"}
        with pytest.raises(WireFailure, match="no such file"):
            await do("removePath", path="nothing")
        await do("removePath", path="nothing", force=True)
        await do("removePath", path="d.txt")
        paste = (await do("saveLargePaste", content="ä"))["saved"]
        assert paste["sizeBytes"] == 2
        assert files.files["s", paste["filePath"]] == "ä"
        before = dict(files.files)
        for path in (
            "",
            ".",
            "..",
            "a/../../x",
            "/etc/passwd",
            "a\\b",
            "\x00",
            "x" * 2000,
            "a/" * 40 + "b",
            "é" * 200,
        ):
            for method in ("createFile", "readFile", "removePath"):
                with pytest.raises(WireFailure) as refused:
                    await do(method, path=path, **({"content": "x"} if method == "createFile" else {}))
                assert refused.value.data == {"type": "InvalidFilePath"}
        assert files.files == before
        named = await do("updateMetadata", name="A name", context={"branch": "main", "other": 1})
    assert (named["workspace"]["name"], named["workspace"]["branch"]) == ("A name", "main")
    told = [
        (event["data"]["path"], event["data"]["operation"])
        for event in client.events("session.workspace_file_changed")
    ]
    assert told == [("a/b.txt", "create"), ("a/b.txt", "update"), ("c.txt", "create")]


async def test_the_folder_of_a_session_is_told_and_kept(autojump_clock: MockClock) -> None:
    files = ClientFiles()
    async with open_wire(ScriptedModel(["hi"])) as wire:
        client = await files.keeper(wire)
        await client.turn()
        moved = await client.call(
            "session.metadata.setWorkingDirectory", sessionId="s", workingDirectory="/there"
        )
        assert moved == {"workingDirectory": "/there"}
        for wrong in ("", "here", "../x", "/" + "x" * 5000):
            with pytest.raises(WireFailure, match="absolute path"):
                await client.call(
                    "session.metadata.setWorkingDirectory", sessionId="s", workingDirectory=wrong
                )
        report = {"cwd": "/there/", "branch": "main", "hostType": "github", "headCommit": "0" * 40}
        await client.call("session.metadata.recordContextChange", sessionId="s", context=report)
        # About another folder: too late.
        await client.call(
            "session.metadata.recordContextChange", sessionId="s", context={"cwd": "/elsewhere"}
        )
        for wrong_report in ({}, {"cwd": 1}, {"cwd": "/there", "hostType": "other"}):
            with pytest.raises(WireFailure):
                await client.call("session.metadata.recordContextChange", sessionId="s", context=wrong_report)
        await client.call("session.destroy", sessionId="s")
        await client.call("session.resume", sessionId="s", workingDirectory="/there")
        await trio.sleep(1)
        workspace = (await client.call("session.workspaces.getWorkspace", sessionId="s"))["workspace"]
    told = [event["data"] for event in client.events("session.context_changed")]
    assert told == [{"cwd": "/there"}, {**report, "cwd": "/there"}]
    # What was reported is in the files, where the next activation finds it.
    assert (workspace["cwd"], workspace["branch"], workspace["host_type"]) == ("/there", "main", "github")


async def test_a_summary_that_finds_no_place_leaves_no_checkpoint(autojump_clock: MockClock) -> None:
    files = ClientFiles()
    model = ScriptedModel(["one", "SUMMARY", after(100, "two")])
    async with open_wire(model) as wire:
        client = await files.keeper(wire)
        await client.turn()
        compacting = await client.start("session.history.compact", sessionId="s")
        await client.event("session.compaction_start")
        await client.say("meanwhile")
        while not files.files.get(("s", f"{ROOT}/checkpoints/001-summary.md")):
            await wait_all_tasks_blocked()
        aborted = await client.call("session.history.abortManualCompaction", sessionId="s")
        assert aborted == {"aborted": True}
        assert (await client.answer(compacting))["result"]["success"] is False
        await client.event("session.idle", 2)
        listed = (await client.call("session.workspaces.listCheckpoints", sessionId="s"))["checkpoints"]
    assert listed == []
