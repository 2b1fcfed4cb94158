"""What takes time in a session: model calls, tool calls, hooks. Each is an activity, run by a worker's task.

The task holds no state of the session: an activity reports its result to the actor, and the actor answers with
the activity to go on with, if any. So a task that is stuck in a handler can be left behind at any time: the
activity is *fenced*, its result is decided without it, another task carries on, and whatever comes back later is
stale.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, ClassVar

import trio

if TYPE_CHECKING:
    from exeunt.actors.turn.actor import SessionActor

GRACE = 1.0
"""Seconds between a cancellation and the fence: enough for a `finally` that closes a connection."""


class Activity(ABC):
    """Something that an actor waits for. Subclasses say how it runs and what it gives when it is lost."""

    settle: ClassVar[Callable[..., None]]
    """The actor's handler for the result."""

    scope: trio.CancelScope | None = None
    cause: str | None = None
    """Why it was cancelled: `timeout`, `aborted`, `stopped`, `siblings`, `interrupted`; or `answered`, elsewhere."""
    done: bool = False
    """Whether its result is decided. What its task still does is stale."""
    followers: set[trio.CancelScope] | None = None
    """What else is to be cancelled with it: waits of its handler that another task makes for it."""
    _limit: float = 0.0

    def __init__(self, actor: SessionActor) -> None:
        self.actor = actor

    @abstractmethod
    def run(self) -> Coroutine[Any, Any, Any]:
        """Do it and return the result. Raises nothing but cancellations."""

    @abstractmethod
    def lost(self, result: Any) -> Any:
        """Return the result of an activity that was cancelled; *result* is what it returned all the same."""

    async def until_safe(self, seq: int) -> None:
        """Wait until event *seq* cannot be lost, and the journal takes new work: before something is dispatched.

        Needed only with a log that outlives the process.
        """
        log = self.actor.log
        if self.actor.options.durability != "relaxed":
            if not log.has_room:
                await log.wait_room()
            if log.durable_seq < seq:
                await log.wait_durable(seq)

    def finish(self) -> None:
        """The result is decided: no time-out and no cancellation concerns it any more."""
        self.done = True
        if self._limit:
            self.actor.host.timers.stop(self._limit, self)

    def limit(self, seconds: float) -> None:
        """Give it *seconds* from now, instead of what it had. Once it is cancelled only the grace counts."""
        if self.cause is None and not self.done:
            timers = self.actor.host.timers
            if self._limit:
                timers.stop(self._limit, self)
            self._limit = seconds
            timers.start(seconds, self)

    def unlimit(self) -> None:
        """Take the time away that it had; what follows has its own."""
        if self._limit and self.cause is None:
            self.actor.host.timers.stop(self._limit, self)
            self._limit = 0.0

    def follow(self, scope: trio.CancelScope) -> None:
        """Cancel *scope* too when this is cancelled, until `unfollow`."""
        if self.followers is None:
            self.followers = set()
        self.followers.add(scope)

    def unfollow(self, scope: trio.CancelScope) -> None:
        """Undo a `follow`."""
        if self.followers is not None:
            self.followers.discard(scope)

    def cancel(self, cause: str) -> None:
        """End it. It is fenced if it has not come back after the grace. The first cause stands."""
        if self.cause is None and not self.done:
            self.limit(GRACE)
            self.cause = cause
            if self.scope is not None:
                self.scope.cancel()
            for scope in self.followers or ():
                scope.cancel()

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
