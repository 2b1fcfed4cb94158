"""Everything that follows from a log, under random histories: legal ones, and ones with a damaged event."""

from collections.abc import Callable
from typing import Any

import hypothesis.strategies as st
import msgspec
import pytest
from hypothesis import given

from exeunt import ContextError, Media, ToolCall
from exeunt.actors.events import (
    AssistantMessage,
    AssistantTurnEnd,
    AssistantTurnStart,
    AutoModeSwitchCompleted,
    AutoModeSwitchRequested,
    ContextCleared,
    Event,
    MessageAccepted,
    MessageDropped,
    SessionLimitsChanged,
    SessionLimitsExhaustedCompleted,
    SessionLimitsExhaustedRequested,
    SystemMessage,
    ToolExecutionComplete,
    ToolExecutionStart,
    TurnEnd,
    UsageCheckpoint,
    UserMessage,
)
from exeunt.actors.state import SessionState
from tests.properties.log_writer import LogWriter


class History(LogWriter):
    """A session as its log tells it, kept in the plainest way. Each move does what is legal now, or nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.queue: list[str] = []
        self.steering: list[str] = []
        self.turn: str | None = None
        self.step: int | None = None
        self.steps = 0
        self.open: list[str] = []
        self.host_call: str | None = None
        self.clears_in_a_row = 0
        self.generation = 0
        self.media: dict[str, tuple[Media, ...]] = {}
        """What was attached, by message."""
        self.question: str | None = None
        self.spent = 0
        self.limit: float | None = None

    def emit(self, event: type[Event], *payload: Any, **named: Any) -> None:
        self.write(self.make(event, *payload, **named))

    def system(self, number: int) -> None:
        self.emit(SystemMessage, "s", "system" if number % 2 else "developer", bool(number % 2))

    def accept(self, number: int) -> None:
        message = self.new_id("message")
        steers = self.turn is not None and number % 2 == 1
        (self.steering if steers else self.queue).append(message)
        media = (Media("image/png", message.encode()),) if number > 1 else ()
        self.media[message] = media
        mode = "immediate" if steers else "enqueue"
        self.emit(MessageAccepted, message, mode, message, steers, False, None, media)

    def drop(self, number: int) -> None:
        waiting = [*self.queue, *self.steering]
        if waiting:
            message = waiting[number % len(waiting)]
            self._leaves(message)
            self.emit(MessageDropped, message, "aborted")

    def begin(self, number: int) -> None:
        if self.queue and self.turn is None and self.host_call is None:
            message = self.queue.pop(0)
            self.turn, self.steps = self.new_id("turn"), 0
            self.emit(UserMessage, message, self.turn, message, "idle" if number % 2 else "queued")

    def steer(self, _: int) -> None:
        if self.steering and self.turn is not None and self.step is None:
            message = self.steering.pop(0)
            self.emit(UserMessage, message, self.turn, message, "steering")

    def ask(self, _: int) -> None:
        if self.turn is not None and self.step is None:
            self.step, self.steps = self.steps, self.steps + 1
            self.emit(AssistantTurnStart, self.turn, self.step)

    def pay(self, number: int) -> None:
        self.spent += number
        self.emit(UsageCheckpoint, f"m{number % 2}", number, self.spent, number, 1, 0, 0, number == 3)

    def limited(self, number: int) -> None:
        self.limit = number / 4 or None
        self.emit(SessionLimitsChanged, self.limit)

    def ask_people(self, number: int) -> None:
        if self.turn is not None and self.question is None and not self.open:
            self.question = self.new_id("request")
            if number % 2:
                self.emit(SessionLimitsExhaustedRequested, self.question, self.turn, 2.0, 1.0, 9.0)
            else:
                self.emit(AutoModeSwitchRequested, self.question, self.turn, "m1", "rate_limited", "no")
        elif self.question is not None:
            kind = "answered" if number % 2 else "timeout"
            ended = SessionLimitsExhaustedCompleted if self.asked_for_credits else AutoModeSwitchCompleted
            self.emit(ended, self.question, self.turn, kind)
            self.question = None

    @property
    def asked_for_credits(self) -> bool:
        asked = [
            e for e in self.log if isinstance(e, SessionLimitsExhaustedRequested | AutoModeSwitchRequested)
        ]
        return isinstance(asked[-1], SessionLimitsExhaustedRequested)

    def answer(self, number: int) -> None:
        if self.step is not None and not self.open:
            calls = [self.new_id("call") for _ in range(number)]
            self.emit(AssistantMessage, "a", self.turn, "m", tuple(ToolCall(c, "t", "{}") for c in calls))
            for call in calls:
                self.open.append(call)
                self.emit(ToolExecutionStart, call, "t", "{}", self.turn)
            if not calls:
                self._end_step()

    def settle(self, number: int) -> None:
        if self.open:
            call = self.open.pop(number % len(self.open))
            self.emit(ToolExecutionComplete, call, "t", "success", "r", self.turn, 0.0)
            if not self.open:
                self._end_step()

    def run_tool(self, _: int) -> None:
        if self.turn is None and self.host_call is None:
            self.host_call = self.new_id("call")
            self.emit(ToolExecutionStart, self.host_call, "t", "{}", None)
        elif self.host_call is not None:
            self.emit(ToolExecutionComplete, self.host_call, "t", "success", "r", None, 0.0)
            self.host_call = None

    def end(self, number: int) -> None:
        if self.turn is not None and self.step is None:
            if self.question is not None:
                self.ask_people(0)
            cleared = number > 1
            self.emit(TurnEnd, self.turn, "completed", self.generation, self.steps, 0.0, cleared)
            self.turn = None
            if cleared:
                self._clear(only_clears=number == 3)
            else:
                self.clears_in_a_row = 0
                if self.steering:
                    self.queue.insert(0, self.steering.pop(0))

    def _clear(self, *, only_clears: bool) -> None:
        self.generation += 1
        self.clears_in_a_row = self.clears_in_a_row + 1 if only_clears else 0
        self.emit(ContextCleared, 1, "seed", self.generation, only_clears)
        self.turn, self.steps = self.new_id("turn"), 0
        self.emit(UserMessage, "seed", self.turn, None, "seed")

    def _end_step(self) -> None:
        self.emit(AssistantTurnEnd, self.turn, self.step)
        self.step = None

    def _leaves(self, message: str) -> None:
        (self.queue if message in self.queue else self.steering).remove(message)

    def check(self, state: SessionState) -> None:
        """Assert that *state* is what happened."""
        assert state.seq == len(self.log)
        assert [item.message_id for item in state.queue or ()] == self.queue
        assert [item.message_id for item in state.steering or ()] == self.steering
        assert state.waiting == len(self.queue) + len(self.steering)
        assert [item.message_id for item in state.pending()] == [*self.steering, *self.queue]
        assert state.turn_id == self.turn
        assert (None if state.step is None else state.step.step) == self.step
        assert sorted(state.open_calls or ()) == sorted(
            [*self.open, *([self.host_call] if self.host_call else [])]
        )
        assert (None if state.question is None else state.question.request_id) == self.question
        assert state.account.spent == self.spent == sum(one.nano for one in state.account.models.values())
        assert state.account.limit_credits == self.limit
        assert state.clears_in_a_row == self.clears_in_a_row
        assert state.context.generation == self.generation
        for item in state.pending():
            assert item.media == self.media[item.message_id]
        for message in state.context.visible():
            if message.role == "user":
                assert message.media == self.media.get(message.content, ())
        if self.open:
            with pytest.raises(ContextError):
                state.context.request()
        else:
            state.context.request()


MOVES: list[Callable[[History, int], None]] = [
    History.accept,
    History.begin,
    History.ask,
    History.answer,
    History.settle,
    History.end,
    History.steer,
    History.drop,
    History.run_tool,
    History.system,
    History.pay,
    History.limited,
    History.ask_people,
]
HISTORIES = st.lists(st.tuples(st.sampled_from(MOVES), st.integers(0, 3)), max_size=40)


def write(moves: list[tuple[Callable[[History, int], None], int]]) -> History:
    history = History()
    for move, number in moves:
        move(history, number)
    return history


@given(HISTORIES)
def test_a_state_is_what_happened_and_the_same_when_it_is_replayed(
    moves: list[tuple[Callable[[History, int], None], int]],
) -> None:
    history = History()
    live = SessionState()
    for move, number in moves:
        move(history, number)
        for event in history.log[live.seq :]:
            live.apply(event)
        history.check(live)
        assert SessionState.replay(history.log).summary() == live.summary()


@given(HISTORIES, st.data())
def test_a_log_with_a_gap_is_refused(
    moves: list[tuple[Callable[[History, int], None], int]], data: st.DataObject
) -> None:
    log = write([(History.accept, 0), (History.begin, 0), *moves]).log
    gap = data.draw(st.integers(0, len(log) - 2))
    with pytest.raises(ContextError):
        SessionState.replay([*log[:gap], *log[gap + 1 :]])


@given(HISTORIES, st.data())
def test_an_event_that_cannot_follow_is_refused_and_changes_nothing(
    moves: list[tuple[Callable[[History, int], None], int]], data: st.DataObject
) -> None:
    history = write([(History.accept, 0), (History.begin, 0), (History.ask, 0), *moves])
    state = SessionState.replay(history.log)
    before = state.summary()
    event = data.draw(st.sampled_from(_illegal(history)))
    with pytest.raises(ContextError):
        state.apply(event)
    assert state.summary() == before
    history.check(state)


def _illegal(history: History) -> list[Event]:
    """Events that cannot be the next one."""
    make = history.make
    illegal: list[Event] = [
        make(MessageDropped, "nobody", "aborted"),
        make(UserMessage, "x", "turn", "nobody"),
        make(ToolExecutionComplete, "nobody", "t", "success", "r", "turn", 0.0),
        make(ToolExecutionComplete, "nobody", "t", "success", "r", None, 0.0),
    ]
    # What ended cannot end again.
    ended = [e for e in history.log if isinstance(e, (MessageDropped, ToolExecutionComplete))]
    illegal.extend(msgspec.structs.replace(event, seq=len(history.log) + 1) for event in ended)
    if history.open:
        illegal.extend(
            (
                make(UserMessage, "x", "turn", None),
                make(UserMessage, "x", "turn", (history.queue or ["nobody"])[0]),
                make(AssistantMessage, "x", "turn", "m"),
                make(ContextCleared, 1, "seed", 1),
            )
        )
    return illegal
