"""A session whose actor lives in another process: what can be done from here, and over what.

The room owns the protocol of the transport and knows none. Requests and what they are answered with:

| method          | params beside `session_id`   | result                     |
| --------------- | ---------------------------- | -------------------------- |
| `send`          | `prompt`, `mode`             | the message's id           |
| `send_and_wait` | `prompt`, `mode`, `timeout`  | fields of a `Reply`        |
| `abort`         | `queued`, `reason`           | those of an `AbortReceipt` |
| `statistics`    |                              | of `SessionStatistics`     |

A subscription has `session_id`, `from_seq` and `after`; its frames are events (`frames`).
"""

import math
from collections.abc import Callable, Mapping
from functools import partial
from types import TracebackType
from typing import Any, Literal, NoReturn, Protocol, Self, TypeVar

import trio

from exeunt.actors.callers import CALLER
from exeunt.actors.errors import InvalidConfiguration, RemoteSessionError, TransportLost
from exeunt.actors.events import ClearRefusedEvent, Event, Origin
from exeunt.actors.ports import Host
from exeunt.actors.session.frames import BadFrame, error_from, event_from, value_from
from exeunt.actors.session.putting import check_message
from exeunt.actors.session.replies import AbortReceipt, Reply
from exeunt.actors.session.session import Mode
from exeunt.actors.session.statistics import SessionStatistics
from exeunt.actors.session.waiting import checked_timeout, wait_leaving_slots

T = TypeVar("T")

ANSWER_TIMEOUT = 30.0
"""Seconds for an answer. The slowest, of an abort, takes the grace of stuck handlers: 1 s."""


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


class RemoteSession:
    """A session of another process. Made by `host.attach_remote`.

    Every wait is bounded by *answer_timeout*, or by that and the time-out of the call. When the transport is lost
    or silent, `TransportLost` says so; what was asked may have happened all the same. Errors of the session come
    back as the classes that it raised.
    """

    __slots__ = ("_answer_timeout", "_host", "_id", "_origin", "_refusals", "_transport")

    def __init__(
        self,
        session_id: str,
        transport: SessionTransport,
        host: Host,
        *,
        answer_timeout: float = ANSWER_TIMEOUT,
    ) -> None:
        if (
            isinstance(answer_timeout, bool)
            or not isinstance(answer_timeout, int | float)
            or not answer_timeout > 0
        ):
            raise InvalidConfiguration(
                f"answer_timeout must be a positive number of seconds, not {answer_timeout!r}"
            )
        self._id = session_id
        self._transport = transport
        self._host = host
        self._answer_timeout = float(answer_timeout)
        self._origin = Origin.fresh()
        self._refusals = 0

    @property
    def session_id(self) -> str:
        """The session's id."""
        return self._id

    @property
    def history(self) -> "RemoteHistory":
        """What a remote session has of a context: the refusal to clear it."""
        return RemoteHistory(self._refuse_clear, self._id)

    def __repr__(self) -> str:
        return f"<RemoteSession {self._id}>"

    async def send(self, prompt: str, mode: Mode = "enqueue") -> str:
        """Give the session a message; return its id once it is accepted. See `Session.send`.

        Raises what that raises, and `TransportLost`: then, and when cancelled, the message may be accepted.
        """
        check_message(prompt, mode)
        result = await self._ask("send", {"prompt": prompt, "mode": mode}, self._answer_timeout)
        return self._as(result, str)

    async def send_and_wait(
        self,
        prompt: str,
        timeout: float | None = 60.0,  # noqa: ASYNC109 - passes, and the turn goes on
        *,
        mode: Mode = "enqueue",
    ) -> Reply:
        """Give the session a message and wait for the reply. See `Session.send_and_wait`.

        *timeout* is counted where the session lives. Two sessions of different processes that wait for each other
        are not found out: the time-out ends that. Raises what `Session.send_and_wait` raises, and `TransportLost`;
        then, and when cancelled, the turn goes on.
        """
        check_message(prompt, mode)
        seconds = checked_timeout(timeout)
        within = math.inf if seconds is None else seconds + self._answer_timeout
        caller = CALLER.get()
        params = {"prompt": prompt, "mode": mode, "timeout": seconds}
        ask = partial(self._ask, "send_and_wait", params, within)
        answer = await wait_leaving_slots(None if caller is None or caller.settled else caller, ask)
        return self._as(answer, Reply)

    async def abort(
        self, queued: Literal["drop", "keep"] = "drop", *, reason: str = "user_initiated"
    ) -> AbortReceipt:
        """End the running turn; return what was done when it has ended. See `Session.abort`.

        Raises `TransportLost`: then, and when cancelled, the turn may have been aborted.
        """
        if queued not in ("drop", "keep"):
            raise InvalidConfiguration(f"queued must be 'drop' or 'keep', not {queued!r}")
        result = await self._ask("abort", {"queued": queued, "reason": reason}, self._answer_timeout)
        return self._as(result, AbortReceipt)

    async def statistics(self) -> SessionStatistics:
        """Return a look at the session, as of when it was asked. Raises `SessionNotFound`, `TransportLost`."""
        return self._as(await self._ask("statistics", {}, self._answer_timeout), SessionStatistics)

    def events(self, from_seq: int | None = None, *, after: str | None = None) -> "RemoteEventStream":
        """Return the events as an async iterator: from number *from_seq*, behind the event *after*, or from now.

        The subscription begins when the stream is entered (`async with`), or with the first event that is asked for.
        """
        if from_seq is not None and from_seq < 1:
            raise InvalidConfiguration(f"events are numbered from 1, so from_seq cannot be {from_seq}")
        params = {"session_id": self._id, "from_seq": from_seq, "after": after}
        return RemoteEventStream(self._transport, params, self._answer_timeout)

    async def _ask(self, method: str, params: Mapping[str, Any], within: float) -> object:
        answer: object = None
        try:
            with trio.move_on_after(within) as scope:
                answer = await self._transport.request(method, {"session_id": self._id, **params})
        except Exception as error:
            raise _lost(error, self._id, method) from error
        if scope.cancelled_caught:
            raise TransportLost(
                f"no answer to {method!r} within {within:g} s: what was asked may have happened",
                session_id=self._id,
            )
        if isinstance(answer, Mapping) and "error" in answer:
            raise _decoded(error_from, answer["error"], self._id)
        if isinstance(answer, Mapping) and "result" in answer:
            return answer["result"]
        raise TransportLost(f"what answers {method!r} is neither a result nor an error", session_id=self._id)

    def _as(self, result: object, kind: type[T]) -> T:
        return _decoded(lambda value: value_from(value, kind), result, self._id)

    def _refuse_clear(self) -> None:
        """Tell the observers of this host: the other one does not hear of it."""
        host = self._host
        self._refusals += 1
        event = ClearRefusedEvent(
            self._origin, 0, host.clock.wall(), self._refusals, RemoteSessionError.cause
        )
        for observer in host.observers:
            try:
                observer(self._id, [event])
            except Exception as error:  # noqa: BLE001 - an observer is not part of the session
                host.subscriber_failed(self._id, observer, error)


