"""Trio as the guest of an asyncio loop: one run for each thread, shared by the hosts that are opened in its loop.

Both loops take turns in one thread, so each may call the other's synchronous functions. What the trio run wants done
next goes into a queue of our own, and the asyncio loop is only told that there is something: when that loop is closed
too early, the run can still be brought to its end in order, without it (`Guest.finish_alone`).
"""

import asyncio
import atexit
import concurrent.futures
import contextlib
import contextvars
import logging
import queue
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Any, Protocol, TypeVar, TypeVarTuple, cast

import outcome
import trio

from exeunt.actors.errors import (
    HostForked,
    HostLoopClosed,
    SessionClosed,
    TrioAlreadyRunning,
    WouldDeadlock,
    WrongEventLoop,
)
from exeunt.embed import forks

logger = logging.getLogger("exeunt.embed")

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

ALONE = 10.0
"""Seconds that a run may take to end without its loop: the grace of a host's shutdown, and as much again."""


class Pending(Protocol):
    """Something that waits for the run."""

    def lose(self) -> None:
        """Stop waiting: the run is gone."""
        ...


class Guest:
    """One trio run on one asyncio loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.ended = False
        self.nursery: trio.Nursery
        """Where calls run, and the hosts. Open once `enter` has returned."""
        self.pending: set[Pending] = set()
        self._users = 0
        """Hosts that are open, or about to be."""
        self._thread = threading.get_ident()
        self._fork = forks.depth()
        self._started: asyncio.Future[None] = loop.create_future()
        self._finished: asyncio.Future[None] = loop.create_future()
        self._leave = trio.Event()
        self._queue: queue.SimpleQueue[Callable[[], object]] = queue.SimpleQueue()
        # A tick belongs to nobody: in the context of whoever caused it, it would keep that alive.
        self._context = contextvars.Context()
        self._failure: BaseException | None = None

    # --- Beginning and end -----------------------------------------------------------------------------------

    @classmethod
    async def enter(cls) -> "Guest":
        """Return the run of this loop, begun if need be; however many ask at once, there is one. Then `exit` it.

        Raises `TrioAlreadyRunning`, `HostForked`.
        """
        if _here.guest is not None:
            _here.guest.check_same_process()
        loop = asyncio.get_running_loop()
        while (guest := _here.guest) is not None:
            if guest.loop is not loop:
                guest._give_way()
            elif guest._users == 0:
                await outlast(guest._finished)
            else:
                break
        if guest is None:
            guest = cls(loop)
            guest._start()
        guest._users += 1
        try:
            await asyncio.shield(guest._started)
        except BaseException:
            await guest.exit()  # noqa: ASYNC102 - it waits through a cancellation
            raise
        return guest

    async def exit(self) -> None:
        """Say that one host needs the run no more. The last one waits until it has ended, whatever happens.

        In a fork, where it does not run, nothing happens.
        """
        self._users -= 1
        if self._users == 0 and self.is_here:
            self._leave.set()
            await outlast(self._finished)

    def _start(self) -> None:
        try:
            self._context.run(
                trio.lowlevel.start_guest_run,
                self._main,
                run_sync_soon_threadsafe=self._soon_from_anywhere,
                run_sync_soon_not_threadsafe=self._soon,
                done_callback=self._done,
                # uvloop does, and asyncio when it has a handler of its own; trio would complain of it.
                host_uses_signal_set_wakeup_fd=True,
                clock=getattr(self.loop, "trio_clock", None),
            )
        except RuntimeError as error:
            raise TrioAlreadyRunning(
                "trio runs in this thread already: open the host in that run, with exeunt.open_host(), or embed it "
                "in a thread, with exeunt.embed.threads"
            ) from error
        _here.guest = self

    async def _main(self) -> None:
        async with trio.open_nursery() as self.nursery:
            _settle(self._started)
            await self._leave.wait()
            self.nursery.cancel_scope.cancel()

    def _done(self, result: "outcome.Outcome[None]") -> None:
        self.ended = True
        if _here.guest is self:
            _here.guest = None
        if isinstance(result, outcome.Error):
            self._failure = result.error
        for pending in list(self.pending):
            pending.lose()
        _settle(self._started)
        _settle(self._finished)

    # --- Turns of the two loops --------------------------------------------------------------------------------

    def _soon(self, function: Callable[[], object]) -> None:
        self._queue.put(function)
        with contextlib.suppress(RuntimeError):  # the loop is closed: it waits for `finish_alone`
            self.loop.call_soon(self._tick, context=self._context)

    def _soon_from_anywhere(self, function: Callable[[], object]) -> None:
        self._queue.put(function)
        with contextlib.suppress(RuntimeError):
            self.loop.call_soon_threadsafe(self._tick, context=self._context)

    def _tick(self) -> None:
        with contextlib.suppress(queue.Empty):
            self._queue.get_nowait()()
        failure, self._failure = self._failure, None
        if failure is not None:
            # Ctrl-C reached trio first, or trio itself failed: nobody else would hear of it.
            raise KeyboardInterrupt if _holds_interrupt(failure) else failure

    def finish_alone(self, seconds: float = ALONE) -> None:
        """Bring the run to its end without its loop, which is closed: its hosts shut down in order.

        In the thread of that loop only. What runs in asyncio tasks is left where it is. Gives up after *seconds*.
        """
        hooks = sys.get_asyncgen_hooks()
        until = time.monotonic() + seconds
        self._leave.set()
        try:
            while not self.ended:
                self._context.run(self._queue.get(timeout=max(0.0, until - time.monotonic())))
        except queue.Empty:
            logger.error(
                "a host was left open when its event loop was closed, and could not be ended in order"
            )
        finally:
            # The run puts those back that it found: of the loop that is closed.
            sys.set_asyncgen_hooks(*hooks)

    def is_left_here(self) -> bool:
        """Say whether it belongs to this process, and its loop does not run."""
        return not self.ended and self.is_here and not self.loop.is_running()

    @property
    def is_here(self) -> bool:
        """Whether it is in this process, which may be a fork."""
        return self._fork == forks.depth()

    def check_same_process(self) -> None:
        """Raise `HostForked` in a fork of the process where it began: in this thread trio cannot begin anew."""
        if not self.is_here:
            raise HostForked(
                "this process was forked where a host was open in an event loop, and trio cannot begin anew in that "
                "thread: fork before a host is opened, start children with the method 'spawn', or open the host in "
                "another thread"
            )

    def _give_way(self) -> None:
        """Make room for a run on another loop of this thread."""
        if self.loop.is_closed():
            self.finish_alone()
        if not self.ended:
            raise TrioAlreadyRunning(
                "another event loop of this thread has hosts open, and is not closed: end those first, or open this "
                "host in another thread"
            )

    # --- Use ---------------------------------------------------------------------------------------------------

    def check_thread(self) -> None:
        """Raise if this is not the thread of the host: `HostForked`, `HostLoopClosed`, `WrongEventLoop`."""
        forks.check(self._fork)
        if threading.get_ident() != self._thread:
            self._check_loop()
            raise WrongEventLoop(
                "the host is used in another thread than that of its event loop; from there, use "
                "asyncio.run_coroutine_threadsafe(), or exeunt.embed.threads"
            )

    def check(self) -> None:
        """Raise if a call cannot be answered: what `check_thread` raises, and `SessionClosed`."""
        self.check_thread()
        self._check_loop()
        try:
            running = asyncio.get_running_loop()
        except RuntimeError:
            running = None
        if running is not self.loop:
            raise WrongEventLoop(
                "the host was opened in another event loop; open one in this loop, or use "
                "asyncio.run_coroutine_threadsafe()"
            )
        if self.ended or self._leave.is_set():
            raise SessionClosed("the host has ended and takes no more calls")

    def run_from_thread(self, async_fn: Callable[[*Ts], Awaitable[T]], *args: *Ts) -> T:
        """Await `async_fn(*args)` in the loop, from another thread. See `SessionHost.run_from_thread`."""
        forks.check(self._fork)
        if threading.get_ident() == self._thread:
            raise WouldDeadlock(
                "run_from_thread() was called in the thread of the loop: await the function instead"
            )

        async def awaited() -> T:
            return await async_fn(*args)

        coroutine = awaited()
        try:
            # In a copy of this thread's context, as with every callback of a loop.
            answer = asyncio.run_coroutine_threadsafe(coroutine, self.loop)
        except RuntimeError as error:
            coroutine.close()
            raise SessionClosed("the loop of the host has ended") from error
        waiting = _WaitingThread(answer)
        self.pending.add(waiting)
        try:
            if self.ended:
                waiting.lose()
            return answer.result()
        except concurrent.futures.CancelledError:
            raise SessionClosed("the host has ended: what was asked may have happened") from None
        finally:
            self.pending.discard(waiting)

    def _check_loop(self) -> None:
        if self.loop.is_closed():
            raise HostLoopClosed(
                "the event loop of the host was closed before the host was; leave `async with open_host()` before "
                "the loop ends, and open another host in the new loop"
            )


class _WaitingThread:
    """Another thread, which waits for a coroutine in the loop."""

    def __init__(self, answer: "concurrent.futures.Future[Any]") -> None:
        self._answer = answer

    def lose(self) -> None:
        self._answer.cancel()


async def outlast(future: "asyncio.Future[None]") -> None:
    """Wait for *future* also when the task is cancelled meanwhile; that is raised then."""
    cancelled: asyncio.CancelledError | None = None
    while not future.done():
        try:
            await asyncio.wait([future])
        except asyncio.CancelledError as error:  # noqa: ASYNC103 - raised below
            cancelled = error
    if cancelled is not None:
        try:
            raise cancelled
        finally:
            del cancelled  # it holds this frame


class _Here(threading.local):
    guest: Guest | None = None


_here = _Here()


@atexit.register
def _end_those_left() -> None:
    """Shut down in order what a closed or stopped loop of this thread has left, before the interpreter goes."""
    guest = _here.guest
    if guest is not None and guest.is_left_here():
        try:
            guest.finish_alone()
        except Exception:  # the interpreter may start no more threads
            logger.exception("a host that was left open could not be ended in order")


def _settle(future: "asyncio.Future[None]") -> None:
    with contextlib.suppress(RuntimeError):  # its loop is closed: nobody waits
        if not future.done():
            future.set_result(None)


def _holds_interrupt(error: BaseException) -> bool:
    if isinstance(error, BaseExceptionGroup):
        group = cast("BaseExceptionGroup[BaseException]", error)
        return any(_holds_interrupt(one) for one in group.exceptions)
    return isinstance(error, KeyboardInterrupt)
