"""Messages around a clear: steered ones join the seeded turn behind the seed, queued ones follow it, none is lost."""

from typing import Any

import pytest
import trio
from trio.testing import MockClock

from exeunt import Reply, Session, ToolInvocation
from exeunt.testing import Gate, ScriptedModel, after, call, checked_host, say
from tests.actors.clear_support import (
    clear_context,
    ends,
    logged,
    only,
    open_session,
    plain_tool,
    read,
    seeds,
    settled,
    tool_of,
    watch,
)


def _talking(*, before: Any = (), behind: Any = ()) -> Any:
    async def clear(invocation: ToolInvocation) -> str:
        for mode, prompt in before:
            await invocation.session.send(prompt, mode=mode)
        await invocation.session.history.clear_context("FRESH")
        for mode, prompt in behind:
            await invocation.session.send(prompt, mode=mode)
        return "cleared"

    return tool_of("clear", clear, is_terminal=True)


STEERED = [("immediate", "one"), ("immediate", "two")]
QUEUED = [("enqueue", "three"), ("enqueue", "four")]


@pytest.mark.parametrize("when", ["before", "behind"])
async def test_steered_messages_join_the_seeded_request_behind_the_seed_in_order(
    autojump_clock: MockClock, when: str
) -> None:
    model = ScriptedModel([call("clear"), "ok"])
    async with checked_host() as host:
        session = await open_session(host, model, _talking(**{when: STEERED}), system_message="terse")
        reply = await session.send_and_wait("start over")
        assert model.requests[1].contents == ("terse", "FRESH", "one", "two")
        entered = [(e.content, e.delivery) for e in await logged(session, "user.message")]
        assert entered[1:] == [("FRESH", "seed"), ("one", "steering"), ("two", "steering")]
        assert len({e.turn_id for e in (await logged(session, "user.message"))[1:]}) == 1
        assert reply.content == "ok"
    model.verify()


@pytest.mark.parametrize("when", ["before", "behind"])
async def test_queued_messages_follow_the_seeded_turn_each_with_a_turn_of_its_own(
    autojump_clock: MockClock, when: str
) -> None:
    model = ScriptedModel([call("clear"), "on the seed", "on three", "on four"])
    async with checked_host() as host:
        session = await open_session(host, model, _talking(**{when: QUEUED}))
        await session.send("start over")
        await settled(session)
        assert [request.contents[-1] for request in model.requests] == [
            "start over",
            "FRESH",
            "three",
            "four",
        ]
        assert model.requests[2].contents == ("FRESH", "on the seed", "three")
        assert await ends(session) == ["terminal_tool", "completed", "completed", "completed"]
    model.verify()


async def test_steered_and_queued_messages_keep_their_lanes_across_a_clear(autojump_clock: MockClock) -> None:
    both = [QUEUED[0], STEERED[0], QUEUED[1], STEERED[1]]
    model = ScriptedModel([call("clear"), "ok", "on three", "on four"])
    async with checked_host() as host:
        session = await open_session(host, model, _talking(before=both))
        events = watch(session)
        await session.send("start over")
        await settled(session)
        assert model.requests[1].contents == ("FRESH", "one", "two")
        assert [request.contents[-1] for request in model.requests[2:]] == ["three", "four"]
        assert only(events, "message.dropped") == []
        assert len(only(events, "session.idle")) == 1
    model.verify()


async def test_a_message_that_was_in_the_old_context_is_not_brought_along(autojump_clock: MockClock) -> None:
    """It was steered in time for a request of the old generation, so it left with that."""
    gate = Gate()
    model = ScriptedModel([call("wait"), call("clear_context", prompt="FRESH"), "ok"])
    async with checked_host() as host:
        session = await open_session(host, model, clear_context, plain_tool("wait", gate))
        await session.send("start over")
        await gate.entered()
        await session.send("by the way", mode="immediate")
        gate.open()
        await settled(session)
        assert model.requests[1].contents[-1] == "by the way"
        assert model.requests[2].contents == ("FRESH",)
    model.verify()


async def test_the_seed_stands_alone_where_a_message_comes_too_late_for_its_request(
    autojump_clock: MockClock,
) -> None:
    """It steers the seeded turn like any other: before the next request, or in a turn of its own."""
    model = ScriptedModel([call("clear_context", prompt="FRESH"), after(5, call("read")), "ok"])
    async with checked_host() as host:
        session = await open_session(host, model, clear_context, read)
        await session.send("start over")
        await trio.sleep(1)
        await session.send("by the way", mode="immediate")
        await settled(session)
        assert model.requests[1].contents == ("FRESH",)
        assert model.requests[2].contents == ("FRESH", "", "what was read", "by the way")
    model.verify()


async def test_a_waiting_steered_sender_gets_the_answer_of_the_seeded_turn(autojump_clock: MockClock) -> None:
    gate = Gate()
    replies: list[Reply] = []
    model = ScriptedModel([[call("clear"), call("wait")], "ok"])

    async def ask(session: Session, prompt: str, mode: Any) -> None:
        replies.append(await session.send_and_wait(prompt, mode=mode))

    async with checked_host() as host:
        session = await open_session(host, model, _talking(), plain_tool("wait", gate))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask, session, "start over", "enqueue")
            await gate.entered()
            nursery.start_soon(ask, session, "by the way", "immediate")
            await trio.testing.wait_all_tasks_blocked()
            gate.open()
        assert [reply.content for reply in replies] == ["ok", "ok"]
        assert [[turn.reason for turn in reply.turns] for reply in replies] == [
            ["terminal_tool", "completed"]
        ] * 2
    model.verify()


async def test_a_waiting_queued_sender_gets_its_own_answer_and_no_record_of_the_clear(
    autojump_clock: MockClock,
) -> None:
    replies: dict[str, Reply] = {}
    model = ScriptedModel([after(5, call("clear_context", prompt="FRESH")), "on the seed", "on the question"])

    async def ask(session: Session, prompt: str) -> None:
        replies[prompt] = await session.send_and_wait(prompt)

    async with checked_host() as host:
        session = await open_session(host, model, clear_context)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask, session, "start over")
            await trio.sleep(1)
            nursery.start_soon(ask, session, "a question")
        assert replies["start over"].content == "on the seed"
        assert replies["a question"].content == "on the question"
        assert [turn.generation for turn in replies["a question"].turns] == [1]
    model.verify()


async def test_a_clear_lets_waiting_messages_count_for_the_mailbox_as_before(
    autojump_clock: MockClock,
) -> None:
    model = ScriptedModel([call("clear"), after(5, say("ok")), "on three", "on four"])
    async with checked_host() as host:
        session = await open_session(host, model, _talking(before=QUEUED), mailbox_size=2)
        await session.send("start over")
        await trio.sleep(1)
        now = session.statistics()
        assert (now.generation, now.queued, now.mailbox_depth) == (1, 2, 2)
        await settled(session)
        assert await seeds(session) == ["FRESH"]
    model.verify()


async def test_the_tool_that_clears_may_be_called_again_by_a_queued_message(
    autojump_clock: MockClock,
) -> None:
    model = ScriptedModel(
        [call("clear_context", prompt="A"), "on a", call("clear_context", prompt="B"), "on b"]
    )
    async with checked_host() as host:
        session = await open_session(host, model, clear_context)
        await session.send("first")
        await session.send("second")
        await settled(session)
        assert await seeds(session) == ["A", "B"]
        assert model.requests[2].contents == ("A", "on a", "second")
        assert model.requests[3].contents == ("B",)
    model.verify()
