"""Clearing between turns: the host runs its clear tool by its own will, with `session.call_tool`."""

from typing import Any

import pytest
import trio
from trio.testing import MockClock

from exeunt import Outcome, Session, ToolInvocation, ToolOutcome, TurnAborted, WouldDeadlock
from exeunt.testing import Gate, ScriptedModel, Sleepy, after, call, checked_host, hang, say
from tests.actors.clear_support import (
    attempt,
    clear_context,
    clear_softly,
    clears_counted,
    ends,
    logged,
    only,
    open_session,
    outcomes,
    plain_tool,
    seeds,
    settled,
    tool_of,
    turns_counted,
    types,
    watch,
)

FRESH = {"prompt": "FRESH"}


@pytest.mark.parametrize("name", ["clear_context", "clear_softly"])
async def test_a_call_of_the_host_clears_an_idle_session_and_runs_the_seeded_turn(
    autojump_clock: MockClock, name: str
) -> None:
    model = ScriptedModel(["hi", "on the seed"])
    async with checked_host() as host:
        session = await open_session(host, model, clear_context, clear_softly, system_message="terse")
        await session.send_and_wait("hello")
        events = watch(session)
        outcome = await session.call_tool(name, FRESH)
        assert (outcome.outcome, outcome.content) == (Outcome.SUCCESS, "Cleared 2 messages.")
        await settled(session)

        assert types(events) == [
            "tool.execution_start",
            "tool.execution_complete",
            "session.context_cleared",
            "user.message",
            "assistant.turn_start",
            "assistant.usage",
            "assistant.message",
            "assistant.turn_end",
            "turn.end",
            "session.idle",
        ]
        assert {e.turn_id for e in only(events, "tool.execution_start", "tool.execution_complete")} == {None}
        assert model.requests[1].contents == ("terse", "FRESH")
        # The call is no turn: it counts no termination.
        assert turns_counted(host) == {"completed": 2}
        assert clears_counted(host) == {"committed": 1}
    model.verify()


async def test_a_session_that_was_never_spoken_to_can_be_seeded(autojump_clock: MockClock) -> None:
    model = ScriptedModel(["on the seed"])
    async with checked_host() as host:
        session = await open_session(host, model, clear_context)
        outcome = await session.call_tool("clear_context", FRESH)
        assert outcome.content == "Cleared 0 messages."
        await settled(session)
        assert [m.content for m in session.history.messages()] == ["FRESH", "on the seed"]
    model.verify()


async def test_the_host_gets_the_outcome_at_the_commit_and_not_at_the_answer(
    autojump_clock: MockClock,
) -> None:
    model = ScriptedModel([say("on the seed", delay=60)])
    async with checked_host() as host:
        session = await open_session(host, model, plain_tool("slow", Sleepy(5)), clear_context)
        began = trio.current_time()
        await session.call_tool("clear_context", FRESH)
        assert trio.current_time() == began
        assert await seeds(session) == ["FRESH"]
        assert session.statistics().phase == "model"
        await settled(session)
    model.verify()


async def test_calls_and_messages_keep_the_order_in_which_the_host_gave_them(
    autojump_clock: MockClock,
) -> None:
    """A call behind a message waits for its turn; a message behind a clearing call follows the seeded turn."""
    results: list[ToolOutcome] = []
    model = ScriptedModel([say("one", delay=5), "two", "on the seed", "three"])

    async def run_clear(session: Session) -> None:
        results.append(await session.call_tool("clear_context", FRESH))

    async with checked_host() as host, trio.open_nursery() as nursery:
        session = await open_session(host, model, clear_context)
        await session.send("1")
        await session.send("2")
        nursery.start_soon(run_clear, session)
        await trio.sleep(1)
        await session.send("3")
        assert session.statistics().mailbox_depth == 3
        await settled(session)
        assert [request.contents[-1] for request in model.requests] == ["1", "2", "FRESH", "3"]
        assert model.requests[3].contents == ("FRESH", "on the seed", "3")
        assert [result.content for result in results] == ["Cleared 4 messages."]
        assert len(await ends(session)) == 4
    model.verify()


async def test_a_message_sent_right_behind_a_call_does_not_overtake_it(autojump_clock: MockClock) -> None:
    """Nothing happens in between: the two are told apart by the order in which they came alone."""
    model = ScriptedModel([say("one", delay=5), "on the seed", "two"])
    async with checked_host() as host, trio.open_nursery() as nursery:
        session = await open_session(host, model, clear_context)
        await session.send("1")
        await trio.sleep(1)
        nursery.start_soon(session.call_tool, "clear_context", FRESH)
        await trio.sleep(1)
        await session.send("2")
        await settled(session)
        assert [request.contents[-1] for request in model.requests] == ["1", "FRESH", "2"]
    model.verify()


async def test_a_call_right_behind_a_message_does_not_overtake_it(autojump_clock: MockClock) -> None:
    model = ScriptedModel([say("one", delay=5), "two", "on the seed"])
    async with checked_host() as host, trio.open_nursery() as nursery:
        session = await open_session(host, model, clear_context)
        await session.send("1")
        await trio.sleep(1)
        await session.send("2")
        nursery.start_soon(session.call_tool, "clear_context", FRESH)
        await trio.sleep(1)
        await settled(session)
        assert [request.contents[-1] for request in model.requests] == ["1", "2", "FRESH"]
    model.verify()


