"""What is counted of a call, whatever its provider says, and whatever comes meanwhile."""

from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from exeunt import ModelRequest, ModelResponse, Usage
from exeunt.actors.events import AssistantUsage, UsageCheckpoint
from exeunt.actors.events.codec import encode_slices
from exeunt.actors.prices import MOST_NANO
from exeunt.testing import ScriptedModel, checked_host, fail, say
from tests.actors.credits_support import A_CREDIT_A_TOKEN, TEN_A_CALL
from tests.actors.session_support import settled
from tests.actors.turn_support import logged, open_session, watch


async def test_what_a_provider_does_not_count_is_guessed(autojump_clock: MockClock) -> None:
    model = ScriptedModel(["x" * 400])
    async with checked_host() as host:
        session = await open_session(host, model, prices=A_CREDIT_A_TOKEN, limits={"credits": 10_000})
        await session.send_and_wait("y" * 4_000)
        (paid,) = await logged(session, UsageCheckpoint)
        assert paid.estimated
        assert paid.output_tokens == 100
        assert 1_000 <= paid.input_tokens < 1_100  # the prompt, and what is told of the limit
        assert session.statistics().credits_spent == paid.input_tokens + 100


@pytest.mark.parametrize(
    ("counted", "costs"),
    [(Usage(0, 7), (1_001, 7)), (Usage(30, 0), (30, 100)), (Usage(-5, -5), (1_001, 100))],
)
async def test_a_provider_that_counts_one_half_of_a_call_has_the_other_guessed(
    autojump_clock: MockClock, counted: Usage, costs: tuple[int, int]
) -> None:
    model = ScriptedModel([say("x" * 400, usage=counted)])
    async with checked_host() as host:
        session = await open_session(host, model, prices=A_CREDIT_A_TOKEN)
        await session.send_and_wait("y" * 4_004)
        (paid,) = await logged(session, UsageCheckpoint)
        assert (paid.input_tokens, paid.output_tokens) == costs
        assert paid.estimated


async def test_what_no_call_can_have_leaves_a_sum_that_a_log_can_hold(autojump_clock: MockClock) -> None:
    model = ScriptedModel([say("a", usage=Usage(10**400, 10**30))] * 3)
    async with checked_host() as host:
        session = await open_session(host, model, prices=A_CREDIT_A_TOKEN)
        for _ in range(3):
            await session.send_and_wait("hi")
        paid = await logged(session, UsageCheckpoint)
        assert [event.total_nano_aiu for event in paid] == [MOST_NANO] * 3
        assert [event.nano_aiu for event in paid] == [MOST_NANO, 0, 0]
        assert session.statistics().restarts == 0
        assert all(encode_slices(paid))


async def test_failed_attempts_cost_nothing_and_the_answer_costs_once(autojump_clock: MockClock) -> None:
    model = ScriptedModel([fail("overloaded", retry=True), "done"])
    async with checked_host() as host:
        session = await open_session(host, model, prices=TEN_A_CALL)
        await session.send_and_wait("hi")
        assert session.statistics().credits_spent == 10.0


class HeldModel(ScriptedModel):
    """A model with a name that answers when the test lets it."""

    def __init__(self, name: str, replies: list[Any]) -> None:
        super().__init__(replies)
        self.model = name
        self.go = trio.Event()

    async def complete(self, request: ModelRequest, /) -> ModelResponse:
        await self.go.wait()
        return await super().complete(request)


async def test_a_call_costs_what_its_own_model_does_also_when_another_was_chosen_meanwhile(
    autojump_clock: MockClock,
) -> None:
    first, second = HeldModel("first", ["one"]), HeldModel("second", ["two"])
    second.go.set()
    prices = {"first": {"request": 3}, "second": {"request": 5}}
    async with checked_host() as host:
        session = await open_session(host, first, prices=prices)
        seen = watch(session, AssistantUsage)
        await session.send("hi")
        await wait_all_tasks_blocked()
        await host.resume_session(session.session_id, model=second, prices=prices)
        first.go.set()
        await settled(session)
        assert (await session.send_and_wait("again")).content == "two"
        paid = [(event.model, event.nano_aiu) for event in await logged(session, UsageCheckpoint)]
        assert paid == [("first", 3 * 10**9), ("second", 5 * 10**9)]
        assert [event.model for event in seen] == ["first", "second"]
