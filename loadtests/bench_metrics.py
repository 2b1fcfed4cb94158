"""What counting costs.

A tool turn (14 events in 6 handler runs, 4 of them counted) through `Metrics.observe`, against the same loop
with an observer that does nothing; and one exposition of a host with the most series that it can have.
"""

import gc
import itertools
import time
from collections.abc import Callable, Sequence

from exeunt.actors.events import (
    AssistantMessage,
    AssistantTurnEnd,
    AssistantTurnStart,
    AssistantUsage,
    Event,
    MessageAccepted,
    Origin,
    SessionIdle,
    ToolExecutionComplete,
    ToolExecutionStart,
    TurnEnd,
    UserMessage,
)
from exeunt.actors.outcomes import Outcome, TurnEndReason
from exeunt.metrics import Metrics
from exeunt.metrics.labels import DEFAULT_TOOL_NAME_CAP
from loadtests.frame import Size, Table, main

Observer = Callable[[str, Sequence[Event]], None]

# The slowest rounds measure the machine's other work, so the fastest of many short ones counts.
TURNS = 2_000


def tool_turn() -> list[list[Event]]:
    """The events of one turn with one tool call, by handler run."""
    origin, t = Origin.fresh(), 1_700_000_000.0
    return [
        [
            MessageAccepted(origin, 2, t, "m1", "enqueue", "hi"),
            UserMessage(origin, 3, t, "hi", "t1", "m1", "idle"),
        ],
        [AssistantTurnStart(origin, 4, t, "t1", 0)],
        [
            AssistantUsage(origin, 4, t, 1, "model", "openai", 120, 30, 0.8),
            AssistantMessage(origin, 5, t, "", "t1", "a1"),
            ToolExecutionStart(origin, 6, t, "c1", "search", "{}", "t1"),
        ],
        [
            ToolExecutionComplete(origin, 7, t, "c1", "search", Outcome.SUCCESS, "found", "t1", 0.2),
            AssistantTurnEnd(origin, 8, t, "t1", 0),
            AssistantTurnStart(origin, 9, t, "t1", 1),
        ],
        [
            AssistantUsage(origin, 9, t, 2, "model", "openai", 160, 40, 0.9),
            AssistantMessage(origin, 10, t, "done", "t1", "a2"),
            AssistantTurnEnd(origin, 11, t, "t1", 1),
            TurnEnd(origin, 12, t, "t1", TurnEndReason.COMPLETED, 0, 2, 2.1),
        ],
        [SessionIdle(origin, 12, t, 3)],
    ]


def nothing(session_id: str, events: Sequence[Event], /) -> None:
    """Stands for a host without metrics."""


def microseconds_per_turn(observe: Observer, rounds: int) -> float:
    """Time that *observe* takes for one tool turn: the best of many rounds."""
    runs = tool_turn()
    best = float("inf")
    for _ in range(rounds):
        began = time.perf_counter()
        for _ in range(TURNS):
            for events in runs:
                observe("session", events)
        best = min(best, time.perf_counter() - began)
    return best / TURNS * 1e6


def fullest() -> Metrics:
    """Metrics with every series that there can be of tools."""
    metrics = Metrics()
    names = [f"tool_{number}" for number in range(DEFAULT_TOOL_NAME_CAP)]
    metrics.register_tools(names)
    origin = Origin.fresh()
    for name, outcome, terminal in itertools.product(names, Outcome, (False, True)):
        metrics.observe(
            "session",
            [ToolExecutionComplete(origin, 1, 0.0, "c", name, outcome, "", "t", 0.1, terminal=terminal)],
        )
    return metrics


def run(size: Size) -> None:
    """Measure and print."""
    gc.disable()
    rounds = size.pick(full=40, quick=20, tiny=2)
    metrics = Metrics()
    metrics.register_tools(["search"])
    table = Table("what counting adds to a tool turn of 14 events", "us")
    without = microseconds_per_turn(nothing, rounds)
    table.row("observe()", microseconds_per_turn(metrics.observe, rounds) - without)

    table = Table("one exposition with every series that there can be", "ms", "samples", "KiB")
    full = fullest()
    body, took = b"", float("inf")
    for _ in range(size.pick(full=5, quick=3, tiny=1)):
        began = time.perf_counter()
        body = full.exposition()
        took = min(took, time.perf_counter() - began)
    samples = sum(not line.startswith(b"#") for line in body.splitlines())
    table.row("exposition()", took * 1e3, samples, len(body) / 1024)


if __name__ == "__main__":
    main(run, __doc__)