async def test_two_clearing_calls_run_one_after_the_other(autojump_clock: MockClock) -> None:
    model = ScriptedModel(["on a", "on b"])
    async with checked_host() as host, trio.open_nursery() as nursery:
        session = await open_session(host, model, clear_context)
        nursery.start_soon(session.call_tool, "clear_context", {"prompt": "A"})
        await trio.testing.wait_all_tasks_blocked()
        nursery.start_soon(session.call_tool, "clear_context", {"prompt": "B"})
        await trio.sleep(1)
        await settled(session)
        assert await seeds(session) == ["A", "B"]
        boundaries = await logged(session, "session.context_cleared")
        assert [event.messages_cleared for event in boundaries] == [0, 2]
    model.verify()


async def test_another_task_may_clear_while_a_call_of_the_host_runs(autojump_clock: MockClock) -> None:
    gate = Gate()
    model = ScriptedModel(["on the seed"])
    async with checked_host() as host, trio.open_nursery() as nursery:
        session = await open_session(host, model, plain_tool("wait", gate))
        nursery.start_soon(session.call_tool, "wait")
        await gate.entered()
        staged = await attempt(session)
        assert staged.result is not None
        gate.open()
        await staged.result.settled()
        await settled(session)
        assert model.requests[0].contents == ("FRESH",)
        assert clears_counted(host) == {"committed": 1}
    model.verify()


async def test_a_call_of_the_host_that_fails_rolls_its_clear_back(autojump_clock: MockClock) -> None:
    async def clear(invocation: ToolInvocation) -> str:
        await invocation.session.history.clear_context("FRESH")
        raise RuntimeError("changed my mind")

    model = ScriptedModel(["hi", "hi again"])
    async with checked_host() as host:
        session = await open_session(host, model, tool_of("clear", clear))
        await session.send_and_wait("hello")
        outcome = await session.call_tool("clear")
        assert outcome.outcome is Outcome.FAILURE
        assert "changed my mind" in outcome.content
        await session.send_and_wait("still there?")
        assert model.requests[1].contents == ("hello", "hi", "still there?")
        assert clears_counted(host) == {"rolled_back": 1}
    model.verify()


async def test_a_refused_clear_of_a_host_call_is_its_failure(autojump_clock: MockClock) -> None:
    model = ScriptedModel([])
    async with checked_host() as host:
        session = await open_session(host, model, clear_context)
        outcome = await session.call_tool("clear_context", {"prompt": " "})
        assert outcome.outcome is Outcome.FAILURE
        assert "seed prompt is blank" in outcome.content
        assert clears_counted(host) == {"empty_prompt": 1}
    model.verify()


async def test_an_abort_rolls_back_the_clear_of_a_host_call(autojump_clock: MockClock) -> None:
    results: list[ToolOutcome] = []

    async def clear(invocation: ToolInvocation) -> str:
        await invocation.session.history.clear_context("FRESH")
        await trio.sleep_forever()
        return "never"

    async def run_clear(session: Session) -> None:
        results.append(await session.call_tool("clear"))

    model = ScriptedModel([])
    async with checked_host() as host, trio.open_nursery() as nursery:
        session = await open_session(host, model, tool_of("clear", clear))
        nursery.start_soon(run_clear, session)
        await trio.sleep(1)
        await session.abort()
        await settled(session)
        assert [result.outcome for result in results] == [Outcome.CANCELLED]
        assert clears_counted(host) == {"rolled_back": 1}
        assert await seeds(session) == []
    model.verify()


async def test_a_clearing_call_that_has_not_begun_is_dropped_by_an_abort(autojump_clock: MockClock) -> None:
    model = ScriptedModel([hang()])

    async def run_clear(session: Session) -> None:
        with pytest.raises(TurnAborted):
            await session.call_tool("clear_context", FRESH)

    async with checked_host() as host, trio.open_nursery() as nursery:
        session = await open_session(host, model, clear_context)
        await session.send("hello")
        nursery.start_soon(run_clear, session)
        await trio.sleep(1)
        await session.abort()
        assert await outcomes(session) == []
        assert clears_counted(host) == {}
    model.verify()


async def test_a_handler_cannot_run_a_clearing_call_of_its_own_session(autojump_clock: MockClock) -> None:
    errors: list[Exception] = []

    async def run_clear(invocation: ToolInvocation) -> str:
        with pytest.raises(WouldDeadlock) as caught:
            await invocation.session.call_tool("clear_context", FRESH)
        errors.append(caught.value)
        return "went on"

    model = ScriptedModel([call("run_clear"), "hi"])
    async with checked_host() as host:
        session = await open_session(host, model, tool_of("run_clear", run_clear), clear_context)
        await session.send_and_wait("hello")
        assert len(errors) == 1
        assert session.statistics().generation == 0
    model.verify()


async def test_the_seeded_turn_of_a_host_call_may_clear_again(autojump_clock: MockClock) -> None:
    model = ScriptedModel([call("clear_context", prompt="A"), after(1, "on a")])
    async with checked_host() as host:
        session = await open_session(host, model, clear_context)
        events = watch(session)
        await session.call_tool("clear_context", FRESH)
        await settled(session)
        assert await seeds(session) == ["FRESH", "A"]
        assert len(only(events, "session.idle")) == 1
    model.verify()


async def test_a_host_call_that_clears_passes_through_hooks_and_approval(autojump_clock: MockClock) -> None:
    asked: list[str] = []

    def approve(request: Any, _: Any) -> str:
        asked.append(request.tool_name)
        return "approve-once"

    async def clear(invocation: ToolInvocation) -> str:
        await invocation.session.history.clear_context("FRESH")
        return "cleared"

    model = ScriptedModel(["on the seed"])
    async with checked_host() as host:
        session = await open_session(
            host, model, tool_of("clear", clear, skip_permission=False), on_permission_request=approve
        )
        await session.call_tool("clear")
        await settled(session)
        assert asked == ["clear"]
        assert await seeds(session) == ["FRESH"]
    model.verify()
