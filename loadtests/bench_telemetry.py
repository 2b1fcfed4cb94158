"""What traces add to a message with one tool call, which has four spans; exporting them included.

The same crowd without telemetry, and with it: sampled away, to an exporter that forgets what it gets, with content, and
to a file. Variants take turns in one process, in a new order each round, and the lower quartile of the rounds counts.
All CPU of the process counts, so that of the exporter's thread too.
"""

import gc
import random
import tempfile
import time
from collections import defaultdict
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from pathlib import Path

import trio
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF

from exeunt import open_host
from exeunt.telemetry import Telemetry
from exeunt.telemetry.export import JsonLinesExporter, open_export
from loadtests.crowd import open_crowd, talk
from loadtests.frame import THRESHOLDS, Size, Table, main, quartile, rounds

SESSIONS = 100
MESSAGES = 10

MOST_WAITING = 100_000
"""More spans than there are: what is measured is their export, not that they are dropped."""

Traced = Callable[[], AbstractAsyncContextManager[Telemetry | None]]


class Nowhere(SpanExporter):
    """Takes spans and forgets them."""

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Forget *spans*."""
        return SpanExportResult.SUCCESS


@asynccontextmanager
async def without() -> AsyncGenerator[Telemetry | None]:
    """No telemetry."""
    yield None


@asynccontextmanager
async def sampled_away() -> AsyncGenerator[Telemetry | None]:
    """A sampler that wants no trace."""
    yield Telemetry(TracerProvider(sampler=ALWAYS_OFF, shutdown_on_exit=False))


@asynccontextmanager
async def exported(exporter: SpanExporter, capture_content: bool = False) -> AsyncGenerator[Telemetry | None]:
    """Every span, by *exporter*."""
    async with open_export(
        exporter, "the benchmark", capture_content=capture_content, most_waiting=MOST_WAITING
    ) as export:
        yield export.telemetry


async def one_round(traced: Traced) -> float:
    """Return the microseconds of CPU for each message."""
    async with traced() as telemetry, open_host(telemetry=telemetry) as host:
        sessions = await open_crowd(host, SESSIONS)
        began = time.process_time()
        await talk(sessions, MESSAGES)
    return (time.process_time() - began) / (SESSIONS * MESSAGES) * 1e6


def run(size: Size) -> None:
    """Measure and print."""
    gc.set_threshold(*THRESHOLDS)
    samples: defaultdict[str, list[float]] = defaultdict(list)
    most, seconds = size.pick(full=(24, 60.0), quick=(5, 10.0), tiny=(2, 0.0))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "traces.jsonl"
        variants: dict[str, Traced] = {
            "no telemetry": without,
            "telemetry, sampled away": sampled_away,
            "telemetry": lambda: exported(Nowhere()),
            "telemetry, with content": lambda: exported(Nowhere(), True),
            "telemetry, to a file": lambda: exported(JsonLinesExporter(file)),
        }
        for _ in rounds(most, seconds):
            for name in random.sample(list(variants), len(variants)):
                gc.collect()
                samples[name].append(trio.run(partial(one_round, variants[name])))
    table = Table("CPU of a message with one tool call, 100 sessions at once", "us", "x without")
    base = quartile(samples["no telemetry"])
    for name in variants:
        cost = quartile(samples[name])
        table.row(name, cost, cost / base)


if __name__ == "__main__":
    main(run, __doc__)
