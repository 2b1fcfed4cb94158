"""What the observer of event streams lets pass, and what it finds.

A stream is written as its events without their envelopes; `watch` numbers them as a session would.
"""

from collections.abc import Callable
from typing import Any

import pytest

from exeunt.actors import events
from exeunt.actors.errors import InvariantViolation
from exeunt.actors.events import Event, Origin
from exeunt.testing import EventInvariants
from exeunt.testing._stream import SessionStream
from exeunt.testing.invariants import MAX_KEPT

Made = Callable[[int], Event]
ORIGIN = Origin.fresh()


def made(kind: Callable[..., Event], *positional: Any, **fields: Any) -> Made:
    """An event of *kind*: the positional values follow `number` where there is one."""
    head = (0,) if getattr(kind, "ephemeral", False) else ()
    return lambda seq: kind(ORIGIN, seq, 0.0, *head, *positional, **fields)


def start() -> Made:
    return made(events.SessionStart, "s")


def accepted(message_id: str) -> Made:
    return made(events.MessageAccepted, message_id, "enqueue", "hi")


def dropped(message_id: str) -> Made:
    return made(events.MessageDropped, message_id, "aborted")


def user(message_id: str | None, turn_id: str = "t1", delivery: str = "idle") -> Made:
    return made(events.UserMessage, "hi", turn_id, message_id, delivery)


def step(number: int, *inside: Made, turn_id: str = "t1") -> list[Made]:
    return [
        made(events.AssistantTurnStart, turn_id, number),
        *inside,
        made(events.AssistantTurnEnd, turn_id, number),
    ]


def call(call_id: str, turn_id: str | None = "t1") -> Made:
    return made(events.ToolExecutionStart, call_id, "f", "{}", turn_id)


def settled(call_id: str, outcome: str = "success", turn_id: str | None = "t1") -> Made:
    return made(events.ToolExecutionComplete, call_id, "f", outcome, "done", turn_id, 0.0)


def end(turn_id: str = "t1", reason: str = "completed", *, cleared: bool = False) -> Made:
    return made(events.TurnEnd, turn_id, reason, 0, 1, 0.0, cleared)


def clear(seed: str = "fresh") -> Made:
    return made(events.ContextCleared, 2, seed, 1)


def idle() -> Made:
    return made(events.SessionIdle)


def watch(*stream: Made, first: int = 1, observer: EventInvariants | None = None) -> EventInvariants:
    """Give the events of *stream* to an observer, persisted ones numbered from *first*."""
    observer = observer or EventInvariants()
    seq = first - 1
    for make in stream:
        event = make(seq)
        if not event.ephemeral:
            seq += 1
            event = make(seq)
        observer("s", event)
    return observer


def turn(message_id: str, turn_id: str) -> list[Made]:
    return [accepted(message_id), user(message_id, turn_id), *step(0, turn_id=turn_id), end(turn_id)]


CLEARING = [
    start(),
    accepted("m1"),
    user("m1"),
    *step(0, call("1"), settled("1")),
    end(reason="context_cleared", cleared=True),
    clear(),
]


def found(observer: EventInvariants) -> list[str]:
    """The first lines of the violations, without the name of the session."""
    return [text.splitlines()[0].removeprefix("session 's': ") for text in observer.violations]


@pytest.mark.parametrize(
    "stream",
    [
        pytest.param([start()], id="nothing happened"),
        pytest.param([start(), *turn("m1", "t1"), idle(), *turn("m2", "t2"), idle()], id="two turns"),
        pytest.param([start(), *turn("m1", "t1"), *turn("m2", "t2"), idle()], id="one idle for a queue"),
        pytest.param([start(), accepted("m1"), dropped("m1"), idle()], id="dropped"),
        pytest.param(
            [
                start(),
                accepted("m1"),
                user("m1"),
                accepted("m2"),
                *step(0, call("1"), call("2"), settled("2", "failure"), settled("1", "timeout")),
                user("m2", delivery="steering"),
                *step(1),
                end(),
                idle(),
            ],
            id="a batch and a steering message",
        ),
        pytest.param(
            [*CLEARING, user(None, "t2", "seed"), *step(0, turn_id="t2"), end("t2"), idle()], id="a clear"
        ),
        pytest.param(
            [*CLEARING, user(None, "t2", "seed"), *step(0, call("1", "t2"), settled("1", turn_id="t2"),
             turn_id="t2"), end("t2"), idle()],
            id="an id used again in the next context",
        ),
        pytest.param(
            [*CLEARING, made(events.SessionResume, 9), idle(), *turn("m2", "t2"), idle()],
            id="a seed left unanswered by a resume",
        ),
        pytest.param(
            [start(), call("1", None), settled("1", turn_id=None), clear(), user(None, "t1", "seed"), *step(0),
             end(), idle()],
            id="a clear by a call of the host",
        ),
        pytest.param([start(), call("1", None), settled("1", turn_id=None)], id="a host's call without idle"),
        pytest.param([start(), call("1", None), settled("1", turn_id=None), idle()], id="a host's call and idle"),
        pytest.param(
            [start(), accepted("m1"), made(events.SessionFailed, "x"), dropped("m1")], id="failed, then dropped"
        ),
        pytest.param(
            [start(), accepted("m1"), dropped("m1"), made(events.SessionShutdown, "x")], id="left without idle"
        ),
    ],
)  # fmt: skip
def test_a_stream_as_it_should_be_passes(stream: list[Made]) -> None:
    observer = watch(*stream)

    assert found(observer) == []
    observer.verify()


