"""Crossing from a thread into the host's: a call that blocks, with its result, errors and context variables."""

import contextlib
import contextvars
import sys
import threading
from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec, TypeVar, cast

import outcome
import trio

from exeunt.actors.activities.activity import GRACE, Activity
from exeunt.actors.callers import CALLER
from exeunt.actors.errors import HandlerCancelled, SessionClosed
from exeunt.embed.threads.runtime import Runtime

T = TypeVar("T")
P = ParamSpec("P")

POLL = 0.2 if sys.platform == "win32" else -1
"""Seconds after which a wait looks for Ctrl-C; elsewhere than on Windows that ends the wait by itself."""


def call(
    runtime: Runtime, async_fn: Callable[P, Coroutine[Any, Any, T]], *args: P.args, **kwargs: P.kwargs
) -> T:
    """Run a coroutine function in the host's thread, in a copy of this thread's context; wait, and return its result.

    Ctrl-C in the main thread cancels it there, waits for its end (1 s at most), and is raised. In the handler of a tool
    or a hook the end of that handler's call cancels it, and `HandlerCancelled` is raised. Raises `SessionClosed` if the
    host ends first.
    """
    runtime.check()
    crossing = Crossing(runtime)
    context = contextvars.copy_context()
    crossing.start(context.run, crossing.spawn, async_fn, args, kwargs)
    try:
        return cast("T", crossing.wait().unwrap())
    except trio.Cancelled:
        if crossing.call_cancelled:
            gone: Exception = HandlerCancelled(
                "the call that this handler serves was cancelled while it waited"
            )
        else:
            gone = SessionClosed("the host ended before it had answered")
        raise gone from None  # noqa: ASYNC104 - the cancellation was of another thread's task
    finally:
        del crossing  # an error holds this frame


def at_once(runtime: Runtime, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a synchronous function in the host's thread; wait, and return its result or raise what it raises."""
    runtime.check()
    crossing = Crossing(runtime)
    context = contextvars.copy_context()

    def run() -> T:
        return context.run(function, *args, **kwargs)

    def answer() -> None:
        crossing.finish(outcome.capture(run))

    crossing.start(answer)
    return cast("T", crossing.wait().unwrap())


class Crossing:
    """One call on its way to the host's thread and back."""

    __slots__ = ("_result", "_runtime", "_signal", "call_cancelled", "scope")

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._result: outcome.Outcome[Any] | None = None
        # A lock that is held until there is a result is the cheapest signal between two threads.
        self._signal = threading.Lock()
        self._signal.acquire()
        self.scope = trio.CancelScope()
        self.call_cancelled = False

    def start(self, function: Callable[..., object], *arguments: Any) -> None:
        """Let the host's thread call *function*, which sees to it that there will be a result."""
        self._runtime.pending.add(self)
        if not self._runtime.soon(function, *arguments) or self._runtime.ended:
            self.lose()

    def wait(self) -> "outcome.Outcome[Any]":
        """Block until there is a result. An interrupt cancels the call, waits 1 s at most for its end, and goes on."""
        try:
            while not self._signal.acquire(timeout=POLL):
                pass
        except BaseException:
            self._runtime.soon(self.scope.cancel)
            self._signal.acquire(timeout=GRACE)
            raise
        result, self._result = self._result, None
        assert result is not None
        return result

    def spawn(self, async_fn: Callable[..., Any], args: Any, kwargs: Any) -> None:
        """Begin the call. In the host's thread."""
        if self._runtime.leaving:
            self.lose()  # its nursery may be closed
        else:
            self._runtime.nursery.start_soon(self._run, async_fn, args, kwargs)

    async def _run(self, async_fn: Callable[..., Any], args: Any, kwargs: Any) -> None:
        result: outcome.Outcome[Any] = outcome.Error(SessionClosed("the host has ended"))
        served = _served()
        if served is not None:
            served.follow(self.scope)
        try:
            with self.scope:
                result = await outcome.acapture(async_fn, *args, **kwargs)
        finally:
            if served is not None:
                served.unfollow(self.scope)
                self.call_cancelled = served.cause is not None
            self.finish(result)
            del result

    def lose(self) -> None:
        """Let the thread go on: there will be no answer."""
        self.finish(outcome.Error(SessionClosed("the host ended before it had answered")))

    def finish(self, result: "outcome.Outcome[Any]") -> None:
        """Hand over the result; the first counts."""
        self._runtime.pending.discard(self)
        if self._result is None:
            self._result = result
            with contextlib.suppress(
                RuntimeError
            ):  # the runtime failed just now, and the thread has noticed too
                self._signal.release()


def _served() -> Activity | None:
    """What the calling handler serves, as long as it has no outcome."""
    caller = CALLER.get()
    return None if caller is None or caller.settled else caller.call or caller.hook
