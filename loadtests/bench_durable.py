"""Turns with a journal on disk against turns with one in memory, and how long a resume takes.

A turn is a message with one tool call, and waits for the disk once: before the tool is started.
"""

import tempfile
import time

import trio

from exeunt import open_host
from loadtests.crowd import ZeroCostModel, add, open_crowd, talk
from loadtests.frame import Size, Table, main, quartile, rounds

JOURNALS = {"in memory": None, "SQLite, NORMAL": "normal", "SQLite, FULL": "full"}


async def turns_per_second(synchronous: str | None, sessions: int, exchanges: int) -> float:
    """Return how many turns a second *sessions* sessions make that all talk at once."""
    with tempfile.TemporaryDirectory() as folder:
        journal = None if synchronous is None else f"sqlite:///{folder}/journal?synchronous={synchronous}"
        async with open_host(journal=journal) as host:
            crowd = await open_crowd(host, sessions)
            began = time.perf_counter()
            await talk(crowd, exchanges)
            return sessions * exchanges / (time.perf_counter() - began)


async def resume_seconds(turns: int) -> tuple[int, float, float]:
    """Return the events of a session of *turns* turns, and the seconds that taking it up takes: first and median."""
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/journal?synchronous=normal"
        model = ZeroCostModel()
        async with open_host(journal=url) as host:
            (session,) = await open_crowd(host, 1)
            await talk([session], turns, concurrent=False)
            events = session.statistics().events
        took: list[float] = []
        for _ in range(5):
            async with open_host(journal=url) as host:
                began = time.perf_counter()
                await host.resume_session(session.session_id, model=model, tools=[add])
                took.append(time.perf_counter() - began)
        return events, took[0], sorted(took)[len(took) // 2]


def run(size: Size) -> None:
    """Print two tables."""
    table = Table("turns with one tool call a second", "turns/s", "x memory")
    for sessions in size.pick(full=(200, 2_000), quick=(200,), tiny=(5,)):
        exchanges = size.pick(full=4_000, quick=1_000, tiny=10) // sessions or 2
        samples: dict[str, list[float]] = {name: [] for name in JOURNALS}
        for _ in rounds(size.pick(full=7, quick=3, tiny=1), size.pick(full=90.0, quick=15.0, tiny=5.0)):
            for name, synchronous in JOURNALS.items():
                samples[name].append(trio.run(turns_per_second, synchronous, sessions, exchanges))
        best = {name: 1 / quartile([1 / value for value in values]) for name, values in samples.items()}
        for name, value in best.items():
            table.row(f"{sessions:,} sessions, {name}", value, value / best["in memory"])
    resumes = Table("taking a session up, SQLite", "events", "first ms", "median ms")
    for turns in size.pick(full=(90, 900, 9_000), quick=(90, 900), tiny=(3,)):
        events, first, median = trio.run(resume_seconds, turns)
        resumes.row(f"{turns:,} turns", f"{events:,}", first * 1e3, median * 1e3)


if __name__ == "__main__":
    main(run, __doc__)
