"""Time that passes only when nobody has anything else to do.

With trio's `MockClock` and an autojump threshold of 0, a sleep of an hour takes no time: as soon as every
task is blocked, the clock jumps to the next deadline. pytest users need nothing of this module: a test that
names pytest-trio's fixture `autojump_clock` runs like that. `run_virtual` is for scripts, for synchronous
tests (such as a Hypothesis state machine), and for a schedule that can be repeated.

Virtual time jumps over real work outside of trio: while a thread or a socket is busy, all tasks are blocked
and the clock jumps, so a time-out may fire at once. Keep real input and output out of such tests.
"""

import importlib
import random
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from typing import Any, TypeVar, TypeVarTuple

import trio
from trio.testing import MockClock

from exeunt.actors.errors import InvalidConfiguration

T = TypeVar("T")
Args = TypeVarTuple("Args")

DAY = 86_400.0
"""Default bound of a run, in virtual seconds: above every default time-out of Exeunt, of at most an hour."""


def run_virtual(
    async_fn: Callable[[*Args], Awaitable[T]], *args: *Args, seed: int | None = None, timeout: float = DAY
) -> T:
    """Run `async_fn(*args)` in virtual time, which starts at 0, and return its result.

    With *seed*, tasks that can run at the same moment do so in an order that is the same for the same seed,
    and another for another: a race that one seed finds, that seed finds again.

    Raises `trio.TooSlowError` after *timeout* virtual seconds. If all tasks wait for each other that is at
    once, as nothing else can happen: a dead-lock fails fast. A task that shields itself from cancellation for
    ever still blocks the run. Raises what *async_fn* raises, otherwise.
    """

    async def bounded() -> T:
        with trio.fail_after(timeout):
            return await async_fn(*args)

    clock = MockClock(autojump_threshold=0)
    if seed is None:
        return trio.run(bounded, clock=clock)
    with schedule_seed(seed):
        return trio.run(bounded, clock=clock)


@contextmanager
def schedule_seed(seed: int) -> Generator[None]:
    """Make trio order its tasks by *seed* inside this block, also when entered in the middle of a run.

    The state before comes back at the end. The order of tasks is global to the process: not for runs in
    several threads.

    In a test under Hypothesis there is no need for it: trio registers its random numbers there, so every
    example has the same order, and `hypothesis.strategies.random_module()` as an argument tries others.

    Raises `InvalidConfiguration` if this release of trio keeps its random numbers elsewhere. trio offers no
    public way, so this uses the two module variables that its Hypothesis plug-in uses.
    """
    scheduler: Any = importlib.import_module("trio._core._run")
    numbers = getattr(scheduler, "_r", None)
    if not isinstance(numbers, random.Random) or not hasattr(scheduler, "_ALLOW_DETERMINISTIC_SCHEDULING"):
        raise InvalidConfiguration(
            f"trio {trio.__version__} does not let its schedule be seeded. Run without a seed."
        )
    state, was_deterministic = numbers.getstate(), scheduler._ALLOW_DETERMINISTIC_SCHEDULING
    numbers.seed(seed)
    scheduler._ALLOW_DETERMINISTIC_SCHEDULING = True
    try:
        yield
    finally:
        scheduler._ALLOW_DETERMINISTIC_SCHEDULING = was_deterministic
        numbers.setstate(state)
