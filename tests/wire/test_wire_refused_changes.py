"""What a client changes of a session that lives, where that is refused: everything stays as it was."""

from pathlib import Path
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from exeunt.actors.errors import JournalUnavailable
from exeunt.testing import ScriptedModel
from exeunt.wire.options import WireOptions
from exeunt.wire.serving import changing
from tests.wire.wire_client import WireFailure, open_wire, tool


async def refuses(*_: Any) -> None:
    await trio.lowlevel.checkpoint()
    raise JournalUnavailable("no room")


async def test_the_tools_of_a_client_stay_its_tools(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock
) -> None:
    async with open_wire(ScriptedModel([])) as wire:
        client, other = await wire.connect(), await wire.connect()
        await client.create(tools=[tool("t")])
        with monkeypatch.context() as broken:
            broken.setattr(changing, "reconfigure", refuses)
            with pytest.raises(WireFailure, match="no room"):
                await client.call("session.tools.set", sessionId="s", tools=[tool("u")])
        # Whatever is changed next, the session goes on with the tools that the client has.
        await other.call("session.resume", sessionId="s")
        listed = await client.call("session.tools.getCurrentMetadata", sessionId="s")
    assert [one["name"] for one in listed["tools"]] == ["t"]


async def test_the_filters_of_a_client_stay_its_filters(autojump_clock: MockClock) -> None:
    model = ScriptedModel(["hi"])
    async with open_wire(model) as wire:
        client, other = await wire.connect(), await wire.connect()
        await client.create(tools=[tool("t"), tool("u")], availableTools=["t"])
        with pytest.raises(WireFailure, match="unheard-of"):
            await client.call(
                "session.options.update",
                sessionId="s",
                availableTools=["u"],
                provider={"type": "unheard-of"},
                model="m",
            )
        await other.call("session.resume", sessionId="s")
        await client.say()
        await client.event("session.idle")
    assert [one.name for one in model.requests[-1].tools] == ["t"]


async def test_instructions_that_were_skipped_stay_unread(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("RULES", encoding="utf-8")
    options = WireOptions(instruction_roots=(tmp_path,))
    async with open_wire(ScriptedModel([]), options=options) as wire:
        client = await wire.connect()
        await client.create(instructionDirectories=[str(tmp_path)], skipCustomInstructions=True)
        with pytest.raises(WireFailure, match="unheard-of"):
            await client.call(
                "session.options.update",
                sessionId="s",
                skipCustomInstructions=False,
                provider={"type": "unheard-of"},
                model="m",
            )
        assert wire.server.hub.served("s").instructions is None
