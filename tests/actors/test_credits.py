"""The credits of a session: counted after each call, asked for before the next one."""

from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from exeunt import (
    CreditsExhausted,
    HostOptions,
    InvalidAnswer,
    InvalidConfiguration,
    LimitDecision,
    PriceUnknown,
    RequestNotPending,
    Session,
    SessionClosed,
    TurnAborted,
    Usage,
    leave_pending,
)
from exeunt.actors.events import (
    SessionError,
    SessionLimitsChanged,
    SessionLimitsExhaustedCompleted,
    SessionLimitsExhaustedRequested,
    SessionWarning,
    UsageCheckpoint,
)
from exeunt.testing import ScriptedModel, call, checked_host, crash_session, say
from tests.actors.credits_support import A_CREDIT_A_TOKEN, TEN_A_CALL
from tests.actors.pending_support import pending
from tests.actors.session_support import settled
from tests.actors.turn_support import ends, logged, open_session, read, submit, turns_counted, watch


def answered(*answers: Any) -> Any:
    """A handler that gives these answers, one each time."""
    left = list(answers)

    def handler(request: Any, invocation: Any) -> Any:
        return left.pop(0)

    return handler


async def decided(session: Session) -> list[tuple[str, str]]:
    """How each request for credits ended."""
    return [(e.kind, e.action) for e in await logged(session, SessionLimitsExhaustedCompleted)]


async def test_each_call_is_counted_with_its_answer_and_added_up(autojump_clock: MockClock) -> None:
    usage = Usage(30, 2, cache_read_tokens=10)
    model = ScriptedModel([[say("", usage=usage), call("read")], say("done", usage=Usage(40, 3))])
    prices = {"ScriptedModel": {"input": 2_000_000, "cached_input": 500_000, "output": 1_000_000}}
    async with checked_host() as host:
        session = await open_session(host, model, read, prices=prices)
        await session.send_and_wait("read it")
        first, second = await logged(session, UsageCheckpoint)
        assert (first.nano_aiu, second.nano_aiu) == (47 * 10**9, 83 * 10**9)
        assert (first.total_nano_aiu, second.total_nano_aiu) == (47 * 10**9, 130 * 10**9)
        assert (first.input_tokens, first.output_tokens, first.cache_read_tokens) == (30, 2, 10)
        now = session.statistics()
        assert (now.credits_spent, now.credit_limit) == (130.0, None)
        assert host.metrics.value("exeunt_credits_total") == 130


async def test_a_session_without_prices_counts_nothing_and_tells_nothing(autojump_clock: MockClock) -> None:
    model = ScriptedModel([say("hello", usage=Usage(30, 2))])
    async with checked_host() as host:
        session = await open_session(host, model, prices={"another": {"input": 1}})
        await session.send_and_wait("hi")
        assert await logged(session, UsageCheckpoint) == []
        assert model.requests[0].contents == ("hi",)


async def test_the_model_is_told_what_is_left_and_the_conversation_is_not(autojump_clock: MockClock) -> None:
    model = ScriptedModel(["one", "two"])
    async with checked_host() as host:
        session = await open_session(host, model, prices=TEN_A_CALL, limits={"credits": 30})
        await session.send_and_wait("first")
        await session.send_and_wait("second")
        told = [request.contents[-1] for request in model.requests]
        for text, left in zip(told, ("30", "20"), strict=True):
            assert f"Remaining session limits: {left} AI credits." in text
            assert text.startswith("<session_limits_status>\n")
        assert model.requests[1].contents[:-1] == ("first", "one", "second")
        assert [m.content for m in session.history.messages()] == ["first", "one", "second", "two"]


async def test_the_call_that_goes_past_the_limit_is_the_last(autojump_clock: MockClock) -> None:
    model = ScriptedModel([[say("Reading.", usage=Usage(10, 6)), call("read")], "goes on"])
    async with checked_host() as host:
        session = await open_session(host, model, read, prices=A_CREDIT_A_TOKEN, limits={"credits": 15})
        with pytest.raises(CreditsExhausted, match="spent 16 of its 15 credits") as caught:
            await session.send_and_wait("read it")
        assert (caught.value.used, caught.value.limit) == (16.0, 15.0)
        assert caught.value.turn_id is not None
        assert await ends(session) == ["limit"]
        assert turns_counted(host) == {"limit": 1}
        (error,) = await logged(session, SessionError)
        assert (error.error_type, error.error_code) == ("quota", "session_quota_exceeded")
        # Nobody could be asked, so nobody is said to have been.
        assert await logged(session, SessionLimitsExhaustedRequested) == []

        with pytest.raises(CreditsExhausted):
            await session.send_and_wait("and now?")
        assert model.calls == 1
        await session.limit_credits(20)
        assert (await session.send_and_wait("and now?")).content == "goes on"
    model.verify()


