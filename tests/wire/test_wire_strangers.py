"""Who decides in a session: clients that are attached to it, and of those the one that was asked."""

from typing import Any

from trio.testing import MockClock

from exeunt.testing import ScriptedModel, call
from tests.wire.test_wire_credits import decide, exhausted, interested, priced
from tests.wire.wire_client import Silence, WireClient, open_wire, tool


async def answered(client: WireClient, method: str, request_id: str, **answer: Any) -> bool:
    done = await client.call(method, sessionId="s", requestId=request_id, **answer)
    return bool(done["success"])


async def asked(client: WireClient, kind: str) -> str:
    return str((await client.event(kind))["data"]["requestId"])


async def test_who_is_not_attached_approves_nothing(autojump_clock: MockClock) -> None:
    method = "session.permissions.handlePendingPermissionRequest"
    model = ScriptedModel([call("t"), "done"])
    async with open_wire(model) as wire:
        client, stranger = await wire.connect(), await wire.connect()
        await client.create(tools=[tool("t", skipPermission=False)])
        await client.say()
        request = await asked(client, "permission.requested")
        assert not await answered(stranger, method, request, result={"kind": "approve-once"})
        assert client.events("permission.completed", "external_tool.requested") == []
        assert await answered(client, method, request, result={"kind": "approve-once"})
        assert await client.give(await client.requested(), result="ok")
        await client.event("session.idle")


async def test_who_is_not_attached_answers_for_no_user(autojump_clock: MockClock) -> None:
    method = "session.ui.handlePendingUserInput"
    model = ScriptedModel([call("ask_user", question="Which?"), "done"])
    async with open_wire(model) as wire:
        client, stranger = await wire.connect(), await wire.connect()

        def silent(params: dict[str, Any]) -> Any:
            raise Silence

        client.handlers["userInput.request"] = silent
        await client.create(requestUserInput=True)
        await client.say()
        request = await asked(client, "user_input.requested")
        said = {"answer": "theirs", "wasFreeform": True}
        assert not await answered(stranger, method, request, response=said)
        assert await answered(client, method, request, response={**said, "answer": "mine"})
        await client.event("session.idle")
    (text,) = model.requests[-1].results.values()
    assert "mine" in text
    assert "theirs" not in text


async def test_who_is_not_attached_fills_in_no_form(autojump_clock: MockClock) -> None:
    method = "session.ui.handlePendingElicitation"
    async with open_wire(ScriptedModel([])) as wire:
        client, stranger = await wire.connect(), await wire.connect()
        await client.create(requestElicitation=True)
        waiting = await client.start("session.ui.elicitation", sessionId="s", message="Name?")
        request = await asked(client, "elicitation.requested")
        assert not await answered(stranger, method, request, result={"action": "accept"})
        assert await answered(client, method, request, result={"action": "decline"})
        assert (await client.answer(waiting))["result"] == {"action": "decline"}


async def test_a_command_is_done_when_the_client_that_runs_it_says_so(autojump_clock: MockClock) -> None:
    method = "session.commands.handlePendingCommand"
    async with open_wire(ScriptedModel([])) as wire:
        runs, watches, stranger = await wire.connect(), await wire.connect(), await wire.connect()
        await runs.create(commands=[{"name": "deploy"}])
        await watches.call("session.resume", sessionId="s")
        waiting = await watches.start(
            "session.commands.execute", sessionId="s", commandName="deploy", args=""
        )
        request = await asked(runs, "command.execute")
        assert not await answered(watches, method, request)
        assert not await answered(stranger, method, request)
        assert await answered(runs, method, request, error="no rights")
        assert (await watches.answer(waiting))["result"] == {"error": "no rights"}


async def test_who_is_not_attached_spends_no_credits(autojump_clock: MockClock) -> None:
    async with open_wire(default=priced("hello", "more")) as wire:
        client, stranger = await wire.connect(), await wire.connect()
        await client.create(sessionLimits={"maxAiCredits": 5})
        await interested(client)
        request = (await exhausted(client))["requestId"]
        assert not await decide(stranger, request, action="unset")
        assert await decide(client, request, action="cancel")


async def test_of_two_answers_that_come_at_once_the_first_counts_and_is_the_only_one_that_does(
    autojump_clock: MockClock,
) -> None:
    model = ScriptedModel([call("t"), "done"])
    async with open_wire(model) as wire:
        client = await wire.connect()
        request = await client.calling(tool("t"))
        method = "session.tools.handlePendingToolCall"
        answer = {"sessionId": "s", "requestId": request}
        both = [(method, {**answer, "result": text}) for text in ("first", "second")]
        done = [(await client.answer(key))["result"] for key in await client.start_together(*both)]
        await client.event("session.idle")
    assert done == [{"success": True}, {"success": False}]
    assert model.requests[-1].results == {"call_1": "first"}
