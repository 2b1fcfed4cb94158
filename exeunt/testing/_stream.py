"""What the events of one session allow next: a state machine fed with events as an outsider sees them.

It knows nothing of how a session works, so that a fault there cannot hide here.
"""

from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import attrs

from exeunt.actors import events
from exeunt.actors.outcomes import Outcome

_OUTCOMES = frozenset(Outcome)

_TURN_REASONS = frozenset(
    {"completed", "terminal_tool", "context_cleared", "aborted", "limit", "error", "interrupted"}
)

_KEEPS_CLEAR_ALLOWED = frozenset({"tool.execution_complete", "assistant.turn_end", "turn.end"})
"""Persisted events that may stand between an owner's success and the clear that it commits."""

_RECENT = 12
"""Events shown with a violation: about one tool turn."""

_SHOWN = ("message_id", "turn_id", "step", "tool_call_id", "outcome", "reason", "cause")


@attrs.define(eq=False)
class SessionStream:
    """The state of one session's stream."""

    seq: int | None = None
    whole: bool = True
    """Whether the log was seen from its first event."""
    open_messages: dict[str, str | None] = attrs.Factory(dict[str, "str | None"])
    """Accepted messages without end, and the turn whose context holds each."""
    ended_messages: dict[str, str] = attrs.Factory(dict[str, str])
    turn_id: str | None = None
    """The turn that runs."""
    ended_turns: set[str] = attrs.Factory(set[str])
    step: int | None = None
    """The step that runs."""
    last_step: tuple[str, int] | None = None
    open_calls: set[str] = attrs.Factory(set[str])
    settled_calls: set[str] = attrs.Factory(set[str])
    """Calls of this generation that have their outcome."""
    open_requests: dict[str, str] = attrs.Factory(dict[str, str])
    """What people are asked, and the call that asks it."""
    clear_allowed: bool = False
    clear_due: bool = False
    """A turn ended with the word that a clear comes next."""
    seed_due: bool = False
    """A clear was committed and its turn has not begun."""
    idle_due: bool = False
    """Something ended since the last idle."""
    idle_allowed: bool = False
    failed: bool = False
    recent: deque[events.Event] = attrs.Factory(lambda: deque[events.Event](maxlen=_RECENT))

    def take(self, event: events.Event) -> Iterator[str]:
        """Go on by *event*. Yields what is wrong with it; to be exhausted."""
        self.recent.append(event)
        if not event.ephemeral:
            yield from self._persisted(event)
        handler = self.HANDLED.get(event.type)
        if handler is not None:
            yield from handler(self, event)
        if not event.ephemeral and event.type not in _KEEPS_CLEAR_ALLOWED:
            self.clear_allowed = False

    def unsettled(self) -> list[str]:
        """What is still open."""
        found = self._open_things()
        if self.idle_due:
            found.append("session.idle never came")
        return found

    def describe_recent(self) -> str:
        """The last events, one a line."""
        return "\n".join(f"    {_describe(event)}" for event in self.recent)

    def _persisted(self, event: events.Event) -> Iterator[str]:
        if self.seq is None:
            self.whole = event.seq == 1
        elif event.seq != self.seq + 1:
            yield f"seq {event.seq} after {self.seq}"
        self.seq = event.seq
        if self.clear_due and event.type != "session.context_cleared":
            yield f"a turn ended with a clear, but {event.type} followed"
        self.clear_due = False

    def _open_things(self) -> list[str]:
        found: list[str] = []
        if self.open_messages:
            found.append(f"messages without end: {sorted(self.open_messages)}")
        if self.open_calls:
            found.append(f"calls without outcome: {sorted(self.open_calls)}")
        if self.step is not None:
            found.append(f"step {self.step} without assistant.turn_end")
        if self.turn_id is not None:
            found.append(f"turn {self.turn_id!r} without turn.end")
        if self.seed_due:
            found.append("a clear whose seeded turn has not begun")
        return found

    def _ended(self) -> None:
        self.idle_allowed = True
        self.idle_due = not self.failed

    def _in_turn(self, turn_id: str, what: str) -> Iterator[str]:
        if turn_id in self.ended_turns:
            yield f"{what} of turn {turn_id!r}, which has ended"
        elif self.turn_id is not None and turn_id != self.turn_id:
            yield f"{what} of turn {turn_id!r} inside turn {self.turn_id!r}"
        else:
            self.turn_id = turn_id

    def _accepted(self, event: events.MessageAccepted) -> Iterator[str]:
        message_id = event.message_id
        if message_id in self.open_messages or message_id in self.ended_messages:
            yield f"message {message_id!r} accepted twice"
            return
        self.open_messages[message_id] = None
        self.idle_allowed = True

    def _dropped(self, event: events.MessageDropped) -> Iterator[str]:
        message_id = event.message_id
        self._ended()
        if message_id in self.ended_messages:
            yield f"message {message_id!r} dropped, but it ended before by {self.ended_messages[message_id]}"
            return
        if message_id not in self.open_messages:
            if self.whole:
                yield f"message {message_id!r} dropped, but it was never accepted"
        elif (turn_id := self.open_messages.pop(message_id)) is not None:
            yield f"message {message_id!r} dropped, but it is in the context of turn {turn_id!r}"
        self.ended_messages[message_id] = "message.dropped"

    def _entered(self, event: events.UserMessage) -> Iterator[str]:
        yield from self._in_turn(event.turn_id, "user.message")
        if self.seed_due and event.delivery != "seed":
            yield "a message entered a cleared context before its seed"
        self.seed_due = False
        message_id = event.message_id
        if message_id is None:
            return
        if message_id in self.ended_messages:
            yield f"message {message_id!r} entered a context, but ended by {self.ended_messages[message_id]}"
        elif message_id in self.open_messages:
            if self.open_messages[message_id] is not None:
                yield f"message {message_id!r} entered the context twice"
            self.open_messages[message_id] = event.turn_id
        elif self.whole:
            yield f"message {message_id!r} entered the context, but it was never accepted"

    def _step_started(self, event: events.AssistantTurnStart) -> Iterator[str]:
        yield from self._in_turn(event.turn_id, "assistant.turn_start")
        if self.seed_due:
            yield "a request was made of a cleared context before its seed was in it"
        self.seed_due = False
        if self.step is not None:
            yield f"step {event.step} began inside step {self.step}"
        same_turn = self.last_step is not None and self.last_step[0] == event.turn_id
        expected = self.last_step[1] + 1 if self.last_step is not None and same_turn else 0
        if event.step != expected and self.whole:
            yield f"step {event.step} where {expected} was next"
        self.step, self.last_step = event.step, (event.turn_id, event.step)

    def _step_ended(self, event: events.AssistantTurnEnd) -> Iterator[str]:
        if event.step != self.step and (self.whole or self.step is not None):
            yield f"step {event.step} ended, but step {self.step} ran"
        if self.open_calls:
            yield f"step {event.step} ended with open calls {sorted(self.open_calls)}"
        self.step = None

    def _call_started(self, event: events.ToolExecutionStart) -> Iterator[str]:
        call_id = event.tool_call_id
        if event.turn_id is not None:
            yield from self._in_turn(event.turn_id, "tool.execution_start")
        if call_id in self.open_calls or call_id in self.settled_calls:
            yield f"call {call_id!r} started twice"
        self.open_calls.add(call_id)

    def _call_settled(self, event: events.ToolExecutionComplete) -> Iterator[str]:
        call_id, outcome = event.tool_call_id, event.outcome
        if call_id in self.open_calls:
            self.open_calls.remove(call_id)
        elif call_id in self.settled_calls:
            yield f"call {call_id!r} has two outcomes"
        elif self.whole:
            yield f"call {call_id!r} has an outcome, but did not start"
        self.settled_calls.add(call_id)
        asking = sorted(request for request, asks in self.open_requests.items() if asks == call_id)
        if asking:
            yield f"call {call_id!r} has its outcome, and requests {asking} no end"
        if outcome not in _OUTCOMES:
            yield f"call {call_id!r} ended with {outcome!r}, which is no outcome"
        if outcome == Outcome.SUCCESS:
            self.clear_allowed = True
        # An idle may follow a call that the host ran between turns, and need not.
        if event.turn_id is None:
            self.idle_allowed = True

    def _asked(self, event: events.PermissionRequested | events.UserInputRequested) -> Iterator[str]:
        if event.request_id in self.open_requests:
            yield f"request {event.request_id!r} was made twice"
        if event.tool_call_id not in self.open_calls and self.whole:
            yield f"request {event.request_id!r} of call {event.tool_call_id!r}, which is not open"
        self.open_requests[event.request_id] = event.tool_call_id

    def _request_ended(self, event: events.PermissionCompleted | events.UserInputCompleted) -> Iterator[str]:
        if self.open_requests.pop(event.request_id, None) is None and self.whole:
            yield f"request {event.request_id!r} ended, but is not open"

    def _turn_ended(self, event: events.TurnEnd) -> Iterator[str]:
        turn_id = event.turn_id
        yield from self._in_turn(turn_id, "turn.end")
        if event.reason not in _TURN_REASONS:
            yield f"turn {turn_id!r} ended with {event.reason!r}, which is no reason"
        if self.step is not None:
            yield f"turn {turn_id!r} ended inside step {self.step}"
        if self.open_calls:
            yield f"turn {turn_id!r} ended with open calls {sorted(self.open_calls)}"
        self.ended_turns.add(turn_id)
        self.turn_id = None
        self.clear_due, self.seed_due = event.cleared, False
        self._ended()
        for message_id in [key for key, value in self.open_messages.items() if value == turn_id]:
            del self.open_messages[message_id]
            self.ended_messages[message_id] = f"turn.end of {turn_id!r}"

    def _cleared(self, event: events.ContextCleared) -> Iterator[str]:
        if not self.clear_allowed and self.whole:
            yield "context cleared, but no tool call succeeded right before"
        if self.turn_id is not None:
            yield f"context cleared inside turn {self.turn_id!r}"
        if self.open_calls:
            yield f"context cleared with open calls {sorted(self.open_calls)}"
        if not event.initial_message.strip():
            yield "context cleared without a seed"
        self.seed_due = self.idle_allowed = True
        # Ids are unique within a context: the next one may use them again.
        self.settled_calls.clear()

    def _truncated(self, event: events.SessionTruncated) -> Iterator[str]:
        if self.turn_id is not None or self.open_calls or self.seed_due:
            yield "context truncated inside of a turn"
        self.settled_calls.clear()

    def _compacted(self, event: events.SessionCompacted) -> Iterator[str]:
        if self.turn_id is not None or self.open_calls or self.seed_due:
            yield "context compacted inside of a turn"
        self.settled_calls.clear()

    def _taken_up(self, _: events.Event) -> Iterator[str]:
        # A resumed session may leave the seed of a clear unanswered, and may say that it is idle.
        self.seed_due = False
        self.idle_allowed = True
        yield from ()

    def _left(self, event: events.Event) -> Iterator[str]:
        # Who is gone need not say that it is idle; a failed session may, after its last dropped message. The seed
        # of a clear stands unanswered until somebody takes the session up.
        self.failed = self.failed or event.type == "session.failed"
        self.idle_due = self.seed_due = False
        yield from ()

    def _idle(self, event: events.SessionIdle) -> Iterator[str]:
        if not self.idle_allowed:
            yield "session.idle twice, with nothing done between"
        for thing in self._open_things():
            yield f"session.idle, but there are {thing}"
        self.idle_due = self.idle_allowed = False

    HANDLED: ClassVar[dict[str, Callable[["SessionStream", Any], Iterator[str]]]] = {
        "message.accepted": _accepted,
        "message.dropped": _dropped,
        "user.message": _entered,
        "assistant.turn_start": _step_started,
        "assistant.turn_end": _step_ended,
        "tool.execution_start": _call_started,
        "tool.execution_complete": _call_settled,
        "permission.requested": _asked,
        "permission.completed": _request_ended,
        "user_input.requested": _asked,
        "user_input.completed": _request_ended,
        "turn.end": _turn_ended,
        "session.context_cleared": _cleared,
        "session.truncated": _truncated,
        "session.compacted": _compacted,
        "session.resume": _taken_up,
        "session.restarted": _taken_up,
        "session.failed": _left,
        "session.shutdown": _left,
        "session.idle": _idle,
    }
    """What is done with each type of event, by its name on the wire; others only count."""


def _describe(event: events.Event) -> str:
    number = "-" if event.ephemeral else event.seq
    fields = [f"{name}={value}" for name in _SHOWN if (value := getattr(event, name, None)) is not None]
    return " ".join([f"{number:>4} {event.type}", *fields])
