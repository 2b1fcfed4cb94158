"""The tasks that run activities.

A worker takes an activity, runs it, and goes on with whatever the session wants next; so one task usually carries
a whole turn. Then it parks for the next session that has work. A fresh task for each turn, with a cancel scope of
its own, costs as much again as everything that the session itself does between two requests.

Context variables are those of whoever began the turn, as with a task that is spawned.
"""

import contextvars
from typing import Any

import outcome
import trio

from exeunt.actors.activities.activity import Activity
from exeunt.actors.turn import aborts

MOST_PARKED = 256
"""Workers that wait for work. Beyond it a burst is over: each takes 3 KiB, and a new one is made in 10 us."""


class Workers:
    """The workers of one host."""

    __slots__ = ("_nursery", "_parked")

    def __init__(self, nursery: trio.Nursery) -> None:
        self._nursery = nursery
        self._parked: list[_Parking] = []

    def run(self, activity: Activity) -> None:
        """Let a worker run *activity*. Returns at once."""
        if self._parked:
            self._parked.pop().unpark(activity)
        else:
            # A name of our own saves trio the making of one.
            self._nursery.start_soon(self._work, activity, name="exeunt worker")

    async def _work(self, first: Activity) -> None:
        parking = _Parking(self._parked, first)
        del first
        while parking.hand is not None:
            await _run_until_cancelled(parking)
            if parking.hand is None:
                await parking.wait()


class _Parking:
    """A place where one worker waits for work. While it does, nothing of the last session is held."""

    __slots__ = ("_all", "_task", "hand")

    def __init__(self, all_parked: "list[_Parking]", first: Activity) -> None:
        self._all = all_parked
        self._task = trio.lowlevel.current_task()
        self.hand: Activity | None = first
        """What the worker is to run next."""

    def take(self) -> Activity | None:
        """Take what is to be run next out of the hand."""
        activity, self.hand = self.hand, None
        return activity

    async def wait(self) -> None:
        """Wait until there is something in the hand; not when there are workers enough."""
        if len(self._all) < MOST_PARKED:
            self._all.append(self)
            self._task.context = _NOBODY
            self.hand = await trio.lowlevel.wait_task_rescheduled(self._leave)

    def unpark(self, activity: Activity) -> None:
        self._task.context = contextvars.copy_context()
        trio.lowlevel.reschedule(self._task, outcome.Value(activity))

    def _leave(self, _: Any) -> trio.lowlevel.Abort:
        self._all.remove(self)
        return trio.lowlevel.Abort.SUCCEEDED


_NOBODY = contextvars.Context()
"""The context of a worker that waits."""


async def _run_until_cancelled(parking: _Parking) -> None:
    """Run activities in one cancel scope, until one of them was cancelled or there is nothing to do.

    What to go on with, in a fresh scope, is in the hand.
    """
    running = parking.take()
    result: Any = None
    try:
        with trio.CancelScope() as scope:  # noqa: ASYNC912 - only an activity waits, and may have nothing to
            while running is not None:
                running.scope = scope
                if running.cause is None:
                    result = await running.run()
                if running.cause is not None:
                    break
                running = running.actor.settled(running, result)
                result = None
                if running is None:
                    await parking.wait()
                    running = parking.take()
    except Exception as error:  # noqa: BLE001 - a fault of ours must not end the host's nursery
        if running is not None and running.cause is None:
            running.actor.crash("activity", error)
            return
        # Foreign code failed while it was cancelled, in one group with the cancellation: that one counts.
    except BaseException:
        # The host is ending: by a cancellation, alone or in groups, or by an interrupt. What is in flight gets
        # its outcome before the task goes, and nothing new begins.
        if running is not None:
            running.actor.put(aborts.stop, "host", None)
            running.cause = running.cause or "stopped"
            running.actor.settled(running, running.lost(result))
        raise
    if running is not None:
        parking.hand = running.actor.settled(running, running.lost(result))
