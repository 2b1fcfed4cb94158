"""What all benchmarks share: how large they are, how they repeat, and tables that show each row when it is known."""

import argparse
import enum
import gc
import importlib.metadata
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from exeunt.tuning import GC_THRESHOLDS, allow_many_files

T = TypeVar("T")

WIDTH = 100
"""Characters of a line: fits beside something else, and in a mail."""

LABEL_WIDTH = 42

THRESHOLDS = GC_THRESHOLDS
"""Of the garbage collector, as a host with many sessions should set them."""

PYTHON_THRESHOLDS = gc.get_threshold()
"""What they are where nobody sets them."""

INTERRUPTED = 130
"""Exit code of a program that Ctrl-C has ended."""


class Size(enum.Enum):
    """How much is measured."""

    FULL = "full"
    """For figures that are written down."""
    QUICK = "quick"
    """For a look while working: the same shapes, smaller and fewer."""
    TINY = "tiny"
    """For a test that the benchmarks run at all: the figures mean nothing."""

    def pick(self, *, full: T, quick: T, tiny: T) -> T:
        """Return the value for this size."""
        return {Size.FULL: full, Size.QUICK: quick, Size.TINY: tiny}[self]


class Table:
    """Rows of a label and figures. Prints a row as soon as it is there, so that Ctrl-C loses nothing."""

    def __init__(self, title: str, *columns: str) -> None:
        self._columns = columns
        self._width = min(14, (WIDTH - LABEL_WIDTH) // max(1, len(columns)))
        print(f"\n{title}")
        print("".ljust(LABEL_WIDTH) + "".join(column.rjust(self._width) for column in columns))

    def row(self, label: str, *figures: "str | float") -> None:
        """Print one row. Numbers are shown with as many digits as they are worth."""
        cells = (cell if isinstance(cell, str) else figure(cell) for cell in figures)
        print(label.ljust(LABEL_WIDTH) + "".join(cell.rjust(self._width) for cell in cells), flush=True)

    def note(self, text: str) -> None:
        """Print a line below the table."""
        print(f"  {text}", flush=True)


def figure(value: float) -> str:
    """Return a number with three digits or, from 1,000 on, as a whole number."""
    if value == 0 or abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def quartile(values: Sequence[float]) -> float:
    """Return the lower quartile: what other work on the machine disturbs least, and no lucky single run."""
    return sorted(values)[len(values) // 4]


def percentile(values: Sequence[float], percent: int) -> float:
    """Return a percentile; of one value, that value."""
    if len(values) < 2:
        return values[0]
    return statistics.quantiles(values, n=100, method="inclusive")[percent - 1]


def rounds(most: int, seconds: float) -> Iterator[int]:
    """Count *most* rounds, fewer when they take more than *seconds* together, at least two."""
    end = time.monotonic() + seconds
    for number in range(most):
        if number >= 2 and time.monotonic() > end:
            return
        yield number


def resident_bytes() -> int:
    """Return how much memory this process holds. Linux only; 0 elsewhere."""
    statm = Path("/proc/self/statm")
    return int(statm.read_bytes().split()[1]) * os.sysconf("SC_PAGE_SIZE") if statm.exists() else 0


def machine() -> str:
    """Return a line about where the figures were taken."""
    load = " ".join(f"{value:.1f}" for value in os.getloadavg()) if hasattr(os, "getloadavg") else "unknown"
    trio = importlib.metadata.version("trio")
    return (
        f"{platform.python_implementation()} {platform.python_version()}, trio {trio}, "
        f"{os.cpu_count()} CPUs ({platform.machine()}), load {load}, {time.strftime('%Y-%m-%d')}"
    )


def add_size(parser: argparse.ArgumentParser) -> None:
    """Give *parser* the options from which `size_of` reads the size."""
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "--quick", dest="size", action="store_const", const=Size.QUICK, help="smaller and fewer"
    )
    which.add_argument(
        "--tiny", dest="size", action="store_const", const=Size.TINY, help="only see that it runs"
    )
    parser.set_defaults(size=Size.FULL)


def main(run: Callable[[Size], None], about: str | None) -> None:
    """Run one benchmark as a program of its own."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_size(parser)
    size: Size = parser.parse_args().size
    gc.set_threshold(*THRESHOLDS)
    allow_many_files()
    interrupted = False
    try:
        run(size)
    except* KeyboardInterrupt:  # out of a nursery it comes in a group
        interrupted = True
    if interrupted:
        sys.exit(INTERRUPTED)
