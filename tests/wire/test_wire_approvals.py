"""Approvals: who is asked, what each decision does, and calls that need none."""

from typing import Any

import pytest
import trio
from trio.testing import MockClock

from exeunt.actors.errors import JournalUnavailable
from exeunt.testing import ScriptedModel, call
from exeunt.wire.serving import changing
from tests.wire.wire_client import WireFailure, open_wire, tool

ASKS = tool("t", skipPermission=False, description="Touches things.")


@pytest.mark.parametrize(
    ("decision", "kind", "text"),
    [
        ({"kind": "approve-once"}, "approved", "done"),
        ({"kind": "approved"}, "approved", "done"),
        ({"kind": "approve-for-session"}, "approved", "done"),
        (
            {"kind": "approve-for-session", "approval": {"kind": "custom-tool", "toolName": "t"}},
            "approved-for-session",
            "done",
        ),
        ({"kind": "reject"}, "denied-interactively-by-user", "The user rejected this tool call."),
        (
            {"kind": "reject", "feedback": "not now"},
            "denied-interactively-by-user",
            "The user rejected this tool call. User feedback: not now",
        ),
        (
            {"kind": "user-not-available"},
            "denied-no-approval-rule-and-could-not-request-from-user",
            "Permission denied and could not request permission from user",
        ),
        (
            {"kind": "denied-by-rules", "rules": []},
            "denied-no-approval-rule-and-could-not-request-from-user",
            "Permission denied and could not request permission from user",
        ),
        (
            {"kind": "junk"},
            "denied-no-approval-rule-and-could-not-request-from-user",
            "Permission denied and could not request permission from user",
        ),
        (
            "junk",
            "denied-no-approval-rule-and-could-not-request-from-user",
            "Permission denied and could not request permission from user",
        ),
    ],
)
async def test_each_decision_about_a_call_is_taken(
    decision: Any, kind: str, text: str, autojump_clock: MockClock
) -> None:
    model = ScriptedModel([call("t", n=1), "after"])
    async with open_wire(model) as wire:
        client = await wire.connect()
        await client.create(tools=[ASKS])
        await client.say()
        asked = (await client.event("permission.requested"))["data"]
        about = {
            "kind": "custom-tool",
            "toolCallId": "call_1",
            "toolName": "t",
            "toolDescription": "Touches things.",
            "args": {"n": 1},
        }
        assert asked["permissionRequest"] == about
        assert asked["promptRequest"] == about
        pending = await client.call("session.permissions.pendingRequests", sessionId="s")
        assert pending == {"items": [{"requestId": asked["requestId"], "request": about}]}
        done = await client.call(
            "session.permissions.handlePendingPermissionRequest",
            sessionId="s",
            requestId=asked["requestId"],
            result=decision,
        )
        assert done == {"success": True}
        if text == "done":
            await client.give(await client.requested(), result="done")
        await client.event("session.idle")
    assert client.events("permission.completed")[0]["data"]["result"]["kind"] == kind
    # The model sees a refusal, and goes on.
    assert model.requests[-1].results == {"call_1": text}


async def test_without_a_client_that_is_asked_the_call_is_denied_without_a_question(
    autojump_clock: MockClock,
) -> None:
    model = ScriptedModel([call("t"), "after"])
    async with open_wire(model) as wire:
        client = await wire.connect()
        await client.create(tools=[ASKS], requestPermission=False)
        await client.say()
        await client.event("session.idle")
    assert client.events("permission.requested", "external_tool.requested") == []
    assert model.requests[-1].results == {
        "call_1": "Permission denied and could not request permission from user"
    }


async def test_an_approval_for_the_session_is_asked_for_once(autojump_clock: MockClock) -> None:
    model = ScriptedModel([call("t"), call("t"), "after"])
    async with open_wire(model) as wire:
        client = await wire.connect()
        await client.create(tools=[ASKS])
        await client.say()
        asked = await client.event("permission.requested")
        await client.call(
            "session.permissions.handlePendingPermissionRequest",
            sessionId="s",
            requestId=asked["data"]["requestId"],
            result={"kind": "approve-for-session", "approval": {"kind": "custom-tool", "toolName": "t"}},
        )
        for number in (1, 2):
            await client.give(await client.requested(number), result="ok")
        await client.event("session.idle")
    assert len(client.events("permission.requested")) == 1


async def test_the_first_of_two_clients_decides_and_both_see_it(autojump_clock: MockClock) -> None:
    model = ScriptedModel([call("t"), "after"])
    async with open_wire(model) as wire:
        one, two = await wire.connect(), await wire.connect()
        await one.create(tools=[ASKS])
        await two.call("session.resume", sessionId="s", requestPermission=True)
        await one.say()
        await two.event("permission.requested")
        await two.approve()
        request = (await one.event("permission.requested"))["data"]["requestId"]
        late = await one.call(
            "session.permissions.handlePendingPermissionRequest",
            sessionId="s",
            requestId=request,
            result={"kind": "reject"},
        )
        assert late == {"success": False}
        await one.give(await one.requested(), result="ok")
        await one.event("session.idle")
    for client in (one, two):
        assert client.events("permission.completed")[0]["data"]["result"] == {"kind": "approved"}


async def test_approve_all_spares_the_questions_until_it_is_taken_back(autojump_clock: MockClock) -> None:
    model = ScriptedModel([call("t"), "one", call("t"), "two"])
    async with open_wire(model) as wire:
        client = await wire.connect()
        await client.create(tools=[ASKS])
        await client.call("session.permissions.setApproveAll", sessionId="s", enabled=True)
        assert await client.call("session.permissions.getMode", sessionId="s") == {"mode": "allow-all"}
        await client.say()
        await client.give(await client.requested(), result="ok")
        await client.event("session.idle")
        await client.call("session.permissions.setMode", sessionId="s", mode="manual")
        await client.say()
        await client.approve()
        await client.give(await client.requested(2), result="ok")
        await client.event("session.idle", 2)
    assert len(client.events("permission.requested")) == 1


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("session.permissions.setApproveAll", {"enabled": True}),
        ("session.permissions.setMode", {"mode": "allow-all"}),
    ],
)
async def test_where_the_questions_cannot_be_spared_they_go_on(
    method: str, params: dict[str, Any], monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock
) -> None:
    async def refuses(*_: Any) -> None:
        await trio.lowlevel.checkpoint()
        raise JournalUnavailable("no room")

    async with open_wire(ScriptedModel([])) as wire:
        client = await wire.connect()
        await client.create(tools=[ASKS])
        with monkeypatch.context() as broken:
            broken.setattr(changing, "reconfigure", refuses)
            with pytest.raises(WireFailure, match="no room"):
                await client.call(method, sessionId="s", **params)
        assert await client.call("session.permissions.getMode", sessionId="s") == {"mode": "manual"}


async def test_an_approval_for_the_session_holds_until_it_is_taken_back(autojump_clock: MockClock) -> None:
    model = ScriptedModel([call("t"), "one", call("t"), "two"])
    async with open_wire(model) as wire:
        client = await wire.connect()
        await client.create(tools=[ASKS])
        for number in (1, 2):
            await client.say()
            asked = await client.event("permission.requested", number)
            await client.call(
                "session.permissions.handlePendingPermissionRequest",
                sessionId="s",
                requestId=asked["data"]["requestId"],
                result={"kind": "approve-for-session", "approval": {"kind": "custom-tool", "toolName": "t"}},
            )
            await client.give(await client.requested(number), result="ok")
            await client.event("session.idle", number)
            done = await client.call("session.permissions.resetSessionApprovals", sessionId="s")
            assert done == {"success": True}
