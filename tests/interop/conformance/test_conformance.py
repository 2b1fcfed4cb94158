"""Every recorded scenario, played by the official JavaScript client against `exeunt-runtime`."""

import sys
from pathlib import Path

import pytest

from tests.interop.conformance.play import Runtime, play
from tests.interop.conformance.records import Record, load, packed, unpacked
from tests.interop.conformance.verdict import OURS, chosen, is_slow, judge, reasons
from tests.interop.node import modules_or_skip

RUNTIME = Runtime(str(Path(sys.executable).with_name("exeunt-runtime")))


def problems(records: dict[str, Record], limit: float) -> list[str]:
    modules = modules_or_skip()
    verdicts = judge(records, play(RUNTIME, records.values(), modules, limit=limit))
    return [f"{each.name}: {' | '.join(each.lines[:4])}" for each in verdicts if each.outcome == "wrong"]


@pytest.mark.timeout(300)  # some 200 scenarios, most of whose time is waiting: 20 s on an idle machine
def test_each_recorded_scenario_goes_as_the_reference_went_or_as_listed() -> None:
    assert problems(chosen(slow=False), limit=60) == []


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_scenarios_of_killed_processes_and_long_waits_go_so_too() -> None:
    slow = {name: record for name, record in chosen(slow=True).items() if is_slow(name)}
    assert problems(slow, limit=200) == []


def test_a_scenario_that_differs_has_a_reason_and_what_it_shows_is_kept() -> None:
    assert set(reasons()) <= set(load())
    assert set(reasons()) == set(load(OURS))


def test_a_record_can_be_packed_and_unpacked() -> None:
    records = load()
    assert len(records) == 226
    assert all(unpacked(packed(record.shown)) == record.shown for record in records.values())
