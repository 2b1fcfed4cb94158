"""When sessions leave memory: after they were idle for a time, or to make room for others."""

import math
from collections import OrderedDict
from collections.abc import Sequence
from typing import TYPE_CHECKING

import trio

from exeunt.actors.events import (
    Event,
    MessageAccepted,
    SessionIdle,
    ToolExecutionComplete,
    ToolExecutionStart,
)

if TYPE_CHECKING:
    from exeunt.supervisor.held import HeldSessions

TRY_AGAIN = 1.0
"""Seconds after which a session is looked at again that was idle and could not leave: its last events were not durable
yet, or a handler had not come back."""

LEAVE_AT_ONCE = 500
"""Sessions that leave in one step of the loop: a few milliseconds."""


class Passivation:
    """Decides who leaves. An observer of the host, and one of its services."""

    def __init__(self, host: "HeldSessions", after: float | None, most_live: int | None) -> None:
        self._host = host
        self._after = math.inf if after is None else after
        self._most_live = math.inf if most_live is None else most_live
        # Not a dict: the first entry of one is found behind all that were deleted before it.
        self._idle: OrderedDict[str, float] = OrderedDict()
        """When each idle session became so; the one that was used longest ago first."""
        self._changed = trio.Event()
        self.left = 0
        """Sessions that have left memory."""
        self._compacted = 0
        """How many that were when the tables were made anew."""

    def __call__(self, session_id: str, events: Sequence[Event], /) -> None:
        """Note who begins and who ends to be idle."""
        for event in events:
            kind = type(event)
            if kind is SessionIdle:
                self.idle(session_id)
            elif kind is MessageAccepted or kind is ToolExecutionStart:
                self._idle.pop(session_id, None)
            elif kind is ToolExecutionComplete and getattr(event, "turn_id", None) is None:
                # A call of the host is no turn, and no idle follows it.
                self.idle(session_id)

    def idle(self, session_id: str) -> None:
        """*session_id* has nothing to do."""
        self._idle.pop(session_id, None)
        self._idle[session_id] = self._host.clock.now()
        if len(self._idle) == 1 or self._host.live > self._most_live:
            self._changed.set()

    def forget(self, session_id: str) -> None:
        """*session_id* is gone for another reason."""
        self._idle.pop(session_id, None)

    async def run(self) -> None:
        """Let sessions leave when their time has come, until cancelled."""
        while True:
            self._changed = trio.Event()
            with trio.move_on_after(self._sweep()):
                await self._changed.wait()

    def _sweep(self) -> float:
        """Let those leave whose time has come; return the seconds until the next may."""
        now = self._host.clock.now()
        stay: list[str] = []
        wait = math.inf
        for looked_at in range(len(self._idle)):
            if looked_at == LEAVE_AT_ONCE:
                wait = 0.0 if len(stay) < LEAVE_AT_ONCE else TRY_AGAIN
                break
            session_id, since = next(iter(self._idle.items()))
            due = since + self._after - now
            if due > 0 and self._host.live <= self._most_live:
                wait = due
                break
            del self._idle[session_id]
            if not self._leave(session_id):
                stay.append(session_id)
        for session_id in stay:
            self._idle[session_id] = now
            wait = min(wait, TRY_AGAIN)
        if self.left - self._compacted > 2 * self._host.live + LEAVE_AT_ONCE:
            # A table never shrinks by itself: it would remember the largest crowd for ever, 40 B for each.
            self._compacted = self.left
            self._idle = OrderedDict(self._idle)
            self._host.compact()
        return wait

    def _leave(self, session_id: str) -> bool:
        """Let a session leave; `False` if it must be looked at again."""
        actor = self._host.find(session_id)
        if actor is None or actor.active or actor.status in ("stopping", "failed", "closed"):
            # Gone already; or at work again, and will say when it is idle.
            return True
        if not actor.quiescent or actor.log.durable_seq < actor.state.seq:
            return False
        self._host.passivate(actor)
        self.left += 1
        return True