async def test_a_terminal_tool_ends_the_turn_as_itself_also_when_the_credits_are_spent(
    autojump_clock: MockClock,
) -> None:
    model = ScriptedModel([call("submit", answer=42)])
    async with checked_host() as host:
        session = await open_session(host, model, submit, prices=TEN_A_CALL, limits={"credits": 1})
        assert (await session.send_and_wait("solve it")).reason == "terminal_tool"


@pytest.mark.parametrize(
    ("answer", "limit"),
    [
        (LimitDecision("add", 10), 15.0),
        ({"action": "add", "additionalAiCredits": 6}, 11.0),
        ({"action": "set", "max_ai_credits": 40}, 40.0),
        ("unset", None),
    ],
)
async def test_a_turn_goes_on_with_the_credits_that_somebody_gives(
    autojump_clock: MockClock, answer: Any, limit: float | None
) -> None:
    model = ScriptedModel([call("read"), "done"])
    options = {"prices": TEN_A_CALL, "limits": {"credits": 5}}
    async with checked_host() as host:
        session = await open_session(
            host, model, read, on_session_limits_exhausted=answered(answer), **options
        )
        assert (await session.send_and_wait("read it")).content == "done"
        (asked,) = await logged(session, SessionLimitsExhaustedRequested)
        assert (asked.used_ai_credits, asked.max_ai_credits) == (10.0, 5.0)
        changed = await logged(session, SessionLimitsChanged)
        assert [event.max_ai_credits for event in changed] == [5.0, limit]
        assert session.statistics().credit_limit == limit
        assert await ends(session) == ["completed"]
    model.verify()


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        ("cancel", "answered"),
        ({"action": "add"}, "unavailable"),
        ({"action": "add", "ai_credits": -1}, "unavailable"),
        (LimitDecision("set", 9), "unavailable"),
        ("what?", "unavailable"),
        ([], "unavailable"),
    ],
)
async def test_a_turn_ends_without_credits_and_without_an_answer_that_gives_any(
    autojump_clock: MockClock, answer: Any, kind: str
) -> None:
    model = ScriptedModel(["hello", "never"])
    options = {"prices": TEN_A_CALL, "limits": {"credits": 5}}
    async with checked_host() as host:
        session = await open_session(host, model, on_session_limits_exhausted=answered(answer), **options)
        warnings = watch(session, SessionWarning)
        await session.send_and_wait("hi")
        with pytest.raises(CreditsExhausted):
            await session.send_and_wait("more")
        assert await decided(session) == [(kind, "cancel")]
        assert len(warnings) == (kind == "unavailable")
        assert session.statistics().credit_limit == 5.0
    assert model.calls == 1


async def test_a_handler_that_raises_is_no_answer(autojump_clock: MockClock) -> None:
    def broken(request: Any, invocation: Any) -> Any:
        raise RuntimeError("no budget")

    async with checked_host() as host:
        session = await open_session(
            host,
            ScriptedModel(["hello"]),
            prices=TEN_A_CALL,
            limits={"credits": 5},
            on_session_limits_exhausted=broken,
        )
        await session.send_and_wait("hi")
        with pytest.raises(CreditsExhausted):
            await session.send_and_wait("more")
        assert await decided(session) == [("unavailable", "cancel")]


async def open_question(session: Session) -> str:
    """Spend the credits, and return the id of what is asked then."""
    await session.send_and_wait("hi")
    await session.send("more")
    (request,) = await pending(session)
    assert (request.kind, request.tool_call_id) == ("session_limits", "")
    return request.request_id


