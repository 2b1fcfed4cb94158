"""A context that grows past its mark hands off: by the model, or by the policy when the model ignores it."""

from collections.abc import Sequence
from typing import Any

import pytest
import trio
import trio.lowlevel
from trio.testing import MockClock

from exeunt import Message, Session, tool
from exeunt.policies import messages
from exeunt.testing import (
    Gate,
    ScriptedModel,
    call,
    checked_host,
    crash_session,
    fail,
    hang,
    say,
)
from tests.actors.session_support import ends, logged, outcomes, plain_tool, settled
from tests.policies.handoff_support import policy
from tests.policies.policy_support import broken, handoffs, look, looks, open_session, submit, triggers


async def test_below_its_mark_a_context_is_left_alone(autojump_clock: MockClock) -> None:
    summary = ScriptedModel([])
    model = ScriptedModel([*looks(2), say("done")])
    async with checked_host() as host:
        session = await open_session(
            host, model, **policy(at=messages(100), summarize=summary).extend(tools=[look])
        )
        await session.send_and_wait("go")
        assert (await handoffs(session), await triggers(session)) == ([], [])
        assert summary.calls == 0
        assert "reminder" not in "".join(model.requests[-1].contents)


async def test_past_its_mark_the_model_is_asked_and_hands_off_by_the_tool(autojump_clock: MockClock) -> None:
    model = ScriptedModel([*looks(2), call("clear_context", prompt="NOTE"), say("done")])
    async with checked_host() as host:
        session = await open_session(host, model, **policy().extend(tools=[look]))
        assert (await session.send_and_wait("go")).content == "done"
        asked = model.requests[2].results["call_2"]
        assert "[handoff reminder 1]" in asked
        assert "Call the tool `clear_context`" in asked
        assert model.requests[-1].contents == ("NOTE",)
        assert await handoffs(session) == [("reminded", "messages")]
        assert await triggers(session) == ["tool"]
        assert host.metrics.value("exeunt_handoffs_total", action="reminded", trigger="messages") == 1
    model.verify()


async def test_a_model_that_ignores_it_is_handed_off_with_a_summary(autojump_clock: MockClock) -> None:
    summary = ScriptedModel(["SUMMARY"])
    model = ScriptedModel([*looks(4), say("done")])
    async with checked_host() as host:
        session = await open_session(
            host, model, system_message="Be terse.", **policy(summarize=summary).extend(tools=[look])
        )
        reply = await session.send_and_wait("go")
        assert reply.content == "done"
        assert [turn.reason for turn in reply.turns] == ["context_cleared", "completed"]
        assert model.requests[-1].contents == ("Be terse.", "SUMMARY")
        assert await handoffs(session) == [("reminded", "messages")] * 2 + [("forced", "messages")]
        assert await triggers(session) == ["handoff_messages"]
        assert host.metrics.value("exeunt_context_clear_triggers_total", trigger="handoff_messages") == 1
        (asked,) = summary.requests
        assert asked.roles == ("system", "user")
        # With the result of the call after which it happens, which the model never gets to read.
        assert "line 3" in asked.contents[1]
        assert "Be terse." not in asked.contents[1]
    model.verify()
    summary.verify()


async def test_reminders_keep_their_distance(autojump_clock: MockClock) -> None:
    model = ScriptedModel([*looks(9), say("done")])
    async with checked_host() as host:
        session = await open_session(
            host, model, **policy(remind_every=3, force_after=None).extend(tools=[look])
        )
        await session.send_and_wait("go")
        reminded = [
            number
            for number, result in enumerate(model.requests[-1].results.values(), 1)
            if "reminder" in result
        ]
        assert reminded == [2, 5, 8]
        assert "[handoff reminder 3]" in model.requests[-1].results["call_8"]


async def test_without_a_summarizer_it_only_reminds(autojump_clock: MockClock) -> None:
    model = ScriptedModel([*looks(8), say("done")])
    async with checked_host() as host:
        session = await open_session(host, model, **policy().extend(tools=[look]))
        await session.send_and_wait("go")
        assert await triggers(session) == []
        assert await handoffs(session) == [("reminded", "messages")] * 7


async def test_a_user_s_message_is_a_reminder_too(autojump_clock: MockClock) -> None:
    model = ScriptedModel([], default=say("well"))
    async with checked_host() as host:
        session = await open_session(host, model, **policy(remind_every=2).extend())
        for number in range(6):
            await session.send_and_wait(f"message {number}")
        reminded = [
            number for number, text in enumerate(model.requests[-1].contents[::2]) if "reminder" in text
        ]
        assert reminded == [2, 4]


class Fails:
    """A summarizer that fails in one way, a few times, and then works."""

    def __init__(self, *ways: Any) -> None:
        self.ways = list(ways)

    async def __call__(self, conversation: Sequence[Message], invocation: Any) -> str:
        way = self.ways.pop(0) if self.ways else "SUMMARY"
        if isinstance(way, Exception):
            raise way
        if way == "hangs":
            await trio.sleep_forever()
        return way


@pytest.mark.parametrize(
    ("way", "detail"),
    [
        (RuntimeError("broken"), "RuntimeError: broken"),
        ("hangs", "no summary within 45 s"),
        ("  ", "no text"),
        (None, "no text"),
        (7, "no text"),
        ("x" * 101, "at most 100"),
    ],
)
async def test_a_summary_that_fails_changes_nothing_and_is_tried_again(
    autojump_clock: MockClock, way: Any, detail: str
) -> None:
    model = ScriptedModel([*looks(6), say("done")])
    kept = policy(summarize=Fails(way, way), longest_seed=100)
    async with checked_host() as host:
        session = await open_session(host, model, **kept.extend(tools=[look]))
        reply = await session.send_and_wait("go", None)
        assert reply.content == "done"
        assert await handoffs(session) == [
            ("reminded", "messages"),
            ("reminded", "messages"),
            ("summary_failed", "messages"),
            ("reminded", "messages"),
            ("summary_failed", "messages"),
            ("reminded", "messages"),
            ("forced", "messages"),
        ]
        failed = [e.detail for e in await logged(session, "session.handoff") if e.action == "summary_failed"]
        assert all(detail in text for text in failed)
        assert [str(outcome) for _, outcome in await outcomes(session)] == ["success"] * 6
        assert model.requests[-1].contents == ("SUMMARY",)


