"""Where the time of a server goes that serves the official JavaScript client: its layers, and its dearest functions.

py-spy looks at the running server from outside, 500 times a second, while it works; what it sees is not slowed. A
sample counts for the function that was running: what it called in C, such as a write to a socket, is its own.
"""

import signal
import subprocess
import sys
import sysconfig
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from loadtests.frame import Size, Table, main
from loadtests.wire.playing import parts, playing

RATE = 500
"""Samples a second. Many more, and py-spy itself takes what the server wants."""

SHOWN = 12
"""Functions in the second table: those behind them have about one percent or less."""

PARTS = {"plain": "plain turn", "tool": "tool call", "clear": "clear, seed"}

# By the beginning of a path below the package, the more exact first.
LAYERS = {
    "wire/events/": "events for clients",
    "wire/": "the protocol: frames, methods, requests",
    "models/": "the model, over HTTP",
    "actors/state/": "the state of a session",
    "actors/": "turns and tool calls",
    "supervisor/": "supervision and the journal",
    "metrics/": "metrics",
}
LIBRARIES = {"/trio/": "trio: tasks, timers, sockets", "/h11/": "h11: the syntax of HTTP"}
OTHER = "Python's library, and all else"

Function = tuple[str, str]
"""A layer, and a function with its file."""


def run(size: Size) -> None:
    """Profile a server with many sessions in three kinds of turns."""
    sessions = size.pick(full=200, quick=50, tiny=1)
    rounds = size.pick(full=20, quick=10, tiny=1)
    seen = dict(_profiles(sessions, rounds))
    totals = {part: counts.total() for part, counts in seen.items()}
    if not all(totals.values()):
        print("\nno samples: this system does not let py-spy look into the server, or the work was too short")
        return
    layers = Table(f"{sessions} sessions at once: % of the server's time", *PARTS.values())
    everything = sum(seen.values(), Counter[Function]())
    for layer in sorted({layer for layer, _ in everything}, key=lambda layer: -_of_layer(everything, layer)):
        layers.row(layer, *(100 * _of_layer(counts, layer) / totals[part] for part, counts in seen.items()))
    layers.note(" / ".join(f"{total:,}" for total in totals.values()) + " samples")
    functions = Table("the dearest functions: % of the server's time", *PARTS.values())
    for function, _ in everything.most_common(SHOWN):
        functions.row(function[1], *(100 * counts[function] / totals[part] for part, counts in seen.items()))


def _of_layer(counts: "Counter[Function]", wanted: str) -> int:
    return sum(count for (layer, _), count in counts.items() if layer == wanted)


def _profiles(sessions: int, rounds: int) -> "Iterator[tuple[str, Counter[Function]]]":
    runtime = Path(sys.executable).with_name("exeunt-runtime")
    names = ["ready", "create", "warm", *PARTS, "leave"]
    with tempfile.TemporaryDirectory() as home, playing(runtime, sessions, rounds) as (client, _):
        spy: Spy | None = None
        for name, told in zip(names, parts(client), strict=True):
            if spy is not None:
                yield name, spy.stop()
            following = names[names.index(name) + 1] if name != names[-1] else ""
            spy = Spy(told["runtime"], Path(home)) if following in PARTS else None


class Spy:
    """py-spy at work on one process."""

    def __init__(self, pid: int, folder: Path) -> None:
        self._path = folder / "stacks.txt"
        self._path.unlink(missing_ok=True)
        program = Path(sysconfig.get_path("scripts")) / "py-spy"
        self._process = subprocess.Popen(
            [
                program,
                "record",
                "--pid",
                str(pid),
                "--rate",
                str(RATE),
                "--format",
                "raw",
                "--output",
                self._path,
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def stop(self) -> "Counter[Function]":
        """Return how often each function was seen at work; nothing, if none could be looked at."""
        self._process.send_signal(signal.SIGINT)
        self._process.wait(20)
        counts: Counter[Function] = Counter()
        if self._path.exists():
            for line in self._path.read_text().splitlines():
                stack, _, count = line.rpartition(" ")
                counts[_placed(stack.rpartition(";")[2])] += int(count)
        return counts


def _placed(frame: str) -> Function:
    function, _, place = frame.partition(" (")
    path = "/" + place.rstrip(")").rpartition(":")[0].replace("\\", "/")
    shown = f"{function} ({path.rpartition('/')[2]})"
    places = {f"/exeunt/{inside}": layer for inside, layer in LAYERS.items()} | LIBRARIES
    return next((layer for part, layer in places.items() if part in path), OTHER), shown


if __name__ == "__main__":
    main(run, __doc__)
