"""A clear that happens: what the model sees next, what the log says, what is counted, who gets which answer."""

from typing import Any

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import MockClock

from exeunt import ToolInvocation
from exeunt.testing import ScriptedModel, call, checked_host, run_virtual, say
from tests.actors.clear_support import (
    clear_context,
    clear_softly,
    clears_counted,
    ends,
    logged,
    only,
    open_session,
    outcomes,
    read,
    seeds,
    tool_of,
    turns_counted,
    types,
    watch,
)


async def test_s1_a_terminal_tool_clears_the_context_from_its_handler(autojump_clock: MockClock) -> None:
    """Clearing from the handler never dead-locks, and the next request holds the seed alone."""
    answers: list[int] = []

    async def clear(invocation: ToolInvocation) -> str:
        with trio.fail_after(1):
            result = await invocation.session.history.clear_context("FRESH")
        answers.append(result.messages_cleared)
        return f"Cleared {result.messages_cleared} messages."

    model = ScriptedModel([call("clear_context"), "ok"])
    async with checked_host() as host:
        session = await open_session(
            host,
            model,
            tool_of("clear_context", clear, is_terminal=True),
            system_message="You are terse.",
            developer_messages=["Mind the gap.", "And the step."],
        )
        reply = await session.send_and_wait("start over")

        assert (reply.content, reply.reason) == ("ok", "completed")
        assert answers == [2]
        assert model.requests[1].roles == ("system", "developer", "developer", "user")
        assert model.requests[1].contents == ("You are terse.", "Mind the gap.", "And the step.", "FRESH")
        (boundary,) = await logged(session, "session.context_cleared")
        assert (boundary.messages_cleared, boundary.initial_message, boundary.generation) == (2, "FRESH", 1)
        assert {request.session_id for request in model.requests} == {session.session_id}
        assert [e.content for e in await logged(session, "user.message")] == ["start over", "FRESH"]
        assert clears_counted(host) == {"committed": 1}
        assert turns_counted(host) == {"terminal_tool": 1, "completed": 1}
    model.verify()


async def test_the_events_of_a_clear_come_in_one_fixed_order(autojump_clock: MockClock) -> None:
    model = ScriptedModel([call("clear_context", prompt="FRESH"), "ok"])
    async with checked_host() as host:
        session = await open_session(host, model, clear_context)
        events = watch(session)
        await session.send_and_wait("start over")
    assert types(events) == [
        "message.accepted",
        "user.message",
        "assistant.turn_start",
        "assistant.usage",
        "assistant.message",
        "tool.execution_start",
        "tool.execution_complete",
        "assistant.turn_end",
        "turn.end",
        "session.context_cleared",
        "user.message",
        "assistant.turn_start",
        "assistant.usage",
        "assistant.message",
        "assistant.turn_end",
        "turn.end",
        "session.idle",
        "session.shutdown",
    ]
    first, seed = only(events, "user.message")
    assert (first.delivery, seed.delivery) == ("idle", "seed")
    assert (seed.content, seed.message_id, seed.prompt) == ("FRESH", None, None)
    assert first.turn_id != seed.turn_id
    assert [event.cleared for event in only(events, "turn.end")] == [True, False]
    model.verify()


async def test_a_clear_changes_nothing_before_it_is_committed(autojump_clock: MockClock) -> None:
    seen: list[Any] = []

    async def clear(invocation: ToolInvocation) -> str:
        session = invocation.session
        before, events = session.history.messages(), await session.get_events()
        await session.history.clear_context("FRESH")
        now = session.statistics()
        seen.append(session.history.messages() == before)
        seen.append(await session.get_events() == events)
        seen.append((now.generation, now.clear_staged, now.in_flight))
        return "cleared"

    model = ScriptedModel([call("clear"), "ok"])
    async with checked_host() as host:
        session = await open_session(host, model, tool_of("clear", clear))
        await session.send_and_wait("start over")
        assert seen == [True, True, (0, True, ("clear",))]
        now = session.statistics()
        assert (now.generation, now.clear_staged, now.messages) == (1, False, 2)
    model.verify()


