"""Folders with instructions that clients name: what the model is told, and who may name which."""

from pathlib import Path
from typing import Any

import pytest

from exeunt.testing import ScriptedModel, call
from exeunt.wire.options import WireOptions
from tests.wire.wire_client import CLEAR, WireFailure, open_wire


def put(folder: Path, content: str, name: str = "AGENTS.md") -> str:
    """Write a file with instructions into a folder; return the folder's path."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(content, encoding="utf-8")
    return str(folder)


def reads(*roots: Path, **more: Any) -> WireOptions:
    """A server that reads for its clients."""
    return WireOptions(instruction_roots=roots, **more)


async def test_what_stands_in_the_files_is_part_of_the_system_message_and_stays_through_a_clear(
    tmp_path: Path,
) -> None:
    rules = put(tmp_path / "rules", "Answer in verse.")
    told = f'<instructions file="{rules}/AGENTS.md">\nAnswer in verse.\n</instructions>'
    model = ScriptedModel([call("clear_context", prompt="seed"), "done"])
    async with open_wire(model, options=reads(tmp_path, system_message="BASE")) as wire:
        client = await wire.connect()
        await client.create(
            tools=[CLEAR],
            instructionDirectories=[rules],
            organizationCustomInstructions="Be kind.",
            systemMessage={"content": "Be brief."},
        )
        listed = await client.call("session.instructions.getSources", sessionId="s")
        assert listed == {
            "sources": [
                {
                    "id": f"{rules}/AGENTS.md",
                    "label": "AGENTS.md",
                    "sourcePath": f"{rules}/AGENTS.md",
                    "content": "Answer in verse.",
                    "type": "repo",
                    "location": "repository",
                }
            ]
        }
        await client.say()
        request = await client.requested()
        await client.call("session.history.clearContext", sessionId="s", prompt="seed")
        await client.give(request, result="ok")
        await client.event("session.idle")
        assert client.events("session.warning") == []
        found = await client.call("session.metadata.getContextAttribution", sessionId="s")
        taken = found["contextAttribution"]["categories"]
        instructions = len(f"Be kind.\n\n{told}") // 4
        assert taken["customInstructions"] == instructions
        whole = f"BASE\n\nBe kind.\n\n{told}\n\nBe brief."
        assert taken["systemPrompt"] + instructions == len(whole) // 4
    system = [each.messages[0].content for each in model.requests]
    assert system == [f"BASE\n\nBe kind.\n\n{told}\n\nBe brief."] * 2


@pytest.mark.parametrize(
    ("config", "text"),
    [
        ({"systemMessage": {"mode": "replace", "content": "ONLY"}}, "ONLY"),
        ({"systemMessage": {"mode": "customize"}}, "BASE\n\nRULES"),
        (
            {"systemMessage": {"mode": "customize", "sections": {"tone": {"content": "T"}}}},
            "BASE\n\nT\n\nRULES",
        ),
        (
            {
                "systemMessage": {
                    "mode": "customize",
                    "sections": {
                        "custom_instructions": {"action": "prepend", "content": "C"},
                        "last_instructions": {"content": "L"},
                    },
                    "content": "END",
                }
            },
            "BASE\n\nC\n\nRULES\n\nL\n\nEND",
        ),
        (
            {
                "systemMessage": {
                    "mode": "customize",
                    "sections": {"custom_instructions": {"action": "append", "content": "C"}},
                }
            },
            "BASE\n\nRULES\n\nC",
        ),
        (
            {
                "systemMessage": {
                    "mode": "customize",
                    "sections": {"custom_instructions": {"action": "replace", "content": "C"}},
                }
            },
            "BASE\n\nC",
        ),
        (
            {
                "systemMessage": {
                    "mode": "customize",
                    "sections": {"custom_instructions": {"action": "remove", "content": "C"}},
                }
            },
            "BASE",
        ),
        ({"skipCustomInstructions": True}, "BASE"),
    ],
)
async def test_the_instructions_are_a_section_that_a_client_can_customize(
    config: dict[str, Any], text: str, tmp_path: Path
) -> None:
    rules = put(tmp_path, "R")
    told = f'<instructions file="{rules}/AGENTS.md">\nR\n</instructions>'
    model = ScriptedModel(["hi"])
    async with open_wire(model, options=reads(tmp_path, system_message="BASE")) as wire:
        client = await wire.connect()
        await client.create(instructionDirectories=[rules], **config)
        await client.say()
        await client.event("session.idle")
        skips = "skipCustomInstructions" in config
        listed = await client.call("session.instructions.getSources", sessionId="s")
        assert (listed["sources"] == []) is skips
    assert model.requests[0].messages[0].content == text.replace("RULES", told)


@pytest.mark.parametrize("method", ["session.create", "session.resume"])
@pytest.mark.parametrize("roots", [True, False])
async def test_a_folder_that_the_server_does_not_read_is_refused_and_changes_nothing(
    method: str, roots: bool, tmp_path: Path
) -> None:
    allowed, outside = tmp_path / "allowed", put(tmp_path / "outside", "a secret")
    put(allowed, "mine")
    model = ScriptedModel(["hi"])
    async with open_wire(model, options=reads(*([allowed] if roots else []))) as wire:
        one, two = await wire.connect(), await wire.connect()
        if method == "session.resume":
            await one.create(systemMessage={"content": "as it was"})
        for named in (outside, str(tmp_path / "missing"), f"{allowed}/../outside"):
            with pytest.raises(WireFailure, match="lies in no folder that this server reads") as refused:
                await two.call(method, sessionId="s", instructionDirectories=[named])
            assert refused.value.data == {"type": "InstructionsRefused"}
        assert list(wire.server.hub.sessions) == (["s"] if method == "session.resume" else [])
        if method == "session.resume":
            await one.say()
            await one.event("session.idle")
            assert model.requests[0].messages[0].content == "as it was"
        else:
            with pytest.raises(WireFailure, match="Session not found"):
                await one.call("session.getMessages", sessionId="s")


async def test_a_session_that_is_taken_up_has_the_files_as_they_are_now(tmp_path: Path) -> None:
    rules = put(tmp_path, "first")
    model = ScriptedModel(["1", "2", "3", "4"])
    async with open_wire(model, options=reads(tmp_path, system_message="BASE")) as wire:
        one, two = await wire.connect(), await wire.connect()
        await one.create(instructionDirectories=[rules])
        await one.say()
        await one.event("session.idle")
        put(tmp_path, "second")
        # It says nothing of folders: those of the other hold, as they are now.
        await two.call("session.resume", sessionId="s")
        await one.say()
        await one.event("session.idle", 2)
        for client in (one, two):
            await client.call("session.detach", sessionId="s")
        put(tmp_path, "third")
        await two.call("session.resume", sessionId="s", instructionDirectories=[rules])
        await two.say()
        await two.event("session.idle", 2)
        await two.call("session.detach", sessionId="s")
        await two.call("session.resume", sessionId="s")
        await two.say()
        await two.event("session.idle", 3)
    told = [
        f'BASE\n\n<instructions file="{rules}/AGENTS.md">\n{word}\n</instructions>'
        for word in ("first", "second", "third")
    ]
    assert [request.messages[0].content for request in model.requests] == [*told, "BASE"]


async def test_what_could_not_be_read_is_told_to_the_client(tmp_path: Path) -> None:
    rules = put(tmp_path, "x" * 100_000)
    async with open_wire(ScriptedModel(["hi"]), options=reads(tmp_path)) as wire:
        client = await wire.connect()
        await client.create(instructionDirectories=[rules, "missing"], workingDirectory=rules)
        warnings = [event["data"] for event in client.events("session.warning")]
        assert warnings == [
            {"warningType": "instructions", "message": f"{rules}/AGENTS.md: has more than 65536 bytes"},
            {"warningType": "instructions", "message": "missing: is no folder"},
        ]


async def test_instructions_are_skipped_and_taken_back_while_the_session_lives(tmp_path: Path) -> None:
    rules = put(tmp_path, "R")
    model = ScriptedModel(["1", "2", "3"])
    async with open_wire(model, options=reads(tmp_path)) as wire:
        client = await wire.connect()
        await client.create(instructionDirectories=[rules], skipCustomInstructions=True)
        changes: list[dict[str, Any]] = [
            {"organizationCustomInstructions": "O"},
            {"skipCustomInstructions": False},
            {"skipCustomInstructions": True},
        ]
        for number, change in enumerate(changes, 1):
            await client.call("session.options.update", sessionId="s", **change)
            await client.say()
            await client.event("session.idle", number)
    told = f'<instructions file="{rules}/AGENTS.md">\nR\n</instructions>'
    assert [request.messages[0].content for request in model.requests] == ["O", f"O\n\n{told}", "O"]


async def test_where_a_client_cannot_be_attached_the_instructions_stay_as_they_were(tmp_path: Path) -> None:
    rules = put(tmp_path, "R")
    async with open_wire(ScriptedModel([]), options=reads(tmp_path)) as wire:
        one, two = await wire.connect(), await wire.connect()
        await one.create(instructionDirectories=[rules])
        served = wire.server.hub.served("s")
        before = served.instructions
        with pytest.raises(WireFailure, match="unheard-of"):
            await two.call(
                "session.resume",
                sessionId="s",
                instructionDirectories=[rules, str(tmp_path)],
                provider={"type": "unheard-of"},
                model="m",
            )
        assert served.instructions is before
