"""A session whose actor lives in another process: what can be done from here, and over what.

The room owns the protocol of the transport and knows none. `answering.answer_request` serves the requests:

| method             | params beside `session_id`                        | result                       |
| ------------------ | ------------------------------------------------- | ---------------------------- |
| `send`             | `prompt`, `mode`, `attachments`, `first`, `note`  | the message's id             |
| `send_and_wait`    | those, and `timeout`, `abort_on_cancel`           | fields of a `Reply`          |
| `pending_messages` |                                                   | those of each `Pending`      |
| `withdraw`         | `message_id`                                      | whether it waited            |
| `abort`            | `queued`, `reason`                                | those of an `AbortReceipt`   |
| `disconnect`       | `reason`                                          |                              |
| `pending_requests` |                                                   | frames of `PendingRequest`   |
| `answer`           | `request_id`, `answer`                            |                              |
| `limit_credits`    | `limit`                                           |                              |
| `call_tool`        | `name`, `arguments`                               | those of a `ToolOutcome`     |
| `get_events`       | `from_seq`                                        | frames of events             |
| `statistics`       |                                                   | those of `SessionStatistics` |

A subscription has `session_id`, `from_seq` and `after`; its frames are events (`frames`). Data are base64.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Literal, NoReturn, TypeVar

import msgspec
import trio

from exeunt.actors.callers import CALLER
from exeunt.actors.errors import InvalidConfiguration, RemoteSessionError, TransportLost
from exeunt.actors.events import ClearRefusedEvent, Event, Origin
from exeunt.actors.media import Media, checked_media
from exeunt.actors.ports import Host
from exeunt.actors.prices import checked_credits
from exeunt.actors.session.frames import answer_frame, error_from, event_from, request_from, value_from
from exeunt.actors.session.pending import PendingRequest
from exeunt.actors.session.putting import check_message, checked_note, encoded
from exeunt.actors.session.replies import AbortReceipt, Reply, ToolOutcome
from exeunt.actors.session.session import Mode
from exeunt.actors.session.statistics import SessionStatistics
from exeunt.actors.session.subscriptions import check_seq
from exeunt.actors.session.transport import RemoteEventStream, SessionTransport, decoded, lost
from exeunt.actors.session.waiting import checked_timeout, wait_leaving_slots
from exeunt.actors.state.session_state import Pending

T = TypeVar("T")

ANSWER_TIMEOUT = 30.0
"""Seconds for an answer. The slowest, of an abort, takes the grace of stuck handlers: 1 s."""


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

    async def send(
        self,
        prompt: str,
        mode: Mode = "enqueue",
        *,
        attachments: Iterable[Media] = (),
        first: bool = False,
        note: Mapping[str, Any] | None = None,
    ) -> str:
        """Give the session a message; return its id once it is accepted. See `Session.send`.

        Where the caller is in a trace that this host follows, the message takes that along.
        Raises what that raises, and `TransportLost`: then, and when cancelled, the message may be accepted.
        """
        params = self._message(prompt, mode, attachments, first, note)
        return self._as(await self._ask("send", params, self._answer_timeout), str)

    async def send_and_wait(
        self,
        prompt: str,
        timeout: float | None = 60.0,  # noqa: ASYNC109 - passes, and the turn goes on
        *,
        mode: Mode = "enqueue",
        abort_on_cancel: bool = False,
        attachments: Iterable[Media] = (),
        first: bool = False,
        note: Mapping[str, Any] | None = None,
    ) -> Reply:
        """Give the session a message and wait for the reply. See `Session.send_and_wait`.

        *timeout* is counted where the session lives. Two sessions of different processes that wait for each other
        are not found out: the time-out ends that. Raises what `Session.send_and_wait` raises, and `TransportLost`;
        then, and when cancelled, the turn goes on. With *abort_on_cancel* a cancellation ends what the other side does
        for the message, as soon as the transport has told it that nobody waits any more.
        """
        seconds = checked_timeout(timeout)
        within = math.inf if seconds is None else seconds + self._answer_timeout
        params = {
            **self._message(prompt, mode, attachments, first, note),
            "timeout": seconds,
            "abort_on_cancel": bool(abort_on_cancel),
        }
        return self._as(await self._wait("send_and_wait", params, within), Reply)

    async def pending_messages(self) -> tuple[Pending, ...]:
        """Return the accepted messages that no turn has taken in. See `Session.pending_messages`.

        Raises `SessionNotFound`, `TransportLost`.
        """
        result = await self._ask("pending_messages", {}, self._answer_timeout)
        return decoded(lambda value: value_from(value, tuple[Pending, ...]), result, self._id)

    async def withdraw(self, message_id: str) -> bool:
        """Take back a message that waits; return whether it still did. See `Session.withdraw`.

        Raises `SessionNotFound`, and `TransportLost`: then, and when cancelled, it may have been taken back.
        """
        return self._as(await self._ask("withdraw", {"message_id": message_id}, self._answer_timeout), bool)

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

    async def disconnect(self, *, reason: str = "disconnect") -> None:
        """Take the session out of the memory of its host. See `Session.disconnect`.

        Raises what that raises, and `TransportLost`: then, and when cancelled, it may have happened.
        """
        await self._ask("disconnect", {"reason": reason}, self._answer_timeout)

    async def pending_requests(self) -> tuple[PendingRequest, ...]:
        """Return what the session asks people now, oldest first. See `Session.pending_requests`.

        Raises `SessionNotFound`, `TransportLost`.
        """
        frames = self._as(await self._ask("pending_requests", {}, self._answer_timeout), list[Any])
        return tuple(decoded(request_from, frame, self._id) for frame in frames)

    async def answer(self, request_id: str, answer: Any) -> None:
        """Answer an open request; return once the answer cannot be lost. See `Session.answer`.

        Raises what that raises, and `TransportLost`: then, and when cancelled, the answer may have been given.
        """
        params = {"request_id": request_id, "answer": answer_frame(answer)}
        await self._ask("answer", params, self._answer_timeout)

    async def limit_credits(self, limit: float | None) -> None:
        """Let the session spend *limit* credits in all since it began. See `Session.limit_credits`.

        Raises what that raises, and `TransportLost`: then, and when cancelled, the limit may have been set.
        """
        params = {"limit": checked_credits("limit", limit)}
        await self._ask("limit_credits", params, self._answer_timeout)

    async def call_tool(self, name: str, arguments: Any = None) -> ToolOutcome:
        """Run one tool of the session by the host's own will, between turns. See `Session.call_tool`.

        As there, the tool's own times bound the wait, and nothing else. Raises what that raises, and `TransportLost`;
        then, and when cancelled, the call goes on.
        """
        if not isinstance(name, str) or not name:
            raise InvalidConfiguration(f"the name of a tool is a text, not {name!r}")
        params = {"name": name, "arguments": encoded(arguments)}
        return self._as(await self._wait("call_tool", params, math.inf), ToolOutcome)

    async def get_events(self, from_seq: int = 1) -> Sequence[Event]:
        """Return the logged events, from the session's beginning or from number *from_seq*, in order.

        All of them are one answer: `events(from_seq)` brings a long log piece by piece.
        Raises `InvalidConfiguration` for a number below 1, `SessionNotFound`, `JournalError`, `TransportLost`.
        """
        check_seq(from_seq)
        frames = self._as(
            await self._ask("get_events", {"from_seq": from_seq}, self._answer_timeout), list[Any]
        )
        return tuple(decoded(event_from, frame, self._id) for frame in frames)

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

    def _message(
        self,
        prompt: str,
        mode: Mode,
        attachments: Iterable[Media],
        first: bool,
        note: Mapping[str, Any] | None,
    ) -> dict[str, Any]:
        """Return the params of a message, with where it comes from. Raises as `Session.send`."""
        check_message(prompt, mode)
        noted, tracing = checked_note(note), self._host.tracing
        return {
            "prompt": prompt,
            "mode": mode,
            "attachments": msgspec.to_builtins(checked_media(attachments)),
            "first": bool(first),
            # The other host does not see who is current here.
            "note": noted if tracing is None else tracing.sending(noted),
        }

    async def _wait(self, method: str, params: Mapping[str, Any], within: float) -> object:
        """Ask for what takes its time: a tool call that waits leaves its slots meanwhile."""
        caller = CALLER.get()
        ask = partial(self._ask, method, params, within)
        return await wait_leaving_slots(None if caller is None or caller.settled else caller, ask)

    async def _ask(self, method: str, params: Mapping[str, Any], within: float) -> object:
        answer: object = None
        try:
            with trio.move_on_after(within) as scope:
                answer = await self._transport.request(method, {"session_id": self._id, **params})
        except Exception as error:
            raise lost(error, self._id, method) from error
        if scope.cancelled_caught:
            raise TransportLost(
                f"no answer to {method!r} within {within:g} s: what was asked may have happened",
                session_id=self._id,
            )
        if isinstance(answer, Mapping) and "error" in answer:
            raise decoded(error_from, answer["error"], self._id)
        if isinstance(answer, Mapping) and "result" in answer:
            return answer["result"]
        raise TransportLost(f"what answers {method!r} is neither a result nor an error", session_id=self._id)

    def _as(self, result: object, kind: type[T]) -> T:
        return decoded(lambda value: value_from(value, kind), result, self._id)

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