class RemoteHistory:
    """The conversation of a remote session: it is elsewhere."""

    __slots__ = ("_refuse", "_session_id")

    def __init__(self, refuse: Callable[[], None], session_id: str) -> None:
        self._refuse = refuse
        self._session_id = session_id

    async def clear_context(
        self, prompt: object = None, *, siblings: object = None, trigger: object = None
    ) -> NoReturn:
        """Raise `RemoteSessionError`, whatever the arguments are; count it, and send nothing.

        A clear belongs to a tool call, and tool calls are in flight only where the actor is.
        """
        self._refuse()
        raise RemoteSessionError(
            f"the actor of session {self._session_id} lives in another process: clear its context there, in a tool",
            session_id=self._session_id,
        )


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
            raise _lost(error, session_id, "the events") from error
        try:
            if frame is None:
                raise StopAsyncIteration
            if isinstance(frame, Mapping) and "error" in frame:
                raise _decoded(error_from, frame["error"], session_id)
            event = _decoded(event_from, frame, session_id)
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
            raise _lost(error, session_id, "the events") from error
        if frames is None:
            self._closed = True
            raise TransportLost(
                f"the subscription did not begin within {self._answer_timeout:g} s", session_id=session_id
            )
        self._frames = frames
        return frames


def _lost(error: Exception, session_id: str, what: str) -> TransportLost:
    return TransportLost(f"the transport was lost over {what!r}: {error}", session_id=session_id)


def _decoded(decode: Callable[[object], T], value: object, session_id: str) -> T:
    """Decode what came in; what cannot be decoded is as good as lost."""
    try:
        return decode(value)
    except BadFrame as error:
        raise TransportLost(
            f"the other side sent what cannot be read: {error}", session_id=session_id
        ) from error
