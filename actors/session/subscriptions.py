"""Watching a session: a stream of its events with a bounded buffer, which never slows the session."""

from collections import deque
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, ClassVar, Self

import outcome
import trio

from exeunt.actors.errors import InvalidConfiguration
from exeunt.actors.events import EphemeralEvent, Event
from exeunt.actors.turn.live import Waiter

if TYPE_CHECKING:
    from exeunt.actors.turn.actor import SessionActor


class StreamLagged(EphemeralEvent, frozen=True, gc=False, tag="stream.lagged"):
    """The subscriber was too slow: events are missing here. The logged ones can be read from `from_seq` on."""

    type: ClassVar[str] = "stream.lagged"
    from_seq: int
    missed: int
    """Events that were thrown away, ephemeral ones included."""


class StreamReset(EphemeralEvent, frozen=True, gc=False, tag="stream.reset"):
    """The event to go on after is not in the log; the stream begins at `from_seq`."""

    type: ClassVar[str] = "stream.reset"
    from_seq: int


def check_seq(from_seq: object) -> None:
    """Raise `InvalidConfiguration` unless *from_seq* can be the number of an event."""
    if not isinstance(from_seq, int) or from_seq < 1:
        raise InvalidConfiguration(f"events are numbered from 1, so from_seq cannot be {from_seq!r}")


class Subscriber:
    """A callback, told apart from the same callback subscribed twice."""

    __slots__ = ("_callback", "ended")

    def __init__(self, callback: Callable[[Event], object]) -> None:
        self._callback = callback
        self.ended = False

    def __call__(self, event: Event) -> object:
        # Events come several at a time: one that unsubscribes in the middle gets no more of them.
        return None if self.ended else self._callback(event)


READ_AT_ONCE = 1000
"""Events of a log that a stream reads ahead: a fraction of a MiB."""


class EventStream:
    """The events of one session, in order: an async iterator for one task, and a context manager that ends it.

    It begins with the logged events from the place that was asked for, if one was, and goes on with what happens.
    A buffer holds what the reader has not taken; when it is full, it is emptied, and a `StreamLagged` stands where
    events are missing. A cancelled `__anext__` loses nothing. The iteration ends when the session
    is disconnected or deleted, not when it leaves memory because it is idle.
    """

    def __init__(self, actor: "SessionActor", from_seq: int | None, after: str | None, buffer: int) -> None:
        if not isinstance(buffer, int) or buffer < 1:
            raise InvalidConfiguration(
                f"the buffer of an event stream must hold at least 1 event, not {buffer!r}"
            )
        if from_seq is not None:
            check_seq(from_seq)
            if after is not None:
                raise InvalidConfiguration("an event stream begins at from_seq or behind after, not at both")
        self._actor = actor
        self._size = buffer
        self._buffer: deque[Event] = deque()
        self._missed = 0
        self._lagged_from = 0
        self._next_seq: int | None = from_seq
        """Where to read on in the log, until the live events are reached."""
        self._logged: deque[Event] = deque()
        """What was read of the log and not given yet."""
        self._reset: StreamReset | None = None
        self._waiter: Waiter | None = None
        self._closed = False
        self._after = after
        """Id of the event to go on behind, until its place is known."""
        if after is not None:
            self._next_seq = 1
        actor.subscribe(self)

    async def _find_place(self, event_id: str) -> None:
        for event in await self._actor.log.read():
            if event.id == event_id:
                self._next_seq = event.seq + 1
                return
        actor = self._actor
        self._reset = StreamReset(actor.origin, actor.state.seq, actor.host.clock.wall(), 0, 1)

    def __call__(self, event: Event) -> None:
        """Take one live event. Called by the session; must not wait."""
        if self._next_seq is not None and not event.ephemeral:
            return  # the reader is still in the log and will find it there
        buffer = self._buffer
        if len(buffer) >= self._size:
            if not self._missed:
                first = next((e.seq for e in buffer if not e.ephemeral), event.seq + event.ephemeral)
                self._lagged_from = first if self._next_seq is None else self._next_seq
            self._missed += len(buffer)
            buffer.clear()
            self._actor.host.subscriber_lagged()
        buffer.append(event)
        if self._waiter is not None:
            self._waiter.resolve(outcome.Value(None))

    def moved(self, actor: "SessionActor") -> None:
        """The session has left memory, and is back as *actor*, or has ended. For the host."""
        self._actor = actor
        if self._waiter is not None and actor.status == "closed":
            self._waiter.resolve(outcome.Value(None))

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event:
        if self._waiter is not None:
            raise trio.BusyResourceError(
                "another task waits for the next event of this stream; give each its own"
            )
        # Before an event is taken, so that a cancellation loses none.
        await trio.lowlevel.checkpoint_if_cancelled()
        if self._after is not None:
            await self._find_place(self._after)
            self._after = None
        while True:
            if self._next_seq is not None and not self._logged:
                await self._read_on(self._next_seq)
            found = self._ready()
            if found is not None:
                return found
            if self._closed or self._actor.status in ("closed", "failed"):
                await self.aclose()
                raise StopAsyncIteration
            self._waiter = Waiter()
            try:
                await self._waiter.wait()
            finally:
                self._waiter = None

    async def _read_on(self, from_seq: int) -> None:
        """Read what the log has from here on, if it has anything that was not given."""
        # While it is read more may come, which `__call__` leaves to the log; the session may come back with another.
        while not self._logged and from_seq <= self._actor.state.seq:
            log = self._actor.log
            events = log.read_now(from_seq)
            self._logged.extend(await log.read(from_seq, READ_AT_ONCE) if events is None else events)

    def ready(self) -> Event | None:
        """Return the next event if it is here already, else `None`, also when the stream has ended. Never waits."""
        in_the_log = self._after is not None or (self._next_seq is not None and not self._logged)
        return None if in_the_log or self._waiter is not None else self._ready()

    def _ready(self) -> Event | None:
        if self._missed:
            actor = self._actor
            lagged = StreamLagged(
                actor.origin, actor.state.seq, actor.host.clock.wall(), 0, self._lagged_from, self._missed
            )
            self._missed = 0
            return lagged
        if self._reset is not None:
            reset, self._reset = self._reset, None
            return reset
        if self._next_seq is not None:
            if self._buffer and self._buffer[0].seq < self._next_seq:
                return self._buffer.popleft()  # ephemeral, and before the next logged event
            if self._logged:
                self._next_seq += 1
                return self._logged.popleft()
            self._next_seq = None
        return self._buffer.popleft() if self._buffer else None

    async def aclose(self) -> None:
        """End the subscription. May be called twice, and while another task waits for an event."""
        self._closed = True
        self._actor.unsubscribe(self)
        if self._waiter is not None:
            self._waiter.resolve(outcome.Value(None))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.aclose()
