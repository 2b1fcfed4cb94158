"""Going on with another model when the provider of the session's own is at a limit."""

from typing import Any

import pytest
import trio
from trio.testing import MockClock

from exeunt import (
    HostOptions,
    InvalidAnswer,
    InvalidConfiguration,
    ModelError,
    RetryPolicy,
    Session,
    SessionHost,
    TurnFailed,
    leave_pending,
)
from exeunt.actors.events import (
    AssistantTurnEnd,
    AssistantTurnStart,
    AutoModeSwitchCompleted,
    AutoModeSwitchRequested,
    SessionError,
    SessionModelChange,
    TurnEnd,
)
from exeunt.testing import Gate, Reply, ScriptedModel, call, checked_host, crash_session, fail
from tests.actors.pending_support import pending
from tests.actors.refusing_support import RefusingJournal
from tests.actors.session_support import plain_tool, settled
from tests.actors.turn_support import ends, logged, open_session, read


class Named(ScriptedModel):
    """A scripted model with a name."""

    def __init__(self, name: str, replies: list[Reply]) -> None:
        super().__init__(replies)
        self.model = name


WEEKLY = fail(
    "rate_limited", "the week is over", retry=True, status=429, code="user_weekly_rate_limited", limited_for=1
)
"""A limit that is worth no further attempt."""

BUSY = fail("rate_limited", "too many", retry=True, status=429, retry_after=1)
"""A limit that trying again may outlast."""

NO_RETRIES = RetryPolicy(attempts=0)


def saying(answer: Any, seen: list[Any] | None = None) -> Any:
    """A handler that always answers the same."""

    def handler(request: Any, invocation: Any) -> Any:
        if seen is not None:
            seen.append(request)
        return answer

    return handler


async def opened(
    host: SessionHost, replies: list[Reply], others: list[Reply], answer: Any = "yes", **options: Any
) -> tuple[Session, Named, Named]:
    """A session of the model `own`, which may go on with `auto`."""
    own, auto = Named("own", replies), Named("auto", others)
    options.setdefault("on_auto_mode_switch_request", saying(answer))
    session = await open_session(host, own, read, auto_model=auto, **options)
    return session, own, auto


async def decided(session: Session) -> list[tuple[str, str]]:
    """How each request to switch ended."""
    return [(e.kind, e.response) for e in await logged(session, AutoModeSwitchCompleted)]


async def test_the_same_turn_goes_on_with_the_other_model(autojump_clock: MockClock) -> None:
    seen: list[Any] = []
    async with checked_host() as host:
        session, own, auto = await opened(
            host, [WEEKLY], ["hello", "again"], on_auto_mode_switch_request=saying("yes", seen)
        )
        assert (await session.send_and_wait("hi")).content == "hello"
        (request,) = seen
        assert (request.model, request.auto_model) == ("own", "auto")
        assert (request.error_code, request.retry_after_seconds) == ("user_weekly_rate_limited", 1)
        # The request is the same, and so is its step.
        assert auto.requests[0].contents == own.requests[0].contents == ("hi",)
        assert [event.step for event in await logged(session, AssistantTurnStart)] == [0]
        assert [event.step for event in await logged(session, AssistantTurnEnd)] == [0]
        assert [event.steps for event in await logged(session, TurnEnd)] == [1]
        (change,) = await logged(session, SessionModelChange)
        assert (change.new_model, change.previous_model) == ("auto", "own")
        assert change.cause == "rate_limit_auto_switch"
        assert await logged(session, SessionError) == []
        # And it stays.
        assert (await session.send_and_wait("and?")).content == "again"
        assert host.metrics.value("exeunt_model_switch_requests_total", end="yes") == 1
    own.verify()
    auto.verify()


async def test_a_limit_that_lasts_is_not_tried_again(autojump_clock: MockClock) -> None:
    began = trio.current_time()
    async with checked_host() as host:
        session, own, _ = await opened(host, [WEEKLY], ["hello"])
        await session.send_and_wait("hi")
        assert own.calls == 1
        assert trio.current_time() - began < 0.1


async def test_any_other_limit_is_tried_again_before_somebody_is_asked(autojump_clock: MockClock) -> None:
    async with checked_host() as host:
        session, own, _ = await opened(host, [BUSY] * 6, ["hello"])
        assert (await session.send_and_wait("hi")).content == "hello"
        assert own.calls == 6


