"""An agent as a program has one: tools, an approval, and a function that opens a conversation. On asyncio.

`test_support_agent.py` tests it, with a scripted model and in virtual time.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

import attrs

from exeunt import ApproveOnce, PermissionRequest, Reject, Waits
from exeunt.actors.models import ModelClient
from exeunt.embed.asyncio import HookInvocation, Session, SessionHost, ToolInvocation, open_host, tool
from exeunt.testing import ScriptedModel, call, say


class Shop(Protocol):
    """What the agent needs of the rest of the program."""

    async def find_order(self, number: int) -> dict[str, Any]: ...
    async def refund(self, number: int, key: str) -> None: ...


Ask = Callable[[str], Awaitable[bool]]
"""Asks a person, who may take an hour."""

LARGE = 100
"""Euros from which a person decides."""


@attrs.frozen
class SupportAgent:
    """Answers customers, looks orders up and pays money back; large sums only when a person agrees."""

    host: SessionHost
    model: ModelClient
    shop: Shop
    ask: Ask

    async def open(self, customer: str) -> Session:
        """Begin a conversation with a customer."""
        return await self.host.create_session(
            model=self.model,
            tools=[tool(skip_permission=True, timeout=10)(self.find_order), tool(self.refund)],
            tenant=customer,
            system_message="You help customers of a shop. Pay back only what an order says.",
            on_permission_request=self.allow,
            waits=Waits(approval=3600),
        )

    async def find_order(self, number: int) -> dict[str, Any]:
        """Find an order by its number."""
        return await self.shop.find_order(number)

    async def refund(self, number: int, euros: int, invocation: ToolInvocation) -> str:
        """Pay money back."""
        # The same key if the call is run again after a crash: the bank pays once.
        await self.shop.refund(number, invocation.idempotency_key)
        return f"{euros} euros are on their way."

    async def allow(self, request: PermissionRequest, invocation: HookInvocation) -> ApproveOnce | Reject:
        """Let small refunds through, and ask a person about large ones."""
        euros = request.arguments["euros"]
        if euros < LARGE or await self.ask(
            f"Pay {euros} euros back for order {request.arguments['number']}?"
        ):
            return ApproveOnce()
        return Reject("That is too much. Offer a voucher.")


class SmallShop:
    """Enough of a shop to show the agent."""

    async def find_order(self, number: int) -> dict[str, Any]:
        await asyncio.sleep(0.01)
        return {"number": number, "euros": 30}

    async def refund(self, number: int, key: str) -> None:
        await asyncio.sleep(0.01)


async def nobody(question: str) -> bool:
    """Stands for a person who always says no."""
    return False


async def main() -> None:
    model = ScriptedModel(
        [call("find_order", number=7), call("refund", number=7, euros=30), say("You get 30 euros back.")]
    )
    async with open_host() as host:
        session = await SupportAgent(host, model, SmallShop(), nobody).open("ada")
        print((await session.send_and_wait("My lamp of order 7 is broken.")).content)


if __name__ == "__main__":
    asyncio.run(main())
