"""The hook at the end of the agent's work: it may want more of it, and is told that it did."""

from typing import Any

import pytest
import trio
from trio.testing import MockClock

from exeunt import ToolInvocation, TurnAborted, tool
from exeunt.actors.events import MessageAccepted, SessionIdle, SessionWarning, UserMessage
from exeunt.actors.turn.endings import MOST_BLOCKED_STOPS
from exeunt.testing import ScriptedModel, call, checked_host, fail
from tests.actors.session_support import settled
from tests.actors.turn_support import answering, ends, logged, open_session, submit, watch


class Reviewer:
    """Wants each of *reasons* done, one stop after the other, then lets the agent end."""

    def __init__(self, *reasons: str) -> None:
        self.reasons = list(reasons)
        self.asked: list[bool] = []

    def __call__(self, hook_input: Any, invocation: Any) -> dict[str, str] | None:
        assert hook_input.stop_reason == "end_turn"
        self.asked.append(hook_input.stop_hook_active)
        return {"decision": "block", "reason": self.reasons.pop(0)} if self.reasons else None


async def test_what_the_hook_wants_is_the_next_message_and_the_reply_is_that_of_its_turn(
    autojump_clock: MockClock,
) -> None:
    model = ScriptedModel(["first", "second", "third", "next"])
    reviewer = Reviewer("again", "and again")
    async with checked_host() as host:
        session = await open_session(host, model, on_agent_stop=reviewer)
        idles = watch(session, SessionIdle)
        reply = await session.send_and_wait("go")
        assert reply.content == "third"
        assert [turn.content for turn in reply.turns] == ["first", "second", "third"]
        assert [m.content for m in await logged(session, UserMessage)] == ["go", "again", "and again"]
        assert reviewer.asked == [False, True, True]
        assert len(idles) == 1
        assert (await session.send_and_wait("later")).content == "next"
        assert reviewer.asked[3:] == [False]
    model.verify()


async def test_a_terminal_tool_stops_the_agent_too_and_the_message_goes_before_those_that_wait(
    autojump_clock: MockClock,
) -> None:
    model = ScriptedModel([call("submit", answer=42), "checked", "other"])
    async with checked_host() as host:
        session = await open_session(host, model, submit, on_agent_stop=Reviewer("check it"))
        await session.send("go")
        await session.send("other")
        await settled(session)
        assert [m.content for m in await logged(session, UserMessage)] == ["go", "check it", "other"]
    model.verify()


@pytest.mark.parametrize(
    "answer", [{"decision": "block"}, {"decision": "block", "reason": ""}, {"reason": "x"}, 5]
)
async def test_a_block_without_words_and_a_hook_that_fails_let_the_agent_end(
    answer: Any, autojump_clock: MockClock
) -> None:
    model = ScriptedModel(["done"])
    async with checked_host() as host:
        session = await open_session(host, model, on_agent_stop=answering(answer))
        assert (await session.send_and_wait("go")).content == "done"
    model.verify()


async def test_a_hook_that_always_blocks_is_not_asked_for_ever(autojump_clock: MockClock) -> None:
    model = ScriptedModel(["done"] * (MOST_BLOCKED_STOPS + 1))
    reviewer = Reviewer(*["more"] * 100)
    async with checked_host() as host:
        session = await open_session(host, model, on_agent_stop=reviewer)
        warnings = watch(session, SessionWarning)
        assert (await session.send_and_wait("go")).content == "done"
        assert len(reviewer.asked) == MOST_BLOCKED_STOPS
        assert [warning.warning_type for warning in warnings] == ["stop_blocked"]
    model.verify()


async def test_a_failed_turn_is_no_stop(autojump_clock: MockClock) -> None:
    reviewer = Reviewer("more")
    model = ScriptedModel([fail("bad_request")])
    async with checked_host() as host:
        session = await open_session(host, model, on_agent_stop=reviewer)
        await session.send("go")
        await settled(session)
        assert (reviewer.asked, await ends(session)) == ([], ["error"])


async def test_an_abort_while_the_hook_is_asked_ends_the_work(autojump_clock: MockClock) -> None:
    asked = trio.Event()

    async def slow(hook_input: Any, invocation: Any) -> dict[str, str]:
        asked.set()
        await trio.sleep(5)
        return {"decision": "block", "reason": "more"}

    model = ScriptedModel(["done"])
    async with checked_host() as host, trio.open_nursery() as nursery:
        session = await open_session(host, model, on_agent_stop=slow)
        replies: list[str] = []

        async def ask() -> None:
            replies.append((await session.send_and_wait("go")).content)

        nursery.start_soon(ask)
        await asked.wait()
        await session.abort()
        await settled(session)
        assert replies == ["done"]
        assert len(await logged(session, MessageAccepted)) == 1
    model.verify()


async def test_an_abort_of_the_turn_that_the_hook_wanted_is_told_to_who_waits(
    autojump_clock: MockClock,
) -> None:
    model = ScriptedModel(["done", fail("server_error", retry=True)])
    async with checked_host() as host, trio.open_nursery() as nursery:
        session = await open_session(host, model, on_agent_stop=Reviewer("more"))
        asked = trio.Event()
        session.on(lambda event: asked.set() if getattr(event, "content", "") == "more" else None)

        async def ask() -> None:
            with pytest.raises(TurnAborted):
                await session.send_and_wait("go")

        nursery.start_soon(ask)
        await asked.wait()
        await session.abort()


async def test_at_a_clear_the_message_follows_the_turn_of_the_seed(autojump_clock: MockClock) -> None:
    ended: list[str] = []

    @tool(is_terminal=True)
    async def restart(invocation: ToolInvocation) -> str:
        """Begin anew."""
        await invocation.session.history.clear_context("seed")
        return "cleared"

    def end(hook_input: Any, invocation: Any) -> None:
        ended.append(hook_input.reason)

    model = ScriptedModel([call("restart"), "seeded", "checked"])
    reviewer = Reviewer("check it")
    async with checked_host() as host:
        session = await open_session(host, model, restart, on_agent_stop=reviewer, on_session_end=end)
        assert (await session.send_and_wait("go")).content == "seeded"
        await settled(session)
        assert [m.content for m in await logged(session, UserMessage)] == ["go", "seed", "check it"]
        assert reviewer.asked == [False, False, False]
        assert ended == ["complete"] * 3
    model.verify()
