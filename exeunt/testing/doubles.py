"""Handlers, clients and readers that misbehave in one way each, on purpose and in virtual time.

The tool handlers take no arguments and can be called any number of times, also at once. What became of each
call stands in `calls`, in the order in which they began.
"""

import functools
import inspect
import math
from collections.abc import AsyncIterable, AsyncIterator, Callable
from types import TracebackType
from typing import Any, Generic, Literal, NoReturn, TypeVar

import attrs
import trio

from exeunt.actors.models import ModelDelta, ModelRequest, ModelResponse

T = TypeVar("T")


@attrs.define(eq=False)
class Trace:
    """One call of a double."""

    began: float
    """`trio.current_time()` at its beginning."""
    ended: float | None = None
    """The same at its end, in its `finally`; `None` while it runs."""
    how: Literal["running", "returned", "raised", "cancelled"] = "running"


@attrs.define(eq=False)
class _Tracing:
    """Fills in the end of a trace."""

    trace: Trace

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.trace.ended = trio.current_time()
        if error is None:
            self.trace.how = "returned"
        elif isinstance(error, (trio.Cancelled, GeneratorExit)):
            self.trace.how = "cancelled"
        else:
            self.trace.how = "raised"


@attrs.define(eq=False)
class Traced:
    """Base of the doubles: keeps a `Trace` of each call, and tells when a call has begun."""

    calls: list[Trace] = attrs.field(factory=list[Trace], init=False)
    _begun: trio.Event = attrs.field(factory=trio.Event, init=False, repr=False)

    @property
    def running(self) -> int:
        """Calls that have not ended."""
        return sum(trace.ended is None for trace in self.calls)

    async def entered(self, count: int = 1) -> None:
        """Wait until *count* calls have begun since the double was made. Cancellation changes nothing."""
        while len(self.calls) < count:
            await self._begun.wait()
        await trio.lowlevel.checkpoint()

    def _trace(self) -> _Tracing:
        trace = Trace(trio.current_time())
        self.calls.append(trace)
        self._begun.set()
        self._begun = trio.Event()
        return _Tracing(trace)


@attrs.define(eq=False)
class Sleepy(Traced):
    """A tool that takes its time, and is as easy to cancel as it should be."""

    seconds: float = math.inf
    result: str = "slept"

    async def __call__(self) -> str:
        with self._trace():
            await trio.sleep(self.seconds)
            return self.result


@attrs.define(eq=False)
class Swallowing(Traced):
    """A tool that catches its cancellation and returns as if it had finished."""

    seconds: float = math.inf
    result: str = "done"

    async def __call__(self) -> str:
        with self._trace():
            try:
                await trio.sleep(self.seconds)
            except trio.Cancelled:  # noqa: ASYNC103 - this is the fault
                return self.result  # noqa: ASYNC104, ASYNC910
            return self.result


@attrs.define(eq=False)
class Shielded(Traced):
    """A tool that does not hear its cancellation and returns when it wants to, late."""

    seconds: float
    result: str = "late"

    async def __call__(self) -> str:
        with self._trace():
            with trio.CancelScope(shield=True):
                await trio.sleep(self.seconds)
            return self.result


@attrs.define(eq=False)
class Failing(Traced):
    """A tool that raises the first *times* times and then works."""

    times: float = math.inf
    then: str = "worked"
    error: Callable[[], Exception] = attrs.field(default=lambda: RuntimeError("it broke"), kw_only=True)

    async def __call__(self) -> str:
        with self._trace():
            number = len(self.calls)
            await trio.lowlevel.checkpoint()
            if number <= self.times:
                raise self.error()
            return self.then


@attrs.define(eq=False)
class Gate(Traced):
    """A tool that waits until the test lets it go on: `await gate.entered()`, then `gate.open()`."""

    result: str = "passed"
    _opened: trio.Event = attrs.field(factory=trio.Event, init=False, repr=False)

    def open(self) -> None:
        """Let every waiting and every later call pass."""
        self._opened.set()

    def close(self) -> None:
        """Let later calls wait again. Those that were let go on are not called back."""
        if self._opened.is_set():
            self._opened = trio.Event()

    async def __call__(self) -> str:
        with self._trace():
            await self._opened.wait()
            return self.result


class Recorder:
    """A tool that notes the arguments of each call, and otherwise is the function that it wraps.

    It has that function's name and signature, so a tool made of it takes what the function takes. Raises
    `NameError` for an annotation that cannot be resolved at run time.
    """

    def __init__(self, function: Callable[..., object]) -> None:
        self.arguments: list[dict[str, Any]] = []
        """The arguments of each call by parameter name, defaults included, in the order of the calls."""
        self.results: list[Any] = []
        """What the calls returned, in the order in which they did."""
        self._function = function
        functools.update_wrapper(self, function)
        # Names in annotations belong to the function's module, where a reader of this object does not look.
        self.__signature__ = inspect.signature(function, eval_str=True)

    async def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function and await what it returns, if it must be."""
        bound = self.__signature__.bind(*args, **kwargs)
        bound.apply_defaults()
        self.arguments.append(dict(bound.arguments))
        result: Any = self._function(*args, **kwargs)
        if inspect.isawaitable(result):
            result = await result
        self.results.append(result)
        return result


@attrs.define(eq=False)
class SilentApprover(Traced):
    """A permission handler that never answers. What it was asked stands in `asked`."""

    asked: list[tuple[Any, ...]] = attrs.field(factory=list[tuple[Any, ...]], init=False)

    async def __call__(self, *question: Any) -> NoReturn:
        with self._trace():
            self.asked.append(question)
            await trio.sleep_forever()


@attrs.define(eq=False)
class StubbornModel(Traced):
    """A model client that does not hear its cancellation for some seconds, as a blocking library would."""

    seconds: float
    answer: str = "late"

    async def complete(self, request: ModelRequest, /) -> ModelResponse:
        """Answer after *seconds*, whoever cancels."""
        with self._trace():
            with trio.CancelScope(shield=True):
                await trio.sleep(self.seconds)
            return ModelResponse(self.answer)

    async def stream(self, request: ModelRequest, /) -> AsyncIterator[ModelDelta | ModelResponse]:
        """The same in one piece and the whole."""
        whole = await self.complete(request)
        yield ModelDelta(text=self.answer)
        yield whole


@attrs.define(eq=False)
class SlowSubscriber(Generic[T]):
    """A reader of events that rests before it takes the next one."""

    seconds: float
    seen: list[T] = attrs.field(factory=list[T], init=False)
    """What it read, oldest first."""

    async def read(self, events: AsyncIterable[T]) -> None:
        """Read *events* to their end, or until cancelled: then everything in `seen` was read."""
        async for event in events:
            self.seen.append(event)
            await trio.sleep(self.seconds)
