"""Crossing between the loops, in both directions, with results, errors, context variables and cancellation.

`call`: an asyncio task awaits something of trio. `on_asyncio`: a trio task awaits something of asyncio.
"""

import asyncio
import contextlib
import contextvars
import functools
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, ParamSpec, TypeVar, cast

import outcome
import trio

from exeunt.actors.errors import HandlerCancelled, HostLoopClosed, SessionClosed
from exeunt.actors.marks import runs_on_trio
from exeunt.embed.asyncio.guest import Guest, outlast

T = TypeVar("T")
P = ParamSpec("P")


async def call(
    guest: Guest, async_fn: Callable[P, Coroutine[Any, Any, T]], *args: P.args, **kwargs: P.kwargs
) -> T:
    """Run a coroutine function in trio, in a copy of this task's context; return what it returns, or raise that.

    A cancellation cancels it there and is raised when it has ended there. Raises `SessionClosed` if the run ends first.
    """
    guest.check()
    crossing = _Crossing(guest)
    guest.pending.add(crossing)
    guest.nursery.start_soon(crossing.run, async_fn, args, kwargs)
    try:
        result = await crossing.future
    except asyncio.CancelledError:
        crossing.scope.cancel()
        await outlast(crossing.ended())  # noqa: ASYNC102 - it is what waits through a cancellation
        raise
    try:
        return cast("T", result.unwrap())
    except trio.Cancelled:  # of the other loop, and its end is over
        raise SessionClosed("the host ended before it had answered") from None  # noqa: ASYNC104
    finally:
        del result, crossing  # an error holds this frame


class _Crossing:
    """One call on its way to trio and back."""

    __slots__ = ("_ended", "future", "guest", "over", "scope")

    def __init__(self, guest: Guest) -> None:
        self.guest = guest
        self.future: asyncio.Future[outcome.Outcome[Any]] = guest.loop.create_future()
        self.scope = trio.CancelScope()
        self.over = False
        self._ended: asyncio.Future[None] | None = None

    async def run(self, async_fn: Callable[..., Any], args: Any, kwargs: Any) -> None:
        result: outcome.Outcome[Any] = outcome.Error(HostLoopClosed("the call did not end"))
        try:
            with self.scope:
                result = await outcome.acapture(async_fn, *args, **kwargs)
        finally:
            self._finish(result)
            del result

    def lose(self) -> None:
        """Stop waiting: the run is gone."""
        self._finish(outcome.Error(SessionClosed("the host ended before it had answered")))

    def ended(self) -> "asyncio.Future[None]":
        """Return what is done when the call has ended in trio."""
        if self._ended is None:
            self._ended = self.guest.loop.create_future()
            if self.over:
                self._ended.set_result(None)
        return self._ended

    def _finish(self, result: "outcome.Outcome[Any]") -> None:
        self.over = True
        self.guest.pending.discard(self)
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits
            if not self.future.done():
                self.future.set_result(result)
            if self._ended is not None and not self._ended.done():
                self._ended.set_result(None)


async def on_asyncio(awaitable: Awaitable[T]) -> T:
    """Run an awaitable of asyncio in a task of its own, in a copy of this task's context; for trio tasks.

    A cancellation in trio cancels the task, and is raised when the task has ended. Raises what the awaitable raises,
    and `HandlerCancelled` when the task was cancelled by somebody else.
    """
    run = _Run(awaitable)
    try:
        return cast("T", await trio.lowlevel.wait_task_rescheduled(run.abort))
    finally:
        del run


def from_asyncio(async_fn: Callable[P, Awaitable[T]]) -> Callable[P, Coroutine[Any, Any, T]]:
    """Return a coroutine function of asyncio as one of trio: for functions that are called by what runs on trio.

    Such as the `state` of a policy, or the function of `handoff_tool(to=...)`.
    """

    @runs_on_trio
    @functools.wraps(async_fn)
    async def on_trio(*args: P.args, **kwargs: P.kwargs) -> T:
        return await on_asyncio(async_fn(*args, **kwargs))

    return on_trio


class _Run:
    """One awaitable on its way to asyncio and back."""

    __slots__ = ("_awaitable", "_context", "_loop", "_raise_cancel", "_task", "_trio_task")

    def __init__(self, awaitable: Awaitable[Any]) -> None:
        # A tick of the guest is a callback of the loop, so there is one.
        self._loop = asyncio.get_running_loop()
        self._trio_task = trio.lowlevel.current_task()
        self._raise_cancel: Callable[[], Any] | None = None
        self._task: asyncio.Task[Any] | None = None
        self._awaitable: Awaitable[Any] | None = awaitable
        self._context = contextvars.copy_context()
        if self._loop.get_task_factory() is None:
            self._begin()
        else:
            # An eager factory would run the beginning of it now, in trio's turn.
            self._loop.call_soon(self._begin)

    def _begin(self) -> None:
        awaitable, self._awaitable = self._awaitable, None
        assert awaitable is not None
        coroutine = awaitable if asyncio.iscoroutine(awaitable) else _wait_for(awaitable)
        self._task = self._loop.create_task(coroutine, context=self._context)
        self._task.add_done_callback(self._done, context=self._context)
        if self._raise_cancel is not None:
            self._task.cancel()

    def abort(self, raise_cancel: Callable[[], Any]) -> trio.lowlevel.Abort:
        """Cancel the task. The trio task waits on: it owns what the other does."""
        self._raise_cancel = raise_cancel
        try:
            if self._task is not None:
                self._task.cancel()
        except RuntimeError:
            return trio.lowlevel.Abort.SUCCEEDED  # the loop is closed: it will never run again
        return trio.lowlevel.Abort.SUCCEEDED if self._loop.is_closed() else trio.lowlevel.Abort.FAILED

    def _done(self, task: "asyncio.Task[Any]") -> None:
        trio.lowlevel.reschedule(self._trio_task, self._result(task))

    def _result(self, task: "asyncio.Task[Any]") -> "outcome.Outcome[Any]":
        if task.cancelled():
            if self._raise_cancel is not None:
                cancelled: outcome.Outcome[Any] = outcome.capture(self._raise_cancel)
                return cancelled
            return outcome.Error(HandlerCancelled("the handler's task was cancelled, and not by the session"))
        error = task.exception()
        if error is None:
            return outcome.Value(task.result())
        if isinstance(error, Exception):
            return outcome.Error(error)
        # asyncio has let it out of its loop already: here it would end the host a second time.
        ended = HandlerCancelled(
            f"the handler ended with {type(error).__name__}, which has left the event loop"
        )
        ended.__cause__ = error
        return outcome.Error(ended)


async def _wait_for(awaitable: Awaitable[T]) -> T:
    return await awaitable
