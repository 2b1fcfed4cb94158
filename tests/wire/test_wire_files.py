"""Files of sessions that a client keeps: the transcript, the workspace, and what goes wrong."""

import trio
from trio.testing import MockClock

from exeunt.testing import ScriptedModel, call
from tests.wire.client_files import ROOT, ClientFiles
from tests.wire.wire_client import open_wire, tool


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
        logged = (await client.call("session.getMessages", sessionId="s"))["events"]
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
