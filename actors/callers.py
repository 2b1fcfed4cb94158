"""Who is calling: the tool, hook or approval from which a session is used.

A context variable tells it, so it reaches helper functions, child tasks and worker threads of a handler.
"""

from contextvars import ContextVar
from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from exeunt.actors.activities.tool_call import Call
    from exeunt.actors.turn.actor import SessionActor


@attrs.define(eq=False)
class Caller:
    """A handler of a session that is running."""

    actor: "SessionActor"
    call: "Call | None" = None
    """The tool call whose handler, tool hook or approval it is; `None` in a hook of a prompt."""

    @property
    def settled(self) -> bool:
        """Whether the call has its outcome already: then the caller is nobody special any more."""
        return self.call is not None and (self.call.done or self.call.returned or self.call.cause is not None)


CALLER: ContextVar[Caller | None] = ContextVar("exeunt_caller", default=None)


def would_deadlock(target: "SessionActor") -> bool:
    """Say whether the current caller, by waiting for *target*, would wait for itself.

    It would if the target is its own session, or a session whose reply the target's work waits for, and so on
    up: every waiter knows the session whose handler it waits in.
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
        for waiter in actor.waiters.values():
            if waiter.caller is not None and waiter.caller.actor not in seen:
                seen.add(waiter.caller.actor)
                waiting.append(waiter.caller.actor)
    return False
