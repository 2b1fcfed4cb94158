"""Measure Exeunt on this machine: `python -m loadtests.bench [--quick] [name ...]`.

Nothing here is a test: machines differ, and a busy one differs from itself. Read the ratios, which are taken
within one run; each benchmark is a process of its own, so that none inherits the heap of another.
Ctrl-C ends it; what has been measured stands.
"""

import argparse
import subprocess
import sys
import time

from loadtests.frame import INTERRUPTED, THRESHOLDS, Size, add_size, machine

BENCHMARKS = {
    "turn": "CPU of a message with one tool call, against a bare trio loop",
    "memory": "bytes of an idle session",
    "gc": "pauses of the garbage collector",
    "mailbox": "messages through a session's mailbox, against a trio memory channel",
    "clear": "time from clear_context to the seed's request",
    "scale": "turns per second and reply times with many sessions at once",
    "create": "sessions made and disconnected per second",
    "passivation": "sessions that have left memory: bytes, coming back, listing",
    "durable": "turns with a journal on disk against in memory, and resumes",
    "journal": "durable appends per second, in SQLite and PostgreSQL",
    "metrics": "what counting costs",
    "telemetry": "what traces cost",
    "wire": "the official JavaScript client against us and against its own runtime",
    "wire_slow": "many sessions of the official client that wait for a slow model",
    "wire_profile": "where the time goes of a server of the official client",
    "embed": "a message in programs on asyncio and of threads, against a trio program",
    "model_http": "CPU of a model call over HTTP, against the official package",
}


def main() -> int:
    """Run the benchmarks that were asked for; return the exit code."""
    names = "\n".join(f"  {name:<12}{about}" for name, about in BENCHMARKS.items())
    parser = argparse.ArgumentParser(
        prog="python -m loadtests.bench",
        description=f"{__doc__}\n{names}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("names", nargs="*", metavar="name", help="which ones; all without any")
    add_size(parser)
    chosen = parser.parse_args()
    unknown = sorted(set(chosen.names) - set(BENCHMARKS))
    if unknown:
        parser.error(f"no benchmark is called {', '.join(unknown)}; there are {', '.join(BENCHMARKS)}")

    try:
        return _run_all(chosen.names or [*BENCHMARKS], chosen.size)
    except KeyboardInterrupt:
        print("\ninterrupted")
        return INTERRUPTED


def _run_all(names: list[str], size: Size) -> int:
    began = time.monotonic()
    print(machine())
    print(f"garbage collector thresholds {THRESHOLDS} where nothing else is said; size: {size.value}")
    failed = 0
    for name in names:
        print(f"\n== {name}: {BENCHMARKS[name]}", flush=True)
        code = _run(name, size)
        if code:
            print(f"\nbenchmark {name} failed with exit code {code}", file=sys.stderr)
            failed = 1
    print(f"\n{time.monotonic() - began:.0f} s")
    return failed


def _run(name: str, size: Size) -> int:
    """Run one in a process of its own; return its exit code. Raises `KeyboardInterrupt` when that ended it."""
    command = [sys.executable, "-m", f"loadtests.bench_{name}"]
    if size is not Size.FULL:
        command.append(f"--{size.value}")
    process = subprocess.Popen(command)
    try:
        code = process.wait()
    except KeyboardInterrupt:
        # The terminal has told the child too, and it prints what it knows. A second Ctrl-C does not wait for that.
        try:
            process.wait()
        finally:
            process.kill()
        raise
    if code == INTERRUPTED:
        raise KeyboardInterrupt
    return code


if __name__ == "__main__":
    sys.exit(main())
