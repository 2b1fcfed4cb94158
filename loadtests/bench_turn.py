"""CPU of a user message with one tool call (two model calls), against a bare trio loop that does the same.

Events, log and metrics are on. Floor and variants take turns in one process, in a new order each round, and the
lower quartile of the rounds counts.
"""

import gc
import random
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import attrs
import trio

from exeunt import ApproveOnce, PermissionRequest, open_host
from exeunt.actors.events import Event
from loadtests import floor
from loadtests.crowd import open_crowd, talk
from loadtests.frame import PYTHON_THRESHOLDS, THRESHOLDS, Size, Table, main, quartile, rounds

SESSIONS = 100
MESSAGES = 10

PEERS = {
    "Microsoft Agent Framework": 2_000,
    "AutoGen": 2_300,
    "LangGraph": 4_700,
    "OpenAI Agents SDK": 8_100,
    "Pydantic AI": 10_600,
    "Google ADK": 15_500,
}
"""us for the same message (one tool call, zero-cost model), measured in November 2026 on a machine of this kind."""

Measured = Callable[[], Awaitable[float]]


@attrs.frozen
class Variant:
    """One way to do it. The first row of its group is what the ratio is taken to."""

    group: str
    name: str
    measured: Measured
    thresholds: tuple[int, int, int] = THRESHOLDS


async def floor_round(concurrent: bool) -> float:
    """Return the microseconds of CPU for each message of a bare loop."""
    began = time.process_time()
    await floor.talk(SESSIONS, MESSAGES, concurrent=concurrent)
    return _each(began)


async def exeunt_round(concurrent: bool, *, subscribers: int = 0, **options: Any) -> float:
    """Return the microseconds of CPU for each message of a host with these session options."""
    async with open_host() as host:
        sessions = await open_crowd(host, SESSIONS, **options)
        for session in sessions:
            for _ in range(subscribers):
                session.on(_look)
        began = time.process_time()
        await talk(sessions, MESSAGES, concurrent=concurrent)
        return _each(began)


def _each(began: float) -> float:
    return (time.process_time() - began) / (SESSIONS * MESSAGES) * 1e6


def _look(event: Event) -> None:
    """Stands for a subscriber that costs nothing itself."""


def _ask(request: PermissionRequest, invocation: object) -> ApproveOnce:
    return ApproveOnce()


def variants() -> list[Variant]:
    """Return everything that is measured, in the order in which it is shown."""
    together, alone, default = (
        "100 sessions at once",
        "one session at a time",
        "at once, Python's own GC thresholds",
    )
    return [
        Variant(together, "floor", partial(floor_round, True)),
        Variant(together, "Exeunt", partial(exeunt_round, True)),
        Variant(together, "Exeunt, streaming", partial(exeunt_round, True, streaming=True)),
        Variant(
            together,
            "Exeunt, permission handler asked",
            partial(exeunt_round, True, on_permission_request=_ask),
        ),
        Variant(together, "Exeunt, one subscriber", partial(exeunt_round, True, subscribers=1)),
        Variant(alone, "floor", partial(floor_round, False)),
        Variant(alone, "Exeunt", partial(exeunt_round, False)),
        Variant(default, "floor", partial(floor_round, True), PYTHON_THRESHOLDS),
        Variant(default, "Exeunt", partial(exeunt_round, True), PYTHON_THRESHOLDS),
    ]


def run(size: Size) -> None:
    """Measure and print."""
    subjects = variants()
    samples: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
    most, seconds = size.pick(full=(24, 60.0), quick=(5, 8.0), tiny=(2, 0.0))
    try:
        for _ in rounds(most, seconds):
            for variant in random.sample(subjects, len(subjects)):
                gc.set_threshold(*variant.thresholds)
                gc.collect()
                samples[variant.group, variant.name].append(trio.run(variant.measured))
    finally:
        _show(subjects, samples)


def _show(subjects: list[Variant], samples: dict[tuple[str, str], list[float]]) -> None:
    table = Table("CPU of a message with one tool call", "us", "x floor")
    group, base = "", 0.0
    for variant in subjects:
        values = samples.get((variant.group, variant.name))
        if not values:
            continue
        cost = quartile(values)
        if variant.group != group:
            group, base = variant.group, cost
            table.note(group)
        table.row(f"    {variant.name}", cost, cost / base)
    table.note("others, for the same message on such a machine (November 2026)")
    for name, cost in PEERS.items():
        table.row(f"    {name}", cost)


if __name__ == "__main__":
    main(run, __doc__)
