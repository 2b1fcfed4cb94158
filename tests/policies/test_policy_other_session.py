"""Work that goes to another session."""

from typing import Any

import pytest
import trio
from trio.testing import MockClock

from exeunt import InvalidConfiguration, Session, SessionClosed, ToolInvocation
from exeunt.policies import handoff_tool
from exeunt.testing import ScriptedModel, after, call, checked_host, say
from tests.actors.session_support import ends, logged, outcomes, settled
from tests.policies.policy_support import handoffs, open_session


async def test_the_other_session_goes_on_and_both_logs_say_so(autojump_clock: MockClock) -> None:
    async with checked_host() as host:
        writer_model = ScriptedModel([say("written")])
        writer = await open_session(host, writer_model)
        model = ScriptedModel([call("handoff", prompt="Write it up.")])
        session = await open_session(
            host, model, tools=[handoff_tool(to=writer, template="From above: {prompt}")]
        )
        reply = await session.send_and_wait("go")
        assert (reply.reason, reply.content) == (
            "terminal_tool",
            f"Handed over to session {writer.session_id}.",
        )
        await settled(writer)
        assert writer_model.requests[0].contents == ("From above: Write it up.",)
        (sent,) = await logged(session, "session.handoff")
        (received,) = await logged(writer, "session.handoff")
        (accepted,) = await logged(writer, "message.accepted")
        assert (sent.action, sent.session_id) == ("sent", writer.session_id)
        assert (received.action, received.session_id) == ("received", session.session_id)
        assert sent.message_id == received.message_id == accepted.message_id
        assert accepted.note == {"handoffFrom": session.session_id}  # with the message, whatever crashes then
        assert host.metrics.value("exeunt_handoffs_total", action="sent", trigger="tool") == 1
        assert host.metrics.value("exeunt_handoffs_total", action="received", trigger="tool") == 1


@pytest.mark.parametrize("is_async", [False, True])
async def test_the_other_session_may_be_made_when_it_is_needed(
    autojump_clock: MockClock, is_async: bool
) -> None:
    async with checked_host() as host:
        made: list[Session] = []

        async def find(invocation: ToolInvocation) -> Session:
            assert invocation.tool_name == "delegate"
            made.append(
                await open_session(host, ScriptedModel([say("well")]), tenant=invocation.session.tenant)
            )
            return made[-1]

        there = await open_session(host, ScriptedModel([say("well")]), tenant="ada")
        tool = handoff_tool(to=find if is_async else lambda invocation: there, name="delegate")
        session = await open_session(
            host, ScriptedModel([call("delegate", prompt="Do it.")]), tools=[tool], tenant="ada"
        )
        await session.send_and_wait("go")
        target = made[0] if is_async else there
        await settled(target)
        assert await ends(target) == ["completed"]


async def test_work_does_not_cross_tenants_unless_that_is_said(autojump_clock: MockClock) -> None:
    async with checked_host() as host:
        other = await open_session(host, ScriptedModel([say("well")]), tenant="bob")
        tools = [handoff_tool(to=other), handoff_tool(to=other, name="across", across_tenants=True)]
        model = ScriptedModel([call("handoff", prompt="Do it."), call("across", prompt="Do it.")])
        session = await open_session(host, model, tools=tools, tenant="ada")
        await session.send_and_wait("go")
        assert await outcomes(session) == [("handoff", "failure"), ("across", "success")]
        assert "another tenant's" in model.requests[1].results["call_1"]
        await settled(other)
        assert await handoffs(session) == [("sent", "tool")]
        assert len(await logged(other, "message.accepted")) == 1


@pytest.mark.parametrize("target", ["itself", "a text", "nothing"])
async def test_a_target_that_cannot_go_on_is_refused(autojump_clock: MockClock, target: str) -> None:
    def to(invocation: ToolInvocation) -> Any:
        return {"itself": invocation.session, "a text": "s2", "nothing": None}[target]

    model = ScriptedModel([call("handoff", prompt="Do it."), say("alone then")])
    async with checked_host() as host:
        session = await open_session(host, model, tools=[handoff_tool(to=to)])
        assert (await session.send_and_wait("go")).content == "alone then"
        said = "nothing to itself" if target == "itself" else "no session"
        assert said in model.requests[1].results["call_1"]
        assert await handoffs(session) == []


async def test_what_the_target_does_not_take_is_a_failure_and_nothing_was_sent(
    autojump_clock: MockClock,
) -> None:
    async with checked_host() as host:
        busy = await open_session(
            host, ScriptedModel([after(60, say("slow")), say("two"), say("three")]), mailbox_size=1
        )
        await busy.send("one")
        await trio.sleep(1)
        await busy.send("two")
        gone = await open_session(host, ScriptedModel([]))
        await gone.disconnect()
        tools = [handoff_tool(to=busy), handoff_tool(to=gone, name="to_gone")]
        model = ScriptedModel(
            [call("handoff", prompt="Do it."), call("to_gone", prompt="Do it."), say("alone then")]
        )
        session = await open_session(host, model, tools=tools)
        assert (await session.send_and_wait("go")).content == "alone then"
        assert "MailboxFull" in model.requests[1].results["call_1"]
        assert "SessionClosed" in model.requests[2].results["call_2"]
        await settled(busy)
        assert await handoffs(session) == await handoffs(busy) == []
        assert len(await logged(busy, "message.accepted")) == 2


@pytest.mark.parametrize("prompt", ["", " ", "x" * 11])
async def test_a_note_that_cannot_be_a_seed_is_a_failure(autojump_clock: MockClock, prompt: str) -> None:
    async with checked_host() as host:
        other = await open_session(host, ScriptedModel([]))
        model = ScriptedModel([call("handoff", prompt=prompt), say("alone then")])
        session = await open_session(host, model, tools=[handoff_tool(to=other, longest_seed=10)])
        await session.send_and_wait("go")
        assert await outcomes(session) == [("handoff", "failure")]
        assert await handoffs(session) == []


def test_a_tool_without_a_target_is_refused() -> None:
    with pytest.raises(InvalidConfiguration, match="a session"):
        handoff_tool(to="s2")  # type: ignore[arg-type]


async def test_only_known_steps_of_a_handoff_are_logged(autojump_clock: MockClock) -> None:
    async with checked_host() as host:
        session = await open_session(host, ScriptedModel([]))
        with pytest.raises(InvalidConfiguration, match="reminded"):
            session.record_handoff("dreamt")  # type: ignore[arg-type]
        with pytest.raises(InvalidConfiguration, match="tokens"):
            session.record_handoff("sent", trigger="mood")  # type: ignore[arg-type]
        assert await handoffs(session) == []
        await session.disconnect()
        with pytest.raises(SessionClosed):
            session.record_handoff("sent")
