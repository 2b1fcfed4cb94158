"""What clients are sent is what the protocol's schema says."""

import functools
from typing import Any, cast

import jsonschema_rs
import pytest
from trio.testing import MockClock, wait_all_tasks_blocked

from exeunt import ModelErrorKind
from exeunt.testing import ScriptedModel, after, call, fail, say
from exeunt.wire.events.outside import OUTSIDE
from exeunt.wire.table import METHODS
from tests.interop.schemas import schema
from tests.wire.wire_client import CLEAR, WireClient, open_wire, tool

pytestmark = pytest.mark.timeout(600)  # the schemas are downloaded by the first test that needs them

NOT_IN_THE_SCHEMA = {
    "auth.getStatus",
    "models.list",
    "session.create",
    "session.delete",
    "session.destroy",
    "session.detach",
    "session.getForeground",
    "session.getLastId",
    "session.getMessages",
    "session.getMetadata",
    "session.list",
    "session.resume",
    "session.sendAndWait",
    "session.setForeground",
    "status.get",
}
"""Methods that clients call and no schema has."""


@functools.cache
def validators() -> dict[str, Any]:
    """A validator for each kind of event."""
    whole = schema("session-events")
    definitions = whole["definitions"]
    made: dict[str, Any] = {}
    for reference in definitions["SessionEvent"]["anyOf"]:
        name = reference["$ref"].rpartition("/")[2]
        kind = definitions[name]["properties"]["type"]["const"]
        one = {"$ref": f"#/definitions/{name}", "definitions": definitions}
        made[kind] = jsonschema_rs.validator_for(one, offline=True)
    return made


def check(client: WireClient) -> set[str]:
    """Hold all events that *client* got against the schema; return their kinds."""
    for event in client.events():
        kind = event["type"]
        if kind in OUTSIDE:
            continue
        assert kind in validators(), f"the schema has no event {kind}"
        problems = [
            f"{error.instance_path}: {error.message}" for error in validators()[kind].iter_errors(event)
        ]
        assert problems == [], f"{event}"
    return set(client.kinds())


async def test_every_event_is_one_of_the_schema(autojump_clock: MockClock) -> None:
    model = ScriptedModel(
        [
            say("one two", chunks=2),
            [call("t", n=1), call("asks")],
            call("no_such_tool"),
            "done",
            call("clear_context", prompt="seed"),
            "seeded",
            fail(ModelErrorKind.OVERLOADED, "busy", retry=True),
            "after a retry",
            fail(ModelErrorKind.BAD_REQUEST, "wrong"),
            after(60, "never"),
        ]
    )
    async with open_wire(model) as wire:
        client = await wire.connect()
        client.handlers["hooks.invoke"] = lambda params: {"output": {}}
        await client.create(
            tools=[tool("t"), tool("asks", skipPermission=False), CLEAR],
            streaming=True,
            hooks=True,
            commands=[{"name": "deploy"}],
            customAgents=[{"name": "critic"}],
            systemMessage={"mode": "replace", "content": "SYS"},
        )
        other = await wire.connect()
        await other.call(
            "session.resume", sessionId="s", requestElicitation=True, commands=[{"name": "build"}]
        )
        await client.say()
        await client.event("session.idle")
        await client.say()
        await client.approve()
        for number in (1, 2):
            await client.give(await client.requested(number), result="ok")
        await client.event("session.idle", 2)
        await client.say("clear")
        request = await client.requested(3)
        await client.call("session.history.clearContext", sessionId="s", prompt="seed")
        await client.give(request, result="ok")
        for number, prompt in ((3, "retry"), (4, "fail")):
            await client.event("session.idle", number)
            await client.say(prompt)
        await client.event("session.idle", 5)
        await client.call("session.log", sessionId="s", message="noted", level="warning")
        await client.call("session.log", sessionId="s", message="noted", ephemeral=True)
        await client.call("session.mode.set", sessionId="s", mode="plan")
        await client.call("session.name.set", sessionId="s", name="A name")
        await client.call("session.agent.select", sessionId="s", name="critic")
        await client.call("session.agent.deselect", sessionId="s")
        await client.call("session.metadata.setWorkingDirectory", sessionId="s", workingDirectory="/x")
        waiting = await client.start("session.ui.elicitation", sessionId="s", message="Name?")
        form = (await client.event("elicitation.requested"))["data"]["requestId"]
        await client.call(
            "session.ui.handlePendingElicitation",
            sessionId="s",
            requestId=form,
            result={"action": "accept", "content": {"a": 1}},
        )
        await client.answer(waiting)
        await client.start("session.commands.execute", sessionId="s", commandName="build", args="")
        asked = (await other.event("command.execute"))["data"]["requestId"]
        await other.call("session.commands.handlePendingCommand", sessionId="s", requestId=asked)
        await client.say("abort me")
        await wait_all_tasks_blocked()
        await client.call("session.abort", sessionId="s")
        await other.leave()
        await client.call("session.suspend", sessionId="s")
        await client.call("session.resume", sessionId="s")
        kinds = check(client)
        check(other)
    missing = {
        "abort",
        "assistant.idle",
        "assistant.message",
        "assistant.message_delta",
        "assistant.message_start",
        "assistant.streaming_delta",
        "assistant.turn_end",
        "assistant.turn_retry",
        "assistant.turn_start",
        "assistant.usage",
        "capabilities.changed",
        "command.execute",
        "commands.changed",
        "elicitation.completed",
        "elicitation.requested",
        "external_tool.completed",
        "external_tool.requested",
        "hook.end",
        "hook.start",
        "model.call_failure",
        "pending_messages.modified",
        "permission.completed",
        "permission.requested",
        "session.context_changed",
        "session.context_cleared",
        "session.error",
        "session.idle",
        "session.info",
        "session.mode_changed",
        "session.resume",
        "session.shutdown",
        "session.start",
        "session.title_changed",
        "session.warning",
        "subagent.deselected",
        "subagent.selected",
        "system.message",
        "tool.execution_complete",
        "tool.execution_start",
        "user.message",
    } - kinds
    assert missing == set()


def methods_of(part: dict[str, Any]) -> set[str]:
    found = {str(part["rpcMethod"])} if "rpcMethod" in part else set[str]()
    for value in part.values():
        if isinstance(value, dict):
            found |= methods_of(cast("dict[str, Any]", value))
    return found


def test_each_method_is_one_that_the_protocol_has() -> None:
    api = schema("api")
    known = methods_of(api["server"]) | methods_of(api["session"])
    assert set(METHODS) - known - NOT_IN_THE_SCHEMA == set()
