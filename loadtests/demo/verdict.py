"""Were all promises kept?"""

from collections.abc import Callable

import attrs

from exeunt import InvariantViolation
from exeunt.demo.performance import Performance
from exeunt.testing.checked_host import check_live_state, check_metrics

SHOWN = 600
"""Characters of a violation in the report: enough to look for it."""


@attrs.frozen
class Promise:
    """One promise of a host, held against what happened."""

    text: str
    kept: bool
    details: str = ""
    """What is wrong, where something is."""


def judge(performance: Performance) -> list[Promise]:
    """Check what a host promises. Call it when the run has ended; it takes about a second for 2,000 sessions."""
    tally, host = performance.tally, performance.host
    statistics = host.statistics()
    failed = statistics.sessions.get("failed", 0)
    return [
        Promise("the run came to its end", performance.complete),
        Promise("each accepted message ended, exactly once", *_messages(performance)),
        Promise("events without gaps, each call with one outcome, one idle at each end", *_passes(performance.invariants.verify)),
        Promise("every request had a result for each call", *_passes(_verify_model(performance))),
        Promise("live contexts are what the logs tell", *_passes(lambda: check_live_state(host))),
        Promise("counters add up with events", *_passes(lambda: check_metrics(host, performance.ledger))),
        Promise(
            "each crash was one restart, and hurt no other session",
            tally.restarts == performance.injected and not failed,
            f"{performance.injected} crashes, {tally.restarts} restarts, {failed} sessions failed",
        ),
    ]


def _messages(performance: Performance) -> tuple[bool, str]:
    tally = performance.tally
    return tally.open == 0, f"{tally.open} of {tally.accepted} did not end"


def _verify_model(performance: Performance) -> Callable[[], None]:
    return lambda: performance.model.verify(all_given=False)


def _passes(check: Callable[[], None]) -> tuple[bool, str]:
    try:
        check()
    except InvariantViolation as violation:
        text = str(violation)
        return False, text if len(text) <= SHOWN else f"{text[:SHOWN]} ..."
    return True, ""
