"""Who is calling: the tool, hook or approval from which a session is used.

A context variable tells it, so it reaches helper functions, child tasks and worker threads of a handler.
"""

from collections.abc import Iterator
from contextvars import ContextVar
from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from exeunt.actors.activities.activity import Activity
    from exeunt.actors.activities.tool_call import Call
    from exeunt.actors.turn.actor import SessionActor
    from exeunt.actors.turn.live import Waiter


@attrs.define(eq=False)
class Caller:
    """A handler of a session that is running."""

    actor: "SessionActor"
    call: "Call | None" = None
    """The tool call whose handler, tool hook or approval it is; `None` in a hook around a turn."""
    hook: "Activity | None" = None
    """What runs that hook."""

    @property
    def settled(self) -> bool:
        """Whether the call has its outcome already: then the caller is nobody special any more."""
        work = self.call or self.hook
        if work is None:
            return False
        return work.done or work.cause is not None or (self.call is not None and self.call.returned)


CALLER: ContextVar[Caller | None] = ContextVar("exeunt_caller", default=None)


def would_deadlock(target: "SessionActor") -> bool:
    """Say whether the current caller, by waiting for *target*, would wait for itself.

    It would if the target is its own session, or a session that waits for that one, and so on up: every waiter
    knows the session whose handler it waits in.
    """
    caller = CALLER.get()
    if caller is None or caller.settled:
        return False
    seen = {caller.actor}
    waiting = [caller.actor]
    while waiting:
        actor = waiting.pop()
        if actor is target:
            return True
        for waiter in _waiting_for(actor):
            if waiter.caller is not None and waiter.caller.actor not in seen:
                seen.add(waiter.caller.actor)
                waiting.append(waiter.caller.actor)
    return False


def _waiting_for(actor: "SessionActor") -> "Iterator[Waiter]":
    """Whoever waits for a reply of *actor*, for a call that it runs, or for a clear of its context."""
    yield from actor.waiters.values()
    if actor.host_batch is not None and actor.host_batch.host_call is not None:
        yield actor.host_batch.host_call.waiter
    for host_call in actor.host_calls or ():
        yield host_call.waiter
    if actor.clear is not None:
        yield from actor.clear.waiters
