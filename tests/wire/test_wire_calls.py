"""Tools that clients run: arguments, results in all their forms, who may answer, approvals."""

from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from exeunt.testing import ScriptedModel, call, raw_call
from exeunt.wire.options import WireOptions
from tests.wire.wire_client import WireFailure, open_wire, tool

NUMBER = tool(
    "double",
    parameters={
        "type": "object",
        "properties": {"n": {"type": "integer", "minimum": 1}, "unit": {"enum": ["cm", "in"]}},
        "required": ["n"],
        "additionalProperties": False,
    },
)


async def test_a_call_goes_to_its_client_and_the_result_to_the_model(autojump_clock: MockClock) -> None:
    model = ScriptedModel([call("double", n=4), "eight"])
    async with open_wire(model) as wire:
        client = await wire.connect()
        await client.create(tools=[NUMBER], workingDirectory="/somewhere")
        await client.say()
        asked = await client.event("external_tool.requested")
        assert asked["data"] == {
            "requestId": asked["data"]["requestId"],
            "sessionId": "s",
            "toolCallId": "call_1",
            "toolName": "double",
            "arguments": {"n": 4},
            "workingDirectory": "/somewhere",
        }
        assert await client.give(asked["data"]["requestId"], result="8")
        await client.event("session.idle")
    assert model.requests[-1].results == {"call_1": "8"}
    done = client.events("external_tool.completed")
    assert [event["data"] for event in done] == [{"requestId": asked["data"]["requestId"]}]
    kinds = client.kinds()
    assert kinds.index("external_tool.completed") < kinds.index("tool.execution_complete")


@pytest.mark.parametrize(
    ("answer", "text", "success"),
    [
        ({"result": "plain"}, "plain", True),
        ({"result": ""}, "", True),
        ({"result": {"textResultForLlm": "t", "resultType": "success"}}, "t", True),
        ({"result": {"textResultForLlm": "weird", "resultType": "odd"}}, "weird", True),
        ({"result": {"textResultForLlm": "untyped"}}, "untyped", True),
        ({"result": {}}, "", True),
        ({"result": 5}, "", True),
        ({"result": None}, "", True),
        ({}, "", True),
        ({"error": ""}, "", True),
        ({"result": {"textResultForLlm": "f", "resultType": "failure"}}, "f", False),
        ({"result": {"textResultForLlm": "no", "resultType": "denied", "error": "why"}}, "no", False),
        ({"result": {"textResultForLlm": "late", "resultType": "timeout"}}, "late", False),
        ({"result": {"textResultForLlm": "never", "resultType": "rejected"}}, "never", False),
        ({"result": {"textResultForLlm": {"a": 1}}}, '{"a":1}', True),
        (
            {
                "result": {
                    "textResultForLlm": "a picture",
                    "binaryResultsForLlm": [
                        {"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"}
                    ],
                }
            },
            "a picture",
            True,
        ),
        (
            {"error": "E", "result": "R"},
            'Failed to execute `double` tool with arguments: {"n":4} due to error: Error: Tool execution failed',
            False,
        ),
    ],
)
async def test_each_form_of_a_result_is_taken(
    answer: dict[str, Any], text: str, success: bool, autojump_clock: MockClock
) -> None:
    model = ScriptedModel([call("double", n=4), "done"])
    async with open_wire(model) as wire:
        client = await wire.connect()
        await client.create(tools=[NUMBER])
        await client.say()
        assert await client.give(await client.requested(), **answer)
        await client.event("session.idle")
    assert model.requests[-1].results == {"call_1": text}
    complete = client.events("tool.execution_complete")[0]["data"]
    assert complete["success"] is success
    assert ("error" in complete) is not success


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ('{"n":"4"}', "n: "),
        ("{}", '"n" is a required property'),
        ('{"n":4,"m":1}', "m"),
        ('{"n":0}', "n: "),
        ('{"n":1,"unit":"ell"}', "unit: "),
        ("[4]", "must be an object but got array"),
        ("{", "were not valid JSON"),
    ],
)
async def test_arguments_that_violate_the_schema_never_reach_the_client(
    arguments: str, words: str, autojump_clock: MockClock
) -> None:
    model = ScriptedModel([raw_call("double", arguments), "I see"])
    async with open_wire(model) as wire:
        client = await wire.connect()
        await client.create(tools=[NUMBER])
        await client.say()
        await client.event("session.idle")
    assert client.events("external_tool.requested") == []
    (text,) = model.requests[-1].results.values()
    assert text.startswith("The arguments for the tool call 'double' ")
    assert words in text
    assert client.events("tool.execution_complete")[0]["data"]["error"]["code"] == "invalid"


