"""After a crash: an actor built anew from its log, or given up.

A handler that raises has written nothing, so the log is whole. What lived beside the log (tasks, waiters, a
staged clear) ends here: handlers are cancelled and fenced, open calls are `interrupted`, the turn's waiters are
told. Queue and subscribers stay. The entry that raised is tried again after the back-off.
"""

import copy
import logging
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import outcome

from exeunt.actors.activities.call_end import INTERRUPTED_TEXT
from exeunt.actors.errors import JournalError, SessionFailed, SessionOwnedElsewhere, TurnInterrupted
from exeunt.actors.events import (
    AssistantTurnEnd,
    DeadLetter,
    Event,
    MessageAccepted,
    MessageDropped,
    Origin,
    SessionIdle,
    SessionLost,
    SessionRestarted,
    SessionWarning,
    ToolExecutionComplete,
    ToolExecutionStart,
    TurnEnd,
)
from exeunt.actors.events import (
    SessionFailed as SessionFailedEvent,
)
from exeunt.actors.events.codec import Data
from exeunt.actors.outcomes import Outcome, TurnEndReason
from exeunt.actors.ports import SessionLog
from exeunt.actors.session.replies import AbortReceipt
from exeunt.actors.state import SessionState
from exeunt.actors.state.snapshot import load as load_state
from exeunt.actors.state.snapshot import usable
from exeunt.actors.turn import (
    aborts,
    batches,
    clears,
    endings,
    host_calls,
    requests,
    resumption,
    turn_questions,
    turns,
)
from exeunt.actors.turn.actor import Entry, SessionActor, fault
from exeunt.actors.turn.fencing import fence_all
from exeunt.actors.turn.live import Batch, Turn, Waiter

logger = logging.getLogger("exeunt.actors")


class Wreck:
    """What was alive in the actor when it crashed."""

    __slots__ = ("cause", "clear", "host_batch", "loaded", "lost", "stopping", "turn")

    def __init__(self, actor: SessionActor, cause: Exception, lost: list[Waiter]) -> None:
        self.cause = cause
        self.turn = actor.turn
        self.host_batch = actor.host_batch
        self.clear: clears.StagedClear | None = actor.clear
        self.lost: list[Waiter] = []
        """Whom the handler that raised would have woken: what it had to say is void, and they wait for it."""
        self.loaded: tuple[Data | None, Sequence[Event]] = (None, ())
        """What the log says: a snapshot, and the events behind it."""
        self.stopping = actor.status in ("stopping", "closed")
        for waiter in lost:
            if isinstance(waiter, clears.StagedClear):
                self.clear = waiter
            else:
                self.lost.append(waiter)

    def inherit(self, before: "Wreck") -> None:
        """Take over what *before* has left, which nobody was told yet."""
        self.turn = before.turn
        self.host_batch = before.host_batch
        self.clear = before.clear
        self.lost.extend(before.lost)
        self.stopping = self.stopping or before.stopping


def crashed(
    actor: SessionActor, entry: Entry, cause: Exception, begun: tuple[Turn | None, Batch | None]
) -> None:
    """The handler of *entry* raised: ask the supervision whether and when the actor may start again.

    *begun* is what the handler would have left at work; the actor has again what was before.
    """
    logger.error("session %s: handler %s raised", actor.id, _name(entry), exc_info=cause)
    handler, arguments = entry
    # Those that the entry brings along it will wake when it is tried again.
    wreck = Wreck(actor, cause, [waiter for waiter in actor.discard() if waiter not in arguments])
    if handler is recover:
        wreck.inherit(arguments[0])
    fence_all(actor, {actor.turn, begun[0]}, {actor.host_batch, begun[1]})
    if begun[1] is not None and begun[1] is not actor.host_batch and handler is not host_calls.accept:
        assert begun[1].host_call is not None
        host_calls.put_back(actor, begun[1].host_call)
    actor.turn = None
    actor.host_batch = None
    actor.aftermath = None
    actor.clear = None
    actor.epoch += 1
    actor.status = "restarting"
    again = handler not in (fault, recover)
    if again:
        actor.put_back(entry)
    delay = actor.host.supervision.crashed(actor, cause)
    if delay is None:
        actor.restart = GivingUp(actor, wreck, again)
        actor.restart.expire()
    else:
        actor.restart = Restart(actor, wreck)
        actor.host.timers.start(delay, actor.restart)


