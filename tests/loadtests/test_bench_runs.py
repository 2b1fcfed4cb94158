"""The benchmarks run. What they measure is never asserted: a machine is not slower for being busy with tests."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from loadtests import bench_mailbox
from loadtests.bench import BENCHMARKS
from loadtests.frame import INTERRUPTED, WIDTH, Size, figure, percentile, quartile

ROOT = Path(__file__).parents[2]


def bench(*arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "loadtests.bench", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=50, check=False)


def test_two_benchmarks_print_their_tables_and_where_they_ran() -> None:
    done = bench("--tiny", "turn", "mailbox")
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0].startswith(sys.implementation.name.replace("cpython", "CPython"))
    assert [line.split(":")[0] for line in lines if line.startswith("== ")] == ["== turn", "== mailbox"]
    assert [line for line in lines if line.split()[:2] == ["Exeunt,", "streaming"]]
    assert [line for line in lines if line.startswith("actor.put, bursts of 100")]
    assert [line for line in lines if len(line) > WIDTH] == []


def test_an_unknown_benchmark_is_refused_with_the_names_that_there_are() -> None:
    done = bench("speed")
    assert done.returncode == 2
    assert "no benchmark is called speed" in done.stderr
    assert "turn, memory, gc" in done.stderr


def test_each_benchmark_in_the_list_is_a_program_and_each_program_is_in_the_list() -> None:
    programs = {path.stem.removeprefix("bench_") for path in (ROOT / "loadtests").glob("bench_*.py")}
    assert programs == set(BENCHMARKS)


@pytest.mark.skipif(sys.platform == "win32", reason="a process group is told of Ctrl-C as a terminal does")
def test_ctrl_c_ends_the_run_and_begins_no_other_benchmark() -> None:
    command = [sys.executable, "-m", "loadtests.bench", "turn", "mailbox"]
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        assert process.stdout is not None
        lines = [""]
        # Once the benchmark itself has begun: before that, the signal may come while its process is being made.
        while not lines[-1].startswith("CPU of a message"):
            lines.append(process.stdout.readline())
        os.killpg(process.pid, signal.SIGINT)
        rest, errors = process.communicate(timeout=50)
    assert next(line for line in lines if line.startswith("== ")).startswith("== turn")
    assert process.returncode == INTERRUPTED, errors
    assert rest.endswith("interrupted\n")
    assert "mailbox" not in rest


def test_ctrl_c_shows_what_has_been_measured(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def one_round(most: int, seconds: float) -> Iterator[int]:
        yield 0
        raise KeyboardInterrupt

    monkeypatch.setattr(bench_mailbox, "rounds", one_round)
    with pytest.raises(KeyboardInterrupt):
        bench_mailbox.run(Size.TINY)
    shown = capsys.readouterr().out
    assert [name for name, _, _ in bench_mailbox.SUBJECTS if name not in shown] == []


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (0.123, "0.12"), (9.99, "9.99"), (47.25, "47.2"), (123.4, "123"), (98_765.4, "98,765")],
)
def test_a_figure_has_as_many_digits_as_it_is_worth(value: float, text: str) -> None:
    assert figure(value) == text


def test_the_lower_quartile_and_percentiles_are_those_of_the_samples() -> None:
    assert quartile([9, 1, 5, 3]) == 3
    assert percentile([7], 99) == 7
    assert percentile([*range(101)], 99) == 99
