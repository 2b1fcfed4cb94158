"""Events that the protocol does not have: for clients that ask for them."""

from collections.abc import Iterable

from exeunt.actors.events import Event
from exeunt.wire.events.clock import iso
from exeunt.wire.events.mapper import EventMapper, WireEvent
from exeunt.wire.names import camel

OUTSIDE = frozenset(
    {
        "message.accepted",
        "message.dropped",
        "session.clear_refused",
        "session.clear_rolled_back",
        "session.dead_letter",
        "session.media_removed",
        "session.restarted",
        "tool.result_stale",
        "turn.end",
    }
)
"""Their kinds."""


def own(mapper: EventMapper, event: Event) -> Iterable[WireEvent]:
    """Show an event as it is, under its own name."""
    if not mapper.wants_own:
        return ()
    # Data are shown once, with the event that the protocol has for them.
    data = {camel(name): value for name, value in event.payload().items() if name != "media"}
    return (WireEvent(event.type, data, event.id, iso(event.time), mapper.last_id, event.ephemeral),)
