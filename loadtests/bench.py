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
    "metrics": "what counting costs",
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

    began = time.monotonic()
    print(machine())
    print(
        f"garbage collector thresholds {THRESHOLDS} where nothing else is said; size: {chosen.size.value}",
        flush=True,
    )
    failed = 0
    for name in chosen.names or BENCHMARKS:
        code = _run(name, chosen.size)
        if code == INTERRUPTED:
            print("\ninterrupted")
            return INTERRUPTED
        if code:
            print(f"\nbenchmark {name} failed with exit code {code}", file=sys.stderr)
            failed = 1
    print(f"\n{time.monotonic() - began:.0f} s")
    return failed


def _run(name: str, size: Size) -> int:
    command = [sys.executable, "-m", f"loadtests.bench_{name}"]
    if size is not Size.FULL:
        command.append(f"--{size.value}")
    process = subprocess.Popen(command)
    try:
        return process.wait()
    except KeyboardInterrupt:
        # The terminal has told the child too: it prints what it knows. A second Ctrl-C does not wait for that.
        try:
            process.wait()
        except KeyboardInterrupt:
            process.kill()
            process.wait()
        return INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
