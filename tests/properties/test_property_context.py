"""The context under random events, legal and illegal, from any earlier value of it."""

from typing import Any

import attrs
import hypothesis.strategies as st
import pytest
from hypothesis import given

from exeunt import ContextError, Message, ToolCall
from exeunt.actors.events import (
    AssistantMessage,
    AssistantTurnStart,
    ContextCleared,
    Event,
    SystemMessage,
    ToolExecutionComplete,
    UserMessage,
)
from exeunt.actors.state import Context
from exeunt.testing import check_request
from tests.properties.log_writer import LogWriter


@attrs.frozen
class Move:
    """One event to come."""

    kind: str
    number: int = 0
    """Of calls in an answer; or which call a result answers, of all that ever were."""
    since: int = 0
    """How many values back the context is that it is applied to."""


KINDS = (
    "user",
    "say",
    "call",
    "result",
    "modified",
    "clear",
    "seed",
    "system",
    "developer",
    "unrelated",
    "host",
)
MOVES = st.builds(Move, st.sampled_from(KINDS), st.integers(0, 3), st.sampled_from([0, 0, 0, 0, 1, 3]))


@attrs.frozen
class Expected:
    """What a context holds, kept in the plainest way: a list for each part."""

    value: Context = attrs.field(factory=Context)
    preamble: tuple[str, ...] = ()
    conversation: tuple[tuple[str, str], ...] = ()
    """Role and text of each message, the open batch not included."""
    calls: tuple[str, ...] = ()
    """Ids of the calls of the open batch."""
    results: tuple[str, ...] = ()
    """Ids of those that have a result."""
    generation: int = 0
    seed_to_come: bool = False

    def check(self) -> None:
        """Assert that the value is what it should be."""
        value = self.value
        assert value.generation == self.generation
        assert value.conversation_length == len(self.conversation) + bool(self.calls)
        if self.calls:
            with pytest.raises(ContextError):
                value.request()
            assert [m.role for m in value.visible()].count("tool") == self._tools() + len(self.results)
        else:
            assert [_text(m) for m in value.request()] == [*self._system(), *self.conversation]
            assert value.visible() == tuple(value.request())

    def _system(self) -> list[tuple[str, str]]:
        return [(("developer" if text.startswith("d") else "system"), text) for text in self.preamble]

    def _tools(self) -> int:
        return sum(role == "tool" for role, _ in self.conversation)


def _text(message: Message) -> tuple[str, str]:
    return message.role, message.content


@given(st.lists(MOVES, max_size=30))
def test_a_context_is_what_its_events_say_and_older_values_stay_what_they_were(moves: list[Move]) -> None:
    writer = LogWriter()
    past = [Expected()]
    call_ids: list[str] = []
    for move in moves:
        before = past[-1 - min(move.since, len(past) - 1)]
        event, after = _play(writer, move, before, call_ids)
        if after is None:
            with pytest.raises(ContextError):
                before.value.with_event(event)
        else:
            past.append(attrs.evolve(after, value=before.value.with_event(event)))
            if isinstance(event, AssistantTurnStart) or (move.kind == "host"):
                assert past[-1].value is before.value
    for expected in past:
        expected.check()


@given(st.lists(MOVES, max_size=40))
def test_what_can_be_requested_is_what_every_provider_takes(moves: list[Move]) -> None:
    writer = LogWriter()
    now = Expected()
    call_ids: list[str] = []
    for move in [Move("user"), *moves]:
        event, after = _play(writer, move, now, call_ids)
        if after is not None:
            now = attrs.evolve(after, value=now.value.with_event(event))
        if not now.calls:
            check_request(_Request(now.value.request()))


@attrs.frozen
class _Request:
    messages: Any


def _play(writer: LogWriter, move: Move, now: Expected, call_ids: list[str]) -> tuple[Event, Expected | None]:
    """Return the event of *move*, and what is expected behind it: `None` where it cannot be there."""
    make, between = writer.make, not now.calls
    text = writer.new_id("d" if move.kind == "developer" else move.kind)
    match move.kind:
        case "system" | "developer":
            first = move.kind == "system"
            event: Event = make(SystemMessage, text, move.kind, first)
            return event, attrs.evolve(now, preamble=(text,) if first else (*now.preamble, text))
        case "unrelated":
            return make(AssistantTurnStart, "turn", 0), now
        case "host":
            # A call of the host's own, between turns: the context gets nothing of it.
            return make(ToolExecutionComplete, "h", "t", "success", text, None, 0.0), now
        case "user" | "seed":
            event = make(UserMessage, text, "turn", None, "seed" if move.kind == "seed" else "queued")
            replaces = move.kind == "seed" and now.seed_to_come
            kept = () if replaces else now.conversation
            after = attrs.evolve(now, conversation=(*kept, ("user", text)), seed_to_come=False)
            return event, after if between else None
        case "say" | "call":
            calls = [writer.new_id("call") for _ in range(move.number)] if move.kind == "call" else []
            event = make(AssistantMessage, text, "turn", "m", tuple(ToolCall(c, "t", "{}") for c in calls))
            if not between:
                return event, None
            call_ids.extend(calls)
            if calls:
                return event, attrs.evolve(now, calls=tuple(calls), results=(), seed_to_come=now.seed_to_come)
            said = (*now.conversation, ("assistant", text))
            return event, attrs.evolve(now, conversation=said, seed_to_come=False)
        case "clear":
            event = make(ContextCleared, now.value.conversation_length, text, now.generation + 1)
            after = attrs.evolve(
                now, conversation=(("user", text),), generation=now.generation + 1, seed_to_come=True
            )
            return event, after if between else None
        case _:
            return _result(writer, move, now, call_ids)


def _result(
    writer: LogWriter, move: Move, now: Expected, call_ids: list[str]
) -> tuple[Event, Expected | None]:
    call_id = call_ids[-1 - move.number % len(call_ids)] if call_ids else "none"
    modified = '{"x": 1}' if move.kind == "modified" else None
    content = f"result of {call_id}"
    event = writer.make(
        ToolExecutionComplete, call_id, "t", "success", content, "turn", 0.0, modified_arguments=modified
    )
    if call_id not in now.calls or call_id in now.results:
        return event, None
    results = (*now.results, call_id)
    if len(results) < len(now.calls):
        return event, attrs.evolve(now, results=results)
    message = now.value.batch
    assert message is not None
    batch = [("assistant", message.message.content), *(("tool", f"result of {c}") for c in now.calls)]
    after = attrs.evolve(
        now, conversation=(*now.conversation, *batch), calls=(), results=(), seed_to_come=False
    )
    return event, after
