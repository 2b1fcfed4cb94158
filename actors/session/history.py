"""The context of a session, as its handle offers it."""

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, cast

import attrs
import trio

from exeunt.actors.callers import CALLER, would_deadlock
from exeunt.actors.errors import (
    EmptySeedPrompt,
    InvalidConfiguration,
    InvalidPrompt,
    JournalUnavailable,
    SessionPassive,
    WouldDeadlock,
)
from exeunt.actors.events import SessionCompacted, SessionTruncated
from exeunt.actors.models import Message
from exeunt.actors.options import Siblings
from exeunt.actors.session.putting import checked_note
from exeunt.actors.session.waiting import refuse_status
from exeunt.actors.text import encodable
from exeunt.actors.turn import clears, compaction, truncation
from exeunt.actors.turn.live import Waiter

if TYPE_CHECKING:
    from exeunt.actors.turn.actor import SessionActor


LONGEST_TRIGGER = 64
"""Characters: a word or two, for an event and a label."""


@attrs.frozen(eq=False)
class ClearResult:
    """A clear that was staged."""

    messages_cleared: int
    """Messages that will leave the context, system and developer messages not counted."""
    _actor: "SessionActor" = attrs.field(repr=False)
    _clear: clears.StagedClear = attrs.field(repr=False)

    async def settled(self) -> None:
        """Wait until the clear is committed.

        Raises `ClearRolledBack` when the call that owns it did not succeed, and `WouldDeadlock` from a handler
        of the session: the clear waits for that handler. A cancellation changes nothing.
        """
        if self._clear.resolved:
            await trio.lowlevel.checkpoint()
            if self._clear.error is not None:
                raise self._clear.error
            return
        if would_deadlock(self._actor):
            raise WouldDeadlock(
                "settled() was awaited in a handler that the clear itself waits for; return from the handler instead",
                session_id=self._actor.id,
            )
        caller = CALLER.get()
        waiter = Waiter(None if caller is None or caller.settled else caller)
        self._clear.waiters.append(waiter)
        try:
            await waiter.wait()
        finally:
            if waiter in self._clear.waiters:
                self._clear.waiters.remove(waiter)