@pytest.mark.parametrize("answer", ["no", False, "perhaps", None, {"response": "no"}])
async def test_the_turn_fails_as_ever_where_nobody_says_yes(autojump_clock: MockClock, answer: Any) -> None:
    async with checked_host() as host:
        session, _, auto = await opened(host, [WEEKLY, "later"], [], answer)
        with pytest.raises(TurnFailed, match="the week is over") as caught:
            await session.send_and_wait("hi")
        assert isinstance(caught.value.__cause__, ModelError)
        assert caught.value.__cause__.status == 429
        (error,) = await logged(session, SessionError)
        assert (error.error_type, error.error_code) == ("rate_limited", "user_weekly_rate_limited")
        assert await ends(session) == ["error"]
        assert (await session.send_and_wait("again")).content == "later"
    assert auto.calls == 0


@pytest.mark.parametrize(
    "failure",
    [
        fail("overloaded", "busy", status=529),
        fail("rate_limited", "no money", code="insufficient_quota", status=429),
        fail("authentication", "who?", status=401),
    ],
)
async def test_other_errors_ask_nobody(autojump_clock: MockClock, failure: Reply) -> None:
    async with checked_host() as host:
        session, _, _ = await opened(host, [failure], [])
        with pytest.raises(TurnFailed):
            await session.send_and_wait("hi")
        assert await logged(session, AutoModeSwitchRequested) == []


async def test_without_a_handler_nobody_is_asked(autojump_clock: MockClock) -> None:
    async with checked_host() as host:
        session, _, _ = await opened(host, [WEEKLY], [], on_auto_mode_switch_request=None, retries=NO_RETRIES)
        with pytest.raises(TurnFailed):
            await session.send_and_wait("hi")
        assert await logged(session, AutoModeSwitchRequested) == []


async def test_a_limit_of_the_other_model_too_ends_the_turn(autojump_clock: MockClock) -> None:
    async with checked_host() as host:
        session, _, _ = await opened(host, [WEEKLY], [WEEKLY], retries=NO_RETRIES)
        with pytest.raises(TurnFailed):
            await session.send_and_wait("hi")
        assert await decided(session) == [("answered", "yes")]


async def test_yes_always_is_not_asked_again(autojump_clock: MockClock) -> None:
    async with checked_host() as host:
        session, _, _ = await opened(host, [WEEKLY], ["hello"], "yes_always")
        await session.send_and_wait("hi")
        # Somebody chooses the first model again.
        own, auto = Named("own", [WEEKLY]), Named("auto", ["hello again"])
        await host.resume_session(
            session.session_id, model=own, auto_model=auto, on_auto_mode_switch_request=saying("no")
        )
        assert (await session.send_and_wait("hi")).content == "hello again"
        assert await decided(session) == [("answered", "yes_always")]
        changes = [event.cause for event in await logged(session, SessionModelChange)]
        # That in between is the program's own, which has given the session its first model again.
        assert changes == ["rate_limit_auto_switch", "", "rate_limit_auto_switch"]


async def test_the_turn_goes_on_where_it_was_in_the_middle_of_its_work(autojump_clock: MockClock) -> None:
    async with checked_host() as host:
        session, _, auto = await opened(host, [call("read"), WEEKLY], ["done"])
        assert (await session.send_and_wait("read it")).content == "done"
        assert auto.requests[0].results == {"call_1": "what was read"}


async def test_an_open_request_is_answered_from_anywhere(autojump_clock: MockClock) -> None:
    async with checked_host() as host:
        session, _, auto = await opened(host, [WEEKLY], ["hello"], on_auto_mode_switch_request=leave_pending)
        await session.send("hi")
        (request,) = await pending(session)
        assert request.kind == "auto_mode_switch"
        with pytest.raises(InvalidAnswer):
            await session.answer(request.request_id, "maybe")
        await session.answer(request.request_id, True)
        await settled(session)
        assert auto.calls == 1


async def test_a_crash_does_not_ask_anew(autojump_clock: MockClock) -> None:
    async with checked_host() as host:
        session, own, auto = await opened(
            host, [WEEKLY], ["hello"], on_auto_mode_switch_request=leave_pending
        )
        await session.send("hi")
        (request,) = await pending(session)
        crash_session(session)
        (again,) = await pending(session)
        assert again.request_id == request.request_id
        await session.answer(request.request_id, "yes")
        await settled(session)
        assert (own.calls, auto.calls) == (1, 1)
        assert await ends(session) == ["completed"]


async def test_an_abort_ends_the_request_and_the_step(autojump_clock: MockClock) -> None:
    async with checked_host() as host:
        session, _, _ = await opened(host, [WEEKLY], [], on_auto_mode_switch_request=leave_pending)
        await session.send("hi")
        await pending(session)
        await session.abort()
        assert await decided(session) == [("cancelled", "no")]
        assert await ends(session) == ["aborted"]


