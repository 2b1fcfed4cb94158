"""What a run of the recorded scenarios says: each is as recorded, or differs as listed, or is wrong.

`differences.toml` lists the scenarios that differ, by reason. Each of these is held as well: `ours.jsonl` has what we
show, and another difference is as wrong as one that is not listed.
"""

import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import attrs

from tests.interop.conformance.compare import differences
from tests.interop.conformance.normal import normal
from tests.interop.conformance.records import Record, load
from tests.interop.conformance.rules import as_ours

DIFFERENCES = Path(__file__).with_name("differences.toml")
OURS = Path(__file__).with_name("ours.jsonl")

PROCESSES = ("crash_", "kill_delay_", "pending_continue_", "replay_", "resume_after_", "saw_runtime_death")
"""Beginnings of the names of scenarios that start two runtimes of their own: seconds each on a busy machine."""

SAMPLE = frozenset(
    {"crash_mid_clear", "crash_mid_tool", "kill_delay_0_0", "pending_continue_tool", "replay_par_other"}
)
"""One of each kind of these is played by `make test`, the others by `make soak`."""

WAITING = frozenset({"tool_hold_130s", "err_500_forever"})
"""These wait for minutes, or for fifteen seconds of retries."""


def is_slow(name: str) -> bool:
    """Whether a scenario is left to `make soak`."""
    return name in WAITING or (name.startswith(PROCESSES) and name not in SAMPLE)


@attrs.frozen
class Verdict:
    """Of one scenario."""

    name: str
    outcome: str
    """`equal`, `listed`, or `wrong`."""
    lines: tuple[str, ...] = ()
    """What differs; for a listed one, the reason."""


def reasons(path: Path = DIFFERENCES) -> dict[str, str]:
    """The reason for each scenario that is listed as differing."""
    groups = tomllib.loads(path.read_text())
    return {name: group["why"] for group in groups.values() for name in group["scenarios"]}


def chosen(names: Iterable[str] = (), *, slow: bool) -> dict[str, Record]:
    """The records of `names`, or all; without the slow ones unless they are wanted."""
    records = load()
    wanted = [*names] or [name for name in records if slow or not is_slow(name)]
    return {name: records[name] for name in wanted}


def judge(records: Mapping[str, Record], outcomes: Mapping[str, Mapping[str, Any]]) -> list[Verdict]:
    """A verdict for each of `records`, from what was played of them."""
    listed, ours = reasons(), load(OURS)
    return [
        _judge(record, outcomes.get(name), listed.get(name), ours.get(name))
        for name, record in records.items()
    ]


def _judge(
    record: Record, outcome: Mapping[str, Any] | None, why: str | None, held: Record | None
) -> Verdict:
    if outcome is None:
        return Verdict(record.name, "wrong", ("was not played",))
    if outcome.get("error"):
        return Verdict(record.name, "wrong", tuple(str(outcome["error"]).splitlines()[:2]))
    shown = as_ours(normal(outcome))
    from_reference = tuple(differences(as_ours(record.shown), shown))
    if why is None:
        return Verdict(record.name, "wrong" if from_reference else "equal", from_reference)
    if not from_reference:
        return Verdict(record.name, "wrong", ("is listed as differing, but is as recorded",))
    if held is None:
        return Verdict(
            record.name, "wrong", ("is listed as differing, but what we show is not kept (--accept)",)
        )
    from_ours = tuple(differences(as_ours(held.shown), shown))
    return Verdict(record.name, "wrong", from_ours) if from_ours else Verdict(record.name, "listed", (why,))
