"""Model calls that fail and are tried again, and when that ends."""

from typing import Any, cast

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import MockClock

from exeunt import ModelError, ModelErrorKind, ModelResponse, RetryPolicy, TurnFailed, Waits
from exeunt.actors.events import (
    AssistantTurnRetry,
    AssistantTurnStart,
    AssistantUsage,
    ModelCallFailure,
    SessionError,
)
from exeunt.testing import (
    ScriptedModel,
    StubbornModel,
    after,
    call,
    checked_host,
    fail,
    hang,
    run_virtual,
    say,
)
from exeunt.testing.replies import Fail
from tests.actors.turn_support import STEADY, ends, logged, open_session, read, turns_counted, watch


def busy(**options: Any) -> Fail:
    return fail("overloaded", "busy", retry=True, status=503, **options)


async def test_a_failed_model_call_is_tried_again_after_times_that_grow_up_to_a_bound(
    autojump_clock: MockClock,
) -> None:
    model = ScriptedModel([*[busy()] * 5, "at last"])
    async with checked_host() as host:
        session = await open_session(host, model)
        retries = watch(session, AssistantTurnRetry)
        failures = watch(session, ModelCallFailure)
        reply = await session.send_and_wait("go")

        assert reply.content == "at last"
        assert [(e.attempt, e.delay) for e in retries] == [(2, 0.5), (3, 1), (4, 2), (5, 4), (6, 8)]
        assert trio.current_time() == 15.5
        assert {e.reason for e in retries} == {"overloaded"}
        assert {e.turn_id for e in retries} == {reply.turns[0].turn_id}
        assert [(e.attempt, e.error_type, e.status_code, e.message) for e in failures] == [
            (attempt, "overloaded", 503, "busy") for attempt in range(1, 6)
        ]
        # One request after another, all the same, and one step.
        assert {request.contents for request in model.requests} == {("go",)}
        assert len(await logged(session, AssistantTurnStart)) == 1
        assert turns_counted(host) == {"completed": 1}
    model.verify()


async def test_when_the_policy_is_spent_the_last_error_ends_the_turn(autojump_clock: MockClock) -> None:
    model = ScriptedModel([busy(), busy(), fail("rate_limited", "slow down", retry=True, status=429)])
    async with checked_host() as host:
        session = await open_session(host, model, retries=RetryPolicy(attempts=2, jitter=0))
        with pytest.raises(TurnFailed) as caught:
            await session.send_and_wait("go")

        assert isinstance(caught.value.__cause__, ModelError)
        assert caught.value.__cause__.status == 429
        assert [e.status_code for e in await logged(session, SessionError)] == [429]
        assert model.calls == 3
    model.verify()


async def test_an_error_that_would_come_again_is_not_tried_again(autojump_clock: MockClock) -> None:
    model = ScriptedModel([fail("bad_request", "no such parameter", status=400)])
    async with checked_host() as host:
        session = await open_session(host, model)
        retries = watch(session, AssistantTurnRetry)
        with pytest.raises(TurnFailed):
            await session.send_and_wait("go")

        assert (retries, trio.current_time()) == ([], 0)
    model.verify()


@pytest.mark.parametrize(("retry_after", "delay"), [(0, 0), (3.5, 3.5), (47, 47), (0.1, 0.1)])
async def test_the_providers_retry_after_is_obeyed(
    autojump_clock: MockClock, retry_after: float, delay: float
) -> None:
    model = ScriptedModel([busy(retry_after=retry_after), "fine"])
    async with checked_host() as host:
        session = await open_session(host, model)
        retries = watch(session, AssistantTurnRetry)
        await session.send_and_wait("go")

        assert [e.delay for e in retries] == [delay]
        assert trio.current_time() == delay
    model.verify()


@given(jitter=st.floats(0, 1), retry_after=st.none() | st.floats(0, 100))
def test_jitter_lengthens_a_delay_and_never_shortens_it(jitter: float, retry_after: float | None) -> None:
    async def retried() -> float:
        model = ScriptedModel([busy(retry_after=retry_after), "fine"])
        async with checked_host() as host:
            session = await open_session(host, model, retries=RetryPolicy(jitter=jitter))
            await session.send_and_wait("go", timeout=None)
        return trio.current_time()

    base = 0.5 if retry_after is None else retry_after
    assert base <= run_virtual(retried) <= base * (1 + jitter)


async def test_each_step_has_retries_of_its_own(autojump_clock: MockClock) -> None:
    model = ScriptedModel([busy(), call("read"), busy(), "done"])
    async with checked_host() as host:
        session = await open_session(host, model, read, retries=RetryPolicy(attempts=1, jitter=0))
        reply = await session.send_and_wait("go")

        assert reply.content == "done"
        assert trio.current_time() == 1
    model.verify()


async def test_an_abort_ends_the_wait_for_the_next_attempt(autojump_clock: MockClock) -> None:
    model = ScriptedModel([busy(retry_after=3600), "hi"])
    async with checked_host() as host:
        session = await open_session(host, model)
        await session.send("go")
        await trio.sleep(10)
        await session.abort()

        assert trio.current_time() == 10
        assert (await session.send_and_wait("hello")).content == "hi"
        assert await ends(session) == ["aborted", "completed"]
    model.verify()


