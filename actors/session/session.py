"""The handle of a session: what hosts and handlers hold."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Literal, TypeVar, cast

import trio

from exeunt.actors.callers import CALLER
from exeunt.actors.errors import (
    InvalidConfiguration,
    NotInToolCall,
    PriceUnknown,
    SessionPassive,
)
from exeunt.actors.events import Event, SessionHandoff
from exeunt.actors.media import Media, checked_media
from exeunt.actors.outcomes import HANDOFF_ACTIONS, HANDOFF_TRIGGERS, HandoffAction, HandoffTrigger
from exeunt.actors.prices import checked_credits
from exeunt.actors.session.history import History
from exeunt.actors.session.pending import PendingRequest, pending_requests
from exeunt.actors.session.putting import (
    AWAY,
    check_message,
    deliver_within,
    encoded,
    is_own_handler,
    put_anywhere,
    put_call,
    put_message,
    put_waiting,
    remembered,
    stop,
    until_safe,
)
from exeunt.actors.session.replies import AbortReceipt, Reply, ToolOutcome
from exeunt.actors.session.statistics import SessionStatistics, statistics_of
from exeunt.actors.session.subscriptions import EventStream, Subscriber, check_seq
from exeunt.actors.session.waiting import (
    checked_timeout,
    refuse_deadlock,
    refuse_status,
    wait_leaving_slots,
)
from exeunt.actors.state.session_state import Pending
from exeunt.actors.text import encodable
from exeunt.actors.turn import aborts, budget, host_calls, turn_questions, turns
from exeunt.actors.turn.actor import SessionActor
from exeunt.actors.turn.live import Waiter
from exeunt.actors.user_input import UserInputResponse

T = TypeVar("T")

Mode = Literal["enqueue", "immediate"]

DEFAULT_BUFFER = 1024
"""Events that a stream holds for its reader: the longest turn by far, or some seconds of a streamed answer."""


class Session:
    """One session of a host. Handles are cheap; any number may name the same session.

    All methods may be called from any task of the host's loop, and from the session's own handlers; those that
    would wait for themselves raise `WouldDeadlock` instead.
    """

    __slots__ = ("_known",)

    def __init__(self, actor: SessionActor) -> None:
        self._known = actor

    @property
    def _actor(self) -> SessionActor:
        """The session's actor: the one in memory, or the one that was, if the session is passive."""
        if self._known.successor is not None:
            self._known = self._known.here()
        return self._known

    @property
    def session_id(self) -> str:
        """The session's id."""
        return self._actor.id

    @property
    def tenant(self) -> str:
        """The tenant that the session counts for."""
        return self._actor.options.tenant

    @property
    def history(self) -> History:
        """The context: reading it, clearing it."""
        return History(self._known)

    def __repr__(self) -> str:
        return f"<Session {self._actor.id} {self._actor.status}>"

    async def send(
        self,
        prompt: str,
        mode: Mode = "enqueue",
        *,
        attachments: Iterable[Media] = (),
        first: bool = False,
        note: Mapping[str, Any] | None = None,
    ) -> str:
        """Give the session a message; return its id once it is accepted and cannot be lost.

        `mode="enqueue"` waits for a turn of its own, first in first out. `mode="immediate"` joins the running turn
        before its next request; when none runs, it is the same. With *first* it goes before the messages that wait
        already. *attachments* are pictures, documents and other data, which the model is shown beside the prompt, as
        far as it can be. *note* holds JSON values that are logged with the message and that nothing else depends on.
        An accepted message ends exactly once: with the turn that takes it in, or with `message.dropped`.

        A session that has left memory comes back first, and takes what is sent meanwhile in the order of the calls.

        Raises `InvalidPrompt`, `InvalidMedia`, `MediaTooLarge`, `MailboxFull` (also when the attachments that wait are
        too many bytes), `Overloaded`, `SessionClosed`, `SessionFailed`, `JournalError`, and `SessionNotConfigured`
        when the message is accepted and nobody says with which model it is to be answered.
        Cancelled: the message is accepted or was never there.
        """
        actor = self._actor
        noted = remembered(actor, note)
        if actor.status in AWAY:
            check_message(prompt, mode)
            media = checked_media(attachments)
            act = partial(
                put_message, prompt=prompt, mode=mode, waiter=None, first=first, note=noted, attachments=media
            )
            message_id = await actor.host.deliver(actor.id, act)
            actor = self._actor
        else:
            message_id = put_message(actor, prompt, mode, None, first, noted, attachments)
        await until_safe(actor)
        return message_id

    def send_now(
        self,
        prompt: str,
        mode: Mode = "enqueue",
        *,
        attachments: Iterable[Media] = (),
        first: bool = False,
        note: Mapping[str, Any] | None = None,
    ) -> str | None:
        """Give the session a message without waiting; return its id, or `None` where that takes waiting.

        It does where the session has left memory, or where an accepted message would not be safe at once: then
        nothing has happened, and `send` is what to use. Raises what `send` raises.
        """
        actor = self._actor
        if actor.status != "live" or (actor.options.durability != "relaxed" and actor.log.outlives_process):
            return None
        return put_message(actor, prompt, mode, None, first, remembered(actor, note), attachments)

    def pending_messages(self) -> tuple[Pending, ...]:
        """Return the accepted messages that no turn has taken in: those that steer first, then the queue, in order."""
        actor = self._actor
        turn = actor.turn
        taken = None if turn is None or turn.pending is None else turn.pending.message_id
        return tuple(item for item in actor.state.pending() if item.message_id != taken)

    def withdraw(self, message_id: str) -> bool:
        """Take back a message that waits; return whether it still did. It ends with `message.dropped`."""
        actor = self._actor
        done: list[bool] = []
        if actor.status == "live":
            actor.put(turns.withdraw, message_id, done)
        return bool(done and done[0])

    async def send_and_wait(
        self,
        prompt: str,
        timeout: float | None = 60.0,  # noqa: ASYNC109 - the Copilot SDK's name; the turn is not cancelled by it
        *,
        mode: Mode = "enqueue",
        abort_on_cancel: bool = False,
        attachments: Iterable[Media] = (),
        first: bool = False,
        note: Mapping[str, Any] | None = None,
    ) -> Reply:
        """Give the session a message and wait for the reply; through clears, to the answer of the last seed.

        *timeout* is in seconds, `None` for none. When it passes, `ReplyTimeout` says what the session was doing,
        and the turn goes on; so it does when the caller is cancelled, unless it said *abort_on_cancel*: then a message
        that still waits is taken back, and the turn that has taken it in is aborted, whatever else that has taken in.
        Its tools are cancelled; the caller does not wait for their end.

        Raises what `send` raises, and `WouldDeadlock`, `TurnAborted`, `TurnInterrupted`, `TurnFailed`,
        `PromptBlocked`, `SessionClosed`, `SessionFailed`.
        """
        actor = self._actor
        seconds = checked_timeout(timeout)
        noted = remembered(actor, note)
        caller = refuse_deadlock(actor, "send_and_wait")
        if actor.status in AWAY:
            check_message(prompt, mode)
            media = checked_media(attachments)
            began = actor.host.clock.now()
            act = partial(
                put_waiting,
                prompt=prompt,
                mode=mode,
                caller=caller,
                first=first,
                note=noted,
                attachments=media,
            )
            waiter, message_id = await deliver_within(actor, act, seconds)
            if seconds is not None:
                seconds = max(0.0, seconds - (actor.host.clock.now() - began))
        else:
            waiter, message_id = put_waiting(actor, prompt, mode, caller, first, noted, attachments)
        try:
            return await waiter.reply(message_id, seconds)
        except trio.Cancelled:
            if abort_on_cancel and self._actor.status == "live":
                self._actor.put(aborts.forsake, message_id)
            raise

    async def abort(
        self, queued: Literal["drop", "keep"] = "drop", *, reason: str = "user_initiated"
    ) -> AbortReceipt:
        """End the running turn; drop, or keep, the messages that wait. Return what was done when it has ended.

        Handlers are cancelled and have 1 s to clean up; then the turn goes on without them. A clear that is not
        committed is rolled back. From a handler of this session it returns at once, as a request.
        """
        if queued not in ("drop", "keep"):
            raise InvalidConfiguration(f"queued must be 'drop' or 'keep', not {queued!r}")
        actor = self._actor
        if is_own_handler(actor):
            turn = actor.turn
            receipt = AbortReceipt(None if turn is None else turn.turn_id, (), actor.state.waiting)
            actor.put(aborts.abort, queued == "keep", reason, None)
            return receipt
        if actor.status in ("closed", "failed") or (actor.status == "passive" and not actor.state.waiting):
            await trio.lowlevel.checkpoint()
            return AbortReceipt(None, (), 0)
        waiter = Waiter()
        await put_anywhere(actor, aborts.abort, queued == "keep", reason, waiter)
        return cast("AbortReceipt", await waiter.wait())

    async def disconnect(self, *, reason: str = "disconnect") -> None:
        """Take the session out of memory: its turn is aborted, its log and queue stay, its waiters are told.

        Returns when that is done; from a handler of this session at once. May be called twice. *reason* stands in
        `session.shutdown`. Raises `InvalidConfiguration` for one that is no text, or that the host uses itself
        (`host`, `deleted`).
        """
        if not isinstance(reason, str) or reason in aborts.RESERVED:
            raise InvalidConfiguration(
                f"the reason of a disconnect is a text of yours, not {reason!r:.80}; the host itself says "
                f"{' and '.join(sorted(aborts.RESERVED))}"
            )
        await stop(self._actor, reason)

    def pending_requests(self) -> tuple[PendingRequest, ...]:
        """Return what the session asks people now, oldest first.

        Its tool calls ask for approvals and answers of the user, its turn for more credits or another model.
        Requests are in the log: they outlive a restart of the actor, and the end of the process where the session is
        taken up with `continue_pending_work=True`. Never waits. A session that is not in memory has none to show.
        """
        return pending_requests(self._actor)

    async def answer(self, request_id: str, answer: Any) -> None:
        """Answer an open request, whoever the caller is; return once the answer cannot be lost.

        To a request for approval the *answer* is a decision as a permission handler gives it: `ApproveOnce()`,
        `ApproveForSession()`, `Reject(feedback)`, `UserNotAvailable()`, or its kind as a text. To a question it is a
        text, a `UserInputResponse`, or a mapping with `answer`. To a request for more credits it is a `LimitDecision`,
        to one for another model `"yes"`, `"yes_always"` or `"no"`. The first answer counts; a handler that is still
        being asked is cancelled. From another thread: `host.run_from_thread(session.answer, request_id, answer)`.

        Raises `RequestNotPending`: unknown, answered, or over; `InvalidAnswer`: the request is open still;
        `SessionClosed`, `SessionFailed`, `JournalError`. Cancelled: the answer was given, or was not.
        """
        actor = self._actor
        if actor.status not in ("live", "restarting"):
            refuse_status(actor)
        await trio.lowlevel.checkpoint_if_cancelled()
        waiter = Waiter()
        actor.put(turn_questions.answer, request_id, answer, waiter)
        seq = cast("int", await waiter.wait())
        if actor.options.durability != "relaxed" and actor.log.outlives_process:
            await actor.log.wait_durable(seq)

    async def limit_credits(self, limit: float | None) -> None:
        """Let the session spend *limit* credits in all since it began, or with `None` what it likes.

        Returns once that is durable. It holds from the next call of the model on. A turn that has asked for more goes
        on, if this is more than the session has spent.

        Raises `InvalidConfiguration`, `PriceUnknown` where nobody could count them, `SessionClosed`, `SessionFailed`,
        `JournalError`. Cancelled: the limit was set, or was not.
        """
        wanted = checked_credits("limit", limit)
        actor = self._actor
        if wanted is not None and actor.options.price is None:
            raise PriceUnknown(
                f"session {actor.id} cannot be limited in credits: {actor.options.model_name!r:.80} has no price"
            )
        refuse_status(actor)
        waiter = Waiter()
        await put_anywhere(actor, budget.set_limit, wanted, waiter)
        seq = cast("int", await waiter.wait())
        actor = self._actor
        if actor.options.durability != "relaxed" and actor.log.outlives_process:
            await actor.log.wait_durable(seq)

    async def ask_user(
        self,
        question: str,
        choices: Iterable[str] | None = None,
        *,
        allow_freeform: bool = True,
        timeout: float | None = None,  # noqa: ASYNC109 - the request's own time, which is logged and outlives this task
    ) -> UserInputResponse:
        """Ask the user something in the name of the calling handler's tool call. See `ToolInvocation.ask_user`.

        Raises what that raises, and `NotInToolCall` from anywhere else than a handler of this session.
        """
        caller = CALLER.get()
        if caller is None or caller.call is None or caller.actor is not self._actor or caller.settled:
            raise NotInToolCall(
                "a question to the user belongs to a tool call: ask in its handler, or give the model ask_user_tool()",
                session_id=self._actor.id,
            )
        return await caller.call.ask_user(question, choices, allow_freeform, timeout)

    async def call_tool(self, name: str, arguments: Any = None) -> ToolOutcome:
        """Run one tool by the host's own will, between turns, in order with the queued messages.

        *arguments* is a mapping, or the JSON text of an object. The call passes through hooks, approval and time-out
        like a model's; it is no turn, and the context gets nothing of it, unless it clears the context. Returns its
        outcome, at the commit when it clears. Cancelled: the call is not; abort the session to end it.

        Raises what `send` raises, and `WouldDeadlock`, `TurnAborted` (dropped before it began), `TurnInterrupted`.
        """
        actor = self._actor
        arguments_json = encoded(arguments)
        if not isinstance(name, str) or not name:
            raise InvalidConfiguration(f"the name of a tool is a text, not {name!r}")
        caller = refuse_deadlock(actor, "call_tool")
        waiter = Waiter(caller)
        act = partial(put_call, call=host_calls.HostCall(name, arguments_json, waiter))
        if actor.status in AWAY:
            await actor.host.deliver(actor.id, act)
        else:
            act(actor)
        return cast("ToolOutcome", await wait_leaving_slots(caller, waiter.wait))

    def record_handoff(
        self,
        action: HandoffAction,
        *,
        trigger: HandoffTrigger = "tool",
        session_id: str | None = None,
        message_id: str | None = None,
        detail: str | None = None,
    ) -> None:
        """Log a step of a handoff as `session.handoff`; for policies of the host. It changes nothing else.

        Raises `InvalidConfiguration`, `SessionClosed`, `SessionFailed`; `SessionPassive` when it is not in memory.
        """
        if action not in HANDOFF_ACTIONS or trigger not in HANDOFF_TRIGGERS:
            raise InvalidConfiguration(
                f"a handoff is one of {', '.join(HANDOFF_ACTIONS)}, triggered by one of {', '.join(HANDOFF_TRIGGERS)}; "
                f"not {action!r:.40}, {trigger!r:.40}"
            )
        actor = self._actor
        if actor.status in AWAY:
            raise SessionPassive(
                f"session {actor.id} has left memory; a message brings it back", session_id=actor.id
            )
        refuse_status(actor)
        texts = [None if text is None else encodable(str(text)) for text in (session_id, message_id, detail)]
        actor.record(SessionHandoff, action, trigger, actor.context.generation, *texts)

    def on(self, callback: Callable[[Event], object]) -> Callable[[], None]:
        """Call *callback*, synchronously, with every event from now on; return a function that ends that.

        It must return soon: the session waits for it. What it raises is logged and counted, and hurts nobody.
        """
        if not callable(callback):
            raise InvalidConfiguration(f"a subscriber must be callable, not {callback!r}")
        actor = self._actor
        entry = Subscriber(callback)
        actor.subscribe(entry)

        def unsubscribe() -> None:
            entry.ended = True
            self._actor.unsubscribe(entry)

        return unsubscribe

    def events(
        self, from_seq: int | None = None, *, after: str | None = None, buffer: int = DEFAULT_BUFFER
    ) -> EventStream:
        """Return the events as an async iterator: from number *from_seq*, behind the event *after*, or from now.

        The subscription begins with this call. See `EventStream` for order, bounds and lag.
        """
        return EventStream(self._actor, from_seq, after, buffer)

    async def get_events(self, from_seq: int = 1) -> Sequence[Event]:
        """Return the logged events, from the session's beginning or from number *from_seq*, in order.

        Raises `InvalidConfiguration` for a number below 1.
        """
        check_seq(from_seq)
        return tuple(await self._actor.log.read(from_seq))

    def statistics(self) -> SessionStatistics:
        """Return a look at the session."""
        return statistics_of(self._actor)


SessionActor.make_handle = Session
