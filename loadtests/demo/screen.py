"""How the demo looks: a view that lives while it runs, lines where there is no terminal, tables at the end."""

from collections import Counter
from collections.abc import Iterable, Sequence

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from exeunt.demo.performance import Performance
from exeunt.demo.tally import percentile
from exeunt.demo.verdict import Promise

LATEST = 2_000
"""Replies that the live view's percentiles are made of: the last few seconds."""
GOOD, BAD = "green", "bold red"
REFUSALS = ("no_tool_call", "empty_prompt", "already_staged", "loop", "remote")


def live_view(performance: Performance, address: str) -> RenderableType:
    """Return what the terminal shows at this moment. Costs about 5 ms at 2,000 sessions."""
    tally, seconds = performance.tally, max(performance.seconds, 0.1)
    host = performance.host.statistics()
    there = len(performance.guests)
    head = Table.grid(expand=True)
    head.add_column()
    head.add_column(justify="right")
    head.add_row(
        Text.assemble(("Exeunt", "bold"), f"  {performance.sessions:,} sessions at once"),
        Text(f"{performance.seconds:5.1f} s", "bold"),
    )
    body = Table.grid(padding=(0, 2))
    body.add_column(style="bold")
    body.add_column(justify="right")
    body.add_column(overflow="ellipsis", no_wrap=True)
    body.add_row("sessions", f"{there:,}", f"{host.busy:,} at work, {there - host.busy:,} at rest")
    turns, calls = tally.turns.total(), tally.calls.total()
    body.add_row("turns", f"{turns:,}", _most(tally.turns))
    body.add_row("tool calls", f"{calls:,}", f"{host.tool_calls_in_flight:,} in flight; {_most(tally.calls)}")
    body.add_row("clears", f"{tally.clears.total():,}", _most(_clears(tally.clears)))
    replies = sorted(performance.timings.replies[-LATEST:])
    waits = f"p50 {percentile(replies, 0.5):.2f} s, p99 {percentile(replies, 0.99):.2f} s" if replies else ""
    body.add_row("replies", f"{len(performance.timings.replies):,}", waits)
    body.add_row("events", f"{tally.shown:,}", f"{tally.shown / seconds:,.0f} a second")
    body.add_row("restarts", f"{tally.restarts:,}", performance.news[-1] if performance.news else "")
    bar = ProgressBar(total=performance.acts, completed=performance.acts_done)
    foot = Text(f"metrics at {address}   Ctrl-C ends it", "dim")
    return Padding(Group(head, bar, Text(), body, Text(), foot), (1, 1))


def progress_line(performance: Performance) -> str:
    """Return the same as one line of plain text."""
    tally = performance.tally
    done = 100 * performance.acts_done // max(1, performance.acts)
    return (
        f"{performance.seconds:5.1f} s {done:3} %  {tally.turns.total():,} turns  "
        f"{tally.calls.total():,} tool calls  {tally.clears.total():,} clears  {tally.restarts} restarts"
    )


def print_report(console: Console, performance: Performance, promises: Sequence[Promise]) -> None:
    """Print the tables of the end."""
    tally = performance.tally
    console.print()
    counts = Table.grid(padding=(0, 3, 0, 0))
    counts.add_row(
        _counts("turns by reason", tally.turns),
        _counts("tool calls by outcome", tally.calls),
        _counts("clears by outcome", _clears(tally.clears, each=True)),
    )
    console.print(Padding(counts, (0, 0, 1, 1)))
    below = Table.grid(padding=(0, 3, 0, 0))
    below.add_row(_times(performance), _messages(performance))
    console.print(Padding(below, (0, 0, 1, 1)))
    console.print(Padding(_promises(promises), (0, 0, 1, 1)))


def _table(*columns: str) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold cyan")
    for position, column in enumerate(columns):
        table.add_column(column, justify="right" if position else "left", no_wrap=True)
    return table


def _counts(title: str, counts: Counter[str]) -> Table:
    table = _table(title, "")
    for name, count in counts.most_common():
        table.add_row(name, f"{count:,}")
    table.add_row(Text("all", "bold"), Text(f"{counts.total():,}", "bold"))
    return table


def _times(performance: Performance) -> Table:
    table = _table("times", "p50", "p99", "slowest")
    rows = (("send to reply", performance.timings.replies), ("clear to new request", performance.timings.clears))
    for name, values in rows:
        ordered = sorted(values)
        cells = [_seconds(percentile(ordered, share)) for share in (0.5, 0.99, 1.0)] if ordered else ["-"] * 3
        table.add_row(name, *cells)
    return table


def _messages(performance: Performance) -> Table:
    tally = performance.tally
    lost = tally.open if performance.complete else 0
    table = _table("messages", "")
    table.add_row("accepted", f"{tally.accepted:,}")
    table.add_row("answered", f"{tally.answered:,}")
    table.add_row("dropped by aborts", f"{tally.dropped['aborted']:,}")
    other = tally.dropped.total() - tally.dropped["aborted"]
    if other:
        table.add_row("dropped otherwise", f"{other:,}")
    if not performance.complete:
        table.add_row("under way when it ended", f"{tally.open:,}")
    table.add_row(Text("lost", "bold"), Text(f"{lost:,}", BAD if lost else f"bold {GOOD}"))
    table.add_row("steered", f"{tally.steered:,}")
    table.add_row("crashes, restarts", f"{performance.injected:,}, {tally.restarts:,}")
    return table


def _promises(promises: Sequence[Promise]) -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    for promise in promises:
        mark = Text("kept", GOOD) if promise.kept else Text("BROKEN", BAD)
        table.add_row(mark, promise.text)
        if not promise.kept and promise.details:
            table.add_row("", Text(promise.details, "red"))
    return table


def _clears(counts: Counter[str], *, each: bool = False) -> Counter[str]:
    """Name refusals as such: each by its cause, or all together."""
    shown: Counter[str] = Counter()
    for name, count in counts.items():
        refused = name in REFUSALS
        shown[(f"refused, {name}" if each else "refused") if refused else name] += count
    return shown


def _most(counts: Counter[str]) -> str:
    return ", ".join(_pairs(counts.most_common()))


def _pairs(counts: Iterable[tuple[str, int]]) -> Iterable[str]:
    return (f"{name} {count:,}" for name, count in counts)


def _seconds(value: float) -> str:
    return f"{value:.2f} s" if value >= 1 else f"{value * 1000:.1f} ms"
