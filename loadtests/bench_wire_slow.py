"""Many sessions of the official JavaScript client that wait for a slow model at once.

A model that answers at once hides what a real one shows: calls that take seconds are under way together, and each has a
connection. What a turn takes beyond the model's own time should hardly grow with their number. Twice as many files as
sessions must be allowed (`ulimit -n`).
"""

import sys
from pathlib import Path
from typing import Any

from loadtests.frame import Size, Table, main, percentile
from loadtests.wire.playing import parts, playing
from loadtests.wire.processes import cpu_seconds, resident_bytes

FIRST_TURN = "warm"


def run(size: Size) -> None:
    """Measure the first turn of sessions that begin it at once."""
    counts = size.pick(full=[200, 1000, 4000], quick=[200], tiny=[1])
    seconds = size.pick(full=20.0, quick=5.0, tiny=0.0)
    table = Table(
        f"sessions at once; the model takes {seconds:g} s for each answer",
        *(f"{count:,}" for count in counts),
    )
    turns = [_first_turn(count, seconds) for count in counts]

    def row(label: str, *figures: float) -> None:
        table.row(label, *figures)

    row("s until all are answered", *(part["seconds"] for part in turns))
    for percent, name in ((50, "half"), (99, "99 of 100")):
        row(
            f"s, {name} are answered sooner",
            *(percentile(part["milliseconds"], percent) / 1e3 for part in turns),
        )
    row("ms of CPU a turn", *(part["cpu"] / count * 1e3 for part, count in zip(turns, counts, strict=True)))
    row(
        "kB a session, after that turn",
        *(part["bytes"] / count / 1e3 for part, count in zip(turns, counts, strict=True)),
    )


def _first_turn(count: int, seconds: float) -> dict[str, Any]:
    runtime = Path(sys.executable).with_name("exeunt-runtime")
    empty = cpu = 0.0
    with playing(runtime, count, 1, model_seconds=seconds) as (client, _):
        for told in parts(client):
            process = told["runtime"]
            if told["part"] == FIRST_TURN:
                used = {"cpu": cpu_seconds(process) - cpu, "bytes": resident_bytes(process) - empty}
                return {**told, **used}
            if told["part"] == "ready":
                empty = resident_bytes(process)
            cpu = cpu_seconds(process)
    raise RuntimeError(f"the client ended before its {count} sessions had a turn")


if __name__ == "__main__":
    main(run, __doc__)
