"""Waiting for a session: for the reply to a message, bounded, and never for oneself."""

import math
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import outcome

from exeunt.actors.activities import handlers
from exeunt.actors.callers import CALLER, Caller, would_deadlock
from exeunt.actors.errors import (
    InvalidConfiguration,
    ReplyTimeout,
    SessionClosed,
    SessionFailed,
    SessionOwnedElsewhere,
    WouldDeadlock,
)
from exeunt.actors.session.replies import Reply
from exeunt.actors.turn.aborts import DELETED, LOG_ENDED, TAKEN_OVER
from exeunt.actors.turn.actor import SessionActor
from exeunt.actors.turn.live import Waiter

T = TypeVar("T")


class ReplyWaiter(Waiter):
    """A task that waits for the reply to a message, for a time."""

    __slots__ = ("_actor",)

    def __init__(self, actor: SessionActor, caller: Caller | None) -> None:
        super().__init__(caller)
        self._actor = actor

    async def reply(self, message_id: str, seconds: float | None) -> Reply:
        """Wait for the reply. Raises `ReplyTimeout`, or the error with which the message ended.

        A tool call that waits leaves its slots to others meanwhile.
        """
        actor = self._actor
        if seconds is not None:
            actor.host.timers.start(seconds, self)
        try:
            reply: Reply = await (
                self.wait() if self.caller is None else wait_leaving_slots(self.caller, self.wait)
            )
            return reply
        finally:
            if seconds is not None:
                actor.host.timers.stop(seconds, self)
            if actor.waiters.get(message_id) is self:
                actor.give_up(message_id)

    def expire(self) -> None:
        """Wake the task with the time-out. For the timers."""
        actor = self._actor
        doing, running, queued = phase(actor), in_flight(actor), len(actor.state.queue or ())
        text = (
            f"session {actor.id} gave no reply in time (phase {doing}, in flight {list(running)}, "
            f"{queued} queued); the turn goes on"
        )
        error = ReplyTimeout(text, session_id=actor.id, phase=doing, in_flight=running, queued=queued)
        self.resolve(outcome.Error(error))


async def wait_leaving_slots(caller: Caller | None, wait: Callable[[], Awaitable[T]]) -> T:
    """Await *wait()*, which waits for somebody; the tool call that waits, if one does, leaves its slots meanwhile.

    It has its slot for tools again when this returns or raises, except by a cancellation.
    """
    if caller is None or caller.call is None:
        return await wait()
    return await handlers.leave_slots_while(caller.call, wait)


def refuse_deadlock(actor: SessionActor, what: str) -> Caller | None:
    """Return the handler that is calling, if one is, or raise `WouldDeadlock` if *actor* waits for it."""
    caller = CALLER.get()
    if caller is None or caller.settled:
        return None
    if would_deadlock(actor):
        raise WouldDeadlock(
            f"{what}() was called from a handler that session {actor.id} itself waits for; "
            "send() and let the turn end, or use another session",
            session_id=actor.id,
        )
    return caller


def checked_timeout(timeout: Any) -> float | None:
    """Return the seconds of a time-out, `None` for none. Raises `InvalidConfiguration`."""
    if timeout is None:
        return None
    if isinstance(timeout, bool) or not isinstance(timeout, (int, float)) or not timeout >= 0:
        raise InvalidConfiguration(f"timeout must be a number of seconds or None, not {timeout!r}")
    return None if timeout == math.inf else float(timeout)


def phase(actor: SessionActor) -> str:
    """Say what a session is doing."""
    if actor.turn is not None:
        return actor.turn.phase
    if actor.host_batch is not None:
        return "host_call"
    if actor.host_calls and actor.host_calls[0].is_begun:
        return "errand"
    return "idle" if actor.aftermath is None else "session_end_hook"


def in_flight(actor: SessionActor) -> tuple[str, ...]:
    """Return the names of the tools whose calls have no outcome, in call order."""
    batch = actor.batch
    return () if batch is None else tuple(call.name for call in batch.calls if call.outcome is None)


HOST_ENDED = "host"
"""Why a session has stopped that was in memory when its host ended."""
_AWAY = "was disconnected; resume it to go on with it"
_END = {
    HOST_ENDED: "has ended with its host; resume it at a host that has its journal",
    DELETED: "was deleted; create another",
    LOG_ENDED: "has left memory, because its log takes nothing more; resume it once the journal can be used again",
}


def refuse_status(actor: SessionActor) -> None:
    """Raise what says that the session takes nothing more, if that is so.

    That is `SessionClosed`, `SessionFailed` or `SessionOwnedElsewhere`.
    """
    if actor.status in ("stopping", "closed"):
        if actor.stop_reason == TAKEN_OVER:
            raise SessionOwnedElsewhere(
                f"session {actor.id} was taken over by another host, or deleted; resume it to have it here again",
                session_id=actor.id,
            )
        raise SessionClosed(f"session {actor.id} {_END.get(actor.stop_reason, _AWAY)}", session_id=actor.id)
    if actor.status == "failed":
        raise SessionFailed(
            f"session {actor.id} crashed too often and takes no more messages", session_id=actor.id
        )
