"""What is said of the files of sessions is what the protocol's schema says: to clients, and in requests to them."""

from collections.abc import Iterator, Sequence
from typing import Any, cast

import jsonschema_rs
import pytest
import trio
from trio.testing import MockClock

from exeunt.testing import ScriptedModel, call
from tests.interop.schemas import schema
from tests.interop.test_schema import check
from tests.wire.client_files import ClientFiles
from tests.wire.wire_client import open_wire, tool

pytestmark = pytest.mark.timeout(600)  # the schemas are downloaded by the first test that needs them


def described(part: Any) -> Iterator[dict[str, Any]]:
    """All methods of a part of the schema."""
    if not isinstance(part, dict):
        return
    fields = cast("dict[str, Any]", part)
    if "rpcMethod" in fields:
        yield fields
        return
    for name, value in fields.items():
        if name != "definitions":
            yield from described(value)


def needed(part: Any) -> Iterator[tuple[str, Any]]:
    """The definitions that a part of the schema refers to; others refer to what is in other files."""
    if isinstance(part, list):
        for value in cast("Sequence[Any]", part):
            yield from needed(value)
    elif isinstance(part, dict):
        fields = cast("dict[str, Any]", part)
        name = str(fields.get("$ref", "")).rpartition("/")[2]
        if name:
            definition = schema("api")["definitions"][name]
            yield name, definition
            yield from needed(definition)
        for value in fields.values():
            yield from needed(value)


def problems(method: dict[str, Any], what: str, value: Any) -> list[str]:
    """Hold parameters or a result of a method against the schema."""
    one = {**method[what], "definitions": dict(needed(method[what]))}
    found = jsonschema_rs.validator_for(one, offline=True).iter_errors(value)
    return [f"{method['rpcMethod']} {error.instance_path}: {error.message}" for error in found]


async def test_files_of_sessions_are_as_in_the_schema(autojump_clock: MockClock) -> None:
    methods = {method["rpcMethod"]: method for method in described(schema("api"))}
    files = ClientFiles()
    asked: dict[str, list[dict[str, Any]]] = {}
    model = ScriptedModel([call("t", n=1), "done", "SUMMARY"])

    def watched(name: str, params: dict[str, Any]) -> None:
        asked.setdefault(name, []).append(params)

    files.fault = watched
    calls: list[tuple[str, dict[str, Any]]] = [
        ("plan.read", {}),
        ("plan.update", {"content": "x"}),
        ("plan.read", {}),
        ("plan.delete", {}),
        ("workspaces.getWorkspace", {}),
        ("workspaces.ensure", {}),
        ("workspaces.updateMetadata", {"name": "n", "context": {"branch": "b"}}),
        ("workspaces.createFile", {"path": "a/b", "content": "x"}),
        ("workspaces.listFiles", {}),
        ("workspaces.readFile", {"path": "a/b"}),
        ("workspaces.statFile", {"path": "a/b"}),
        ("workspaces.createDirectory", {"path": "d"}),
        ("workspaces.renamePath", {"source": "a/b", "destination": "c"}),
        ("workspaces.removePath", {"path": "c"}),
        ("workspaces.saveLargePaste", {"content": "x"}),
        ("workspaces.listCheckpoints", {}),
        ("workspaces.readCheckpoint", {"number": 1}),
        ("workspaces.readCheckpoint", {"number": 9}),
        ("workspaces.addSummary", {"title": "t", "content": "x"}),
        ("workspaces.truncateSummaries", {"keepCount": 1}),
        ("metadata.snapshot", {}),
        ("metadata.setWorkingDirectory", {"workingDirectory": "/there"}),
        ("metadata.recordContextChange", {"context": {"cwd": "/there", "branch": "b"}}),
    ]
    async with open_wire(model) as wire:
        client = await wire.connect()
        await files.register(client)
        await client.create(tools=[tool("t")])
        await client.say()
        await client.give(await client.requested(1), result="x" * 300_000)
        await client.event("session.idle")
        await client.call("session.history.compact", sessionId="s")
        await trio.sleep(1)
        for name, params in calls:
            method = methods[f"session.{name}"]
            assert problems(method, "params", {"sessionId": "s", **params}) == []
            result = await client.call(f"session.{name}", sessionId="s", **params)
            assert problems(method, "result", result) == []
        await client.call("session.destroy", sessionId="s")
        kinds = check(client)
    assert {"session.plan_changed", "session.workspace_file_changed", "session.context_changed"} <= kinds
    for name, requests in asked.items():
        for request in requests:
            assert problems(methods[f"sessionFs.{name}"], "params", request) == []
    assert set(asked) >= {"writeFile", "appendFile", "exists", "stat", "readFile", "mkdir", "rm", "rename"}
