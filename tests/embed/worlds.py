"""Three kinds of program that hold a host, so that one scenario can be played in each of them.

A scenario is written for the trio API. On asyncio the same calls go to the asyncio handles. In a program of threads
they go to the blocking ones, through stand-ins that make a call when it is awaited: then a coroutine never waits, and a
thread can drive it to its end in one step.
"""

import asyncio
import contextlib
import inspect
import threading
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Generator
from functools import wraps
from pathlib import Path
from typing import Any, Protocol, TypeVar, cast

import outcome
import pytest
import trio
import uvloop
from trio.testing import MockClock, wait_all_tasks_blocked

import exeunt
import exeunt.embed.asyncio as on_asyncio
import exeunt.embed.threads as in_threads
from exeunt import Hooks, SessionHost, Tool, ToolInvocation, tool
from exeunt.embed.asyncio.virtual_time import run_virtual as run_virtual_asyncio
from exeunt.embed.threads.runtime import Runtime
from exeunt.testing import EventInvariants, run_virtual
from exeunt.testing.checked_host import Ledger, check_live_state, check_metrics

T = TypeVar("T")
Scenario = Callable[["World"], Coroutine[Any, Any, None]]


class Happening(Protocol):
    """Something that happens once."""

    def set(self) -> None: ...
    async def wait(self) -> object: ...


class Running(Protocol):
    """Something that was started beside the scenario."""

    async def result(self) -> Any: ...
    def cancel(self) -> None: ...


