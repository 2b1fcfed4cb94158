"""The way to a session of another process, and the events that come by it."""

from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Protocol, Self, TypeVar

import trio

from exeunt.actors.errors import TransportLost
from exeunt.actors.events import Event
from exeunt.actors.session.frames import BadFrame, error_from, event_from

T = TypeVar("T")


class FrameStream(Protocol):
    """The events of one session as they arrive."""

    async def receive(self) -> Mapping[str, Any] | None:
        """Return the next frame, or `None` when the session has left memory.

        A frame is an event, or `{"error": ...}` in the place of all that would follow. Raises `TransportLost`.
        A cancelled call loses no frame.
        """
        ...

    async def aclose(self) -> None:
        """End the subscription. May be called twice, also after a loss."""
        ...


class SessionTransport(Protocol):
    """The way to another process: carries small plain JSON values, in order, and says when it is lost.

    Any exception is taken as a loss. The subscriber's buffer, its bound and what happens when it is full are the
    other side's (`EventStream`): a transport that is not read from makes the other side lag, not grow.
    """

    async def request(self, method: str, params: Mapping[str, Any], /) -> Mapping[str, Any]:
        """Ask, and return the answer: `{"result": ...}`, or `{"error": ...}` as `frames.error_frame` makes it.

        Raises `TransportLost`. Cancelled: the other side may have done what was asked, and stops waiting.
        """
        ...

    async def subscribe(self, params: Mapping[str, Any], /) -> FrameStream:
        """Begin a stream of events; every event after the return is in it. Raises `TransportLost`."""
        ...


class RemoteEventStream:
    """The events of a remote session, in order: an async iterator, and a context manager that ends it.

    Buffer, bound and lag are those of an `EventStream` where the session lives. The iteration ends when the session
    leaves memory. When the transport is lost, `TransportLost` is raised and the stream is closed; `next_seq` is
    where another one goes on without a gap. A cancelled `__anext__` loses nothing.
    """

    def __init__(self, transport: SessionTransport, params: Mapping[str, Any], answer_timeout: float) -> None:
        self._transport = transport
        self._params = params
        self._answer_timeout = answer_timeout
        self._frames: FrameStream | None = None
        self._closed = False
        self.next_seq: int | None = params["from_seq"]
        """Number of the next logged event; `None` until one was seen or named."""

    def __aiter__(self) -> Self:
        return self

    async def __aenter__(self) -> Self:
        if self._frames is None and not self._closed:
            await self._open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.aclose()

    async def __anext__(self) -> Event:
        """Return the next event. Raises `TransportLost`, and `SessionNotFound` as the first answer."""
        if self._closed:
            raise StopAsyncIteration
        frames = self._frames or await self._open()
        session_id: str = self._params["session_id"]
        try:
            frame = await frames.receive()
        except Exception as error:
            await self.aclose()
            raise lost(error, session_id, "the events") from error
        try:
            if frame is None:
                raise StopAsyncIteration
            if isinstance(frame, Mapping) and "error" in frame:
                raise decoded(error_from, frame["error"], session_id)
            event = decoded(event_from, frame, session_id)
        except Exception:
            await self.aclose()
            raise
        if not event.ephemeral:
            self.next_seq = event.seq + 1
        return event

    async def aclose(self) -> None:
        """End the subscription. May be called twice."""
        self._closed = True
        frames, self._frames = self._frames, None
        if frames is not None:
            await frames.aclose()

    async def _open(self) -> FrameStream:
        session_id: str = self._params["session_id"]
        frames: FrameStream | None = None
        try:
            with trio.move_on_after(self._answer_timeout):
                frames = await self._transport.subscribe(self._params)
        except Exception as error:
            self._closed = True
            raise lost(error, session_id, "the events") from error
        if frames is None:
            self._closed = True
            raise TransportLost(
                f"the subscription did not begin within {self._answer_timeout:g} s", session_id=session_id
            )
        self._frames = frames
        return frames


def lost(error: Exception, session_id: str, what: str) -> TransportLost:
    """Return what is raised when the transport fails over *what*."""
    return TransportLost(f"the transport was lost over {what!r}: {error}", session_id=session_id)


def decoded(decode: Callable[[object], T], value: object, session_id: str) -> T:
    """Decode what came in; what cannot be decoded is as good as lost. Raises `TransportLost`."""
    try:
        return decode(value)
    except BadFrame as error:
        raise TransportLost(
            f"the other side sent what cannot be read: {error}", session_id=session_id
        ) from error
