"""What a guest does whose message is refused: wait a moment and send it again, as the refusal says."""

import random
from collections.abc import Awaitable, Callable
from typing import TypeVar

import attrs
import trio

from exeunt import Overloaded

T = TypeVar("T")

FIRST_PAUSE, LONGEST_PAUSE = 0.1, 2.0
"""Seconds before a message is sent again. A journal that has fallen behind makes room within some of its commits; one
that has for longer is not helped by thousands of guests who ask each moment."""
PATIENCE = 60.0
"""Seconds for which one message may be refused: a journal that makes no room for so long has stopped."""


@attrs.define(eq=False)
class Refusals:
    """Sends again what was refused for want of room (`Overloaded`, so `JournalUnavailable` too), and counts it."""

    chance: random.Random
    count: int = 0
    """Refusals so far. Nothing of what was refused was accepted."""

    async def insist(self, act: Callable[[], Awaitable[T]]) -> T:
        """Return what *act* returns, once it is not refused. Raises the refusal when it lasts for `PATIENCE`."""
        began, pause = trio.current_time(), FIRST_PAUSE
        while True:
            try:
                return await act()
            except Overloaded:
                self.count += 1
                if trio.current_time() - began >= PATIENCE:
                    raise
            # Those who were refused together shall not come back together.
            await trio.sleep(pause * self.chance.uniform(0.5, 1.5))
            pause = min(LONGEST_PAUSE, pause * 2)