async def test_the_error_hook_may_ask_for_more_attempts(autojump_clock: MockClock) -> None:
    asked: list[tuple[str, str, bool]] = []

    def insist(hook_input: Any, invocation: Any) -> dict[str, Any]:
        asked.append((hook_input.error, hook_input.error_context, hook_input.recoverable))
        return {"error_handling": "retry", "retry_count": 2}

    model = ScriptedModel([fail("not_found", "gone"), busy(), "there it is"])
    async with checked_host() as host:
        session = await open_session(host, model, on_error_occurred=insist, retries=STEADY)
        reply = await session.send_and_wait("go")

        assert reply.content == "there it is"
        assert asked == [("gone", "model_call", False)]
    model.verify()


async def test_a_hook_that_always_asks_for_more_does_not_loop(autojump_clock: MockClock) -> None:
    def insist(hook_input: Any, invocation: Any) -> dict[str, Any]:
        return {"error_handling": "retry", "retry_count": 1000}

    model = ScriptedModel([], default=fail("server_error", "down", retry=True))
    async with checked_host() as host:
        session = await open_session(host, model, on_error_occurred=insist, retries=RetryPolicy(attempts=0))
        with pytest.raises(TurnFailed):
            await session.send_and_wait("go", timeout=None)

        assert model.calls == 6
    model.verify()


async def test_the_time_of_the_last_attempt_is_what_the_answer_took(autojump_clock: MockClock) -> None:
    model = ScriptedModel([after(3, busy()), say("fine", delay=2)])
    async with checked_host() as host:
        session = await open_session(host, model)
        usage = watch(session, AssistantUsage)
        failures = watch(session, ModelCallFailure)
        await session.send_and_wait("go")

        assert [e.duration for e in failures] == [3]
        assert [e.duration for e in usage] == [2]
    model.verify()


async def test_a_model_that_does_not_answer_in_time_is_an_error_that_says_so(
    autojump_clock: MockClock,
) -> None:
    model = ScriptedModel([hang(), "hi"])
    async with checked_host() as host:
        session = await open_session(host, model, waits=Waits(model_total=90))
        failures = watch(session, ModelCallFailure)
        with pytest.raises(TurnFailed, match="the model did not answer within 90 s") as caught:
            await session.send_and_wait("go", timeout=None)

        assert trio.current_time() == 90
        assert isinstance(caught.value.__cause__, ModelError)
        assert caught.value.__cause__.kind is ModelErrorKind.TIMEOUT
        assert [(e.error_type, e.duration) for e in failures] == [("timeout", 90)]
        assert [e.error_type for e in await logged(session, SessionError)] == ["timeout"]
        assert (await session.send_and_wait("hello")).content == "hi"
        assert model.cancelled == 1
    model.verify()


async def test_a_client_that_does_not_hear_its_cancellation_is_left_behind(autojump_clock: MockClock) -> None:
    model = StubbornModel(100)
    async with checked_host() as host:
        session = await host.create_session(model=model, waits=Waits(model_total=10))
        with pytest.raises(TurnFailed):
            await session.send_and_wait("go", timeout=None)

        assert trio.current_time() == 11
        await trio.sleep(100)
        assert [message.role for message in session.history.messages()] == ["user"]
        assert host.statistics().stuck_handlers == 0


class Junk:
    """A client that breaks its contract."""

    async def complete(self, request: Any) -> Any:
        return {"content": "no ModelResponse"}

    async def stream(self, request: Any) -> Any:
        yield "no ModelDelta"


@pytest.mark.parametrize("streaming", [False, True])
async def test_a_client_that_returns_junk_is_a_model_error(
    autojump_clock: MockClock, streaming: bool
) -> None:
    async with checked_host() as host:
        session = await host.create_session(model=cast("Any", Junk()), streaming=streaming)
        with pytest.raises(TurnFailed) as caught:
            await session.send_and_wait("go")

        assert isinstance(caught.value.__cause__, ModelError)
        assert caught.value.__cause__.kind is ModelErrorKind.UNKNOWN
        assert session.statistics().restarts == 0


class Untidy:
    """A client one of whose tasks fails while it is cancelled."""

    async def complete(self, request: Any) -> ModelResponse:
        async def closes_badly() -> None:
            try:
                await trio.sleep_forever()
            finally:
                raise OSError("cannot close")

        async with trio.open_nursery() as nursery:
            nursery.start_soon(closes_badly)
            nursery.start_soon(trio.sleep_forever)
        return ModelResponse("never")

    stream = complete


async def test_a_client_that_fails_while_it_is_cancelled_harms_nobody(autojump_clock: MockClock) -> None:
    async with checked_host() as host:
        session = await host.create_session(model=cast("Any", Untidy()), waits=Waits(model_total=10))
        with pytest.raises(TurnFailed, match="within 10 s"):
            await session.send_and_wait("go")

        assert session.statistics().restarts == 0
        await session.send("again")
        await trio.sleep(1)
        await session.abort()
        assert await ends(session) == ["error", "aborted"]
        assert session.statistics().restarts == 0
