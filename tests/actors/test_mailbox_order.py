"""In which order messages enter the context: queued, steered, left over."""

from typing import Any

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import wait_all_tasks_blocked

from exeunt import InvalidConfiguration, ToolInvocation, TurnFailed
from exeunt.testing import Gate, ScriptedModel, Sleepy, after, call, checked_host, fail, run_virtual, say
from tests.actors.session_support import (
    begin,
    count,
    ends,
    logged,
    only,
    open_session,
    plain_tool,
    reach,
    settled,
    tool_of,
    watch,
)


async def test_s11_a_steered_message_joins_the_next_request_and_a_queued_one_waits_for_its_own_turn(
    autojump_clock: object,
) -> None:
    model = ScriptedModel([call("slow"), say("seen C"), say("B done")])
    async with checked_host() as host, trio.open_nursery() as nursery:
        session = await open_session(host, model, plain_tool("slow", Sleepy(3)))
        events = watch(session)
        first = begin(nursery, session.send_and_wait, "A")
        await trio.sleep(1)
        queued = begin(nursery, session.send_and_wait, "B")
        await trio.sleep(1)
        await session.send("C", mode="immediate")
        assert (await first.wait()).value.content == "seen C"
        assert (await queued.wait()).value.content == "B done"
        await settled(session)
        assert model.requests[1].contents == ("A", "", "slept", "C")
        assert model.requests[2].contents == ("A", "", "slept", "C", "seen C", "B")
        delivered = [(e.content, e.delivery) for e in await logged(session, "user.message")]
        assert delivered == [("A", "idle"), ("C", "steering"), ("B", "queued")]
        assert count(events, "session.idle") == 1
    model.verify()


async def test_s11_a_steered_message_that_comes_with_the_final_answer_gets_a_turn_of_its_own_before_the_queue(
    autojump_clock: object,
) -> None:
    async def final(_: object) -> str:
        await session.send("B")
        await session.send("C", mode="immediate")
        return "final"

    model = ScriptedModel([final, say("to C"), say("to B")])
    async with checked_host() as host:
        session = await open_session(host, model)
        assert (await session.send_and_wait("A")).content == "final"
        await settled(session)
        assert [e.content for e in await logged(session, "user.message")] == ["A", "C", "B"]
        assert model.requests[1].contents == ("A", "final", "C")
    model.verify()


async def test_what_steered_a_turn_that_is_over_begins_the_next_one_and_the_rest_steers_that(
    autojump_clock: object,
) -> None:
    model = ScriptedModel([say("final", delay=5), say("to all three"), say("to B")])
    async with checked_host() as host, trio.open_nursery() as nursery:
        session = await open_session(host, model)
        first = begin(nursery, session.send_and_wait, "A")
        await trio.sleep(1)
        await session.send("B")
        for text in ("C", "D", "E"):
            await session.send(text, mode="immediate")
        await first.wait()
        await settled(session)
        delivered = [(e.content, e.delivery) for e in await logged(session, "user.message")]
        assert delivered == [
            ("A", "idle"),
            ("C", "queued"),
            ("D", "steering"),
            ("E", "steering"),
            ("B", "queued"),
        ]
        assert model.requests[1].contents == ("A", "final", "C", "D", "E")
        assert await ends(session) == ["completed", "completed", "completed"]
    model.verify()


async def test_s11_a_steered_message_survives_a_turn_that_fails(autojump_clock: object) -> None:
    model = ScriptedModel([after(5, fail("bad_request")), say("to C"), say("to B")])
    async with checked_host() as host, trio.open_nursery() as nursery:
        session = await open_session(host, model)
        first = begin(nursery, session.send_and_wait, "A")
        await trio.sleep(1)
        await session.send("B")
        await session.send("C", mode="immediate")
        assert isinstance((await first.wait()).error, TurnFailed)
        await settled(session)
        assert [e.content for e in await logged(session, "user.message")] == ["A", "C", "B"]
        assert await ends(session) == ["error", "completed", "completed"]
    model.verify()


async def test_a_steered_message_survives_the_limit_of_a_turn(autojump_clock: object) -> None:
    gate = Gate()
    model = ScriptedModel([call("slow"), say("to C")])
    async with checked_host() as host, trio.open_nursery() as nursery:
        session = await open_session(host, model, plain_tool("slow", gate), limits={"steps": 1})
        first = begin(nursery, session.send_and_wait, "A")
        await gate.entered()
        await session.send("C", mode="immediate")
        gate.open()
        assert (await first.wait()).value.reason == "limit"
        await settled(session)
        assert await ends(session) == ["limit", "completed"]
        assert model.requests[1].contents == ("A", "", "passed", "C")
    model.verify()


async def test_a_steered_message_survives_the_end_by_a_terminal_tool(autojump_clock: object) -> None:
    gate = Gate()
    model = ScriptedModel([call("submit"), say("to C")])
    async with checked_host() as host, trio.open_nursery() as nursery:
        session = await open_session(host, model, plain_tool("submit", gate, is_terminal=True))
        first = begin(nursery, session.send_and_wait, "A")
        await gate.entered()
        await session.send("C", mode="immediate")
        gate.open()
        assert (await first.wait()).value.reason == "terminal_tool"
        await settled(session)
        assert [(e.content, e.delivery) for e in await logged(session, "user.message")] == [
            ("A", "idle"),
            ("C", "queued"),
        ]
    model.verify()


