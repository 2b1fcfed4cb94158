"""Logs for tests of journals: of any length, and of every kind of event."""

from collections.abc import Collection, Sequence
from typing import Any

import msgspec

from exeunt.actors.events import Event, Origin, SessionStart, UserMessage
from exeunt.actors.events.codec import PERSISTED

TEXT = 'Exit, pursued by a bear. „Ça va?" 退場 🎭 \x00 \u2028 e\u0301'
"""What encodings get wrong: several widths, a zero, a line separator, an accent that stands alone."""

LAST_ACT = 1_700_000_000.0
"""When the events of tests happen, in seconds since the epoch: the first a second later, and so on."""


def some_events(
    session_id: str,
    last_seq: int,
    *,
    first_seq: int = 1,
    origin: Origin | None = None,
    tenant: str = "",
    text: str = "",
    time: float = LAST_ACT,
) -> list[Event]:
    """Return the events *first_seq* to *last_seq* of a log; the first of all is `SessionStart`."""
    origin = origin or Origin.fresh(first_seq=first_seq)
    events: list[Event] = []
    for seq in range(first_seq, last_seq + 1):
        if seq == 1:
            events.append(SessionStart(origin, 1, time + 1, session_id, tenant))
        else:
            events.append(UserMessage(origin, seq, time + seq, text or f"line {seq}", f"turn {seq}"))
    return events


def every_event(session_id: str, *, defaults: bool, only: Collection[str] | None = None) -> list[Event]:
    """Return a log with one event of each kind, `SessionStart` first; optional fields as they are, or all given.

    With *only*, the start and events of those types.
    """
    origin = Origin.fresh()
    chosen = (kind for kind in PERSISTED if only is None or kind is SessionStart or kind.type in only)
    kinds = sorted(chosen, key=lambda kind: kind is not SessionStart)
    return [_example(kind, session_id, origin, seq, defaults) for seq, kind in enumerate(kinds, 1)]


def _example(kind: type[Event], session_id: str, origin: Origin, seq: int, defaults: bool) -> Event:
    given: dict[str, Any] = {"origin": origin, "seq": seq, "time": LAST_ACT + seq / 3}
    if kind is SessionStart:
        given["session_id"] = session_id
    for field in msgspec.structs.fields(kind):
        if field.name not in given and (field.required or not defaults):
            given[field.name] = _value(msgspec.inspect.type_info(field.type))
    return kind(**given)


def _value(kind: Any) -> Any:
    match kind:
        case msgspec.inspect.BoolType():
            return True
        case msgspec.inspect.StrType():
            return TEXT
        case msgspec.inspect.BytesType():
            return TEXT.encode()
        case msgspec.inspect.IntType():
            return 2**40 + 7
        case msgspec.inspect.FloatType():
            return 0.1
        case msgspec.inspect.LiteralType(values=values):
            return values[0]
        case msgspec.inspect.EnumType(cls=members):
            return next(iter(members))
        case msgspec.inspect.VarTupleType(item_type=item):
            return (_value(item), _value(item))
        case msgspec.inspect.DictType():
            return {TEXT: TEXT, "more": [1, None, {"deep": 0.5}]}
        case msgspec.inspect.UnionType(types=kinds):
            return _value(next(each for each in kinds if not isinstance(each, msgspec.inspect.NoneType)))
        case msgspec.inspect.StructType(cls=struct, fields=fields):
            return struct(*(_value(field.type) for field in fields))
        case _:
            raise NotImplementedError(f"an event has a field of {kind}: say here what an example is")


def same(first: Sequence[Event], second: Sequence[Event]) -> bool:
    """Whether two logs hold the same: kinds, values, ids and what comes before what."""
    return len(first) == len(second) and all(
        type(one) is type(other) and one == other and (one.id, one.parent_id) == (other.id, other.parent_id)
        for one, other in zip(first, second, strict=True)
    )