async def test_every_message_of_the_conversation_counts_as_cleared(autojump_clock: MockClock) -> None:
    """Prompts, answers, calls, results of earlier batches; of the open batch only the message that asks for it."""
    model = ScriptedModel(
        [
            [say("let me look"), call("read"), call("read")],
            "there it is",
            call("read"),
            [call("clear_context", prompt="FRESH"), call("read")],
            "ok",
        ]
    )
    async with checked_host() as host:
        session = await open_session(host, model, clear_context, read, system_message="terse")
        await session.send_and_wait("look")
        await session.send_and_wait("start over")
        (boundary,) = await logged(session, "session.context_cleared")
        # look, 1 answer, 2 results, 1 answer; start over, 1 answer, 1 result, 1 answer with the clear.
        assert boundary.messages_cleared == 9
        assert (await outcomes(session))[-1] == ("clear_context", "success")
    model.verify()


async def test_after_an_earlier_clear_only_the_new_context_counts(autojump_clock: MockClock) -> None:
    model = ScriptedModel(
        [
            "one",
            call("clear_context", prompt="FIRST"),
            call("clear_context", prompt="SECOND"),
            "done",
            call("clear_context", prompt="THIRD"),
            "done again",
        ]
    )
    async with checked_host() as host:
        session = await open_session(host, model, clear_context, system_message="terse")
        await session.send_and_wait("a")
        await session.send_and_wait("b")
        await session.send_and_wait("c")
        boundaries = await logged(session, "session.context_cleared")
        # a, one, b, call | FIRST, call | SECOND, done, c, call
        assert [event.messages_cleared for event in boundaries] == [4, 2, 4]
        assert [event.generation for event in boundaries] == [1, 2, 3]
        assert session.statistics().generation == 3
        assert clears_counted(host) == {"committed": 3}
    model.verify()


async def test_a_steered_message_does_not_count_as_cleared(autojump_clock: MockClock) -> None:
    async def steer_and_clear(invocation: ToolInvocation) -> str:
        await invocation.session.send("by the way", mode="immediate")
        result = await invocation.session.history.clear_context("FRESH")
        return str(result.messages_cleared)

    model = ScriptedModel([call("clear"), "ok"])
    async with checked_host() as host:
        session = await open_session(host, model, tool_of("clear", steer_and_clear))
        await session.send_and_wait("start over")
        (boundary,) = await logged(session, "session.context_cleared")
        assert boundary.messages_cleared == 2
    model.verify()


async def test_the_histogram_gets_the_number_of_messages_of_each_clear(autojump_clock: MockClock) -> None:
    model = ScriptedModel(["hi", call("clear_context", prompt="A"), call("clear_context", prompt="B"), "ok"])
    async with checked_host() as host:
        session = await open_session(host, model, clear_context)
        await session.send_and_wait("hello")
        await session.send_and_wait("start over")
        registry = host.metrics.registry
        assert registry.get_sample_value("exeunt_context_messages_cleared_count") == 2
        assert registry.get_sample_value("exeunt_context_messages_cleared_sum") == 6
    model.verify()


def _seeds() -> st.SearchStrategy[str]:
    texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=200)
    return texts.filter(lambda text: bool(text.strip()))


@given(seed=_seeds() | st.sampled_from(["  indented\n\ttext \n", "\n\nFRESH", "FRESH\r\n", "\u2028x\u2029"]))
def test_the_seed_arrives_as_it_was_given_character_by_character(seed: str) -> None:
    async def clear_once() -> None:
        async def clear(invocation: ToolInvocation) -> str:
            await invocation.session.history.clear_context(seed)
            return "cleared"

        model = ScriptedModel([call("clear"), "ok"])
        async with checked_host() as host:
            session = await open_session(host, model, tool_of("clear", clear))
            await session.send_and_wait("start over")
            assert await seeds(session) == [seed]
            assert model.requests[1].contents == (seed,)
        model.verify()

    run_virtual(clear_once)


