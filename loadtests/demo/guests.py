"""The people in front of the sessions."""

import random
from collections.abc import Awaitable, Callable, Sequence
from typing import Literal

import attrs
import trio

from exeunt import NoToolCallInFlight, Session, TurnError
from exeunt.demo.acts import LAST_ACT, PLAYED, SEED, STEERING, Act, Way
from exeunt.demo.refusals import Refusals
from exeunt.demo.tally import Timings

ACTS_EACH = 6
"""Messages of a guest, roughly. With 0.5 s of thinking and 0.5 s for each answer, they fill about 15 s."""
ARRIVAL = 2.0
"""Seconds over which the guests arrive: a crowd, not a stampede."""
THINKING = 0.2, 1.2
PATIENCE = 0.1, 1.5
"""Seconds until an impatient guest aborts: in the first request, in a tool, or later."""


def plan(number: int, chance: random.Random) -> list[Act]:
    """Return what guest *number* does. Each act comes up in any row of as many guests as there are acts."""
    acts = chance.choices(PLAYED, [act.weight for act in PLAYED], k=ACTS_EACH - 1)
    acts.append(PLAYED[number % len(PLAYED)])
    chance.shuffle(acts)
    return [*acts, LAST_ACT]


@attrs.define(eq=False)
class Guest:
    """A person with a plan."""

    session: Session
    acts: Sequence[Act]
    chance: random.Random
    timings: Timings
    refusals: Refusals
    act_ended: Callable[[], None]
    """Called after each act."""

    async def visit(self) -> None:
        """Play all acts, one after the other. A turn that does not end well is no reason to leave."""
        await trio.sleep(self.chance.uniform(0, ARRIVAL))
        for act in self.acts:
            await _WAYS[act.way](self, act)
            self.act_ended()
            await trio.sleep(self.chance.uniform(*THINKING))

    async def ask(self, act: Act) -> None:
        began = trio.current_time()
        try:
            await self.refusals.insist(lambda: self.session.send_and_wait(act.prompt, timeout=None))
        except TurnError:
            return
        self.timings.replies.append(trio.current_time() - began)

    async def ask_and_abort(self, act: Act) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.ask, act)
            await self._send(act.prompt)  # queued behind it, and dropped with it
            await trio.sleep(self.chance.uniform(*PATIENCE))
            await self.session.abort()

    async def ask_and_steer(self, act: Act) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.ask, act)
            await trio.sleep(self.chance.uniform(*PATIENCE))
            await self._send(STEERING, mode="immediate")

    async def ask_at_once(self, act: Act) -> None:
        await self._send(act.prompt)
        await self._send(act.prompt)
        await self.ask(act)

    async def have_it_cleared(self, act: Act) -> None:
        try:
            await self.refusals.insist(lambda: self.session.call_tool("clear_context", {"prompt": SEED}))
        except TurnError:
            return

    async def clear_from_outside(self, act: Act) -> None:
        try:
            await self.session.history.clear_context(SEED)
        except NoToolCallInFlight:
            return

    async def _send(self, prompt: str, mode: Literal["enqueue", "immediate"] = "enqueue") -> None:
        await self.refusals.insist(lambda: self.session.send(prompt, mode))


_WAYS: dict[Way, Callable[[Guest, Act], Awaitable[None]]] = {
    Way.ASK: Guest.ask,
    Way.ABORT: Guest.ask_and_abort,
    Way.STEER: Guest.ask_and_steer,
    Way.QUEUE: Guest.ask_at_once,
    Way.CLEAR_AS_HOST: Guest.have_it_cleared,
    Way.CLEAR_OUTSIDE: Guest.clear_from_outside,
}
