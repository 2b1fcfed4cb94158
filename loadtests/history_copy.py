"""What the history of a session weighs by itself: its events and its list of messages, with no session around."""

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from exeunt.actors.events import Event
from exeunt.actors.models import Message

History = tuple[list[Event], list[Message]]
"""The events of a log, and those of them that a context holds."""


class HistoryCopies:
    """Makes copies of a history as one more session would have it.

    Objects are new wherever two sessions have objects of their own (ids, texts that were sent or made, times), and
    the same ones where sessions share them (names, fixed answers).
    """

    def __init__(self, history: History, other: History) -> None:
        """Take *history*, and that of another session that did the same, by which is seen what they share."""
        self._log, self._messages = history
        # Kept, so that the ids stay those of these objects.
        self._other = [part for event in other[0] for part in _parts(event)]
        self._shared = {id(part) for part in self._other}
        self._copies: dict[int, Any] = {}

    def make(self) -> History:
        """Return one more."""
        self._copies.clear()
        return self._grown(self._log), self._grown(self._messages)

    def _grown(self, items: Iterable[Any]) -> list[Any]:
        # One by one, as a log grows: a list that is made at once has no room to spare.
        grown: list[Any] = []
        for item in items:
            grown.append(self._copy(item))
        return grown

    def _copy(self, value: Any) -> Any:
        key = id(value)
        if key in self._shared:
            return value
        if key not in self._copies:
            self._copies[key] = self._anew(value)
        return self._copies[key]

    def _anew(self, value: Any) -> Any:
        if isinstance(value, msgspec.Struct):
            return type(value)(*map(self._copy, _children(value)))
        if isinstance(value, tuple):
            return tuple(map(self._copy, _children(value)))
        if isinstance(value, str):
            return "".join([*value])
        return value + 0.0 if isinstance(value, float) else value


def _children(value: Any) -> list[Any]:
    if isinstance(value, msgspec.Struct):
        return [getattr(value, name) for name in value.__struct_fields__]
    return list[Any](value) if isinstance(value, tuple) else []  # pyright: ignore[reportUnknownArgumentType]


def _parts(value: Any) -> Iterator[Any]:
    yield value
    for child in _children(value):
        yield from _parts(child)
