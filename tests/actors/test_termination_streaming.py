"""Streamed answers: what is shown, what counts, and streams that go quiet or break off."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from exeunt import (
    ModelDelta,
    ModelError,
    ModelErrorKind,
    ModelRequest,
    ModelResponse,
    TurnAborted,
    TurnFailed,
    Waits,
)
from exeunt.actors.events import (
    AssistantMessage,
    AssistantMessageDelta,
    AssistantReasoningDelta,
    AssistantTurnRetry,
    ModelCallFailure,
    SessionError,
)
from exeunt.testing import (
    ScriptedModel,
    StubbornModel,
    call,
    checked_host,
    fail,
    hang,
    say,
    stream_cut,
    stream_stall,
)
from tests.actors.turn_support import ends, logged, open_session, outcomes, read, submit, watch


async def test_the_pieces_of_an_answer_are_shown_under_its_id(autojump_clock: MockClock) -> None:
    model = ScriptedModel([say("one two three", reasoning="let me count")])
    async with checked_host() as host:
        session = await open_session(host, model, streaming=True)
        deltas, thoughts = watch(session, AssistantMessageDelta), watch(session, AssistantReasoningDelta)
        reply = await session.send_and_wait("count")

        assert [e.delta_content for e in deltas] == ["one", " two", " three"]
        assert "".join(e.delta_content for e in thoughts) == "let me count"
        assert reply.content == "one two three"
        (message,) = await logged(session, AssistantMessage)
        assert {e.message_id for e in deltas} | {e.message_id for e in thoughts} == {message.message_id}
        assert message.reasoning == "let me count"
        assert await logged(session, AssistantMessageDelta) == []
    model.verify()


async def test_each_streamed_answer_of_a_turn_has_an_id_of_its_own(autojump_clock: MockClock) -> None:
    model = ScriptedModel([[say("Reading."), call("read")], "Done."])
    async with checked_host() as host:
        session = await open_session(host, model, read, streaming=True)
        deltas = watch(session, AssistantMessageDelta)
        await session.send_and_wait("go")

        first, second = (message.message_id for message in await logged(session, AssistantMessage))
        assert first != second
        assert [(e.message_id, e.delta_content) for e in deltas] == [(first, "Reading."), (second, "Done.")]
    model.verify()


async def test_a_terminal_tool_ends_a_streamed_turn(autojump_clock: MockClock) -> None:
    model = ScriptedModel(
        [[say("Here."), call("submit", answer=1)], [call("submit", answer=42), call("read")]]
    )
    async with checked_host() as host:
        session = await open_session(host, model, submit, read, streaming=True)
        reply = await session.send_and_wait("go")

        assert (reply.content, reply.reason) == ("accepted 42", "terminal_tool")
        assert [outcome for _, outcome in await outcomes(session)] == ["failure", "success", "success"]
    model.verify()


async def test_without_streaming_no_pieces_are_shown(autojump_clock: MockClock) -> None:
    model = ScriptedModel(["one two three"])
    async with checked_host() as host:
        session = await open_session(host, model)
        deltas = watch(session, AssistantMessageDelta)
        await session.send_and_wait("count")

        assert deltas == []
    model.verify()


async def error_of(model: ScriptedModel, **options: Any) -> tuple[ModelError, float]:
    """The error that ends a streamed turn, and when it came."""
    async with checked_host() as host:
        session = await open_session(host, model, streaming=True, **options)
        failures = watch(session, ModelCallFailure)
        with pytest.raises(TurnFailed) as caught:
            await session.send_and_wait("go", timeout=None)
        when = trio.current_time()
        assert isinstance(caught.value.__cause__, ModelError)
        assert [e.error_type for e in await logged(session, SessionError)] == [
            str(caught.value.__cause__.kind)
        ]
        assert failures[-1].error_type == str(caught.value.__cause__.kind)
        assert (await session.send_and_wait("hello")).content == "hi"
    model.verify()
    return caught.value.__cause__, when


async def test_a_stream_without_a_first_piece_is_given_up(autojump_clock: MockClock) -> None:
    error, when = await error_of(ScriptedModel([hang(), "hi"]))

    assert (error.kind, when) == (ModelErrorKind.TIMEOUT, 120)
    assert (
        str(error)
        == "the model took too long (limits: 120 s for the first piece, 60 s between pieces, 3600 s in all)"
    )


async def test_a_stream_that_goes_quiet_is_given_up(autojump_clock: MockClock) -> None:
    model = ScriptedModel([stream_stall(3), "hi"])
    error, when = await error_of(model, waits=Waits(model_first=10, model_gap=30))

    assert (error.kind, when) == (ModelErrorKind.TIMEOUT, 30)
    assert model.cancelled == 1


async def test_a_slow_stream_may_take_as_long_as_it_goes_on(autojump_clock: MockClock) -> None:
    model = ScriptedModel([say("a b c d e f", delay=100, gap=50)])
    async with checked_host() as host:
        session = await open_session(host, model, streaming=True)
        reply = await session.send_and_wait("go", timeout=None)

        assert (reply.content, trio.current_time()) == ("a b c d e f", 350)
    model.verify()


async def test_a_stream_that_drips_for_ever_is_given_up_in_the_end(autojump_clock: MockClock) -> None:
    model = ScriptedModel([say(" ".join("x" * 100), gap=50), "hi"])
    error, when = await error_of(model, waits=Waits(model_stream=1_000))

    assert (error.kind, when) == (ModelErrorKind.TIMEOUT, 1_000)
    assert model.cancelled == 1


async def test_a_cut_stream_is_tried_again_and_what_was_shown_is_void(autojump_clock: MockClock) -> None:
    model = ScriptedModel([stream_cut(2, "one two three"), "four five"])
    async with checked_host() as host:
        session = await open_session(host, model, streaming=True)
        deltas, retries = watch(session, AssistantMessageDelta), watch(session, AssistantTurnRetry)
        reply = await session.send_and_wait("go")

        assert reply.content == "four five"
        assert [e.delta_content for e in deltas] == ["one", " two", "four", " five"]
        void, counts = deltas[0].message_id, deltas[2].message_id
        assert [e.message_id for e in deltas] == [void, void, counts, counts]
        assert void != counts
        (message,) = await logged(session, AssistantMessage)
        assert message.message_id == counts
        assert [(e.reason, e.attempt) for e in retries] == [("truncated_stream", 2)]
        assert [m.content for m in session.history.messages()] == ["go", "four five"]
    model.verify()


async def test_a_stream_that_is_always_cut_ends_the_turn(autojump_clock: MockClock) -> None:
    error, when = await error_of(ScriptedModel([*[stream_cut(1)] * 6, "hi"]))

    assert (error.kind, when) == (ModelErrorKind.TRUNCATED_STREAM, 15.5)


async def test_an_error_in_a_stream_that_would_come_again_ends_the_turn(autojump_clock: MockClock) -> None:
    error, when = await error_of(ScriptedModel([fail("content_filtered", "no"), "hi"]))

    assert (error.kind, when) == (ModelErrorKind.CONTENT_FILTERED, 0)


class EndsEarly:
    """A client whose first stream ends without a whole answer."""

    def __init__(self) -> None:
        self.streams = 0

    async def complete(self, request: Any) -> ModelResponse:
        raise NotImplementedError

    async def stream(self, request: Any) -> Any:
        self.streams += 1
        yield ModelDelta(text="half")
        if self.streams > 1:
            yield ModelResponse("whole")


async def test_a_stream_that_ends_without_an_answer_is_tried_again(autojump_clock: MockClock) -> None:
    model: Any = EndsEarly()
    async with checked_host() as host:
        session = await host.create_session(model=model, streaming=True)
        retries = watch(session, AssistantTurnRetry)
        reply = await session.send_and_wait("go")

        assert (reply.content, model.streams) == ("whole", 2)
        assert [e.reason for e in retries] == ["truncated_stream"]


async def test_an_abort_closes_the_stream_and_drops_what_was_shown(autojump_clock: MockClock) -> None:
    model = ScriptedModel([say("a b c d", gap=10), "hi"])
    async with checked_host() as host:
        session = await open_session(host, model, streaming=True)
        async with trio.open_nursery() as nursery:

            @nursery.start_soon
            async def wait() -> None:
                with pytest.raises(TurnAborted):
                    await session.send_and_wait("go")

            await trio.sleep(15)
            await session.abort()

        assert trio.current_time() == 15
        assert (model.cancelled, model.in_flight) == (1, 0)
        assert [m.content for m in session.history.messages()] == ["go"]
        await session.send_and_wait("hello")
        assert await ends(session) == ["aborted", "completed"]
    model.verify()


async def test_a_stream_that_does_not_hear_its_cancellation_delays_an_abort_by_the_grace_only(
    autojump_clock: MockClock,
) -> None:
    class Dripping(StubbornModel):
        async def stream(self, request: ModelRequest, /) -> AsyncIterator[ModelDelta | ModelResponse]:
            for _ in range(40):
                await self.complete(request)
                yield ModelDelta(text="drip")
            yield ModelResponse("drip" * 40)

    async with checked_host() as host:
        session = await host.create_session(model=Dripping(0.5), streaming=True)
        deltas = watch(session, AssistantMessageDelta)
        await session.send("go")
        await trio.sleep(5.25)
        await session.abort()

        assert trio.current_time() == 6.25
        seen = len(deltas)
        await trio.sleep(30)
        assert len(deltas) == seen
        assert await ends(session) == ["aborted"]
