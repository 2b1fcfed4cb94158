"""Tests of `support_agent.py`: what the model says is a script, and hours take milliseconds.

    pytest examples/test_support_agent.py

No plug-in is needed: `run_virtual` runs an asyncio program in virtual time.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from examples.support_agent import SupportAgent
from exeunt.embed.asyncio import Session, open_host
from exeunt.embed.asyncio.virtual_time import run_virtual
from exeunt.testing import EventInvariants, ScriptedModel, call, say


class FakeShop:
    """A shop with one order, whose bank can be slow."""

    def __init__(self, euros: int, *, delay: float = 0.0) -> None:
        self.euros, self.delay = euros, delay
        self.paid: list[str] = []

    async def find_order(self, number: int) -> dict[str, Any]:
        await asyncio.sleep(self.delay)
        return {"number": number, "euros": self.euros}

    async def refund(self, number: int, key: str) -> None:
        self.paid.append(key)


def person(answer: bool, *, after: float) -> Callable[[str], Awaitable[bool]]:
    """Somebody who answers after a time."""

    async def ask(question: str) -> bool:
        await asyncio.sleep(after)
        return answer

    return ask


@asynccontextmanager
async def conversation(model: ScriptedModel, shop: FakeShop, ask: Any) -> AsyncGenerator[Session]:
    """A conversation with the agent; at its end every message has ended once, and the script was used up."""
    invariants = EventInvariants()
    async with open_host() as host:
        host.observe(invariants.observe)
        yield await SupportAgent(host, model, shop, ask).open("ada")
        invariants.verify()
    model.verify()


def test_a_small_refund_is_paid_at_once() -> None:
    model = ScriptedModel(
        [call("find_order", number=7), call("refund", number=7, euros=30), say("30 euros are yours.")]
    )
    shop = FakeShop(30)

    async def test() -> None:
        async with conversation(model, shop, person(False, after=0)) as session:
            reply = await session.send_and_wait("My lamp is broken.")
            assert reply.content == "30 euros are yours."

    run_virtual(test)
    assert len(shop.paid) == 1
    assert model.requests[1].results == {"call_1": '{"number":7,"euros":30}'}


@pytest.mark.parametrize(("answer", "paid"), [(True, 1), (False, 0)])
def test_a_large_refund_waits_for_a_person_who_takes_an_hour(answer: bool, paid: int) -> None:
    model = ScriptedModel([call("refund", number=7, euros=500), say("I have asked.")])
    shop = FakeShop(500)

    async def test() -> None:
        async with conversation(model, shop, person(answer, after=3599)) as session:
            await session.send_and_wait("I want my money back.", timeout=None)
            assert asyncio.get_running_loop().time() >= 3599

    run_virtual(test)
    assert len(shop.paid) == paid


def test_a_person_who_never_answers_is_a_no() -> None:
    model = ScriptedModel([call("refund", number=7, euros=500), say("Nobody is there.")])
    shop = FakeShop(500)

    async def test() -> None:
        async with conversation(model, shop, person(True, after=86_000)) as session:
            await session.send_and_wait("I want my money back.", timeout=None)

    run_virtual(test)
    assert shop.paid == []
    assert "nobody answered the request for approval within 3600 s" in model.requests[1].results["call_1"]


def test_a_shop_that_does_not_answer_is_told_to_the_model() -> None:
    model = ScriptedModel([call("find_order", number=7), say("Please ask again later.")])

    async def test() -> None:
        async with conversation(model, FakeShop(30, delay=60), person(True, after=0)) as session:
            await session.send_and_wait("Where is my order?")

    run_virtual(test)
    assert model.requests[1].results == {"call_1": "The tool 'find_order' timed out after 10 s."}
