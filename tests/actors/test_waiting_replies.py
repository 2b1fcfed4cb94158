"""Waiting for a reply: what comes of it, and what a time-out or a cancellation leaves behind."""

import math
from typing import Any

import pytest
import trio

from exeunt import (
    HostOptions,
    InvalidConfiguration,
    ModelError,
    PromptBlocked,
    ReplyTimeout,
    RetryPolicy,
    SessionClosed,
    TurnAborted,
    TurnFailed,
)
from exeunt.testing import Gate, ScriptedModel, Sleepy, call, checked_host, fail, hang, say
from tests.actors.session_support import begin, ends, logged, open_session, plain_tool, settled, watch


async def test_a_wait_that_times_out_says_what_the_session_was_doing_and_the_turn_goes_on(
    autojump_clock: object,
) -> None:
    model = ScriptedModel([[call("slow"), call("quick")], say("done"), say("to B")])
    async with checked_host() as host:
        session = await open_session(
            host, model, plain_tool("slow", Sleepy(30)), plain_tool("quick", Sleepy(1))
        )
        events = watch(session)
        began = trio.current_time()
        with trio.move_on_after(2):
            await session.send_and_wait("A")
        await session.send("B")
        with pytest.raises(ReplyTimeout) as caught:
            await session.send_and_wait("C", timeout=10)
        assert trio.current_time() - began == pytest.approx(12)
        error = caught.value
        assert (error.phase, error.in_flight, error.queued) == ("tools", ("slow",), 2)
        assert error.session_id == session.session_id
        assert isinstance(error, TimeoutError)
        await session.abort()
        assert await ends(session) == ["aborted"]
        assert [e.type for e in events].count("session.idle") == 1


@pytest.mark.parametrize(
    ("phase", "in_flight"), [("model", ()), ("tools", ("wait",)), ("prompt_hooks", ()), ("waiting", ())]
)
async def test_each_phase_has_a_name(autojump_clock: object, phase: str, in_flight: tuple[str, ...]) -> None:
    async def never(*_: object) -> None:
        await trio.sleep_forever()

    model = ScriptedModel([call("wait") if phase == "tools" else hang()])
    hooks: dict[str, Any] = {"on_user_prompt_submitted": never} if phase == "prompt_hooks" else {}
    async with checked_host(options=HostOptions(running_turns=1)) as host:
        other = await open_session(host, ScriptedModel([], default=hang()))
        session = await open_session(host, model, plain_tool("wait", Gate()), **hooks)
        if phase == "waiting":
            await other.send("in the way")
        with pytest.raises(ReplyTimeout) as caught:
            await session.send_and_wait("A", timeout=5)
        assert (caught.value.phase, caught.value.in_flight) == (phase, in_flight)
        await session.abort()
        await other.abort()


async def test_a_time_out_of_zero_gives_up_at_once_and_none_waits_on(autojump_clock: object) -> None:
    async with checked_host() as host:
        session = await open_session(host, ScriptedModel([say("late", delay=500), say("soon")]))
        with pytest.raises(ReplyTimeout):
            await session.send_and_wait("A", timeout=0)
        assert (await session.send_and_wait("B", timeout=None)).content == "soon"
        assert await ends(session) == ["completed", "completed"]


async def test_an_infinite_time_out_is_none(autojump_clock: object) -> None:
    async with checked_host() as host:
        session = await open_session(host, ScriptedModel([say("late", delay=500)]))
        assert (await session.send_and_wait("A", timeout=math.inf)).content == "late"


@pytest.mark.parametrize("seconds", [-1, "soon", True, float("nan")])
async def test_what_is_no_time_is_refused_and_nothing_is_sent(autojump_clock: object, seconds: Any) -> None:
    async with checked_host() as host:
        session = await open_session(host, ScriptedModel([]))
        before = await session.get_events()
        with pytest.raises(InvalidConfiguration):
            await session.send_and_wait("A", timeout=seconds)
        assert await session.get_events() == before


async def test_a_waiter_that_is_cancelled_leaves_the_turn_alone(autojump_clock: object) -> None:
    async with checked_host() as host:
        session = await open_session(host, ScriptedModel([say("done", delay=10)]))
        with trio.move_on_after(3) as scope:
            await session.send_and_wait("A")
        assert scope.cancelled_caught
        await settled(session)
        assert await ends(session) == ["completed"]


async def test_a_sender_that_is_cancelled_has_sent_or_not(autojump_clock: object) -> None:
    async with checked_host() as host:
        session = await open_session(host, ScriptedModel([], default=say("ok")))
        with trio.CancelScope() as scope:
            scope.cancel()
            await session.send("A")
        await settled(session)
        accepted = await logged(session, "message.accepted")
        assert [e.message_id for e in await logged(session, "user.message")] == [
            e.message_id for e in accepted
        ]


