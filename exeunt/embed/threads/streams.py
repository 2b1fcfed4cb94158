"""The events of a session, for a `for` loop in any thread."""

from collections import deque
from types import TracebackType
from typing import Protocol, Self

import exeunt.actors.session as trio_api
from exeunt.actors.events import Event
from exeunt.embed.documented import like
from exeunt.embed.threads.crossing import at_once, call
from exeunt.embed.threads.runtime import Runtime

AT_ONCE = 256
"""Events that one crossing brings, if they are there: the crossing costs as much as taking hundreds of them."""


class TrioStream(Protocol):
    """A stream of events in trio."""

    async def __anext__(self) -> Event: ...
    async def aclose(self) -> None: ...


class StreamInThreads:
    """What all streams share: an event that trio has given and Ctrl-C has caught is given the next time."""

    __slots__ = ("_got", "_runtime", "_stream")

    def __init__(self, stream: TrioStream, runtime: Runtime) -> None:
        self._stream = stream
        self._runtime = runtime
        self._got: deque[Event] = deque()

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Event:
        """Return the next event; wait for it. An interrupt loses none."""
        if not self._got and not call(self._runtime, self._fetch):
            raise StopIteration
        return self._got.popleft()

    async def _fetch(self) -> bool:
        try:
            self._got.append(await self._stream.__anext__())
        except StopAsyncIteration:
            return False
        return True

    def close(self) -> None:
        """End the subscription. May be called twice, and while another thread waits for an event."""
        if self._runtime.is_here and not self._runtime.ended:
            call(self._runtime, self._stream.aclose)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


@like(trio_api.EventStream)
class EventStream(StreamInThreads):
    """In a host for threads: an iterator for one thread, and a context manager (`with`) that ends it."""

    __slots__ = ("_events",)

    def __init__(self, stream: trio_api.EventStream, runtime: Runtime) -> None:
        super().__init__(stream, runtime)
        self._events = stream

    async def _fetch(self) -> bool:
        there_is = await super()._fetch()
        while there_is and len(self._got) < AT_ONCE and (event := self._events.ready()) is not None:
            self._got.append(event)
        return there_is

    @like(trio_api.EventStream.ready)
    def ready(self) -> Event | None:
        return self._got.popleft() if self._got else at_once(self._runtime, self._events.ready)