def abandon(actor: SessionActor) -> None:
    """The host ends before the actor could start again: give it up, and tell whoever waits."""
    if isinstance(actor.restart, Restart):
        actor.restart = GivingUp(actor, actor.restart.wreck, False)
        actor.restart.expire()


LOAD_AGAIN = 1.0
"""Seconds until a log that could not be read is read again: the journal itself tries more often to come back."""


class _AfterLoading(ABC):
    """Something that an actor does once it has read its log."""

    __slots__ = ("actor", "wreck")

    def __init__(self, actor: SessionActor, wreck: Wreck) -> None:
        self.actor = actor
        self.wreck = wreck

    def expire(self) -> None:
        """Read the log and go on; at once, where that takes no waiting. For the timers."""
        if self.actor.restart is not self:
            return
        events = self.actor.log.read_now()
        if events is None:
            self.actor.host.spawn(self._load)
        else:
            self.wreck.loaded = (None, events)
            self.go_on()

    async def _load(self) -> None:
        actor = self.actor
        try:
            self.wreck.loaded = await read_log(actor.log)
        except SessionOwnedElsewhere:
            return  # The journal has told the actor, which is gone.
        except JournalError:
            logger.exception("session %s: its log cannot be read", actor.id)
            actor.host.timers.start(LOAD_AGAIN, self)
            return
        if actor.restart is self:
            self.go_on()

    @abstractmethod
    def go_on(self) -> None:
        """Do it."""


class GivingUp(_AfterLoading):
    """The end of an actor that crashed too often."""

    __slots__ = ("again",)

    def __init__(self, actor: SessionActor, wreck: Wreck, again: bool) -> None:
        super().__init__(actor, wreck)
        self.again = again

    def go_on(self) -> None:
        """End every message and tell every waiter."""
        _give_up(self.actor, self.wreck, self.again)


class Restart(_AfterLoading):
    """The restart of one actor, when its back-off is over."""

    __slots__ = ()

    def go_on(self) -> None:
        """Build the actor anew and go on."""
        actor = self.actor
        actor.restart = None
        actor.status = "stopping" if self.wreck.stopping else "live"
        actor.put_back((recover, (self.wreck,)))
        actor.drain()
        if actor.status in ("live", "stopping"):
            # Only now: what came during the back-off is older than the idle.
            actor.put(_go_on, self.wreck)


async def read_log(log: SessionLog) -> tuple[Data | None, Sequence[Event]]:
    """Return a snapshot, and the events behind it; all events, where there is none that can be used.

    Raises `JournalError`.
    """
    snapshot, events = await log.load()
    if snapshot is not None and not usable(snapshot):
        return None, await log.read()
    return snapshot, events


def rebuild(actor: SessionActor, snapshot: Data | None, events: Sequence[Event]) -> None:
    """Make the state from a snapshot and the events behind it, under a new identity for ids."""
    start = None if snapshot is None else load_state(snapshot)
    actor.state = SessionState.replay(events, start)
    actor.origin = Origin.fresh(actor.state.last_id, actor.state.seq + 1)
    actor.restored()


def recover(actor: SessionActor, wreck: Wreck) -> None:
    """Make the state from the log, close what that shows as open, and tell the waiters."""
    rebuild(actor, *wreck.loaded)
    actor.emit(SessionRestarted, actor.epoch, f"{type(wreck.cause).__name__}: {wreck.cause}")
    turn = wreck.turn
    if turn is not None and turn.cause is None and not wreck.stopping and resumption.waits_for_people(actor):
        resumption.revive(actor, turn)
    else:
        close_open_work(actor, turn)
    if wreck.clear is not None:
        clears.interrupted(actor, wreck.clear)
    text = "the session's actor was restarted in the middle of the turn"
    _tell(actor, wreck, TurnInterrupted(text, session_id=actor.id))
    seed = actor.context.unanswered_seed
    if seed is not None and wreck.turn is not None and wreck.turn.delivery == "seed" and not wreck.stopping:
        # Committed is committed: the seed waited for its hooks or its slot, and its turn runs now. The log decides:
        # what crashed may have been the commit, or the handler that had taken the seed in.
        turns.begin_seeded(actor, seed, None)