async def test_a_schema_fetches_nothing(autojump_clock: MockClock) -> None:
    async with open_wire(ScriptedModel([])) as wire:
        client = await wire.connect()
        remote = tool(
            "t", parameters={"type": "object", "properties": {"a": {"$ref": "http://127.0.0.1:9/s"}}}
        )
        with pytest.raises(WireFailure, match="tool 't': its parameters are no JSON Schema"):
            await client.create(tools=[remote])
        assert wire.server.hub.sessions == {}


async def test_a_pattern_of_a_schema_cannot_run_long(autojump_clock: MockClock) -> None:
    slow = {"type": "object", "properties": {"a": {"type": "string", "pattern": "^(a+)+$"}}}
    model = ScriptedModel([raw_call("t", '{"a":"%s!"}' % ("a" * 5_000)), "I see"])
    async with open_wire(model) as wire:
        client = await wire.connect()
        await client.create(tools=[tool("t", parameters=slow)])
        await client.say()
        await client.event("session.idle")
    assert client.events("external_tool.requested") == []


@pytest.mark.parametrize("name", ["", "a b", "a/b", "ü", "a" * 65])
async def test_a_name_that_no_model_takes_is_refused(name: str, autojump_clock: MockClock) -> None:
    async with open_wire(ScriptedModel([])) as wire:
        client = await wire.connect()
        with pytest.raises(WireFailure):
            await client.create(tools=[tool(name)])


async def test_of_two_tools_with_one_name_the_first_counts(autojump_clock: MockClock) -> None:
    model = ScriptedModel(["hi"])
    async with open_wire(model) as wire:
        client = await wire.connect()
        await client.create(tools=[tool("t", description="one"), tool("t", description="two")])
        await client.say()
        await client.event("session.idle")
    assert [definition.description for definition in model.requests[0].tools] == ["one"]


async def test_filters_choose_among_the_tools_of_a_client(autojump_clock: MockClock) -> None:
    model = ScriptedModel(["hi"] * 4)
    tools = [tool("one"), tool("two")]
    async with open_wire(model) as wire:
        client = await wire.connect()
        configs: dict[str, Any] = {
            "a": {"availableTools": ["custom:*"]},
            "b": {"availableTools": ["one", "view"]},
            "c": {"excludedTools": ["custom:one", "bash"]},
            "d": {"availableTools": []},
        }
        for session, filters in configs.items():
            await client.create(session, tools=tools, **filters)
            await client.say(session=session)
            await wait_all_tasks_blocked()
    offered = [[definition.name for definition in request.tools] for request in model.requests]
    assert offered == [["one", "two"], ["one"], ["two"], ["one", "two"]]


async def test_a_second_answer_and_one_to_nothing_change_nothing(autojump_clock: MockClock) -> None:
    model = ScriptedModel([call("t"), call("t"), "done"])
    async with open_wire(model) as wire:
        client = await wire.connect()
        await client.create(tools=[tool("t")])
        await client.say()
        first = await client.requested(1)
        assert not await client.give("no-such-request", result="x")
        assert await client.give(first, result="one")
        assert not await client.give(first, result="two")
        assert await client.give(await client.requested(2), result="three")
        await client.event("session.idle")
    assert list(model.requests[-1].results.values()) == ["one", "three"]


async def test_only_the_client_that_serves_a_tool_may_answer(autojump_clock: MockClock) -> None:
    model = ScriptedModel([call("t"), "done"])
    async with open_wire(model) as wire:
        owner, other, stranger = [await wire.connect() for _ in range(3)]
        await owner.create(tools=[tool("t")])
        await other.call("session.resume", sessionId="s")
        await owner.say()
        request = await owner.requested()
        # The event is everybody's, the answer is not.
        assert await other.requested() == request
        assert not await other.give(request, result="forged")
        assert not await stranger.give(request, result="forged")
        assert await owner.give(request, result="true")
        await owner.event("session.idle")
    assert model.requests[-1].results == {"call_1": "true"}


async def test_of_two_clients_with_one_tool_the_last_alone_is_told_of_the_call(
    autojump_clock: MockClock,
) -> None:
    model = ScriptedModel([call("t"), "well", call("t"), "done"])
    async with open_wire(model) as wire:
        first, watcher, last = [await wire.connect() for _ in range(3)]
        await first.create(tools=[tool("t")])
        await watcher.call("session.resume", sessionId="s", tools=[tool("other")])
        await last.call("session.resume", sessionId="s", tools=[tool("t")])
        await first.say()
        request = await last.requested()
        assert await watcher.requested() == request
        await wait_all_tasks_blocked()
        # Its SDK would run the tool, too, and what it did then would be done twice.
        assert first.events("external_tool.requested") == []
        assert [event["data"]["toolName"] for event in first.events("tool.execution_start")] == ["t"]
        assert await last.give(request, result="once")
        await first.event("session.idle")
        # Without the other it is asked again.
        await last.call("session.detach", sessionId="s")
        await first.say()
        assert await first.give(await first.requested(), result="twice")
        await first.event("session.idle", 2)
        log = (await first.call("session.getMessages", sessionId="s"))["events"]
    assert list(model.requests[-1].results.values()) == ["once", "twice"]
    assert [event["type"] for event in log].count("external_tool.requested") == 2
    assert len(first.events("external_tool.completed")) == 2