async def test_an_abort_ends_the_step_also_while_its_turn_waits_for_a_slot_again(
    autojump_clock: MockClock,
) -> None:
    gate = Gate()
    async with checked_host(options=HostOptions(running_turns=1)) as host:
        session, _, auto = await opened(host, [WEEKLY], [], on_auto_mode_switch_request=leave_pending)
        await session.send("hi")
        (request,) = await pending(session)
        other = await open_session(host, ScriptedModel([call("hold"), "done"]), plain_tool("hold", gate))
        await other.send("take the slot")
        await gate.entered()
        await session.answer(request.request_id, "yes")
        assert session.statistics().phase == "waiting"
        await session.abort()
        assert [event.step for event in await logged(session, AssistantTurnEnd)] == [0]
        assert await ends(session) == ["aborted"]
        gate.open()
        await settled(other)
    assert auto.calls == 0


async def test_a_switch_that_the_journal_refuses_has_not_happened(autojump_clock: MockClock) -> None:
    async with checked_host(journal=RefusingJournal("session.model_change")) as host:
        session, own, auto = await opened(host, [WEEKLY], ["hello"])
        assert (await session.send_and_wait("hi")).content == "hello"
        assert session.statistics().restarts == 1
        assert (own.calls, auto.calls) == (1, 1)
        assert await decided(session) == [("answered", "yes")]
        assert len(await logged(session, SessionModelChange)) == 1


async def test_options_that_the_journal_refuses_are_taken_when_the_session_is_back(
    autojump_clock: MockClock,
) -> None:
    async with checked_host(journal=RefusingJournal("system.message")) as host:
        model = ScriptedModel(["hello"])
        session = await open_session(host, ScriptedModel([]))
        await host.resume_session(session.session_id, model=model, system_message="Be brief.")
        assert (await session.send_and_wait("hi")).content == "hello"
        assert session.statistics().restarts == 1
    assert model.requests[0].contents == ("Be brief.", "hi")


async def test_nobody_in_time_is_a_no(autojump_clock: MockClock) -> None:
    async with checked_host() as host:
        session, _, _ = await opened(
            host, [WEEKLY], [], on_auto_mode_switch_request=leave_pending, waits={"approval": 5}
        )
        with pytest.raises(TurnFailed):
            await session.send_and_wait("hi")
        assert await decided(session) == [("timeout", "no")]


async def test_a_limited_session_does_not_go_on_with_a_model_that_nobody_can_count(
    autojump_clock: MockClock,
) -> None:
    prices = {"own": {"request": 1}}
    async with checked_host() as host:
        session, _, auto = await opened(
            host, [WEEKLY], ["never"], retries=NO_RETRIES, prices=prices, limits={"credits": 9}
        )
        with pytest.raises(TurnFailed):
            await session.send_and_wait("hi")
        assert await logged(session, AutoModeSwitchRequested) == []
    assert auto.calls == 0


async def test_a_limit_that_was_taken_away_asks_nobody_for_a_model_that_the_options_do_not_allow(
    autojump_clock: MockClock,
) -> None:
    prices = {"own": {"request": 1}}
    async with checked_host() as host:
        session, _, auto = await opened(
            host, [WEEKLY, "later"], ["never"], retries=NO_RETRIES, prices=prices, limits={"credits": 9}
        )
        await session.limit_credits(None)
        with pytest.raises(TurnFailed, match="the week is over"):
            await session.send_and_wait("hi")
        assert (await session.send_and_wait("again")).content == "later"
        assert session.statistics().restarts == 0
    assert auto.calls == 0


async def test_a_limit_that_comes_while_somebody_is_asked_keeps_the_model(autojump_clock: MockClock) -> None:
    prices = {"own": {"request": 1}}
    async with checked_host() as host:
        session, _, auto = await opened(
            host, [WEEKLY], ["never"], prices=prices, on_auto_mode_switch_request=leave_pending
        )
        await session.send("hi")
        (request,) = await pending(session)
        await session.limit_credits(9)
        await session.answer(request.request_id, "yes")
        await settled(session)
        assert await ends(session) == ["error"]
        assert await logged(session, SessionModelChange) == []
    assert auto.calls == 0


async def test_calls_of_the_other_model_cost_what_that_one_costs(autojump_clock: MockClock) -> None:
    prices = {"own": {"request": 1}, "auto": {"request": 4}}
    async with checked_host() as host:
        session, _, _ = await opened(host, ["a", WEEKLY], ["b"], prices=prices, limits={"credits": 9})
        await session.send_and_wait("hi")
        await session.send_and_wait("hi")
        assert session.statistics().credits_spent == 5.0


async def test_a_name_for_the_other_model_needs_a_provider(autojump_clock: MockClock) -> None:
    async with checked_host() as host:
        with pytest.raises(InvalidConfiguration, match="auto_model"):
            await host.create_session(model=ScriptedModel([]), auto_model="other")
        number: Any = 3
        with pytest.raises(InvalidConfiguration, match="auto_model"):
            await host.create_session(model=ScriptedModel([]), auto_model=number)
