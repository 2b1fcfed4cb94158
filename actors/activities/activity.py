"""What takes time in a session: model calls, tool calls, hooks. Each is an activity, run by a task.

The task holds no state of the session: an activity reports its result to the actor, and the actor answers with
the activity to go on with, if any. So one task usually carries a whole turn (a scheduler step and a spawn less
per call), and a task that is stuck in a handler can be left behind at any time: the activity is *fenced*, its
result is decided without it, another task carries on, and whatever comes back later is stale.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

import trio

if TYPE_CHECKING:
    from exeunt.actors.turn.actor import SessionActor

GRACE = 1.0
"""Seconds between a cancellation and the fence: enough for a `finally` that closes a connection."""


class Activity:
    """Something that an actor waits for. Subclasses say how it runs and what it gives when it is lost."""

    settle: ClassVar[Callable[..., None]]
    """The actor's handler for the result."""

    scope: trio.CancelScope | None = None
    cause: str | None = None
    """Why it was cancelled: `timeout`, `aborted`, `stopped`, `siblings`, `interrupted`."""
    done: bool = False
    """Whether its result is decided. What its task still does is stale."""
    _limit: float = 0.0

    def __init__(self, actor: "SessionActor") -> None:
        self.actor = actor

    async def run(self) -> Any:
        """Do it and return the result. Raises nothing but cancellations."""
        raise NotImplementedError

    def lost(self, result: Any) -> Any:
        """Return the result of an activity that was cancelled; *result* is what it returned all the same."""
        raise NotImplementedError

    def finish(self) -> None:
        """The result is decided: no time-out and no cancellation concerns it any more."""
        self.done = True
        if self._limit:
            self.actor.host.timers.stop(self._limit, self)

    def limit(self, seconds: float) -> None:
        """Give it *seconds* from now, instead of what it had."""
        timers = self.actor.host.timers
        if self._limit:
            timers.stop(self._limit, self)
        self._limit = seconds
        timers.start(seconds, self)

    def cancel(self, cause: str) -> None:
        """End it. It is fenced if it has not come back after the grace. The first cause stands."""
        if self.cause is None and not self.done:
            self.cause = cause
            self.limit(GRACE)
            if self.scope is not None:
                self.scope.cancel()

    def fence(self) -> None:
        """Decide its result now, without its task."""
        if not self.done:
            if self.scope is not None:
                self.actor.host.fenced.add(self)
            self.actor.put(type(self).settle, self, self.lost(None))

    def expire(self) -> None:
        """Its time is over: cancel it, or fence it when it was cancelled a grace ago. For the timers."""
        self._limit = 0.0
        if self.cause is None:
            self.cancel("timeout")
        else:
            self.fence()


async def drive(first: Activity) -> None:
    """Run *first*, and then whatever the session wants done next, in this task."""
    activity: Activity | None = first
    while activity is not None:
        activity = await _drive_until_cancelled(activity)


async def _drive_until_cancelled(activity: Activity) -> Activity | None:
    """Run activities in one cancel scope, until one of them was cancelled or nothing is left to do.

    One scope for the many: entering and leaving one takes as long as everything else that a call needs.
    """
    result: Any = None
    try:
        with trio.CancelScope() as scope:
            while True:
                activity.scope = scope
                if activity.cause is None:
                    result = await activity.run()
                if activity.cause is not None:
                    break
                following = activity.actor.settled(activity, result)
                if following is None:
                    return None
                activity, result = following, None
    except trio.Cancelled:
        # The host is ending. What was in flight gets its outcome before the task goes.
        activity.cause = activity.cause or "stopped"
        activity.actor.settled(activity, activity.lost(result))
        raise
    except Exception as error:  # noqa: BLE001 - a fault of ours must not end the host's nursery
        activity.actor.crash("activity", error)
        return None
    return activity.actor.settled(activity, activity.lost(result))