def _go_on(actor: SessionActor, wreck: Wreck) -> None:
    """Go on with the queue, which holds by now what came during the back-off."""
    if actor.turn is None and actor.host_batch is None and actor.aftermath is None:
        endings.after_turn(actor)
    error = TurnInterrupted("the session's actor was restarted", session_id=actor.id)
    for waiter in wreck.lost:
        # The first that a waiter is told counts: those of a stop have been told.
        actor.wake(waiter, outcome.Error(error))


def close_open_work(actor: SessionActor, turn: Turn | None) -> None:
    """Give every open call, step and turn of the log its end: `interrupted`."""
    state = actor.state
    for start in list((state.open_calls or {}).values()):
        emit_interrupted(actor, start)
    turn_questions.close(actor, "cancelled")
    step = state.step
    if step is not None:
        actor.emit(AssistantTurnEnd, step.turn_id, step.step)
    if state.turn_id is not None:
        steps = state.turn_steps
        duration = 0.0 if turn is None else actor.host.clock.now() - turn.started
        generation = state.context.generation
        reason = TurnEndReason.INTERRUPTED
        actor.emit(TurnEnd, state.turn_id, reason, generation, steps, duration)
        actor.last_reason = reason


def emit_interrupted(actor: SessionActor, start: ToolExecutionStart) -> None:
    """End a call that the log shows as open, and what it has asked: who was asked is gone."""
    requests.end_all(actor, start.tool_call_id, "cancelled")
    actor.emit(
        ToolExecutionComplete,
        start.tool_call_id,
        start.tool_name,
        Outcome.INTERRUPTED,
        INTERRUPTED_TEXT,
        start.turn_id,
        max(0.0, actor.host.clock.wall() - start.time),
        start.terminal,
        batches.UNKNOWN_OUTCOME,
    )


def _tell(actor: SessionActor, wreck: Wreck, error: Exception) -> None:
    """Wake whoever waited for the work that is gone."""
    waiting = {item.message_id for item in actor.state.pending()}
    if actor.turn is not None:
        waiting.update(actor.turn.message_ids)
    waiting.update(arguments[0] for handler, arguments in actor.inbox() if handler is turns.accept)
    for message_id in [other for other in actor.waiters if other not in waiting]:
        actor.reply(message_id, outcome.Error(error))
    if wreck.turn is not None and wreck.turn.abort_waiters:
        aborts.answer(actor, wreck.turn)
    if wreck.host_batch is not None:
        host_calls.answer_abort(actor, wreck.host_batch)
        if wreck.host_batch.host_call is not None:
            actor.wake(wreck.host_batch.host_call.waiter, outcome.Error(error))
    if wreck.clear is not None:
        # Only where it could not be logged: the first that a waiter is told counts.
        actor.wake(wreck.clear, outcome.Error(error))


def _give_up(actor: SessionActor, wreck: Wreck, again: bool) -> None:
    """The session is `failed`: every message ends, every waiter is told, no other session notices.

    With *again*, the first entry of the mailbox is the one that raised.
    """
    text = f"the session crashed too often and takes no more messages: {type(wreck.cause).__name__}: {wreck.cause}"
    error = SessionFailed(text, session_id=actor.id)
    actor.restart = None
    entries = actor.take_inbox()
    try:
        rebuild(actor, *wreck.loaded)
        close_open_work(actor, wreck.turn)
        if wreck.clear is not None:
            clears.interrupted(actor, wreck.clear)
        for position, entry in enumerate(entries):
            _dead_letter(actor, entry, "crash" if again and position == 0 else "session_failed")
        for item in actor.state.pending():
            turns.drop(actor, item.message_id, "session_failed", error)
        actor.emit(SessionFailedEvent, f"{type(wreck.cause).__name__}: {wreck.cause}")
        if actor.active:
            actor.emit(SessionIdle)
        actor.active = False
        actor.status = "failed"
        actor.apply()
    except Exception:
        # The log itself may be what fails. The waiters are told all the same.
        logger.exception("session %s: its failure could not be logged", actor.id)
        wreck.lost.extend(actor.discard())
        _forget_unlogged(actor, wreck)
        actor.status = "failed"
        for entry in entries:
            actor.emit(DeadLetter, _name(entry), "session_failed")
        # Shown, if not logged: streams end with it.
        actor.emit(SessionWarning, "session_failed", text)
    _tell(actor, wreck, error)
    _wake_all(actor, entries, error)
    for waiter in wreck.lost:
        actor.wake(waiter, outcome.Error(error))
    actor.apply()
    actor.host.supervision.ended(actor)


