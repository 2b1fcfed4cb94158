"""What is stored of one session, as events. Blocking: made for threads."""

import logging
import math
from collections.abc import Sequence

from exeunt.actors.errors import JournalError
from exeunt.actors.events import Event
from exeunt.actors.events.codec import Data, SliceDecoder
from exeunt.supervisor.journal.slices import open_slice, unseal
from exeunt.supervisor.journal.store import Store, StoreDamaged, StoreUnavailable

logger = logging.getLogger("exeunt.supervisor")


def read_events(
    store: Store, session_id: str, from_seq: int, limit: int | None, known: int
) -> Sequence[Event]:
    """Return the events from number *from_seq* on, at most *limit*; the log is known to have *known*.

    Raises `StoreUnavailable`; `StoreDamaged` when a slice is damaged, or one of the known events is missing.
    """
    wanted = math.inf if limit is None else from_seq + limit - 1
    decoder = SliceDecoder()
    events: list[Event] = []
    following = None
    try:
        for data in store.read(session_id, from_seq, limit):
            found = open_slice(decoder, data)
            if found[0].seq != following and (following is not None or found[0].seq > from_seq):
                break
            events.extend(found)
            following = found[-1].seq + 1
            if following > wanted:
                break
    except StoreUnavailable:
        raise
    except JournalError as error:
        raise type(error)(f"the log of session {session_id} in {store.name}: {error}") from error
    if (following or from_seq) <= min(known, wanted):
        raise StoreDamaged(
            f"the log of session {session_id} in {store.name}: event {following or from_seq} is missing"
        )
    begin = from_seq - events[0].seq if events else 0
    return events[begin:] if limit is None else events[begin : begin + limit]


def load_state(store: Store, session_id: str, known: int) -> tuple[Data | None, Sequence[Event]]:
    """Return the newest snapshot, if there is a whole one, and the events behind it. Raises as `read_events`."""
    try:
        seq, sealed = store.read_snapshot(session_id) or (0, None)
        snapshot = None if sealed is None else unseal(sealed)
    except StoreDamaged as error:
        logger.warning("the snapshot of session %s is not used: %s", session_id, error)
        seq, snapshot = 0, None
    return snapshot, read_events(store, session_id, seq + 1, None, known)
