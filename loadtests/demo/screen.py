"""How the demo looks: a view that lives while it runs, lines where there is no terminal, tables at the end."""

from collections import Counter
from collections.abc import Iterable, Sequence

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from exeunt import Outcome, TurnEndReason
from exeunt.demo.layout import GAPS, Fitting, below, beside, flow
from exeunt.demo.performance import Performance
from exeunt.demo.second_act import SecondAct
from exeunt.demo.tally import Tally, percentile
from exeunt.demo.verdict import Promise

LATEST = 2_000
"""Replies that the live view's percentiles are made of: the last few seconds. The report's are of all replies."""
COUNT_WIDTH = 6
"""Columns of a count: 99,999. So the tables stand still while they count."""
GOOD, BAD = "green", "bold red"


def live_view(performance: Performance, address: str) -> RenderableType:
    """Return what the terminal shows at this moment. Costs about 10 ms at 2,000 sessions."""
    tally, seconds = performance.tally, max(performance.seconds, 0.1)
    there, busy = len(performance.guests), performance.host.statistics().busy
    head = Table.grid(expand=True)
    head.add_column()
    head.add_column(justify="right")
    head.add_row(Text("Exeunt: a demo", "bold"), Text(f"{performance.seconds:.1f} s", "bold"))
    replies = sorted(performance.timings.replies[-LATEST:])
    waits = f"p50 {percentile(replies, 0.5):.2f} s, p99 {percentile(replies, 0.99):.2f} s" if replies else ""
    if len(performance.timings.replies) > LATEST:
        waits += f" of the last {LATEST:,}"
    body = Table.grid(padding=(0, 2, 0, 0))
    body.add_column(style="bold cyan", no_wrap=True)
    body.add_column(justify="right", no_wrap=True)
    body.add_column()
    news = performance.news[-1] if performance.news else ""
    for name, count, remark in (
        ("sessions", there, f"{busy:,} at work, {there - busy:,} at rest"),
        ("replies", len(performance.timings.replies), waits),
        ("events", tally.shown, f"{tally.shown / seconds:,.0f} a second"),
        ("restarts", tally.restarts, news),
    ):
        # Only the remark may be cut. Of columns that must not wrap, all are.
        body.add_row(name, f"{count:,}", Text(remark, no_wrap=True, overflow="ellipsis"))
    foot = Text(f"metrics at {address}   Ctrl-C ends it", "dim")
    bar = ProgressBar(total=performance.acts, completed=performance.acts_done)
    counts = _all_counts(tally)
    # What a narrow terminal cuts off at its lower edge shall be counts.
    wide = (below(beside(*counts, gap=gap), body, foot) for gap in GAPS)
    view = Fitting(*wide, below(body, foot, flow(counts)))
    return Padding(Group(head, bar, Text(), view), (1, 1, 0, 1))


def progress_line(performance: Performance) -> str:
    """Return the same as one line of plain text."""
    tally = performance.tally
    done = 100 * performance.acts_done // max(1, performance.acts)
    return (
        f"{performance.seconds:5.1f} s {done:3} %  {tally.turns.total():,} turns  "
        f"{tally.calls.total():,} tool calls  {tally.clears.total():,} clears  {tally.restarts} restarts"
    )


def print_report(
    console: Console,
    performance: Performance,
    promises: Sequence[Promise],
    second_act: SecondAct | None = None,
) -> None:
    """Print the tables of the end; 80 columns hold them beside each other, fewer stack them."""
    times = below(_times(performance), _actors(performance))
    console.print()
    parts: list[RenderableType] = [
        flow(_all_counts(performance.tally)),
        flow([times, _messages(performance)]),
    ]
    if second_act is not None:
        parts.append(_second_act(second_act))
    for part in (*parts, _promises(promises)):
        console.print(Padding(part, (0, 0, 1, 1)))


def _table(*columns: str) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold cyan")
    for position, column in enumerate(columns):
        # Where it is too narrow for both, the name is broken, not the number.
        table.add_column(column, justify="right" if position else "left", no_wrap=position > 0)
    return table