def lose(actor: SessionActor, error: Exception) -> None:
    """The log takes nothing more, mostly because another host has the session: leave without a word in it.

    Subscribers see a `SessionLost`, and whoever waits gets *error*, each a copy of its own.
    Not a handler: the journal calls it, in the loop, when no handler runs.
    """
    logger.warning("session %s leaves memory: %s", actor.id, error)
    wreck = Wreck(actor, error, [])
    fence_all(actor, {actor.turn}, {actor.host_batch})
    entries = actor.take_inbox()
    wreck.lost.extend(actor.discard())
    wreck.lost.extend(actor.drop_unshown())
    actor.turn = actor.host_batch = actor.aftermath = actor.clear = actor.restart = None
    # Who has stopped already, or failed, has said so; only what that wrote last is lost then.
    told = actor.status in ("closed", "failed")
    actor.status = "closed"
    actor.active = False
    if not told:
        actor.stop_reason = (
            aborts.TAKEN_OVER if isinstance(error, SessionOwnedElsewhere) else aborts.LOG_ENDED
        )
        actor.emit(SessionLost, actor.stop_reason, str(error))
    if wreck.turn is not None and wreck.turn.abort_waiters:
        aborts.answer(actor, wreck.turn)
    if wreck.clear is not None:
        actor.wake(wreck.clear, _failure(error))
    if wreck.host_batch is not None and wreck.host_batch.host_call is not None:
        actor.wake(wreck.host_batch.host_call.waiter, _failure(error))
    _wake_all(actor, entries, error)
    for waiter in wreck.lost:
        actor.wake(waiter, _failure(error))
    actor.tell_now()
    actor.host.supervision.ended(actor)


def _failure(error: Exception) -> "outcome.Error":
    """Return *error* for one of several tasks: each that raises one adds its frames to it."""
    another = copy.copy(error)
    another.__cause__ = error.__cause__
    return outcome.Error(another)


def _forget_unlogged(actor: SessionActor, wreck: Wreck) -> None:
    """Know no more than the log tells, where that can be read."""
    try:
        rebuild(actor, *wreck.loaded)
    except Exception:
        logger.exception("session %s: its log could not be read", actor.id)


def _dead_letter(actor: SessionActor, entry: Entry, cause: str) -> None:
    handler, arguments = entry
    actor.emit(DeadLetter, _name(entry), cause)
    if handler is turns.accept:
        message_id, prompt, mode, *_ = arguments
        actor.active = True
        actor.emit(MessageAccepted, message_id, mode, prompt)
        actor.emit(MessageDropped, message_id, "dead_letter" if cause == "crash" else "session_failed")


def _wake_all(actor: SessionActor, entries: list[Entry], error: Exception) -> None:
    for message_id in list(actor.waiters):
        actor.reply(message_id, _failure(error))
    host_calls.fail_waiting(actor, error)
    for waiter in actor.stop_waiters or ():
        actor.wake(waiter, outcome.Value(None))
    for handler, arguments in entries:
        for argument in arguments:
            if isinstance(argument, Waiter):
                # Who asked for an end has it.
                ended = handler in _ENDED
                actor.wake(argument, outcome.Value(_ENDED[handler]) if ended else _failure(error))
            elif isinstance(argument, host_calls.HostCall):
                actor.wake(argument.waiter, _failure(error))


_ENDED: dict[Any, AbortReceipt | None] = {aborts.stop: None, aborts.abort: AbortReceipt(None, (), 0)}
"""What is told to who asked for an end, where nothing was left to end."""


def _name(entry: Entry) -> str:
    handler, arguments = entry
    return str(arguments[0]) if handler is fault else handler.__name__.strip("_")