class History:
    """The conversation of a session."""

    __slots__ = ("_known",)

    def __init__(self, actor: "SessionActor") -> None:
        self._known = actor

    @property
    def _actor(self) -> "SessionActor":
        if self._known.successor is not None:
            self._known = self._known.here()
        return self._known

    def messages(self) -> tuple[Message, ...]:
        """Return what is in the context now: system and developer messages, then the conversation.

        The last answer is there while its tool calls are open, with the results so far.

        Raises `SessionPassive` when the session has left memory: this cannot wait until it is read again.
        """
        actor = self._actor
        if actor.status == "passive":
            raise SessionPassive(
                f"session {actor.id} has left memory while it was idle; resuming it brings its context back,"
                " and get_events() reads its log without that",
                session_id=actor.id,
            )
        return actor.context.visible()

    async def clear_context(
        self,
        prompt: str,
        *,
        siblings: Siblings | None = None,
        trigger: str = "",
        calls: Collection[str] | None = None,
    ) -> ClearResult:
        """Replace the conversation by *prompt*, as the first user message of a new context.

        Identity, system and developer messages, configuration and event log stay. The clear is *staged* at once
        and belongs to a tool call: that of the calling handler, or from elsewhere the one that is in flight (of
        several the terminal ones, if any). It is *committed* when that call has succeeded and every other call of
        its batch has an outcome: `siblings="wait"` lets them run on, `"cancel"` ends them once the owner has
        succeeded. A turn with the seed follows without an idle between. It is *rolled back*, and the context
        stays as it was, when the call fails or the turn is aborted. *trigger* says in the event of the commit what
        brought it about: at most 64 characters. Who knows of only some of the calls, such as a door to clients,
        gives their ids as *calls*: then it belongs to one of these.

        Raises, in this order of checks, `EmptySeedPrompt`, `NoToolCallInFlight`, `ClearAlreadyStaged`,
        `ClearLoop`; nothing has changed then but a counter. `InvalidConfiguration` and `InvalidPrompt` (half a
        surrogate pair) come before and are not counted. Never waits; cancelled, nothing has changed.
        """
        actor = self._actor
        if siblings not in (None, "wait", "cancel"):
            raise InvalidConfiguration(f"siblings must be 'wait' or 'cancel', not {siblings!r}")
        if not isinstance(trigger, str) or len(trigger) > LONGEST_TRIGGER or encodable(trigger) != trigger:
            raise InvalidConfiguration(
                f"trigger is a text of at most {LONGEST_TRIGGER} characters, not {trigger!r:.80}"
            )
        if isinstance(prompt, str) and encodable(prompt) != prompt:
            raise InvalidPrompt("the seed prompt holds half a surrogate pair and cannot be sent to a model")
        refusal = clears.refusal(actor, prompt, calls)
        if refusal is not None:
            actor.put(clears.refuse, refusal.cause)
            raise refusal
        await trio.lowlevel.checkpoint_if_cancelled()
        staged: list[clears.StagedClear] = []
        actor.put(clears.stage, prompt, siblings or actor.options.siblings, trigger, staged, calls)
        (clear,) = staged
        return ClearResult(clear.messages_cleared, actor, clear)

    async def truncate(self, event_id: str) -> SessionTruncated:
        """Go back to the conversation as it was right after an event; return the event that says so, once durable.

        The event is one of this session's log, where no turn was under way: a `turn.end`, or what came between two
        turns. It may lie behind a clear, or behind another truncation: what was in the context then is in it again.
        System and developer messages stay as they are now, and so do the messages that wait. The log keeps all
        events. Reads the log up to that event: about 10 ms of the loop for 5,000 events, in parts.

        Raises `SessionBusy` while a turn or a call of the host is at work, `UnknownEvent`, `EventInsideTurn`,
        `SessionClosed`, `SessionFailed`, `JournalError`; nothing has changed then. Cancelled: it has happened, or not.
        """
        actor = self._actor
        if actor.status == "passive":
            actor = await actor.host.wake(actor.id)
        _check_free(actor)
        seq, target = await truncation.context_after(actor, event_id)
        # A turn may have begun meanwhile, or the session have left memory.
        actor = actor.here()
        if actor.status == "passive":
            actor = await actor.host.wake(actor.id)
        _check_free(actor)
        waiter = Waiter()
        actor.put(truncation.truncate, event_id, seq, target, waiter)
        event = cast("SessionTruncated", await waiter.wait())
        if actor.options.durability != "relaxed":
            await actor.log.wait_durable(event.seq)
        return event

    async def compact(
        self,
        content: str,
        *,
        messages: int,
        generation: int,
        trigger: str = "",
        note: Mapping[str, Any] | None = None,
    ) -> SessionCompacted:
        """Put a text in the place of the first messages of the conversation; return the event, once durable.

        *content* is what the model reads instead, as a user message: a summary that you have made, or had made. The
        first *messages* of the context with this number, *generation* (see `statistics`), leave it; those behind them
        stay, and system and developer messages do. The log keeps all events. *trigger* says in the event what brought
        it about, at most 64 characters; *note* holds JSON values that are logged with it.

        Raises `SessionBusy` while a turn or a call of the host is at work, `EmptySeedPrompt` for a blank text,
        `InvalidConfiguration` where the context is another one by now, has fewer messages, or would keep a tool's
        result without its call, `SessionClosed`, `SessionFailed`, `JournalError`; nothing has changed then. Cancelled:
        it has happened, or not.
        """
        if not isinstance(content, str) or encodable(content) != content:
            raise InvalidPrompt("the text for the model must be a text that can be sent")
        if not content.strip():
            raise EmptySeedPrompt("the text for the model must not be blank")
        if not isinstance(trigger, str) or len(trigger) > LONGEST_TRIGGER or encodable(trigger) != trigger:
            raise InvalidConfiguration(
                f"trigger is a text of at most {LONGEST_TRIGGER} characters, not {trigger!r:.80}"
            )
        noted = checked_note(note)
        actor = self._actor
        if actor.status == "passive":
            actor = await actor.host.wake(actor.id)
        _check_free(actor)
        waiter = Waiter()
        actor.put(compaction.compact, content, messages, generation, trigger, noted, waiter)
        event = cast("SessionCompacted", await waiter.wait())
        if actor.options.durability != "relaxed":
            await actor.log.wait_durable(event.seq)
        return event


def _check_free(actor: "SessionActor") -> None:
    if actor.status not in ("live", "restarting"):
        refuse_status(actor)
    if not actor.free:
        raise truncation.busy(actor)
    if not actor.log.has_room:
        raise JournalUnavailable(
            f"session {actor.id}: the journal takes nothing new now; try again later", session_id=actor.id
        )
