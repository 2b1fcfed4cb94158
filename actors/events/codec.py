"""Events as bytes: how a journal writes them, for ever.

One handler run's events, or several, make a *slice*: the activation once, then the events without it, as MessagePack
maps with the fields' names. A field that is added gets a default; a reader ignores fields that it does not know; so
logs of any version can be read. An event's type is its name on the wire.
"""

import functools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from exeunt.actors.errors import JournalError
from exeunt.actors.events import budget, messages, session, tools
from exeunt.actors.events.envelope import Event, Origin, seq_in

Data = bytes | memoryview
"""What a reader takes: a view of a part costs no copy."""

FORMAT = 1
"""Number of the encoding. A reader refuses a higher one."""

PERSISTED: tuple[type[Event], ...] = tuple(
    kind
    for module in (messages, session, tools, budget)
    for kind in vars(module).values()
    if isinstance(kind, type) and issubclass(kind, Event) and kind is not Event and not kind.ephemeral
)
"""The classes of all events that are logged."""


def _any_events() -> Any:
    return list[_any_event()]  # type: ignore[misc]


@functools.cache
def _any_event() -> Any:
    union: Any = PERSISTED[0]
    for kind in PERSISTED[1:]:
        union = union | kind
    return union


def _omit(value: Any) -> Any:
    if isinstance(value, Origin):
        return None
    raise NotImplementedError(f"an event holds {type(value).__name__}, which no journal can write")


_encoder = msgspec.msgpack.Encoder(enc_hook=_omit)


def encode_slice(events: Sequence[Event]) -> bytes:
    """Return events of one activation, in order, as bytes."""
    origin = events[0].origin
    return _encoder.encode((FORMAT, origin.key(), events))


def encode_slices(events: Iterable[Event]) -> list[bytes]:
    """Return any events, in order, as slices: one for each run of events of one activation."""
    slices: list[bytes] = []
    run: list[Event] = []
    for event in events:
        if run and run[0].origin != event.origin:
            slices.append(encode_slice(run))
            run = []
        run.append(event)
    if run:
        slices.append(encode_slice(run))
    return slices


class SliceDecoder:
    """Reads slices. Not for several threads at once: one for each read."""

    def __init__(self) -> None:
        self._origins: dict[tuple[str, str | None, int], Origin] = {}
        self._head = msgspec.msgpack.Decoder(tuple[int, tuple[str, str | None, int], msgspec.Raw])
        # What the decoder puts where an origin belongs. A method of a dict, because it is called for each event: a
        # function of ours takes a quarter longer.
        self._filling: dict[type, Any] = {}
        self._events: msgspec.msgpack.Decoder[list[Event]] = msgspec.msgpack.Decoder(
            _any_events(), dec_hook=self._filling.get
        )

    def decode(self, data: Data) -> list[Event]:
        """Return the events of a slice. Raises `JournalError` for bytes that are none."""
        try:
            version, key, events = self._head.decode(data)
            if version > FORMAT:
                raise JournalError(
                    f"a slice has format {version}; this version of Exeunt reads up to {FORMAT}"
                )
            origin = self._origins.get(key)
            if origin is None:
                origin = self._origins[key] = Origin(*key)
            self._filling[Origin] = origin
            decoded: list[Event] = self._events.decode(events)
        except msgspec.MsgspecError as error:
            raise JournalError(f"a slice of a log cannot be read: {error}") from error
        return decoded

    def decode_all(self, slices: Iterable[Data]) -> list[Any]:
        """Return the events of several slices. Raises as `decode`."""
        return [event for data in slices for event in self.decode(data)]


class JsonDecoder:
    """Reads what `to_json` made of the events of one session, in order from the first on."""

    def __init__(self) -> None:
        self._origin: Origin | None = None

    def decode(self, fields: Mapping[str, Any]) -> Event:
        """Return the event. Raises `JournalError` for what is none; fields that are not known are ignored."""
        event_id, parent_id = fields.get("id"), fields.get("parent_id")
        seq = seq_in(event_id)
        if seq is None or not isinstance(event_id, str) or seq != fields.get("seq"):
            raise JournalError(f"an event has the id {event_id!r:.80}, which does not name its number")
        if not isinstance(parent_id, str | None):
            raise JournalError(f"event {event_id} has a parent that is no id")
        prefix = event_id.removesuffix(f"-8000-{seq:012x}")
        if self._origin is None or self._origin.prefix != prefix:
            self._origin = Origin(prefix, parent_id, seq)
        try:
            event: Event = msgspec.convert({**fields, "origin": None}, _any_event(), dec_hook=self._fill)
        except msgspec.ValidationError as error:
            raise JournalError(f"an event cannot be read: {error}") from error
        if event.parent_id != parent_id:
            raise JournalError(f"event {event_id} does not follow its parent {parent_id!r:.80}")
        return event

    def _fill(self, kind: type, value: Any) -> Any:
        return self._origin


def to_json(event: Event) -> dict[str, Any]:
    """Return an event as a mapping for JSON lines: the envelope, then the payload."""
    fields: dict[str, Any] = msgspec.to_builtins(event, enc_hook=_omit)
    del fields["origin"]
    return {"type": event.type, "id": event.id, "parent_id": event.parent_id, **fields}
