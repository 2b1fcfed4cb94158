"""Were all promises kept?"""

from collections.abc import Awaitable, Callable

import attrs

from exeunt import InvariantViolation
from exeunt.demo.performance import Performance
from exeunt.demo.refusals import PATIENCE
from exeunt.demo.second_act import SecondAct
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


async def judge(
    performance: Performance, second_act: SecondAct | None = None, *, stopped: bool = False
) -> list[Promise]:
    """Check what a host promises. Call it when the run has ended; it takes about a second for 2,000 sessions.

    With *stopped*, somebody ended the run: what was under way then counts as kept.
    """
    tally, host = performance.tally, performance.host
    # Guests who have left because they were refused have left their turns behind.
    stopped = stopped or performance.refused is not None
    failed = host.statistics().sessions.get("failed", 0)
    restarts, crashes = tally.restarts, performance.injected
    promises = [
        Promise(
            "each accepted message ended, exactly once" if not stopped else "no message ended twice",
            tally.open == 0 or (stopped and tally.open > 0),
            f"{tally.open} of {tally.accepted} did not end",
        ),
        Promise(
            "events without gaps, each call with one outcome, one idle at each end",
            *_passes(lambda: performance.invariants.verify(settled=not stopped)),
        ),
        Promise("every request had a result for each call", *_passes(_verify_model(performance))),
        Promise("live contexts are what the logs tell", *await _holds(check_live_state(host))),
        Promise("counters add up with events", *_passes(lambda: check_metrics(host, performance.ledger))),
        Promise(
            "each crash was one restart, and hurt no other session",
            not failed and (restarts == crashes or (stopped and restarts < crashes)),
            f"{crashes} crashes, {restarts} restarts, {failed} sessions failed",
        ),
    ]
    if second_act is not None:
        promises.append(
            Promise(
                "a worker killed by SIGKILL and resumed lost nothing, ran nothing twice",
                second_act.kept,
                second_act.details,
            )
        )
    if performance.refused is not None:
        text = f"no message was refused for {PATIENCE:g} s"
        promises.insert(0, Promise(text, kept=False, details=str(performance.refused)))
    elif not performance.complete and not stopped:
        promises.insert(0, Promise(f"all guests left within {performance.longest:g} s", kept=False))
    return promises


def _verify_model(performance: Performance) -> Callable[[], None]:
    return lambda: performance.model.verify(all_given=False)


def _passes(check: Callable[[], None]) -> tuple[bool, str]:
    try:
        check()
    except InvariantViolation as violation:
        return False, _shortened(violation)
    return True, ""


async def _holds(check: Awaitable[None]) -> tuple[bool, str]:
    try:
        await check
    except InvariantViolation as violation:
        return False, _shortened(violation)
    return True, ""


def _shortened(violation: InvariantViolation) -> str:
    text = str(violation)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]} ..."