def _all_counts(tally: Tally) -> list[Table]:
    return [
        _counts(
            "turns by reason",
            ((reason, tally.turns[reason]) for reason in TurnEndReason),
            tally.turns.total(),
        ),
        _counts(
            "calls by outcome", ((outcome, tally.calls[outcome]) for outcome in Outcome), tally.calls.total()
        ),
        _counts("clears by outcome", _clears(tally.clears), tally.clears.total()),
    ]


def _counts(title: str, counts: Iterable[tuple[str, int]], total: int) -> Table:
    table = _table(title, "")
    table.columns[1].min_width = COUNT_WIDTH
    for name, count in counts:
        table.add_row(str(name), Text(f"{count:,}", "" if count else "dim"))
    table.add_row(Text("all", "bold"), Text(f"{total:,}", "bold"))
    return table


def _times(performance: Performance) -> Table:
    table = _table("times", "p50", "p99", "slowest")
    timings = performance.timings
    for name, values in (("message to reply", timings.replies), ("clear to seeded request", timings.clears)):
        ordered = sorted(values)
        cells = [_seconds(percentile(ordered, share)) for share in (0.5, 0.99, 1.0)] if ordered else ["-"] * 3
        table.add_row(name, *cells)
    return table


def _actors(performance: Performance) -> Table:
    table = _table("actors", "")
    table.add_row("sessions at once", f"{len(performance.guests):,}")
    table.add_row("crashes injected", f"{performance.injected:,}")
    table.add_row("restarts", f"{performance.tally.restarts:,}")
    table.add_row("events", f"{performance.tally.shown:,}")
    return table


def _messages(performance: Performance) -> Table:
    tally = performance.tally
    lost = tally.open if performance.complete else 0
    table = _table("messages", "")
    table.add_row("accepted", f"{tally.accepted:,}")
    table.add_row("answered", f"{tally.answered:,}")
    for cause, count in tally.dropped.most_common():
        table.add_row(f"dropped, {cause}", f"{count:,}")
    if not performance.complete:
        table.add_row("still under way", f"{tally.open:,}")
    table.add_row(Text("lost", "bold"), Text(f"{lost:,}", BAD if lost else f"bold {GOOD}"))
    table.add_row(Text("of these steered", "dim"), Text(f"{tally.steered:,}", "dim"))
    if performance.refusals.count:
        table.add_row(Text("refused, resent", "dim"), Text(f"{performance.refusals.count:,}", "dim"))
    return table


def _second_act(act: SecondAct) -> RenderableType:
    bad = [Text(f"{count:,}", BAD if count else f"bold {GOOD}") for count in (act.lost, act.twice)]
    counts = {
        "acknowledged": Text(f"{act.acknowledged:,}"),
        "calls cut off": Text(f"{act.cut_off:,}"),
        "lost messages": bad[0],
        "run twice": bad[1],
    }
    wide = _table("second act", *counts)
    wide.add_row("killed, then resumed", *counts.values())
    narrow = _table("second act", "")
    for name, count in counts.items():
        narrow.add_row(name, count)
    return Fitting(wide, narrow)


def _promises(promises: Sequence[Promise]) -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_row("", Text("promises", "bold cyan"))
    for promise in promises:
        table.add_row(Text("kept", GOOD) if promise.kept else Text("BROKEN", BAD), promise.text)
        if not promise.kept and promise.details:
            table.add_row("", Text(promise.details, "red"))
    return table


def _clears(counts: Counter[str]) -> Iterable[tuple[str, int]]:
    yield from ((name, counts[name]) for name in ("committed", "rolled_back"))
    refusals = sorted(counts.keys() - {"committed", "rolled_back"})
    yield "refused", sum(counts[name] for name in refusals)
    yield from ((f"  {name}", counts[name]) for name in refusals)


def _seconds(value: float) -> str:
    if value < 1:
        return f"{value * 1000:.1f} ms"
    return f"{value:.2f} s" if value < 100 else f"{value:.1f} s"