async def test_who_steers_and_waits_gets_the_reply_of_the_turn_that_took_the_message_in(
    autojump_clock: object,
) -> None:
    gate = Gate()
    model = ScriptedModel([call("wait"), say("to both"), say("to the next")])
    async with checked_host() as host, trio.open_nursery() as nursery:
        session = await open_session(host, model, plain_tool("wait", gate))
        first = begin(nursery, session.send_and_wait, "A")
        await gate.entered()

        async def steer() -> Any:
            return await session.send_and_wait("B", mode="immediate")

        steered = begin(nursery, steer)
        await trio.sleep(1)
        queued = begin(nursery, session.send_and_wait, "C")
        await trio.sleep(1)
        gate.open()
        await queued.wait()
        assert first.value == steered.value
        assert first.value.content == "to both"
        assert queued.value.content == "to the next"
        assert queued.value.turns[0].turn_id != first.value.turns[0].turn_id
    model.verify()


async def test_who_steers_a_turn_that_ends_before_gets_the_reply_of_the_next(autojump_clock: object) -> None:
    model = ScriptedModel([say("final", delay=5), say("to B")])
    async with checked_host() as host, trio.open_nursery() as nursery:
        session = await open_session(host, model)
        first = begin(nursery, session.send_and_wait, "A")
        await trio.sleep(1)
        reply = await session.send_and_wait("B", mode="immediate")
        assert first.value.content == "final"
        assert reply.content == "to B"
    model.verify()


async def test_a_reply_tells_of_its_turn(autojump_clock: object) -> None:
    model = ScriptedModel([[say("let me see"), call("quick")], say("done")])
    async with checked_host() as host:
        session = await open_session(host, model, plain_tool("quick", Sleepy(1)))
        reply = await session.send_and_wait("A")
        (end,) = await logged(session, "turn.end")
        assert (reply.content, reply.reason) == ("done", "completed")
        (turn,) = reply.turns
        assert (turn.turn_id, turn.generation, turn.reason, turn.content) == (
            end.turn_id,
            0,
            "completed",
            "done",
        )
        assert end.steps == 2
        assert end.duration == pytest.approx(1)
    model.verify()


async def test_a_model_that_fails_is_the_cause_of_the_error(autojump_clock: object) -> None:
    model = ScriptedModel([fail("rate_limited", status=429)])
    async with checked_host() as host:
        session = await open_session(host, model, retries=RetryPolicy(attempts=0))
        with pytest.raises(TurnFailed) as caught:
            await session.send_and_wait("A")
        assert isinstance(caught.value.__cause__, ModelError)
        assert caught.value.__cause__.status == 429
        (end,) = await logged(session, "turn.end")
        assert caught.value.turn_id == end.turn_id
        assert caught.value.session_id == session.session_id


async def test_everybody_who_waits_for_a_turn_gets_its_error(autojump_clock: object) -> None:
    gate = Gate()
    model = ScriptedModel([call("wait"), fail("bad_request"), say("to C")])
    async with checked_host() as host, trio.open_nursery() as nursery:
        session = await open_session(host, model, plain_tool("wait", gate))
        first = begin(nursery, session.send_and_wait, "A")
        await gate.entered()

        async def steer() -> Any:
            return await session.send_and_wait("B", mode="immediate")

        steered = begin(nursery, steer)
        queued = begin(nursery, session.send_and_wait, "C")
        await trio.sleep(1)
        gate.open()
        await queued.wait()
        assert isinstance(first.error, TurnFailed)
        assert isinstance(steered.error, TurnFailed)
        assert queued.value.content == "to C"


async def test_a_blocked_prompt_is_told_to_who_waits(autojump_clock: object) -> None:
    def guard(hook_input: Any, _: object) -> Any:
        return {"decision": "block", "reason": "a secret"} if hook_input.prompt == "A" else None

    async with checked_host() as host:
        model = ScriptedModel([say("hi")])
        session = await open_session(host, model, on_user_prompt_submitted=guard)
        with pytest.raises(PromptBlocked, match="a secret"):
            await session.send_and_wait("A")
        assert (await session.send_and_wait("B")).content == "hi"
        assert model.requests[0].contents == ("B",)


async def test_waiters_of_a_disconnected_session_are_told(autojump_clock: object) -> None:
    async with checked_host(settled=False) as host, trio.open_nursery() as nursery:
        session = await open_session(host, ScriptedModel([hang()]))
        running = begin(nursery, session.send_and_wait, "A")
        await trio.sleep(1)
        queued = begin(nursery, session.send_and_wait, "B")
        called = begin(nursery, session.call_tool, "nothing")
        await trio.sleep(1)
        await session.disconnect()
        await called.wait()
        assert isinstance(running.error, TurnAborted)
        assert isinstance(queued.error, SessionClosed)
        assert isinstance(called.error, SessionClosed)
