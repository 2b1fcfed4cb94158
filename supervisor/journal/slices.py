"""From events to rows and back: what a journal writes of each log."""

import zlib
from collections.abc import Iterator, Sequence

from exeunt.actors.errors import JournalError
from exeunt.actors.events import Event
from exeunt.actors.events.codec import SliceDecoder, encode_slice
from exeunt.supervisor.journal.log import DurableLog
from exeunt.supervisor.journal.store import Row, StoreDamaged

Slices = list[tuple[DurableLog, list[Event]]]
"""What the writer is given: logs, each with the events that it had collected."""

_SEAL = 4
"""Bytes of the checksum in front of each slice. Databases find a torn page, not a bit that fell over in a value."""


def seal(data: bytes) -> bytes:
    """Return *data* with its checksum in front."""
    return zlib.crc32(data).to_bytes(_SEAL, "big") + data


def unseal(sealed: bytes) -> memoryview:
    """Return what was sealed, as a view: a snapshot may have megabytes. Raises `StoreDamaged` when it has changed."""
    data = memoryview(sealed)[_SEAL:]
    if len(sealed) < _SEAL or zlib.crc32(data).to_bytes(_SEAL, "big") != sealed[:_SEAL]:
        raise StoreDamaged("a slice of a log is damaged: its checksum is wrong")
    return data


def open_slice(decoder: SliceDecoder, sealed: bytes) -> list[Event]:
    """Return the events of a stored slice. Raises `StoreDamaged`, and `JournalError` for a format of the future."""
    return decoder.decode(unseal(sealed))


def batches(slices: Slices) -> list[Slices]:
    """Join the slices of each log; return what can be written at once, nearly always all.

    A batch has one log of a session. Two of one session, of which the second was opened while the first was still
    written, must not share a transaction: the database names the loser by the session's id.
    """
    if len(slices) == 1:
        return [slices]
    by_session: dict[str, tuple[DurableLog, list[Event]]] = {}
    later: Slices = []
    for log, events in slices:
        known = by_session.get(log.session_id)
        if known is None:
            by_session[log.session_id] = (log, events)
        elif known[0] is log:
            known[1].extend(events)
        else:
            later.append((log, events))
    batch = list(by_session.values())
    return [batch, *batches(later)] if later else [batch]


def rows(log: DurableLog, events: Sequence[Event]) -> Iterator[Row]:
    """Yield *events* as rows: one for each activation, since a slice names its activation once."""
    begin = 0
    while begin < len(events):
        origin = events[begin].origin
        end = len(events)
        # Activations do not mix: when the last event is of the same one, so are those between.
        while events[end - 1].origin is not origin and events[end - 1].origin != origin:
            end -= 1
        yield _row(log.session_id, events if end - begin == len(events) else events[begin:end])
        begin = end


def _row(session_id: str, events: Sequence[Event]) -> Row:
    first, last = events[0], events[-1]
    try:
        data = seal(encode_slice(events))
    except (TypeError, ValueError, NotImplementedError, OverflowError, RecursionError) as error:
        raise JournalError(f"events of session {session_id} cannot be written: {error}") from error
    if first.seq > 1:
        return Row(session_id, first.seq, last.seq, last.time, data)
    return Row(session_id, 1, last.seq, last.time, data, getattr(first, "tenant", ""), first.time)
