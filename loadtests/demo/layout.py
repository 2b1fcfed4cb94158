"""Which tables stand beside each other: those that the width holds. A table that is squeezed loses its numbers."""

from collections.abc import Sequence

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

ANY_WIDTH = 1_000
"""Columns: so many that nothing is squeezed when its width is measured."""
GAPS = 3, 2
"""Columns between tables, and between those that would not fit else."""


class Fitting:
    """The first of some layouts that is not wider than the place it is drawn in; else the last one."""

    def __init__(self, *layouts: RenderableType) -> None:
        self._layouts = layouts

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield self._chosen(console, options)

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        return Measurement.get(console, options, self._chosen(console, options))

    def _chosen(self, console: Console, options: ConsoleOptions) -> RenderableType:
        unbounded = options.update_width(ANY_WIDTH)
        for layout in self._layouts[:-1]:
            if Measurement.get(console, unbounded, layout).maximum <= options.max_width:
                return layout
        return self._layouts[-1]


def beside(*parts: RenderableType, gap: int = GAPS[0]) -> Table:
    """Return *parts* in one row, *gap* columns apart."""
    row = Table.grid(padding=(0, gap, 0, 0))
    row.add_row(*parts)
    return row


def below(*parts: RenderableType) -> Group:
    """Return *parts* under each other, with an empty line between."""
    return Group(*[line for part in parts for line in (part, Text())][:-1])


def flow(parts: Sequence[RenderableType]) -> Fitting:
    """Return *parts* in as few rows as the width allows: in one, two and one, or each in one of its own."""
    layouts: list[RenderableType] = [
        below(*(beside(*parts[at : at + each], gap=gap) for at in range(0, len(parts), each)))
        for each in range(len(parts), 0, -1)
        for gap in GAPS
    ]
    return Fitting(*layouts)
