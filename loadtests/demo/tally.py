"""What happened, counted from the events, and how long it took."""

from collections import Counter
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

import attrs
import trio

from exeunt.actors import events


@attrs.define
class Timings:
    """Seconds, measured by those who wait for them."""

    replies: list[float] = attrs.Factory(list[float])
    """From sending a message to its reply."""
    clears: list[float] = attrs.Factory(list[float])
    """From calling `clear_context` to the seeded request at the model, where the clear waits for no sibling."""
    _called: dict[str, float] = attrs.Factory(dict[str, float])

    @contextmanager
    def clear_called(self, session_id: str, *, alone: bool) -> Generator[None]:
        """Note the time of a clear that is called in the body; not of one that is refused."""
        now = trio.current_time()
        yield
        if alone:
            self._called[session_id] = now

    def requested(self, session_id: str, *, seeded: bool) -> None:
        """Take note of a request: it ends the time of a clear, if it is a seeded one."""
        called = self._called.pop(session_id, None)
        if seeded and called is not None:
            self.clears.append(trio.current_time() - called)


@attrs.define(eq=False)
class Tally:
    """An observer of a host that counts what the report shows."""

    turns: Counter[str] = attrs.Factory(Counter[str])
    """Ends of turns by reason."""
    calls: Counter[str] = attrs.Factory(Counter[str])
    """Tool calls by outcome."""
    clears: Counter[str] = attrs.Factory(Counter[str])
    """`committed`, `rolled_back`, and refusals by cause."""
    dropped: Counter[str] = attrs.Factory(Counter[str])
    """Messages dropped, by cause."""
    accepted: int = 0
    answered: int = 0
    """Messages that ended with the turn that took them in."""
    steered: int = 0
    requests: int = 0
    """Requests to the model, without retries."""
    retries: int = 0
    restarts: int = 0
    shown: int = 0
    """Events, of all kinds."""
    _taken: Counter[str] = attrs.Factory(Counter[str])
    """Messages in the contexts of turns that run, by turn."""

    @property
    def open(self) -> int:
        """Messages that were accepted and have not ended: at the end of the run, lost ones."""
        return self.accepted - self.answered - self.dropped.total()

    def __call__(self, session_id: str, happened: Sequence[events.Event]) -> None:
        """Count *happened*."""
        self.shown += len(happened)
        for event in happened:
            count = self.COUNTED.get(type(event))
            if count is not None:
                count(self, event)

    def _turn_ended(self, event: events.TurnEnd) -> None:
        self.turns[event.reason] += 1
        self.answered += self._taken.pop(event.turn_id, 0)

    def _call_ended(self, event: events.ToolExecutionComplete) -> None:
        self.calls[event.outcome] += 1

    def _cleared(self, event: events.ContextCleared) -> None:
        self.clears["committed"] += 1

    def _rolled_back(self, event: events.ClearRolledBackEvent) -> None:
        self.clears["rolled_back"] += 1

    def _refused(self, event: events.ClearRefusedEvent) -> None:
        self.clears[event.cause] += 1

    def _accepted(self, event: events.MessageAccepted) -> None:
        self.accepted += 1

    def _dropped(self, event: events.MessageDropped) -> None:
        self.dropped[event.cause] += 1

    def _entered(self, event: events.UserMessage) -> None:
        if event.message_id is not None:
            self._taken[event.turn_id] += 1
        self.steered += event.delivery == "steering"

    def _requested(self, event: events.AssistantTurnStart) -> None:
        self.requests += 1

    def _retried(self, event: events.AssistantTurnRetry) -> None:
        self.retries += 1

    def _restarted(self, event: events.SessionRestarted) -> None:
        self.restarts += 1

    COUNTED: ClassVar[dict[type[events.Event], Callable[["Tally", Any], None]]] = {
        events.TurnEnd: _turn_ended,
        events.ToolExecutionComplete: _call_ended,
        events.ContextCleared: _cleared,
        events.ClearRolledBackEvent: _rolled_back,
        events.ClearRefusedEvent: _refused,
        events.MessageAccepted: _accepted,
        events.MessageDropped: _dropped,
        events.UserMessage: _entered,
        events.AssistantTurnStart: _requested,
        events.AssistantTurnRetry: _retried,
        events.SessionRestarted: _restarted,
    }


def percentile(sorted_values: Sequence[float], share: float) -> float:
    """Return the value below which *share* (0 to 1) of *sorted_values* lie, by nearest rank; not of none."""
    return sorted_values[min(len(sorted_values) - 1, int(share * len(sorted_values)))]
