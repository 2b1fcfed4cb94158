"""The processes of one run: what each has taken of the processor, and of memory. Linux only: read from `/proc`."""

import os
import subprocess
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

_PAGE = os.sysconf("SC_PAGE_SIZE")

STOP_LIMIT = 10
"""Seconds that a process has to end after it was told to."""


@contextmanager
def running(
    command: Sequence[str], env: Mapping[str, str] | None = None
) -> "Generator[subprocess.Popen[str]]":
    """Start `command` with pipes; it has ended when the block is left."""
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, **(env or {})}
    ) as process:
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(STOP_LIMIT)
            except subprocess.TimeoutExpired:
                process.kill()


def output(process: "subprocess.Popen[str]") -> IO[str]:
    """The process's standard output."""
    assert process.stdout is not None
    return process.stdout


def family(pid: int) -> list[int]:
    """`pid` and every process below it."""
    children: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            child, parent = int(stat.parent.name), int(stat.read_text().rsplit(")", 1)[1].split()[1])
        except OSError:
            continue
        children.setdefault(parent, []).append(child)
    found = [pid]
    for each in found:
        found += children.get(each, [])
    return found


def cpu_seconds(pid: int) -> float:
    """What `pid` and its children have taken of the processor, in user and kernel mode, to the microsecond."""
    # As clock_getcpuclockid(3) makes it of a process id; /proc counts in ticks of 10 ms.
    return sum(_of(each, lambda one: time.clock_gettime((~one << 3) | 2)) for each in family(pid))


def resident_bytes(pid: int) -> int:
    """What `pid` and its children hold of memory."""
    pages = (_of(each, lambda one: int(_statm(one).split()[1])) for each in family(pid))
    return int(sum(pages)) * _PAGE


def _statm(pid: int) -> bytes:
    return Path(f"/proc/{pid}/statm").read_bytes()


def _of(pid: int, figure: Callable[[int], float]) -> float:
    """A figure of a process; nothing of one that has ended since it was listed."""
    try:
        return figure(pid)
    except OSError:
        return 0.0
