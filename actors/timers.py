"""Time-outs of a whole host in one table.

One insertion-ordered dict for each distinct duration: within one, the order of insertion is the order of the
deadlines, so adding and removing is a dict operation, and one task wakes for whichever is first. A trio cancel
scope with a deadline of its own for each wait costs up to 9 us more per turn.
"""

import math
from collections.abc import Callable

import trio


class Timers:
    """Calls back after a time. Callbacks run in the timers' task and must not wait."""

    __slots__ = ("_lanes", "_now", "_scope", "_wake_at")

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._lanes: dict[float, dict[Callable[[], None], float]] = {}
        self._scope: trio.CancelScope | None = None
        self._wake_at = math.inf

    def start(self, seconds: float, callback: Callable[[], None]) -> None:
        """Call *callback* in *seconds*. The same callback may run once per duration: a restart moves it."""
        deadline = self._now() + seconds
        lane = self._lanes.get(seconds)
        if lane is None:
            lane = self._lanes[seconds] = {}
        lane.pop(callback, None)
        lane[callback] = deadline
        if deadline < self._wake_at:
            self._wake_at = deadline
            if self._scope is not None:
                # Moved, not woken: waking the task for each call costs a scheduler step, 25 us in sequence.
                self._scope.deadline = deadline

    def stop(self, seconds: float, callback: Callable[[], None]) -> None:
        """Forget *callback*; nothing happens when it has run already."""
        lane = self._lanes.get(seconds)
        if lane is not None:
            lane.pop(callback, None)

    def __len__(self) -> int:
        return sum(map(len, self._lanes.values()))

    async def run(self) -> None:
        """Serve the table until cancelled."""
        while True:
            with trio.CancelScope(deadline=self._wake_at) as self._scope:
                await trio.sleep_forever()
            self._scope = None
            for callback in self._due(self._now()):
                callback()

    def _due(self, now: float) -> list[Callable[[], None]]:
        """Remove and return what is due, earliest first, and set the next wake-up."""
        due: list[tuple[float, Callable[[], None]]] = []
        self._wake_at = math.inf
        for seconds in list(self._lanes):
            lane = self._lanes[seconds]
            for callback, deadline in list(lane.items()) if self._expired(lane, now) else ():
                if deadline > now:
                    break
                del lane[callback]
                due.append((deadline, callback))
            if lane:
                self._wake_at = min(self._wake_at, next(iter(lane.values())))
            else:
                # Durations may be computed (a back-off): a lane that nobody uses must not stay.
                del self._lanes[seconds]
        due.sort(key=lambda item: item[0])
        return [callback for _, callback in due]

    @staticmethod
    def _expired(lane: dict[Callable[[], None], float], now: float) -> bool:
        return bool(lane) and next(iter(lane.values())) <= now
