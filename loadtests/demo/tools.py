"""The tools of the demo. Each takes its time, and has one way to end."""

import random
from typing import Any

import trio

from exeunt import (
    ApproveOnce,
    PermissionRequest,
    Reject,
    Tool,
    ToolInvocation,
    UserNotAvailable,
    tool,
)
from exeunt.demo.tally import Timings

SHORT, LONG = 0.05, 0.4
"""Seconds that a tool takes: a local search, a call of some service."""
CRAWL_TIMEOUT = 1.0
"""Seconds until the slow tool has timed out. Real time-outs are longer; so would the demo be."""


def make_tools(chance: random.Random, timings: Timings) -> tuple[Tool[..., Any], ...]:
    """Return the tools, which take their times from *chance* and note those of clears in *timings*."""

    async def work() -> None:
        await trio.sleep(chance.uniform(SHORT, LONG))

    @tool
    async def look_up(topic: str) -> str:
        """Look something up in the programme."""
        await work()
        return f"{topic}: three entries"

    @tool
    def count_words(text: str) -> int:
        """Count the words of a text. It is synchronous, so it runs in a worker thread."""
        return len(text.split())

    @tool
    async def book_seats(seats: int, attempt: int = 1) -> str:
        """Book seats. The first attempt fails, as it does."""
        await work()
        if attempt == 1:
            raise ConnectionError("the reservation system does not answer")
        return f"{seats} seats are booked"

    @tool(timeout=CRAWL_TIMEOUT)
    async def crawl(url: str) -> str:
        """Read everything. It never ends in time."""
        await trio.sleep_forever()
        return url

    @tool
    async def pay(amount: int) -> str:
        """Pay. Needs a person who approves, and nobody is there."""
        await work()
        return f"{amount} paid"

    @tool
    async def delete_archive() -> str:
        """Delete the archive. The person who is asked says no."""
        await work()
        return "deleted"

    @tool(is_terminal=True)
    async def hand_over(summary: str) -> str:
        """Hand the conversation over to a person, and leave."""
        await work()
        if not summary:
            raise ValueError("there is nothing to hand over")
        return f"Handed over: {summary}."

    @tool(is_terminal=True, defer="never")
    async def clear_context(prompt: str, invocation: ToolInvocation) -> str:
        """Clear the conversation and start a fresh context window."""
        alone = len(invocation.session.statistics().in_flight) == 1
        with timings.clear_called(invocation.session_id, alone=alone):
            result = await invocation.session.history.clear_context(prompt)
        return f"Cleared {result.messages_cleared} messages."

    @tool
    async def compact(prompt: str, invocation: ToolInvocation) -> str:
        """Replace the conversation by its summary. Not terminal: the turn ends by the clear alone."""
        with timings.clear_called(invocation.session_id, alone=True):
            result = await invocation.session.history.clear_context(prompt)
        return f"Summed up {result.messages_cleared} messages."

    @tool
    async def clear_and_fail(prompt: str, invocation: ToolInvocation) -> str:
        """Clear the conversation, and fail after that: the clear is rolled back."""
        await invocation.session.history.clear_context(prompt)
        await work()
        raise OSError("the disk is full")

    return (
        look_up,
        count_words,
        book_seats,
        crawl,
        pay,
        delete_archive,
        hand_over,
        clear_context,
        compact,
        clear_and_fail,
    )


def make_approver(chance: random.Random) -> Any:
    """Return a permission handler that thinks for a moment."""

    async def approve(request: PermissionRequest, invocation: object) -> Any:
        if request.tool_name == "pay":
            return UserNotAvailable()
        if request.tool_name == "delete_archive":
            await trio.sleep(chance.uniform(SHORT, LONG))
            return Reject("not the archive")
        await trio.lowlevel.checkpoint()
        return ApproveOnce()

    return approve