class World(ABC):
    """A kind of program. Bodies of scenarios, and the handlers in them, use nothing else that waits."""

    name: str
    real_time: bool = False
    """Whether it is played in real time, of which it takes none: virtual time would jump over its threads."""
    folder: Path
    """For files of this scenario."""
    cancels: bool = True
    """Whether what was started can be cancelled from outside."""

    @abstractmethod
    def play(self, scenario: Scenario) -> None:
        """Run a scenario."""

    @abstractmethod
    def start(self, async_fn: Callable[..., Awaitable[Any]], *args: Any) -> Running:
        """Run something beside the scenario."""

    @abstractmethod
    def event(self) -> Happening:
        """Return something that can be waited for."""

    @abstractmethod
    async def advance(self, seconds: float) -> None:
        """Let time pass, once everybody waits."""

    async def settled(self, host: Any) -> None:
        """Let the host do what it can do now."""
        await self.on_trio(host, wait_all_tasks_blocked)

    async def on_trio(
        self, host: Any, async_fn: Callable[..., Awaitable[T]], *args: Any, **options: Any
    ) -> T:
        """Run a trio coroutine function in the host's trio."""
        result: T = await host.run_trio(async_fn, *args, **options)
        return result

    @abstractmethod
    async def until_cancelled(self, invocation: ToolInvocation) -> None:
        """Do nothing until the call is cancelled; for handlers."""

    @abstractmethod
    def _open(self, **keywords: Any) -> contextlib.AbstractAsyncContextManager[Any]: ...

    @abstractmethod
    async def _check(self, host: Any) -> None: ...

    def handler(self, async_fn: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function that a program of this kind would have written."""
        return async_fn

    def tool(self, async_fn: Callable[..., Any], **options: Any) -> Tool[..., Any]:
        """Make a tool of such a function. It needs no approval."""
        made: Tool[..., Any] = tool(skip_permission=True, **options)(self.handler(async_fn))
        return made

    def hooks(self, **hooks: Callable[..., Any]) -> Hooks:
        """Make hooks of such functions."""
        return Hooks(**{name: self.handler(hook) for name, hook in hooks.items()})

    @contextlib.asynccontextmanager
    async def host(self, **keywords: Any) -> AsyncGenerator[SessionHost]:
        """Open a host that checks its promises at the end, as `checked_host` does."""
        invariants, ledger = EventInvariants(), Ledger()
        async with self._open(**keywords) as host:
            host.observe(invariants.observe)
            host.observe(ledger)
            yield host
            await self._check(host)
        invariants.verify(settled=False)
        check_metrics(host, ledger)


class OnTrio(World):
    """A trio program."""

    name = "trio"

    def __init__(self) -> None:
        self._nursery: trio.Nursery

    def play(self, scenario: Scenario) -> None:
        async def main() -> None:
            async with trio.open_nursery() as self._nursery:
                await scenario(self)
                self._nursery.cancel_scope.cancel()

        trio.run(main) if self.real_time else run_virtual(main)

    def start(self, async_fn: Callable[..., Awaitable[Any]], *args: Any) -> Running:
        return _TrioTask(self._nursery, async_fn, args)

    def event(self) -> Happening:
        return trio.Event()

    async def advance(self, seconds: float) -> None:
        await trio.sleep(seconds)

    async def on_trio(
        self, host: Any, async_fn: Callable[..., Awaitable[T]], *args: Any, **options: Any
    ) -> T:
        return await async_fn(*args, **options)

    async def until_cancelled(self, invocation: ToolInvocation) -> None:
        await trio.sleep_forever()

    def _open(self, **keywords: Any) -> contextlib.AbstractAsyncContextManager[Any]:
        return exeunt.open_host(**keywords)

    async def _check(self, host: Any) -> None:
        await check_live_state(host)


class _TrioTask:
    def __init__(self, nursery: trio.Nursery, async_fn: Callable[..., Any], args: tuple[Any, ...]) -> None:
        self._scope = trio.CancelScope()
        self._done = trio.Event()
        self._result: outcome.Outcome[Any] = outcome.Error(Cancelled())
        nursery.start_soon(self._run, async_fn, args)

    async def _run(self, async_fn: Callable[..., Any], args: tuple[Any, ...]) -> None:
        try:
            with self._scope:
                try:
                    self._result = outcome.Value(await async_fn(*args))
                except Exception as error:  # noqa: BLE001 - it is the result
                    self._result = outcome.Error(error)
        finally:
            self._done.set()

    async def result(self) -> Any:
        await self._done.wait()
        return self._result.unwrap()

    def cancel(self) -> None:
        self._scope.cancel()


class Cancelled(Exception):
    """What was started was cancelled, whatever the loop calls that."""


class OnAsyncio(World):
    """An asyncio program, in virtual time."""

    name = "asyncio"

    def play(self, scenario: Scenario) -> None:
        if self.real_time:
            asyncio.run(scenario(self))
        else:
            run_virtual_asyncio(scenario, self)

    def start(self, async_fn: Callable[..., Awaitable[Any]], *args: Any) -> Running:
        return _AsyncioTask(async_fn(*args))

    def event(self) -> Happening:
        return asyncio.Event()

    async def advance(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def until_cancelled(self, invocation: ToolInvocation) -> None:
        await asyncio.get_running_loop().create_future()

    def _open(self, **keywords: Any) -> contextlib.AbstractAsyncContextManager[Any]:
        return on_asyncio.open_host(**keywords)

    async def _check(self, host: on_asyncio.SessionHost) -> None:
        await host.run_trio(check_live_state, host.trio_host)


class _AsyncioTask:
    def __init__(self, awaitable: Any) -> None:
        self._task: asyncio.Task[Any] = asyncio.get_running_loop().create_task(awaitable)

    async def result(self) -> Any:
        await asyncio.wait([self._task])
        if self._task.cancelled():
            raise Cancelled
        return self._task.result()

    def cancel(self) -> None:
        self._task.cancel()


class OnUvloop(OnAsyncio):
    """An asyncio program on uvloop, in real time: for scenarios in which none passes."""

    name = "uvloop"

    def play(self, scenario: Scenario) -> None:
        async def bounded() -> None:
            async with asyncio.timeout(30):
                await scenario(self)

        uvloop.run(bounded())

    async def advance(self, seconds: float) -> None:
        pytest.skip("time on uvloop is real")


class InThreads(World):
    """A program of threads, and a clock that stands until the scenario lets time pass."""

    name = "threads"
    cancels = False

    def __init__(self) -> None:
        self._clock = MockClock()
        self._hosts: list[in_threads.SessionHost] = []

    def play(self, scenario: Scenario) -> None:
        Runtime.clock = self._clock
        try:
            drive(scenario(self))
        finally:
            Runtime.clock = None

    def start(self, async_fn: Callable[..., Awaitable[Any]], *args: Any) -> Running:
        return _Thread(async_fn, args)

    def event(self) -> Happening:
        return _ThreadEvent()

    async def advance(self, seconds: float) -> None:
        async def jump() -> None:
            await wait_all_tasks_blocked()
            self._clock.jump(seconds)
            await wait_all_tasks_blocked()

        self._hosts[-1].run_trio(jump)

    async def until_cancelled(self, invocation: ToolInvocation) -> None:
        nobody = threading.Event()
        while not invocation.cancelled:
            nobody.wait(0.001)

    def handler(self, async_fn: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(async_fn)
        def blocking(*args: Any, **kwargs: Any) -> Any:
            stand_ins = {name: _stand_in(value) for name, value in kwargs.items()}
            return drive(async_fn(*map(_stand_in, args), **stand_ins))

        return blocking

    @contextlib.asynccontextmanager
    async def _open(self, **keywords: Any) -> AsyncGenerator[Any]:
        if inspect.iscoroutinefunction(keywords.get("session_options")):
            keywords["session_options"] = self.handler(keywords["session_options"])
        with in_threads.open_host(**keywords) as host:
            self._hosts.append(host)
            try:
                yield _stand_in(host)
            except BaseException:
                # Time is needed to end what the scenario has left; standing still, it would hide why it failed.
                host.run_trio(self._let_time_pass)
                raise
            finally:
                self._hosts.remove(host)

    async def _let_time_pass(self) -> None:
        self._clock.autojump_threshold = 0

    async def _check(self, host: Any) -> None:
        await host.run_trio(check_live_state, host.trio_host)


class _Thread:
    def __init__(self, async_fn: Callable[..., Any], args: tuple[Any, ...]) -> None:
        self._result: outcome.Outcome[Any] | None = None
        self._thread = threading.Thread(target=self._run, args=(async_fn, args))
        self._thread.start()

    def _run(self, async_fn: Callable[..., Any], args: tuple[Any, ...]) -> None:
        self._result = outcome.capture(lambda: drive(async_fn(*args)))

    async def result(self) -> Any:
        self._thread.join()
        assert self._result is not None
        return self._result.unwrap()

    def cancel(self) -> None:
        pytest.skip("a thread that waits cannot be cancelled")


class _ThreadEvent:
    def __init__(self) -> None:
        self._event = threading.Event()

    def set(self) -> None:
        self._event.set()

    async def wait(self) -> object:
        return self._event.wait(30)


class _Later(Awaitable[T]):
    """A blocking call, made when it is awaited."""

    def __init__(self, call: Callable[[], T]) -> None:
        self._call = call

    def __await__(self) -> Generator[Any, Any, T]:
        return self._call()
        yield  # which makes it a generator


def drive(coroutine: Awaitable[T]) -> T:
    """Run a coroutine that waits for nothing but what blocks."""
    generator = coroutine.__await__()
    try:
        generator.send(None)
    except StopIteration as end:
        return cast("T", end.value)
    raise AssertionError("the scenario waited for something that is no thread's")


class _StandIn:
    """A blocking handle, with the methods of the one in the trio API that is awaited."""

    def __init__(self, thing: Any, kind: type) -> None:
        self._thing = thing
        self._kind = kind

    def __getitem__(self, name: str) -> Any:
        return self._thing[name]

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._thing, name)
        if not callable(value):
            return _stand_in(value)
        awaited = inspect.iscoroutinefunction(getattr(self._kind, name, None)) or name == "run_trio"

        def blocking(*args: Any, **kwargs: Any) -> Any:
            if awaited:
                return _Later(lambda: _stand_in(value(*args, **kwargs)))
            return _stand_in(value(*args, **kwargs))

        return blocking

    def __aiter__(self) -> "_StandIn":
        return self

    def __anext__(self) -> Awaitable[Any]:
        def following() -> Any:
            try:
                return next(self._thing)
            except StopIteration:
                raise StopAsyncIteration from None

        return _Later(following)

    async def __aenter__(self) -> "_StandIn":
        self._thing.__enter__()
        return self

    async def __aexit__(self, *error: Any) -> None:
        self._thing.__exit__(*error)

    def aclose(self) -> Awaitable[None]:
        return _Later(self._thing.close)


def _stand_in(thing: Any) -> Any:
    kind: type[object] = thing.__class__
    if not kind.__module__.startswith("exeunt.embed.threads"):
        return thing
    return _StandIn(thing, getattr(exeunt, kind.__name__))


WORLDS: tuple[type[World], ...] = (OnTrio, OnAsyncio, OnUvloop, InThreads)


def in_each_world_in_real_time(scenario: Scenario) -> Callable[[type[World], Path], None]:
    """Make a test of a scenario with threads of its own, for each kind of program."""
    return in_each_world(scenario, real_time=True)


def in_each_world(scenario: Scenario, *, real_time: bool = False) -> Callable[[type[World], Path], None]:
    """Make a test of a scenario, for each kind of program."""

    @pytest.mark.parametrize("kind", WORLDS, ids=lambda kind: kind.name)
    def test(kind: type[World], tmp_path: Path) -> None:
        world = kind()
        world.folder, world.real_time = tmp_path, real_time
        world.play(scenario)

    test.__name__ = test.__qualname__ = scenario.__name__
    test.__doc__ = scenario.__doc__
    test.__module__ = scenario.__module__
    return test