async def test_a_tool_that_its_client_filters_out_is_that_of_another(autojump_clock: MockClock) -> None:
    model = ScriptedModel([call("t"), "done"])
    async with open_wire(model) as wire:
        serves, filters = await wire.connect(), await wire.connect()
        await serves.create(tools=[tool("t")])
        await filters.call("session.resume", sessionId="s", tools=[tool("t")], excludedTools=["t"])
        await serves.say()
        assert await serves.give(await serves.requested(), result="served")
        await serves.event("session.idle")
        assert filters.events("external_tool.requested") == []
    assert model.requests[-1].results == {"call_1": "served"}


async def test_who_takes_the_session_up_may_answer_for_the_client_that_was_asked(
    autojump_clock: MockClock,
) -> None:
    model = ScriptedModel([call("t"), "done"])
    async with open_wire(model, tokens={"a": "ada", "b": "bob"}) as wire:
        owner, watcher, later = [await wire.connect(token="a") for _ in range(3)]
        bob = await wire.connect(token="b")
        await owner.create(tools=[tool("t")])
        await watcher.call("session.resume", sessionId="s", tools=[tool("other")])
        await owner.say()
        request = await owner.requested()
        await later.call("session.resume", sessionId="s", continuePendingWork=False)
        # It was there, and saw that another was asked; that one was there neither, nor may see the session.
        assert not await watcher.give(request, result="forged")
        with pytest.raises(WireFailure, match="Session not found"):
            await bob.give(request, result="forged")
        # A clear belongs to a call whose answer the client owes, which is not this one's.
        with pytest.raises(WireFailure, match="no tool call is in flight"):
            await later.call("session.history.clearContext", sessionId="s", prompt="seed")
        assert later.events("external_tool.requested") == []
        assert await later.give(request, result="taken over")
        assert not await owner.give(request, result="too late")
        await owner.event("session.idle")
    assert model.requests[-1].results == {"call_1": "taken over"}
    assert len(owner.events("external_tool.completed")) == 1


async def test_who_was_there_may_answer_once_it_takes_the_session_up_anew(autojump_clock: MockClock) -> None:
    model = ScriptedModel([call("t"), "done"])
    async with open_wire(model) as wire:
        owner, watcher = await wire.connect(), await wire.connect()
        await owner.create(tools=[tool("t")])
        await watcher.call("session.resume", sessionId="s")
        await owner.say()
        request = await owner.requested()
        assert not await watcher.give(request, result="forged")
        await watcher.call("session.resume", sessionId="s")
        assert await watcher.give(request, result="taken over")
        await owner.event("session.idle")
    assert model.requests[-1].results == {"call_1": "taken over"}


async def test_a_call_that_is_not_answered_in_time_is_a_time_out(autojump_clock: MockClock) -> None:
    model = ScriptedModel([call("t"), "I waited"])
    async with open_wire(model, options=WireOptions(tool_timeout=90)) as wire:
        client = await wire.connect()
        await client.create(tools=[tool("t")])
        began = trio.current_time()
        await client.say()
        await client.event("session.idle")
        assert trio.current_time() - began == pytest.approx(90)
        assert not await client.give(await client.requested(), result="late")
    assert model.requests[-1].results == {"call_1": "The tool 't' timed out after 90 s."}


async def test_the_calls_of_a_batch_run_at_once_and_their_results_stand_in_call_order(
    autojump_clock: MockClock,
) -> None:
    model = ScriptedModel([[call("t", id="x"), call("t", id="y")], "done"])
    async with open_wire(model) as wire:
        client = await wire.connect()
        await client.create(tools=[tool("t")])
        await client.say()
        first, second = await client.requested(1), await client.requested(2)
        await client.give(second, result="second")
        await client.give(first, result="first")
        await client.event("session.idle")
    assert list(model.requests[-1].results.values()) == ["first", "second"]


async def test_an_unknown_tool_is_told_in_the_words_that_clients_know(autojump_clock: MockClock) -> None:
    model = ScriptedModel([call("report_intent"), "done"])
    async with open_wire(model) as wire:
        client = await wire.connect()
        await client.create(tools=[tool("t")])
        await client.say()
        await client.event("session.idle")
    (text,) = model.requests[-1].results.values()
    assert text == "Tool 'report_intent' does not exist. Available tools that can be called are t."
