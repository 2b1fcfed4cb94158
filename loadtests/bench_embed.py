"""What a message costs in each kind of program that holds a host, against the same in a trio program.

Every message has one tool call (two model calls of a zero-cost model). All variants take turns in one process, in a
new order each round, and the lower quartile of the rounds counts. Events are read by one `async for` (or `for`).
"""

import asyncio
import gc
import random
import threading
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import attrs
import trio
import uvloop

import exeunt
import exeunt.embed.asyncio as on_asyncio
import exeunt.embed.threads as in_threads
from loadtests.crowd import ZeroCostModel, add
from loadtests.frame import THRESHOLDS, Size, Table, main, quartile, rounds

SESSIONS = 200
THREADS = 16
"""Threads that talk at once, of a web server of threads; each with its share of the sessions."""


@attrs.frozen
class Cost:
    """Of one message, or one event."""

    wall: float
    cpu: float


@attrs.frozen
class Variant:
    """One way to do it. The first row of its group is what the ratio is taken to."""

    group: str
    name: str
    measured: Callable[[], Cost]


async def _add(a: int, b: int) -> str:
    """Add two numbers."""
    return str(a + b)


OPTIONS: dict[str, Any] = {"model": ZeroCostModel(), "on_permission_request": exeunt.approve_all}
ON_TRIO: dict[str, Any] = OPTIONS | {"tools": [exeunt.tool("add")(on_asyncio.runs_on_trio(add.handler))]}
ON_ASYNCIO: dict[str, Any] = OPTIONS | {"tools": [exeunt.tool("add")(_add)]}


def in_trio(sessions: int, messages: int) -> Cost:
    """A trio program."""

    async def run() -> Cost:
        async with exeunt.open_host() as host:
            crowd = [await host.create_session(**ON_TRIO) for _ in range(sessions)]

            async def user(session: exeunt.Session) -> None:
                for _ in range(messages):
                    await session.send_and_wait("add")

            began = _now()
            async with trio.open_nursery() as users:
                for session in crowd:
                    users.start_soon(user, session)
            return _each(began, sessions * messages)

    return trio.run(run)


def in_asyncio(
    run_loop: Callable[[Any], Cost], options: dict[str, Any], sessions: int, messages: int
) -> Cost:
    """An asyncio program."""

    async def run() -> Cost:
        async with on_asyncio.open_host() as host:
            crowd = [await host.create_session(**options) for _ in range(sessions)]

            async def user(session: on_asyncio.Session) -> None:
                for _ in range(messages):
                    await session.send_and_wait("add")

            began = _now()
            await asyncio.gather(*(user(session) for session in crowd))
            return _each(began, sessions * messages)

    return run_loop(run())


def in_a_program_of_threads(threads: int, sessions: int, messages: int) -> Cost:
    """A program of threads; each has its share of the sessions."""
    with in_threads.open_host() as host:
        crowd = [host.create_session(**ON_TRIO) for _ in range(sessions)]

        def users(mine: list[in_threads.Session]) -> None:
            for _ in range(messages):
                for session in mine:
                    session.send_and_wait("add")

        began = _now()
        workers = [threading.Thread(target=users, args=(crowd[n::threads],)) for n in range(threads)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        return _each(began, sessions * messages)


def read_in_trio(events: int) -> Cost:
    """A reader of a trio program."""

    async def run() -> Cost:
        async with exeunt.open_host() as host:
            session = await host.create_session(**ON_TRIO)
            await _fill(session.send_and_wait, events)
            began = _now()
            async with session.events(from_seq=1) as stream:
                for _ in range(events):
                    await anext(stream)
            return _each(began, events)

    return trio.run(run)


def read_in_asyncio(events: int) -> Cost:
    """A reader of an asyncio program."""

    async def run() -> Cost:
        async with on_asyncio.open_host() as host:
            session = await host.create_session(**ON_ASYNCIO)
            await _fill(session.send_and_wait, events)
            began = _now()
            async with session.events(from_seq=1) as stream:
                for _ in range(events):
                    await anext(stream)
            return _each(began, events)

    return asyncio.run(run())


def read_in_threads(events: int) -> Cost:
    """A reader of a program of threads."""
    with in_threads.open_host() as host:
        session = host.create_session(**ON_TRIO)
        while session.statistics().events < events:
            session.send_and_wait("add")
        began = _now()
        with session.events(from_seq=1) as stream:
            for _ in range(events):
                next(stream)
        return _each(began, events)


async def _fill(say: Callable[[str], Awaitable[Any]], events: int) -> None:
    for _ in range(events // 8):  # a message has more events than that
        await say("add")


def _now() -> tuple[float, float]:
    return time.perf_counter(), time.process_time()


def _each(began: tuple[float, float], count: int) -> Cost:
    wall, cpu = _now()
    return Cost((wall - began[0]) / count * 1e6, (cpu - began[1]) / count * 1e6)


def variants(messages: int, events: int) -> list[Variant]:
    """Return everything that is measured, in the order in which it is shown."""
    loops: dict[str, Callable[[Any], Cost]] = {"asyncio": asyncio.run, "uvloop": uvloop.run}
    found: list[Variant] = []
    for group, sessions, each, threads in (
        ("one session at a time", 1, messages * 50, 1),
        (f"{SESSIONS} sessions at once", SESSIONS, messages, THREADS),
    ):
        found.append(Variant(group, "trio", partial(in_trio, sessions, each)))
        for name, loop in loops.items():
            found.append(
                Variant(group, f"{name}, tool on trio", partial(in_asyncio, loop, ON_TRIO, sessions, each))
            )
            found.append(
                Variant(
                    group, f"{name}, tool on asyncio", partial(in_asyncio, loop, ON_ASYNCIO, sessions, each)
                )
            )
        found.append(
            Variant(
                group,
                f"{threads} thread{'s' * (threads > 1)}",
                partial(in_a_program_of_threads, threads, sessions, each),
            )
        )
    readers = {"trio": read_in_trio, "asyncio": read_in_asyncio, "a thread": read_in_threads}
    for name, reader in readers.items():
        found.append(Variant("events that are there, read one by one", name, partial(reader, events)))
    return found


def run(size: Size) -> None:
    """Measure and print."""
    messages, events = size.pick(full=(10, 20_000), quick=(4, 5_000), tiny=(1, 50))
    subjects = variants(messages, events)
    samples: defaultdict[tuple[str, str], list[Cost]] = defaultdict(list)
    most, seconds = size.pick(full=(20, 90.0), quick=(4, 10.0), tiny=(2, 0.0))
    try:
        for _ in rounds(most, seconds):
            for variant in random.sample(subjects, len(subjects)):
                gc.set_threshold(*THRESHOLDS)
                gc.collect()
                samples[variant.group, variant.name].append(variant.measured())
    finally:
        _show(subjects, samples)


def _show(subjects: list[Variant], samples: dict[tuple[str, str], list[Cost]]) -> None:
    table = Table("A message with one tool call, and an event", "us wall", "x trio", "us CPU", "x trio")
    group, base = "", Cost(1.0, 1.0)
    for variant in subjects:
        costs = samples.get((variant.group, variant.name))
        if not costs:
            continue
        cost = Cost(quartile([cost.wall for cost in costs]), quartile([cost.cpu for cost in costs]))
        if variant.group != group:
            group, base = variant.group, cost
            table.note(group)
        table.row(f"    {variant.name}", cost.wall, cost.wall / base.wall, cost.cpu, cost.cpu / base.cpu)


if __name__ == "__main__":
    main(run, __doc__)