@pytest.mark.parametrize(
    ("stream", "violations"),
    [
        ([accepted("m1"), accepted("m1")], ["message 'm1' accepted twice"]),
        ([*turn("m1", "t1"), accepted("m1")], ["message 'm1' accepted twice"]),
        (
            [*turn("m1", "t1"), dropped("m1")],
            ["message 'm1' dropped, but it ended before by turn.end of 't1'"],
        ),
        (
            [accepted("m1"), dropped("m1"), dropped("m1")],
            ["message 'm1' dropped, but it ended before by message.dropped"],
        ),
        ([dropped("m1")], ["message 'm1' dropped, but it was never accepted"]),
        (
            [accepted("m1"), user("m1"), dropped("m1")],
            ["message 'm1' dropped, but it is in the context of turn 't1'"],
        ),
        (
            [accepted("m1"), dropped("m1"), user("m1")],
            ["message 'm1' entered a context, but ended by message.dropped"],
        ),
        ([accepted("m1"), user("m1"), user("m1")], ["message 'm1' entered the context twice"]),
        ([user("m1")], ["message 'm1' entered the context, but it was never accepted"]),
        (
            [*turn("m1", "t1"), accepted("m2"), user("m2", "t1")],
            ["user.message of turn 't1', which has ended"],
        ),
        (
            [accepted("m1"), user("m1"), accepted("m2"), user("m2", "t2")],
            ["user.message of turn 't2' inside turn 't1'"],
        ),
        ([*turn("m1", "t1"), end("t1")], ["turn.end of turn 't1', which has ended"]),
        ([end("t1", "tired")], ["turn 't1' ended with 'tired', which is no reason"]),
        (
            [*step(0, made(events.AssistantTurnStart, "t1", 1))],
            ["step 1 began inside step 0", "step 0 ended, but step 1 ran"],
        ),
        ([*step(0), *step(2)], ["step 2 where 1 was next"]),
        ([*step(1)], ["step 1 where 0 was next"]),
        ([made(events.AssistantTurnEnd, "t1", 0)], ["step 0 ended, but step None ran"]),
        ([made(events.AssistantTurnStart, "t1", 0), end()], ["turn 't1' ended inside step 0"]),
        ([*step(0, call("1"))], ["step 0 ended with open calls ['1']"]),
        ([call("1"), end()], ["turn 't1' ended with open calls ['1']"]),
        ([call("1"), call("1")], ["call '1' started twice"]),
        ([call("1"), settled("1"), call("1")], ["call '1' started twice"]),
        ([call("1"), settled("1"), settled("1", "failure")], ["call '1' has two outcomes"]),
        ([settled("1")], ["call '1' has an outcome, but did not start"]),
        ([call("1"), settled("1", "fine")], ["call '1' ended with 'fine', which is no outcome"]),
        ([clear()], ["context cleared, but no tool call succeeded right before"]),
        (
            [call("1"), settled("1", "failure"), end(), clear()],
            ["context cleared, but no tool call succeeded right before"],
        ),
        (
            [call("1"), settled("1"), end(), accepted("m1"), clear()],
            ["context cleared, but no tool call succeeded right before"],
        ),
        ([call("1"), settled("1"), clear()], ["context cleared inside turn 't1'"]),
        (
            [call("1", None), call("2", None), settled("1", turn_id=None), clear()],
            ["context cleared with open calls ['2']"],
        ),
        ([call("1"), settled("1"), end(), clear(" ")], ["context cleared without a seed"]),
        (
            [call("1"), settled("1"), end(cleared=True), accepted("m1")],
            ["a turn ended with a clear, but message.accepted followed"],
        ),
    ],
)
def test_a_broken_promise_is_found(stream: list[Made], violations: list[str]) -> None:
    observer = watch(start(), *stream)

    assert found(observer) == violations
    with pytest.raises(InvariantViolation):
        observer.verify(settled=False)


