"""Time-outs of a whole host in one table.

One insertion-ordered dict for each distinct duration: within one, the order of insertion is the order of the
deadlines, so adding and removing is a dict operation, and one task wakes for whichever is first. A trio cancel
scope with a deadline of its own for each wait costs up to 9 us more per turn.
"""

import math
from collections import defaultdict
from collections.abc import Callable
from typing import Protocol

import trio


class Expiring(Protocol):
    """Something whose time may run out."""

    def expire(self) -> None:
        """Called in the timers' task when it has. Must not wait or raise."""
        ...


class Timers:
    """Tells objects that their time is over."""

    __slots__ = ("_lanes", "_now", "_scope", "_wake_at")

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._lanes: defaultdict[float, dict[Expiring, float]] = defaultdict(dict)
        self._scope: trio.CancelScope | None = None
        self._wake_at = math.inf

    def start(self, seconds: float, item: Expiring) -> None:
        """Call `item.expire()` in *seconds*. Stop an item before it is started again."""
        deadline = self._now() + seconds
        self._lanes[seconds][item] = deadline
        if deadline < self._wake_at:
            self._wake_at = deadline
            if self._scope is not None:
                # Moved, not woken: waking the task for each call costs a scheduler step, 25 us in sequence.
                self._scope.deadline = trio.current_time() + seconds

    def stop(self, seconds: float, item: Expiring) -> None:
        """Forget *item*; nothing happens when its time is over already."""
        self._lanes[seconds].pop(item, None)

    def remaining(self, seconds: float, item: Expiring) -> float:
        """Return the seconds that *item* has left, not below 0."""
        deadline = self._lanes.get(seconds, {}).get(item)
        return 0.0 if deadline is None else max(0.0, deadline - self._now())

    def __len__(self) -> int:
        return sum(map(len, self._lanes.values()))

    async def run(self) -> None:
        """Serve the table until cancelled."""
        while True:
            deadline = trio.current_time() + (self._wake_at - self._now())
            with trio.CancelScope(deadline=deadline) as self._scope:
                await trio.sleep_forever()
            self._scope = None
            for item in self._due(self._now()):
                item.expire()
                del item  # or what expired last would live until something else does

    def _due(self, now: float) -> list[Expiring]:
        """Remove and return what is due, earliest first, and set the next wake-up."""
        due: list[tuple[float, Expiring]] = []
        self._wake_at = math.inf
        for seconds in list(self._lanes):
            lane = self._lanes[seconds]
            expired: list[Expiring] = []
            for item, deadline in lane.items():
                if deadline > now:
                    self._wake_at = min(self._wake_at, deadline)
                    break
                expired.append(item)
                due.append((deadline, item))
            for item in expired:
                del lane[item]
            if not lane:
                # Durations may be computed (a back-off): a lane that nobody uses must not stay.
                del self._lanes[seconds]
        due.sort(key=lambda entry: entry[0])
        return [item for _, item in due]