async def asking(host: Any, *replies: Any, **others: Any) -> tuple[Session, ScriptedModel]:
    """A session that has five credits, whose calls cost ten, and that leaves its question open."""
    model = ScriptedModel(["hello", *replies])
    others.setdefault("on_session_limits_exhausted", leave_pending)
    options = {"prices": TEN_A_CALL, "limits": {"credits": 5}, **others}
    return await open_session(host, model, **options), model


async def test_an_open_question_is_answered_from_anywhere_and_once(autojump_clock: MockClock) -> None:
    async with checked_host() as host:
        session, model = await asking(host, "done")
        request_id = await open_question(session)
        now = session.statistics()
        assert (now.phase, now.pending_requests) == ("question", 1)
        assert len(host.pending_requests()) == 1
        for answer in ("perhaps", {"action": "add", "ai_credits": 1}):
            with pytest.raises(InvalidAnswer):
                await session.answer(request_id, answer)
        assert len(session.pending_requests()) == 1
        await session.answer(request_id, {"action": "add", "ai_credits": 50})
        with pytest.raises(RequestNotPending):
            await session.answer(request_id, "unset")
        await settled(session)
        assert model.calls == 2
        assert session.statistics().credit_limit == 55.0


async def test_a_handler_that_is_still_thinking_is_cancelled_by_another_answer(
    autojump_clock: MockClock,
) -> None:
    thinks: list[Any] = []

    async def thinking(request: Any, invocation: Any) -> Any:
        thinks.append(request)
        try:
            await trio.sleep_forever()
        finally:
            thinks.clear()

    async with checked_host() as host:
        session, _ = await asking(host, "done", on_session_limits_exhausted=thinking)
        await session.send_and_wait("hi")
        async with trio.open_nursery() as nursery:
            replies: list[str] = []

            async def wait() -> None:
                replies.append((await session.send_and_wait("more", timeout=None)).content)

            nursery.start_soon(wait)
            (request,) = await pending(session)
            await wait_all_tasks_blocked()
            assert thinks
            await session.answer(request.request_id, "unset")
        assert replies == ["done"]
        assert not thinks
        await wait_all_tasks_blocked()
        assert host.statistics().stuck_handlers == 0


async def test_a_limit_that_is_raised_answers_the_question(autojump_clock: MockClock) -> None:
    async with checked_host() as host:
        session, model = await asking(host, "done")
        await open_question(session)
        await session.limit_credits(8)  # of which ten are spent
        assert len(session.pending_requests()) == 1
        await session.limit_credits(100)
        assert session.pending_requests() == ()
        await settled(session)
        assert model.calls == 2
        assert await decided(session) == [("answered", "set")]
        assert session.statistics().credit_limit == 100.0


@pytest.mark.parametrize("limit", [20, None])
async def test_a_session_that_has_ended_takes_no_limit_any_more(
    autojump_clock: MockClock, limit: float | None
) -> None:
    async with checked_host() as host:
        session = await open_session(host, ScriptedModel([]), prices=TEN_A_CALL, limits={"credits": 10})
        await session.disconnect()
        with pytest.raises(SessionClosed):
            await session.limit_credits(limit)
        assert [event.type for event in await session.get_events()][-1] == "session.shutdown"


async def test_a_question_ends_when_its_time_is_over(autojump_clock: MockClock) -> None:
    async with checked_host() as host:
        session, _ = await asking(host, waits={"approval": 60})
        await session.send_and_wait("hi")
        with pytest.raises(CreditsExhausted):
            await session.send_and_wait("more", timeout=61)
        assert await decided(session) == [("timeout", "cancel")]


async def test_an_abort_ends_the_question_with_the_turn(autojump_clock: MockClock) -> None:
    async with checked_host() as host:
        session, _ = await asking(host, "later")
        await open_question(session)
        await session.abort()
        assert await decided(session) == [("cancelled", "cancel")]
        assert await ends(session) == ["completed", "aborted"]
        await session.limit_credits(None)
        assert (await session.send_and_wait("again")).content == "later"


async def test_a_turn_that_asks_lets_its_slot_to_others(autojump_clock: MockClock) -> None:
    async with checked_host(options=HostOptions(running_turns=1)) as host:
        session, _ = await asking(host, "done")
        await open_question(session)
        other = await open_session(host, ScriptedModel(["free"]))
        assert (await other.send_and_wait("hi", timeout=1)).content == "free"
        await session.limit_credits(None)
        await settled(session)