@pytest.mark.parametrize(
    ("stream", "violations"),
    [
        ([idle()], ["session.idle twice, with nothing done between"]),
        ([*turn("m1", "t1"), idle(), idle()], ["session.idle twice, with nothing done between"]),
        (
            [*turn("m1", "t1"), accepted("m2"), idle()],
            ["session.idle, but there are messages without end: ['m2']"],
        ),
        (
            [made(events.AssistantTurnStart, "t1", 0), call("1"), accepted("m1"), idle()],
            [
                "session.idle, but there are messages without end: ['m1']",
                "session.idle, but there are calls without outcome: ['1']",
                "session.idle, but there are step 0 without assistant.turn_end",
                "session.idle, but there are turn 't1' without turn.end",
            ],
        ),
        (
            [*CLEARING[1:], idle()],
            ["session.idle, but there are a clear whose seeded turn has not begun"],
        ),
    ],
)
def test_an_idle_too_many_or_too_early_is_found(stream: list[Made], violations: list[str]) -> None:
    assert found(watch(start(), *stream)) == violations


@pytest.mark.parametrize(
    ("later", "violations"),
    [
        (
            [accepted("m2"), user("m2", "t2", "steering")],
            ["a message entered a cleared context before its seed"],
        ),
        (step(0, turn_id="t2"), ["a request was made of a cleared context before its seed was in it"]),
    ],
)
def test_a_cleared_context_begins_with_its_seed(later: list[Made], violations: list[str]) -> None:
    assert found(watch(*CLEARING, *later)) == violations


@pytest.mark.parametrize(
    ("stream", "unsettled"),
    [
        ([accepted("m1")], "messages without end: \\['m1'\\]"),
        ([accepted("m1"), user("m1")], "messages without end: \\['m1'\\]; turn 't1' without turn.end"),
        ([*turn("m1", "t1")], "session.idle never came"),
        ([call("1", None)], "calls without outcome: \\['1'\\]"),
        (CLEARING[1:], "a clear whose seeded turn has not begun"),
    ],
)
def test_what_is_open_at_the_end_is_found_unless_the_test_stops_in_the_middle(
    stream: list[Made], unsettled: str
) -> None:
    observer = watch(start(), *stream)

    assert found(observer) == []
    with pytest.raises(InvariantViolation, match=f"session 's' at the end: .*{unsettled}"):
        observer.verify()
    observer.verify(settled=False)


def test_a_gap_in_the_numbers_is_found() -> None:
    observer = EventInvariants()

    for seq in (1, 2, 4, 4, 5):
        observer("s", accepted(f"m{observer.events}")(seq))

    assert found(observer) == ["seq 4 after 2", "seq 4 after 4"]


def test_sessions_are_kept_apart() -> None:
    observer = EventInvariants()

    for session_id in ("a", "b"):
        observer(session_id, accepted("m1")(1))
        observer(session_id, dropped("m1")(2))
        observer(session_id, idle()(2))

    observer.verify()
    assert observer.events == 6


def test_a_session_seen_from_its_middle_is_not_blamed_for_what_came_before() -> None:
    observer = watch(
        settled("1"),
        made(events.AssistantTurnEnd, "t1", 3),
        user("m1", delivery="steering"),
        *step(4),
        end(),
        dropped("m2"),
        idle(),
        first=40,
    )

    observer.verify()


def test_a_forgotten_session_begins_anew() -> None:
    observer = watch(start(), accepted("m1"), user("m1"))

    observer.forget("s")
    watch(made(events.SessionResume, 2), dropped("m1"), idle(), first=2, observer=observer)

    observer.verify()


def test_a_violation_shows_what_came_before() -> None:
    observer = watch(start(), call("1"), settled("1", "failure"), end(), idle(), idle())

    assert observer.violations[0].splitlines() == [
        "session 's': session.idle twice, with nothing done between",
        "       1 session.start",
        "       2 tool.execution_start turn_id=t1 tool_call_id=1",
        "       3 tool.execution_complete turn_id=t1 tool_call_id=1 outcome=failure",
        "       4 turn.end turn_id=t1 reason=completed",
        "       - session.idle",
        "       - session.idle",
    ]


def test_of_many_violations_the_first_are_kept_and_all_are_counted() -> None:
    observer = watch(start(), *[dropped("m1")] * (MAX_KEPT + 6))

    assert len(observer.violations) == MAX_KEPT
    assert observer.violation_count == MAX_KEPT + 6
    with pytest.raises(InvariantViolation, match=r"\.\.\. and 6 more"):
        observer.verify(settled=False)


def test_the_observer_knows_the_events_by_their_names() -> None:
    kinds = [getattr(events, name) for name in events.__all__]
    names = {kind.type for kind in kinds if issubclass(kind, Event)}

    assert set(SessionStream.HANDLED) <= names
