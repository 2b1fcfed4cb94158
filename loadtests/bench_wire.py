"""Load over the wire: the official JavaScript client against a server of ours and against its own runtime.

Both get the same model server and the same client script, in turn, in one run. Read the ratios. The first run installs
the client and its runtime (about 120 MB) into `.cache/`; Node.js 20 or newer must be there.
"""

import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import attrs

from loadtests.frame import Size, Table, main, percentile
from loadtests.wire.playing import parts, playing
from loadtests.wire.processes import cpu_seconds, resident_bytes
from tests.interop.node import modules

OURS = "Exeunt"
JOURNAL = "+ journal"
FILES = "+ files"
THEIRS = "reference"

ROUNDS = {1: 200, 50: 20, 200: 5, 1000: 1}
"""Turns of each kind of one session, by how many sessions there are: enough that a part takes a second or more."""


@attrs.frozen
class Runtime:
    """What the client starts, and where that keeps sessions."""

    path: Path
    journal: bool = False
    files: bool = False

    def environment(self, home: Path) -> Mapping[str, str]:
        """The variables that say so."""
        kept = {"COPILOT_HOME": str(home)} if self.files else {}
        return kept | ({"EXEUNT_JOURNAL": f"sqlite:///{home / 'journal.sqlite3'}"} if self.journal else {})


@attrs.frozen
class Part:
    """One part of a run."""

    seconds: float
    milliseconds: Sequence[float]
    """Of each turn."""
    cpu: float
    """Seconds of the runtime."""
    client_cpu: float
    model_cpu: float
    resident: int
    """Bytes of the runtime at the end of the part."""


Run = Mapping[str, Part]


def run(size: Size) -> None:
    """Measure both runtimes at each number of sessions."""
    counts = size.pick(full=[1, 50, 200, 1000], quick=[1, 20], tiny=[1])
    with_reference = size is not Size.TINY
    ours = Path(sys.executable).with_name("exeunt-runtime")
    # The reference writes files into its home, and has no journal that would survive its crash.
    runtimes = {OURS: Runtime(ours)}
    if with_reference:
        runtimes[JOURNAL] = Runtime(ours, journal=True)
        runtimes[FILES] = Runtime(ours, files=True)
        runtimes[THEIRS] = Runtime(_reference(modules(optional=True)), files=True)
    for count in counts:
        rounds = size.pick(full=ROUNDS.get(count, 5), quick=max(2, 40 // count), tiny=1)
        for tcp in (False, True) if count == 1 else (False,):
            runs = {
                name: _measure(one, count, rounds, tcp=tcp, with_reference=with_reference)
                for name, one in runtimes.items()
            }
            _show(
                f"{count:,} sessions at once, {rounds} turns of each kind, over {'TCP' if tcp else 'pipes'}",
                count,
                rounds,
                runs,
            )


def _reference(packages: Path) -> Path:
    found = sorted(packages.glob("@github/copilot-sdk-*/prebuilds/*/copilot-runtime"))
    if not found:
        raise FileNotFoundError(
            f"the client's own runtime is not in {packages}: it has none for this machine"
        )
    return found[0]


def _measure(runtime: Runtime, count: int, rounds: int, *, tcp: bool, with_reference: bool) -> Run:
    with (
        tempfile.TemporaryDirectory() as home,
        playing(
            runtime.path,
            count,
            rounds,
            tcp=tcp,
            env=runtime.environment(Path(home)),
            with_reference=with_reference,
        ) as (client, model),
    ):
        return dict(_parts(client, model.pid))


def _parts(client: "subprocess.Popen[str]", model: int) -> Iterator[tuple[str, Part]]:
    def clocks(runtime: int) -> list[float]:
        # The runtime is a child of the client.
        theirs = cpu_seconds(runtime)
        return [theirs, cpu_seconds(client.pid) - theirs, cpu_seconds(model)]

    before = [0.0, 0.0, 0.0]
    for told in parts(client):
        runtime = told["runtime"]
        spent = [end - start for start, end in zip(before, clocks(runtime), strict=True)]
        cpu, client_cpu, model_cpu = spent
        seconds, took = told["seconds"], told["milliseconds"]
        yield told["part"], Part(seconds, took, cpu, client_cpu, model_cpu, resident_bytes(runtime))
        # Asking took the client no time, but the processes may have gone on: the part begins now.
        before = clocks(runtime)


def _show(title: str, count: int, rounds: int, runs: Mapping[str, Run]) -> None:
    table = Table(title, *runs, *(["times"] if THEIRS in runs else []))
    turns = count * rounds

    def row(label: str, value: Callable[[Run], float], *, more_is_better: bool) -> None:
        figures = [value(each) for each in runs.values()]
        if THEIRS in runs and all(figures):
            figures.append(figures[0] / figures[-1] if more_is_better else figures[-1] / figures[0])
        table.row(label, *figures)

    row("sessions made per second", lambda r: count / r["create"].seconds, more_is_better=True)
    row("ms of CPU per session made", lambda r: r["create"].cpu / count * 1e3, more_is_better=False)
    for part, name in (
        ("plain", "plain turn"),
        ("tool", "turn with a tool call"),
        ("clear", "clear and seed"),
    ):
        row(f"{name}: per second", _of(part, lambda p: turns / p.seconds), more_is_better=True)
        row("  ms of CPU each", _of(part, lambda p: p.cpu / turns * 1e3), more_is_better=False)
        row(
            "  ms, half are faster", _of(part, lambda p: percentile(p.milliseconds, 50)), more_is_better=False
        )
        row(
            "  ms, 99 of 100 are faster",
            _of(part, lambda p: percentile(p.milliseconds, 99)),
            more_is_better=False,
        )
    if count > 1:
        row(
            "kB a session, after its first turn", lambda r: _kilobytes(r, "warm", count), more_is_better=False
        )
        row("kB a session, after all turns", lambda r: _kilobytes(r, "clear", count), more_is_better=False)
    row("MB of the empty runtime", lambda r: r["ready"].resident / 1e6, more_is_better=False)
    ours, model = runs[OURS]["plain"], runs[OURS]["plain"].model_cpu / turns * 1e3
    made = runs[OURS]["create"].client_cpu / count * 1e3
    table.note(
        f"a plain turn took the client {ours.client_cpu / turns * 1e3:.2f} ms of CPU, the model {model:.2f} ms"
    )
    table.note(
        f"a session that was made took the client {made:.2f} ms of CPU; `times` is {OURS} and {THEIRS}"
    )


def _of(part: str, figure: Callable[[Part], float]) -> Callable[[Run], float]:
    return lambda run: figure(run[part])


def _kilobytes(run: Run, part: str, count: int) -> float:
    return (run[part].resident - run["ready"].resident) / count / 1e3


if __name__ == "__main__":
    main(run, __doc__)