async def test_messages_that_steer_a_turn_that_asks_join_it_when_it_goes_on(
    autojump_clock: MockClock,
) -> None:
    async with checked_host() as host:
        session, model = await asking(host, "done")
        request_id = await open_question(session)
        await session.send("and this", mode="immediate")
        await session.answer(request_id, "unset")
        await settled(session)
        assert model.requests[1].contents == ("hi", "hello", "more", "and this")


async def test_a_session_that_crashes_asks_on_under_the_same_id(autojump_clock: MockClock) -> None:
    async with checked_host() as host:
        session, model = await asking(host, "done")
        request_id = await open_question(session)
        crash_session(session)
        (request,) = await pending(session)
        assert request.request_id == request_id
        await session.answer(request_id, "unset")
        await settled(session)
        assert model.calls == 2
        assert len(await logged(session, SessionLimitsExhaustedRequested)) == 1


async def test_a_limit_needs_a_price(autojump_clock: MockClock) -> None:
    async with checked_host() as host:
        with pytest.raises(PriceUnknown, match="'ScriptedModel' has no price"):
            await open_session(host, ScriptedModel([]), limits={"credits": 5})
        session = await open_session(host, ScriptedModel([]))
        with pytest.raises(PriceUnknown):
            await session.limit_credits(5)
        await session.limit_credits(None)


async def test_a_model_without_a_price_is_not_called_while_there_is_a_limit(
    autojump_clock: MockClock,
) -> None:
    async with checked_host() as host:
        session = await open_session(host, ScriptedModel(["a"]), prices=TEN_A_CALL)
        await session.limit_credits(50)
        model = ScriptedModel(["never"])
        await host.resume_session(session.session_id, model=model)
        with pytest.raises(CreditsExhausted, match="no price"):
            await session.send_and_wait("hi")
        assert model.calls == 0


async def test_credits_stay_spent_through_a_clear_and_a_truncation(autojump_clock: MockClock) -> None:
    async with checked_host() as host:
        session = await open_session(host, ScriptedModel(["a", "b"]), prices=TEN_A_CALL)
        await session.send_and_wait("hi")
        first = (await session.get_events())[-1]
        await session.send_and_wait("ho")
        await session.history.truncate(first.id)
        assert session.statistics().credits_spent == 20.0


@pytest.mark.parametrize("value", [0, -1, True, "3", float("nan"), float("inf"), 1e12])
async def test_a_limit_that_is_none_is_refused(autojump_clock: MockClock, value: Any) -> None:
    async with checked_host() as host:
        with pytest.raises(InvalidConfiguration, match="credits"):
            await open_session(host, ScriptedModel([]), prices=TEN_A_CALL, limits={"credits": value})
        session = await open_session(host, ScriptedModel([]), prices=TEN_A_CALL)
        with pytest.raises(InvalidConfiguration):
            await session.limit_credits(value)


@pytest.mark.parametrize("prices", [3, ["m"], {"m": 3}, {"m": {"inputs": 1}}, {"m": {"input": -1}}])
async def test_prices_that_are_none_are_refused(autojump_clock: MockClock, prices: Any) -> None:
    async with checked_host() as host:
        with pytest.raises(InvalidConfiguration, match="price"):
            await open_session(host, ScriptedModel([]), prices=prices)


async def test_who_waits_for_an_aborted_turn_that_asks_is_told_of_the_abort(
    autojump_clock: MockClock,
) -> None:
    async with checked_host() as host:
        session, _ = await asking(host)
        await session.send_and_wait("hi")
        async with trio.open_nursery() as nursery:

            async def wait() -> None:
                with pytest.raises(TurnAborted):
                    await session.send_and_wait("more", timeout=None)

            nursery.start_soon(wait)
            await pending(session)
            await session.abort()


async def test_other_options_bring_their_limit_along(autojump_clock: MockClock) -> None:
    async with checked_host() as host:
        session = await open_session(host, ScriptedModel([]), prices=TEN_A_CALL, limits={"credits": 5})
        for limits, limit in (({"credits": 50}, 50.0), ({"steps": 3}, None)):
            again = await host.resume_session(
                session.session_id, model=ScriptedModel([]), prices=TEN_A_CALL, limits=limits
            )
            assert again.statistics().credit_limit == limit