async def test_an_immediate_message_to_an_idle_session_begins_a_turn(autojump_clock: object) -> None:
    model = ScriptedModel([say("hi")])
    async with checked_host() as host:
        session = await open_session(host, model)
        reply = await session.send_and_wait("A", mode="immediate")
        assert reply.content == "hi"
        (accepted,) = await logged(session, "message.accepted")
        assert (accepted.mode, accepted.steers) == ("immediate", False)
    model.verify()


async def test_queued_messages_are_answered_first_in_first_out_without_an_idle_between(
    autojump_clock: object,
) -> None:
    model = ScriptedModel([say(f"to {number}", delay=1) for number in range(4)])
    async with checked_host() as host:
        session = await open_session(host, model)
        events = watch(session)
        ids = [await session.send(str(number)) for number in range(4)]
        await settled(session)
        assert [e.message_id for e in await logged(session, "user.message")] == ids
        assert [e.content for e in await logged(session, "assistant.message")] == [
            "to 0",
            "to 1",
            "to 2",
            "to 3",
        ]
        assert count(events, "session.idle") == 1
        assert events[-1].type == "session.idle"
    model.verify()


async def test_a_call_of_the_host_keeps_its_place_among_the_messages(autojump_clock: object) -> None:
    order: list[str] = []

    async def note(_: ToolInvocation) -> str:
        await trio.lowlevel.checkpoint()
        order.append("call")
        return "noted"

    model = ScriptedModel([say("first", delay=5), say("second"), say("third")])
    async with checked_host() as host, trio.open_nursery() as nursery:
        session = await open_session(host, model, tool_of("note", note))
        session.on(
            lambda e: order.append(str(getattr(e, "content", ""))) if e.type == "user.message" else None
        )
        await session.send("A")
        await reach(session, "model")
        await session.send("B")
        called = begin(nursery, session.call_tool, "note")
        await wait_all_tasks_blocked()
        assert session.statistics().mailbox_depth == 2
        await session.send("C")
        await settled(session)
        assert called.value.outcome == "success"
        assert order == ["A", "B", "call", "C"]
    model.verify()


async def test_a_message_that_a_handler_sends_to_its_own_session_comes_next(autojump_clock: object) -> None:
    async def note(invocation: ToolInvocation) -> str:
        await invocation.session.send("from the tool", mode="immediate")
        await invocation.session.send("later")
        return "sent"

    model = ScriptedModel([call("note"), say("ok"), say("bye")])
    async with checked_host() as host:
        session = await open_session(host, model, tool_of("note", note))
        await session.send_and_wait("A")
        await settled(session)
        assert model.requests[1].contents == ("A", "", "sent", "from the tool")
        assert model.requests[2].contents[-1] == "later"
    model.verify()


async def test_a_subscriber_may_send(autojump_clock: object) -> None:
    model = ScriptedModel([say("one"), say("two")])
    async with checked_host() as host, trio.open_nursery() as nursery:
        session = await open_session(host, model)
        sent: list[str] = []

        def again(event: Any) -> None:
            if event.type == "turn.end" and not sent:
                sent.append(event.turn_id)
                nursery.start_soon(session.send, "again")

        session.on(again)
        await session.send_and_wait("A")
        await settled(session)
        await trio.sleep(1)
        await settled(session)
        assert [e.content for e in await logged(session, "user.message")] == ["A", "again"]
    model.verify()


Moves = st.lists(
    st.tuples(st.sampled_from(["enqueue", "immediate"]), st.sampled_from([0.0, 0.5, 1.0, 2.5])), max_size=12
)


@given(Moves)
def test_every_message_is_taken_in_once_and_those_of_a_mode_in_order(moves: list[tuple[Any, float]]) -> None:
    async def program() -> None:
        model = ScriptedModel([], default=say("ok", delay=1))
        async with checked_host() as host:
            session = await open_session(host, model)
            events = watch(session)
            sent: dict[str, list[str]] = {"enqueue": [], "immediate": []}
            for mode, delay in moves:
                sent[mode].append(await session.send("hello", mode=mode))
                await trio.sleep(delay)
            await settled(session)
            taken = [e.message_id for e in only(events, "user.message")]
            assert sorted(taken) == sorted(sent["enqueue"] + sent["immediate"])
            assert [m for m in taken if m in sent["enqueue"]] == sent["enqueue"]
            assert [m for m in taken if m in sent["immediate"]] == sent["immediate"]
        model.verify(all_given=False)

    run_virtual(program)


async def test_a_message_that_is_to_be_first_goes_before_those_that_wait(autojump_clock: object) -> None:
    model = ScriptedModel([call("slow"), say("A done"), say("C"), say("B")])
    async with checked_host() as host, trio.open_nursery() as nursery:
        session = await open_session(host, model, plain_tool("slow", Sleepy(3)))
        first = begin(nursery, session.send_and_wait, "A")
        await trio.sleep(1)
        await session.send("B")
        await session.send("C", first=True)
        assert [item.prompt for item in session.pending_messages()] == ["C", "B"]
        assert (await first.wait()).value.content == "A done"
        await settled(session)
        assert [m.content for m in await logged(session, "user.message")] == ["A", "C", "B"]
    model.verify()


async def test_a_note_is_logged_with_its_message_and_must_be_json(autojump_clock: object) -> None:
    model = ScriptedModel([say("A done")])
    async with checked_host() as host:
        session = await open_session(host, model)
        given: dict[str, Any] = {"from": ["a", 1]}
        await session.send_and_wait("A", note=given)
        given["from"].append("later")
        for wrong in ({"x": object()}, {"x": float}):
            with pytest.raises(InvalidConfiguration, match="JSON values only"):
                await session.send("B", note=wrong)
        (accepted,) = await logged(session, "message.accepted")
        assert accepted.note == {"from": ["a", 1]}
    model.verify()
