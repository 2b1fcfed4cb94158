"""The way onto a host's loop from a thread that the host did not start."""

from collections.abc import Awaitable, Callable
from typing import TypeVar, TypeVarTuple

import trio

from exeunt.actors.errors import SessionClosed, WouldDeadlock

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


def run_on_loop(token: trio.lowlevel.TrioToken, async_fn: Callable[[*Ts], Awaitable[T]], *args: *Ts) -> T:
    """Run `async_fn(*args)` on the loop of *token*. See `HostCore.run_from_thread`."""
    if trio.lowlevel.in_trio_run():
        raise WouldDeadlock(
            "run_from_thread() was called in the host's own thread: await the function instead"
        )
    try:
        return trio.from_thread.run(async_fn, *args, trio_token=token)
    except (trio.RunFinishedError, trio.Cancelled) as error:
        raise SessionClosed("the host's loop has ended") from error  # noqa: ASYNC104 - not this thread's own