async def test_a_summary_model_that_fails_is_not_asked_twice_for_one_handoff(
    autojump_clock: MockClock,
) -> None:
    summary = ScriptedModel([fail("server_error"), hang(), "", "SUMMARY"])
    model = ScriptedModel([*looks(7), say("done")])
    async with checked_host() as host:
        session = await open_session(host, model, **policy(summarize=summary).extend(tools=[look]))
        await session.send_and_wait("go", None)
        assert summary.calls == 4
        assert model.requests[-1].contents == ("SUMMARY",)


async def test_siblings_are_not_forgotten_by_a_handoff(autojump_clock: MockClock) -> None:
    gate = Gate()
    summary = ScriptedModel(["SUMMARY"])
    model = ScriptedModel([*looks(3), [call("look"), call("slow")], say("done")])
    async with checked_host() as host:
        session = await open_session(
            host, model, **policy(summarize=summary).extend(tools=[look, plain_tool("slow", gate)])
        )
        await session.send("go")
        await gate.entered()
        await trio.sleep(1)
        assert summary.calls == 0
        gate.open()
        await settled(session)
        assert model.requests[-1].contents == ("SUMMARY",)
        assert "passed" in summary.requests[0].contents[1]


async def test_a_terminal_tool_s_success_ends_the_work_and_is_no_reason_to_hand_off(
    autojump_clock: MockClock,
) -> None:
    model = ScriptedModel([*looks(3), call("submit"), say("never")])
    async with checked_host() as host:
        session = await open_session(
            host, model, **policy(summarize=ScriptedModel([])).extend(tools=[look, submit])
        )
        assert (await session.send_and_wait("go")).reason == "terminal_tool"
        assert await ends(session) == ["terminal_tool"]
        assert await triggers(session) == []


async def test_a_tool_that_fails_cannot_own_a_handoff(autojump_clock: MockClock) -> None:
    model = ScriptedModel([*looks(3), call("broken"), call("look"), say("done")])
    async with checked_host() as host:
        session = await open_session(
            host, model, **policy(summarize=ScriptedModel(["SUMMARY"])).extend(tools=[look, broken])
        )
        await session.send_and_wait("go")
        assert await outcomes(session) == [
            *[("look", "success")] * 3,
            ("broken", "failure"),
            ("look", "success"),
        ]
        assert model.requests[-1].contents == ("SUMMARY",)


async def test_a_clear_of_the_tool_itself_goes_first(autojump_clock: MockClock) -> None:
    @tool
    async def fresh(prompt: str) -> str:
        """Begin anew."""
        await session.history.clear_context(prompt)
        return "fresh"

    summary = ScriptedModel([])
    model = ScriptedModel([*looks(3), call("fresh", prompt="MINE"), say("done")])
    async with checked_host() as host:
        session: Session = await open_session(
            host, model, **policy(summarize=summary).extend(tools=[look, fresh])
        )
        await session.send_and_wait("go")
        assert model.requests[-1].contents == ("MINE",)
        assert await triggers(session) == [""]


async def test_a_clear_that_comes_during_the_summary_is_not_doubled(autojump_clock: MockClock) -> None:
    async def slow(conversation: Sequence[Message], invocation: Any) -> str:
        await invocation.session.history.clear_context("FIRST")
        return "SECOND"

    model = ScriptedModel([*looks(4), say("done")])
    async with checked_host() as host:
        session = await open_session(host, model, **policy(summarize=slow).extend(tools=[look]))
        await session.send_and_wait("go")
        assert (await handoffs(session))[-1] == ("refused", "messages")
        assert model.requests[-1].contents == ("FIRST",)


async def test_a_crash_during_the_summary_loses_nothing_that_was_said(autojump_clock: MockClock) -> None:
    summary = ScriptedModel([hang(), "SUMMARY"])
    model = ScriptedModel([*looks(4), call("look", line=9), say("done")])
    async with checked_host() as host:
        session = await open_session(host, model, **policy(summarize=summary).extend(tools=[look]))
        await session.send("go")
        with trio.fail_after(30):
            await trio.lowlevel.checkpoint()
            while not summary.in_flight:  # noqa: ASYNC110
                await trio.sleep(0.01)
        crash_session(session)
        await settled(session)
        assert await ends(session) == ["interrupted"]
        # The next turn goes on from the reminders that stand in the context.
        assert (await session.send_and_wait("and?")).content == "done"
        assert await triggers(session) == ["handoff_messages"]
        assert model.requests[-1].contents == ("SUMMARY",)


async def test_an_abort_during_the_summary_leaves_the_context_as_it_was(autojump_clock: MockClock) -> None:
    summary = ScriptedModel([hang()])
    model = ScriptedModel(looks(4))
    async with checked_host() as host:
        session = await open_session(host, model, **policy(summarize=summary).extend(tools=[look]))
        await session.send("go")
        with trio.fail_after(30):
            await trio.lowlevel.checkpoint()
            while not summary.in_flight:  # noqa: ASYNC110
                await trio.sleep(0.01)
        await session.abort()
        assert await triggers(session) == []
        assert session.statistics().generation == 0
