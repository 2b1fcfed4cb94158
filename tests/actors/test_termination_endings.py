"""The other ends of a turn, and that a turn looks at its own calls only."""

import pytest
from trio.testing import MockClock

from exeunt import ModelError, ModelErrorKind, TurnFailed
from exeunt.actors.events import (
    AssistantTurnEnd,
    AssistantTurnStart,
    ModelCallFailure,
    SessionError,
    SessionIdle,
    TurnEnd,
    UserMessage,
)
from exeunt.testing import ScriptedModel, call, checked_host, fail, say
from tests.actors.turn_support import (
    broken,
    ends,
    logged,
    open_session,
    outcomes,
    read,
    submit,
    turns_counted,
    watch,
)


async def test_an_answer_without_calls_completes_the_turn_with_its_text(autojump_clock: MockClock) -> None:
    model = ScriptedModel([[say("Let me see."), call("read")], "Here it is."])
    async with checked_host() as host:
        session = await open_session(host, model, read)
        reply = await session.send_and_wait("show me")

        assert (reply.content, reply.reason) == ("Here it is.", "completed")
        assert turns_counted(host) == {"completed": 1}
    model.verify()


async def test_an_empty_answer_completes_the_turn_and_stays_out_of_the_context(
    autojump_clock: MockClock,
) -> None:
    model = ScriptedModel(["", "still here"])
    async with checked_host() as host:
        session = await open_session(host, model)
        reply = await session.send_and_wait("say nothing")
        await session.send_and_wait("and now?")

        assert (reply.content, reply.reason) == ("", "completed")
        assert model.requests[1].contents == ("say nothing", "and now?")
    model.verify()


async def test_s7_a_terminal_success_of_the_past_ends_no_later_turn(autojump_clock: MockClock) -> None:
    model = ScriptedModel([[call("read"), call("submit", answer=42)], call("read"), "a normal turn"])
    async with checked_host() as host:
        session = await open_session(host, model, submit, read)
        await session.send_and_wait("solve it")
        reply = await session.send_and_wait("what else?")

        assert (reply.content, reply.reason) == ("a normal turn", "completed")
        assert model.calls == 3
        assert model.requests[1].roles == ("user", "assistant", "tool", "tool", "user")
        assert await ends(session) == ["terminal_tool", "completed"]
    model.verify()


async def test_a_terminal_success_of_an_earlier_batch_cannot_be_in_the_same_turn(
    autojump_clock: MockClock,
) -> None:
    # A failed terminal call stays in the turn's past; what ends the turn is the success of the last batch.
    model = ScriptedModel([call("submit", answer=1), call("read"), call("submit", answer=42)])
    async with checked_host() as host:
        session = await open_session(host, model, submit, read)
        reply = await session.send_and_wait("solve it")

        assert (reply.content, reply.reason) == ("accepted 42", "terminal_tool")
        assert [turn.steps for turn in await logged(session, TurnEnd)] == [3]
    model.verify()


async def test_the_turn_after_a_terminal_one_sees_its_result(autojump_clock: MockClock) -> None:
    model = ScriptedModel([call("submit", answer=42), "you are welcome"])
    async with checked_host() as host:
        session = await open_session(host, model, submit)
        await session.send_and_wait("solve it")
        reply = await session.send_and_wait("thank you")

        assert reply.content == "you are welcome"
        assert model.requests[1].results == {"call_1": "accepted 42"}
        assert model.requests[1].contents[-1] == "thank you"
    model.verify()


async def test_a_queued_message_has_its_turn_after_a_terminal_success(autojump_clock: MockClock) -> None:
    model = ScriptedModel([call("submit", answer=42), "second"])
    async with checked_host() as host:
        session = await open_session(host, model, submit)
        idle = watch(session, SessionIdle)
        await session.send("solve it")
        reply = await session.send_and_wait("next")

        assert reply.content == "second"
        assert [message.delivery for message in await logged(session, UserMessage)] == ["idle", "queued"]
        assert len(idle) == 1
    model.verify()


async def test_steps_are_numbered_and_each_has_its_end(autojump_clock: MockClock) -> None:
    model = ScriptedModel([call("read"), call("read"), "done"])
    async with checked_host() as host:
        session = await open_session(host, model, read)
        await session.send_and_wait("go")

        assert [event.step for event in await logged(session, AssistantTurnStart)] == [0, 1, 2]
        assert [event.step for event in await logged(session, AssistantTurnEnd)] == [0, 1, 2]
    model.verify()


async def test_a_model_error_ends_the_turn_and_the_waiter_gets_its_cause(autojump_clock: MockClock) -> None:
    model = ScriptedModel([fail("authentication", "bad key", status=401), "the key works now"])
    async with checked_host() as host:
        session = await open_session(host, model)
        idle = watch(session, SessionIdle)
        failures = watch(session, ModelCallFailure)

        with pytest.raises(TurnFailed, match="the model gave no answer: bad key") as caught:
            await session.send_and_wait("hello")

        assert isinstance(caught.value.__cause__, ModelError)
        assert caught.value.__cause__.kind is ModelErrorKind.AUTHENTICATION
        assert caught.value.session_id == session.session_id
        (error,) = await logged(session, SessionError)
        assert (error.error_type, error.message, error.status_code) == ("authentication", "bad key", 401)
        assert error.turn_id == caught.value.turn_id
        assert [(failure.status_code, failure.attempt) for failure in failures] == [(401, 1)]
        assert [event.aborted for event in idle] == [False]
        assert turns_counted(host) == {"error": 1}

        reply = await session.send_and_wait("again")
        assert reply.content == "the key works now"
        assert model.requests[1].contents == ("hello", "again")
    model.verify()


async def test_a_model_client_that_raises_anything_at_all_is_a_model_error(autojump_clock: MockClock) -> None:
    model = ScriptedModel([fail(ZeroDivisionError("its own fault")), "recovered"])
    async with checked_host() as host:
        session = await open_session(host, model)

        with pytest.raises(TurnFailed) as caught:
            await session.send_and_wait("hello")

        assert isinstance(caught.value.__cause__, ModelError)
        assert caught.value.__cause__.kind is ModelErrorKind.UNKNOWN
        assert isinstance(caught.value.__cause__.__cause__, ZeroDivisionError)
        (error,) = await logged(session, SessionError)
        assert (error.error_type, error.status_code) == ("unknown", None)
        assert (await session.send_and_wait("again")).content == "recovered"
    model.verify()


async def test_a_model_error_after_a_batch_keeps_the_batch(autojump_clock: MockClock) -> None:
    model = ScriptedModel([[call("read"), call("broken")], fail("server_error", status=500), "picked up"])
    async with checked_host() as host:
        session = await open_session(host, model, read, broken)
        with pytest.raises(TurnFailed):
            await session.send_and_wait("go")
        await session.send_and_wait("go on")

        assert await outcomes(session) == [("read", "success"), ("broken", "failure")]
        assert model.requests[2].roles == ("user", "assistant", "tool", "tool", "user")
        assert await ends(session) == ["error", "completed"]
    model.verify()
