"""A host that watches itself: every promise that can be checked from outside is checked, in every test."""

from collections import Counter
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from exeunt.actors.errors import InvariantViolation
from exeunt.actors.events import (
    ClearRefusedEvent,
    ClearRolledBackEvent,
    ContextCleared,
    Event,
    MessageDropped,
    ToolExecutionComplete,
    TurnEnd,
)
from exeunt.actors.state import SessionState
from exeunt.host import SessionHost, open_host
from exeunt.testing.invariants import EventInvariants


class Ledger:
    """Counts events by itself, to hold the metrics against."""

    def __init__(self) -> None:
        self.counts: Counter[tuple[str, str]] = Counter()
        """By metric, and by the value of the label that `_LABELS` has for it."""

    def __call__(self, session_id: str, events: Sequence[Event], /) -> None:
        for event in events:
            counted = _COUNTED.get(type(event))
            if counted is not None:
                metric, label = counted
                self.counts[metric, label(event)] += 1


_CLEARS = "exeunt_context_clears_total"
_TURNS = "exeunt_turn_terminations_total"
_CALLS = "exeunt_tool_calls_total"
_DROPPED = "exeunt_messages_dropped_total"

_LABELS = {_CLEARS: "outcome", _TURNS: "reason", _CALLS: "outcome", _DROPPED: "cause"}

_COUNTED: dict[type[Event], tuple[str, Callable[[Any], str]]] = {
    ContextCleared: (_CLEARS, lambda event: "committed"),
    ClearRolledBackEvent: (_CLEARS, lambda event: "rolled_back"),
    ClearRefusedEvent: (_CLEARS, lambda event: str(event.cause)),
    TurnEnd: (_TURNS, lambda event: str(event.reason)),
    ToolExecutionComplete: (_CALLS, lambda event: str(event.outcome)),
    MessageDropped: (_DROPPED, lambda event: str(event.cause)),
}


@asynccontextmanager
async def checked_host(*, settled: bool = True, **keywords: Any) -> AsyncGenerator[SessionHost]:
    """Open a host for a test; its end checks the invariants of all that happened in it.

    * each accepted message ended exactly once, each idle came when nothing was left, numbers have no gaps (I2);
    * the state of each session in memory is the one that its log tells, and its context can be sent (I1);
    * the metrics add up with the events.

    Keywords are those of `open_host`. With `settled=False` work may be left when the body ends; the host's own
    shutdown must then end it. Raises `InvariantViolation`, unless the body raised something itself.
    """
    invariants = EventInvariants()
    ledger = Ledger()
    async with open_host(**keywords) as host:
        host.observe(invariants.observe)
        host.observe(ledger)
        yield host
        if settled:
            invariants.verify()
            await check_live_state(host)
    invariants.verify(settled=settled)
    check_metrics(host, ledger)


async def check_live_state(host: SessionHost) -> None:
    """Raise `InvariantViolation` for a session whose state is not the fold of its log. It may be at work."""
    for actor in host.actors():
        # As of now: while the log is read, the session goes on.
        seq, live = actor.state.seq, actor.state.summary()
        replayed = SessionState.replay(await actor.log.read(1, seq))
        if replayed.summary() != live:
            raise InvariantViolation(
                f"session {actor.id}: the live state\n  {live}\nis not what its log tells\n"
                f"  {replayed.summary()}"
            )


def check_metrics(host: SessionHost, ledger: Ledger) -> None:
    """Raise `InvariantViolation` for a counter that does not add up with the events."""
    counted: Counter[tuple[str, str]] = Counter()
    for family in host.metrics.registry.collect():
        for sample in family.samples:
            if sample.name in _LABELS:
                counted[sample.name, sample.labels[_LABELS[sample.name]]] += int(sample.value)
    for key in counted.keys() | ledger.counts.keys():
        if counted[key] != ledger.counts[key]:
            name, value = key
            raise InvariantViolation(
                f"{name} of {value!r} is {counted[key]} after {ledger.counts[key]} events"
            )
