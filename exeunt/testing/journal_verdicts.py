"""How the checks of journals say what is wrong. Each raises `InvariantViolation`."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from exeunt.actors.errors import ExeuntError, InvariantViolation
from exeunt.actors.events import Event
from exeunt.actors.events.codec import Data
from exeunt.testing.journal_events import same


def expect(value: Any, what: str) -> None:
    if not value:
        raise InvariantViolation(f"not so: {what}")


def expect_equal(found: Any, expected: Any, what: str) -> None:
    if found != expected:
        raise InvariantViolation(f"{what}: {found!r:.500} instead of {expected!r:.500}")


def expect_same(found: Sequence[Event], expected: Sequence[Event], what: str) -> None:
    if not same(found, expected):
        shown = [f"{event.seq} {event.type}" for event in found[:20]]
        raise InvariantViolation(
            f"{what}: {len(found)} events {shown} are not the {len(expected)} that were written"
        )


def expect_load(loaded: tuple[Data | None, Sequence[Event]], events: list[Event]) -> None:
    data, tail = loaded
    snapshot = None if data is None else bytes(data)
    behind = {None: 0, b"three": 3, b"four": 4, b"five": 5}.get(snapshot)
    expect(behind is not None, f"a snapshot comes back as it was, not as {snapshot!r:.80}")
    expect_same(tail, events[behind:], "the events behind a snapshot")


async def expect_error(kind: type[ExeuntError], call: Callable[[], Any]) -> None:
    try:
        result = call()
        if isinstance(result, Awaitable):
            await result
    except kind:
        return
    raise InvariantViolation(f"{call!r:.200} did not raise {kind.__name__}")
