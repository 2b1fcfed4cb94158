"""The events of a session, for `async for` in an asyncio task."""

from collections import deque
from types import TracebackType
from typing import Protocol, Self

import exeunt.actors.session as trio_api
from exeunt.actors.events import Event
from exeunt.embed.asyncio.crossing import call
from exeunt.embed.asyncio.guest import Guest
from exeunt.embed.documented import like


class TrioStream(Protocol):
    """A stream of events in trio."""

    async def __anext__(self) -> Event: ...
    async def aclose(self) -> None: ...


class StreamOnAsyncio:
    """What all streams share: an event that trio has given and a cancellation has caught is given the next time."""

    __slots__ = ("_got", "_guest", "_stream")

    def __init__(self, stream: TrioStream, guest: Guest) -> None:
        self._stream = stream
        self._guest = guest
        self._got: deque[Event] = deque()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event:
        """Return the next event. A cancellation loses none."""
        if not self._got and not await call(self._guest, self._fetch):
            raise StopAsyncIteration
        return self._got.popleft()

    async def _fetch(self) -> bool:
        try:
            self._got.append(await self._stream.__anext__())
        except StopAsyncIteration:
            return False
        return True

    async def aclose(self) -> None:
        """End the subscription. May be called twice, and while another task waits for an event."""
        if not self._guest.ended:
            await call(self._guest, self._stream.aclose)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.aclose()


@like(trio_api.EventStream)
class EventStream(StreamOnAsyncio):
    """In a host on asyncio."""

    __slots__ = ("_events",)

    def __init__(self, stream: trio_api.EventStream, guest: Guest) -> None:
        super().__init__(stream, guest)
        self._events = stream

    async def __anext__(self) -> Event:
        """Return the next event. A cancellation loses none."""
        event = self.ready()
        return await super().__anext__() if event is None else event

    @like(trio_api.EventStream.ready)
    def ready(self) -> Event | None:
        self._guest.check_thread()
        return self._got.popleft() if self._got else self._events.ready()
