"""The thread in which trio runs for a program of threads: one, shared by all hosts that are open.

It is a daemon: an interpreter that ends does not wait for it. But as long as the interpreter still can start threads,
which a journal needs, whatever is open is shut down in order: a thread that waits for the main thread's end sees to it.
"""

import logging
import threading
from collections.abc import Callable
from typing import Any, ClassVar, Protocol

import trio

from exeunt.actors.errors import HostLoopClosed, SessionClosed, WouldBlockHost
from exeunt.embed import forks

logger = logging.getLogger("exeunt.embed")

LAST_WAIT = 10.0
"""Seconds that the end of the interpreter waits for hosts: the grace of a host's shutdown, and as much again."""


class Pending(Protocol):
    """Something that a thread waits for."""

    def lose(self) -> None:
        """Let the thread go on: there will be no answer."""
        ...


class Runtime:
    """One trio run in a thread of its own."""

    clock: ClassVar[trio.abc.Clock | None] = None
    """The clock of the next one, for tests in virtual time."""

    def __init__(self) -> None:
        self.nursery: trio.Nursery
        """Where calls run, and the hosts. Open once `enter` has returned."""
        self.ended = False
        self.leaving = False
        self.pending: set[Pending] = set()
        self._users = 0
        self._fork = forks.depth()
        self._started = threading.Event()
        self._leave = trio.Event()
        self._failure: BaseException | None = None
        self._token: trio.lowlevel.TrioToken
        self._thread = threading.Thread(
            target=self._run, args=(Runtime.clock,), name="exeunt host", daemon=True
        )

    # --- Beginning and end -----------------------------------------------------------------------------------

    @classmethod
    def enter(cls) -> "Runtime":
        """Return the runtime of this process, begun if need be; however many threads ask, there is one."""
        with _shared.lock:
            runtime = _shared.runtime
            if runtime is None or runtime.ended or runtime._fork != forks.depth():
                runtime = _shared.runtime = cls()
                _shared.watch()
                runtime._thread.start()
            runtime._users += 1
        try:
            runtime._started.wait()
        except BaseException:  # Ctrl-C
            runtime.exit(wait=False)
            raise
        if runtime.ended:
            runtime.exit(wait=False)
            raise HostLoopClosed("the thread of the host could not begin") from runtime._failure
        return runtime

    def exit(self, *, wait: bool = True) -> None:
        """Say that one host needs it no more. The last one ends it, and waits for that; in a fork, nothing happens."""
        if self._fork != forks.depth():
            return
        with _shared.lock:
            self._users -= 1
            last = self._users == 0
            if last and _shared.runtime is self:
                _shared.runtime = None
        if last:
            self.end()
            if wait and not self.is_own_thread:
                self._thread.join()

    def end(self) -> None:
        """Ask it to end: hosts that are open shut down in order. From any thread."""
        self.leaving = True
        self.soon(self._leave.set)

    def join(self, seconds: float) -> bool:
        """Wait until it has ended; return whether it has."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def _run(self, clock: trio.abc.Clock | None) -> None:
        try:
            trio.run(self._main, clock=clock)
        except BaseException as error:  # noqa: ASYNC103 - raised in those who call
            self._failure = error
            logger.critical("the thread of the hosts has failed", exc_info=error)
        finally:
            self.ended = True
            for pending in list(self.pending):
                pending.lose()
            self._started.set()

    async def _main(self) -> None:
        self._token = trio.lowlevel.current_trio_token()
        async with trio.open_nursery() as self.nursery:
            self._started.set()
            await self._leave.wait()
            self.nursery.cancel_scope.cancel()

    # --- Use ---------------------------------------------------------------------------------------------------

    def soon(self, function: Callable[..., object], *arguments: Any) -> bool:
        """Call *function*, which must not raise, in the runtime's thread; say whether that will happen."""
        try:
            self._token.run_sync_soon(function, *arguments)
        except trio.RunFinishedError:
            return False
        return True

    def check(self) -> None:
        """Raise if a call cannot be answered: `HostForked`, `WouldBlockHost`, `HostLoopClosed`, `SessionClosed`."""
        forks.check(self._fork)
        if self.is_own_thread:
            raise WouldBlockHost(
                "a call that blocks was made in the host's own thread, by a subscriber, an observer or a trio "
                "coroutine: hand the work to another thread, or use the trio API there"
            )
        if self.ended:
            if self._failure is not None:
                raise HostLoopClosed(
                    "the thread of the host has failed; open another host"
                ) from self._failure
            raise SessionClosed("the host has ended and takes no more calls")

    @property
    def is_own_thread(self) -> bool:
        """Whether this is called in its thread."""
        return threading.current_thread() is self._thread

    @property
    def is_here(self) -> bool:
        """Whether its thread is in this process, which may be a fork."""
        return self._fork == forks.depth()


class _Shared:
    """What all threads of the process share."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.runtime: Runtime | None = None
        self._watched_at = -1

    def watch(self) -> None:
        """See to it, once in a process, that what is open is ended with the main thread. The lock is held."""
        if self._watched_at != forks.depth():
            self._watched_at = forks.depth()
            threading.Thread(target=_end_with_main_thread, name="exeunt exit", daemon=False).start()


_shared = _Shared()


def _after_fork() -> None:
    # The lock may have been held by a thread that the child does not have.
    _shared.lock = threading.Lock()
    _shared.runtime = None


def _end_with_main_thread() -> None:
    threading.main_thread().join()
    runtime = _shared.runtime
    if runtime is not None and not runtime.ended:
        runtime.end()
        if not runtime.join(LAST_WAIT):
            logger.error("a host was left open, and did not end within %g s", LAST_WAIT)


forks.after_fork(_after_fork)
