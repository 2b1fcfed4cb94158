"""Settings of the Python process that a host profits from. Offered, not imposed: the process is the embedder's."""

import gc

GC_THRESHOLDS = (50_000, 20, 10)
"""A turn leaves no cyclic garbage, so collections only cost: with the default thresholds nearly half of the time of
10,000 turns at once, with these a sixth or less, and the longest pause is a fifth. `python -m loadtests.bench gc`
measures it; README.md has the figures."""


def tune_garbage_collector() -> tuple[int, int, int]:
    """Set the collector's thresholds for many sessions; return those before, for `gc.set_threshold(*before)`.

    Exeunt's own executables call it. A program whose other parts make much cyclic garbage should measure first.
    """
    before = gc.get_threshold()
    gc.set_threshold(*GC_THRESHOLDS)
    return before
