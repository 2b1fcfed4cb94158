"""Going back to an earlier conversation. The log stays as it is; the context is another one."""

import outcome

from exeunt.actors.errors import EventInsideTurn, SessionBusy, UnknownEvent
from exeunt.actors.events import Event, SessionTruncated
from exeunt.actors.events.envelope import seq_in
from exeunt.actors.state import SessionState
from exeunt.actors.state.context import Context, difference
from exeunt.actors.turn.actor import SessionActor
from exeunt.actors.turn.live import Waiter

READ_AT_ONCE = 1_000
"""Events that are read and folded in one go: a few milliseconds of the loop."""


async def context_after(actor: SessionActor, event_id: str) -> tuple[int, Context]:
    """Return the number of an event, and the context right after it. Not a handler: reads the log up to there.

    Raises `UnknownEvent`, `EventInsideTurn`, `JournalError`.
    """
    unknown = UnknownEvent(
        f"the log of session {actor.id} has no event {event_id!r:.80}", session_id=actor.id
    )
    wanted = seq_in(event_id)
    if wanted is None or not 1 <= wanted <= actor.state.seq:
        raise unknown
    state, events = SessionState(), list[Event]()
    while state.seq < wanted:
        events = list(await actor.log.read(state.seq + 1, min(READ_AT_ONCE, wanted - state.seq)))
        if not events:
            raise unknown
        SessionState.replay(events, state)
    if state.last_id != event_id:
        raise unknown
    if not state.at_rest:
        raise EventInsideTurn(
            f"event {event_id} of session {actor.id} ({events[-1].type}) lies inside of a turn; go back to the end of"
            " one (turn.end), or to before its message",
            session_id=actor.id,
        )
    return wanted, state.context


def busy(actor: SessionActor) -> SessionBusy:
    """Return what is raised while the session has anything at work."""
    return SessionBusy(
        f"session {actor.id} is at work; wait until it is idle, or abort what it does", session_id=actor.id
    )


def truncate(actor: SessionActor, event_id: str, seq: int, target: Context, waiter: Waiter) -> None:
    """Go back to *target*, and give *waiter* the event; refuse it if something has begun meanwhile."""
    if not actor.free:
        actor.wake(waiter, outcome.Error(busy(actor)))
        return
    kept, restored = difference(actor.context, target)
    removed, generation = actor.state.seq - seq, actor.context.generation + 1
    event = actor.emit(SessionTruncated, event_id, seq, removed, generation, kept, restored)
    actor.wake(waiter, outcome.Value(event))