async def test_the_reply_has_the_last_answer_and_a_record_of_each_turn(autojump_clock: MockClock) -> None:
    model = ScriptedModel(
        [
            [say("I start over."), call("clear_context", prompt="A")],
            [say("And again."), call("clear_softly", prompt="B")],
            "here I am",
        ]
    )
    async with checked_host() as host:
        session = await open_session(host, model, clear_context, clear_softly)
        reply = await session.send_and_wait("start over")
        assert (reply.content, reply.reason) == ("here I am", "completed")
        # A terminal call's turn has the text of that call; the other one has the last text of its model.
        assert [(t.generation, t.reason, t.content) for t in reply.turns] == [
            (0, "terminal_tool", "Cleared 2 messages."),
            (1, "context_cleared", "And again."),
            (2, "completed", "here I am"),
        ]
        assert [t.turn_id for t in reply.turns] == [e.turn_id for e in await logged(session, "turn.end")]
        assert len({record.turn_id for record in reply.turns}) == 3
    model.verify()


async def test_a_chain_of_clears_is_one_wait_and_one_idle(autojump_clock: MockClock) -> None:
    """The first waiter gets the last answer; nobody is told in between that the session is idle."""
    model = ScriptedModel(
        [call("clear_context", prompt=f"seed {number}") for number in range(5)] + ["at last"]
    )
    async with checked_host() as host:
        session = await open_session(host, model, clear_context)
        events = watch(session)
        reply = await session.send_and_wait("go")
        assert reply.content == "at last"
        assert [record.generation for record in reply.turns] == [0, 1, 2, 3, 4, 5]
        assert await ends(session) == ["terminal_tool"] * 5 + ["completed"]
        assert types(events)[-1] == "session.idle"
        assert len(only(events, "session.idle")) == 1
    model.verify()


async def test_what_was_before_the_clear_stays_in_the_log_and_leaves_the_requests(
    autojump_clock: MockClock,
) -> None:
    model = ScriptedModel(["a secret", call("clear_context", prompt="FRESH"), "ok", "still ok"])
    async with checked_host() as host:
        session = await open_session(host, model, clear_context)
        await session.send_and_wait("tell me")
        before = await session.get_events()
        await session.send_and_wait("start over")
        await session.send_and_wait("and now?")

        log = await session.get_events()
        assert log[: len(before)] == before
        assert [event.seq for event in log] == list(range(1, len(log) + 1))
        assert model.requests[-1].contents == ("FRESH", "ok", "and now?")
        assert [m.content for m in session.history.messages()] == ["FRESH", "ok", "and now?", "still ok"]
    model.verify()


async def test_sessions_clear_each_for_itself(autojump_clock: MockClock) -> None:
    model = ScriptedModel.per_session(
        lambda name: [call("clear_context", prompt="FRESH"), "ok"] if name == "one" else ["hi", "hi again"]
    )
    async with checked_host() as host:
        one = await open_session(host, model, clear_context, session_id="one")
        two = await open_session(host, model, clear_context, session_id="two")
        await two.send_and_wait("hello")
        await one.send_and_wait("start over")
        await two.send_and_wait("hello again")
        assert (one.statistics().generation, two.statistics().generation) == (1, 0)
        assert model.requests[-1].contents == ("hello", "hi", "hello again")
    model.verify()


@pytest.mark.parametrize("streaming", [False, True])
async def test_streamed_answers_clear_as_well(autojump_clock: MockClock, streaming: bool) -> None:
    model = ScriptedModel([call("clear_context", prompt="FRESH"), say("now then", gap=1)])
    async with checked_host() as host:
        session = await open_session(host, model, clear_context, streaming=streaming)
        reply = await session.send_and_wait("start over")
        assert reply.content == "now then"
        assert model.requests[1].contents == ("FRESH",)
    model.verify()
