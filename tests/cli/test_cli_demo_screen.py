"""How the demo looks on terminals of several widths: whatever else is cut, its numbers are not."""

import io
import re
from collections import Counter

import pytest
import trio
from rich.console import Console

from exeunt import Outcome, TurnEndReason, open_host
from exeunt.demo.performance import Performance
from exeunt.demo.screen import live_view, print_report
from exeunt.demo.second_act import SecondAct
from exeunt.demo.verdict import Promise

ADDRESS = "http://127.0.0.1:9464/metrics"
PROMISES = [Promise("a worker killed by SIGKILL and resumed lost nothing, ran nothing twice", kept=True)]
ACT = SecondAct(acknowledged=210, lost=0, cut_off=60, twice=0)


async def performed() -> Performance:
    """A run of which every number is there, each another, the totals above 100,000."""
    async with open_host() as host:
        performance = Performance(host, 0, 1)
    tally = performance.tally
    tally.turns = Counter({reason: 21_011 + at for at, reason in enumerate(TurnEndReason)})
    tally.calls = Counter({outcome: 31_011 + at for at, outcome in enumerate(Outcome)})
    tally.clears = Counter(committed=9_111, rolled_back=9_112, empty_prompt=9_113)
    tally.accepted = tally.answered = 199_999
    tally.shown, tally.restarts, tally.steered = 2_345_678, 2, 4_321
    performance.timings.replies, performance.timings.clears = [24.4, 129.83], [0.0125, 38.4]
    performance.refusals.count = 765_432
    performance.news.append("12.3 s: guest-00003 crashed in phase 'model' (injected)")
    performance.complete, performance.ended = True, performance.began + 60
    return performance


def drawn(performance: Performance, width: int) -> tuple[str, str]:
    """The report and the live view."""
    report, view = io.StringIO(), io.StringIO()
    print_report(Console(file=report, width=width), performance, PROMISES, ACT)
    Console(file=view, width=width).print(live_view(performance, ADDRESS))
    return report.getvalue(), view.getvalue()


def numbers(text: str) -> list[str]:
    return sorted(re.findall(r"(?<![\w.,])[\d,]*\d(?:\.\d+)?(?: m?s\b)?", text))


@pytest.mark.parametrize("width", [40, 60, 79, 80, 100, 120])
async def test_a_report_has_the_same_numbers_in_every_width(
    width: int, autojump_clock: trio.testing.MockClock
) -> None:
    performance = await performed()
    wide, narrow = drawn(performance, 200)[0], drawn(performance, width)[0]
    assert numbers(narrow) == numbers(wide)
    assert "2,345,678" in narrow
    assert "\N{HORIZONTAL ELLIPSIS}" not in narrow
    assert max(map(len, narrow.splitlines())) <= width


@pytest.mark.parametrize("width", [40, 60, 79, 80, 100, 120])
async def test_the_live_view_has_its_counts_in_every_width(
    width: int, autojump_clock: trio.testing.MockClock
) -> None:
    performance = await performed()
    wide, narrow = drawn(performance, 200)[1], drawn(performance, width)[1]
    # The remarks behind the counts may be cut: their numbers are no counts of the tables.
    counts = [number for number in numbers(wide) if re.fullmatch(r"\d?\d,\d{3}|\d+,\d{3},\d{3}", number)]
    counts.remove(f"{2_345_678 / 60:,.0f}")
    assert len(counts) > 20
    assert Counter(counts) <= Counter(numbers(narrow))
    assert "2,345,678" in narrow
    assert max(map(len, narrow.splitlines())) <= width


async def test_80_columns_hold_the_tables_beside_each_other_also_with_large_numbers(
    autojump_clock: trio.testing.MockClock,
) -> None:
    report, view = drawn(await performed(), 80)
    for text in (report, view):
        assert re.search("turns by reason +calls by outcome +clears by outcome", text)
    assert re.search("times +p50 +p99 +slowest +messages", report)


async def test_the_live_view_says_when_its_times_are_those_of_the_last_replies(
    autojump_clock: trio.testing.MockClock,
) -> None:
    performance = await performed()
    performance.timings.replies = [9.0] * 10 + [1.0] * 1_990
    assert "p50 1.00 s, p99 1.00 s\n" in without_padding(drawn(performance, 80)[1])
    performance.timings.replies += [2.0] * 2_000
    report, view = drawn(performance, 80)
    assert "p50 2.00 s, p99 2.00 s of the last 2,000\n" in without_padding(view)
    assert re.search(r"message to reply +2.00 s +2.00 s +9.00 s", report)


def without_padding(text: str) -> str:
    return re.sub(" +$", "", text, flags=re.MULTILINE)


async def test_a_narrow_view_begins_with_what_matters(autojump_clock: trio.testing.MockClock) -> None:
    view = drawn(await performed(), 60)[1]
    assert view.index("sessions ") < view.index(ADDRESS) < view.index("turns by reason")
