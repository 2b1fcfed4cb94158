"""The actor of a session: one owner of its state, one handler at a time, all or nothing.

`put` is the mailbox. A handler is a function of (actor, *arguments) that never waits, so `put` runs it to
completion in the caller; an entry that is put meanwhile queues behind it. There is no mailbox task: an idle
session has no task at all, and a burst costs no scheduler step. The promises are those of a mailbox: order, one
at a time, accepted or refused and nothing in between.

A handler *collects*: events with `emit`, values for waiting tasks with `wake`, activities with `start`. Only
when it has returned are the events logged and shown, the tasks woken and the activities run. If it raises, none
of that happens; the actor is built anew from its log, and the entry is tried again.
"""

from collections import deque
from collections.abc import Callable
from typing import Any, ClassVar

import outcome
import trio

from exeunt.actors.activities.activity import Activity
from exeunt.actors.events import Event, Origin
from exeunt.actors.hooks import HookInvocation
from exeunt.actors.options import SessionOptions
from exeunt.actors.ports import Host, SessionLog
from exeunt.actors.state import SessionState
from exeunt.actors.state.context import Context
from exeunt.actors.state.session_state import FOLDS
from exeunt.actors.state.snapshot import dump
from exeunt.actors.turn.live import Batch, Turn, Waiter

SNAPSHOT_EVERY = 1000
"""Events between two snapshots of a session's state: reading so many back takes a few milliseconds."""

Handler = Callable[..., None]
Entry = tuple[Handler, tuple[Any, ...]]
Wakeup = tuple[Waiter, "outcome.Outcome[Any]", str | None]
"""Who is woken, with what, and by which message's end."""


NOBODY: dict[str, Waiter] = {}
"""The waiters of a session for which nobody waits: shared, since most sessions are idle. Always empty."""


class SessionActor:
    """One session in memory.

    What an idle session does not need is not made before it is needed: a list takes 56 B, a dict 0.2 KiB.
    """

    __slots__ = (
        "__weakref__",
        "_collected",
        "_continue",
        "_continuing",
        "_draining",
        "_ephemeral",
        "_inbox",
        "_kept",
        "_mixed",
        "_moment",
        "_objects",
        "_starts",
        "_unshown",
        "_wakeups",
        "_wall",
        "active",
        "aftermath",
        "approved_tools",
        "clear",
        "epoch",
        "greeted",
        "host",
        "host_batch",
        "host_calls",
        "id",
        "last_reason",
        "log",
        "options",
        "origin",
        "restart",
        "restarts",
        "resumed",
        "state",
        "status",
        "stop_reason",
        "stop_waiters",
        "subscribers",
        "successor",
        "turn",
        "waiters",
    )

    def __init__(self, session_id: str, options: SessionOptions, host: Host, log: SessionLog) -> None:
        self.id = session_id
        self.options = options
        self.host = host
        self.log = log
        self.state = SessionState()
        self.origin = Origin.fresh()
        self.status = "live"
        """`live`, `passive` (has left memory), `unconfigured` (takes messages, and cannot answer them), `restarting`,
        `stopping`, `failed` or `closed`."""
        self.successor: SessionActor | None = None
        """The actor that came back after this one had left memory."""
        self.epoch = 0
        """Restarts of this activation."""
        self.turn: Turn | None = None
        self.aftermath: Activity | None = None
        """The hook after a turn; nothing begins before it has returned."""
        self.clear: Any = None
        """The staged clear (`exeunt.actors.turn.clears.StagedClear`)."""
        self.host_batch: Batch | None = None
        """The call that the host runs between turns."""
        self.host_calls: deque[Any] | None = None
        """Calls of the host that wait for it, in order with the queued messages."""
        self.active = False
        """Whether an idle is owed."""
        self.greeted = False
        """Whether the hook of the session's start has run in this activation."""
        self.resumed = False
        """Whether this activation took up a stored session."""
        self.last_reason: str = ""
        """Why the last turn ended."""
        self.approved_tools: set[str] | None = None
        """Tools that need no more approval in this session."""
        self.restart: Any = None
        """The restart that waits for its back-off (`exeunt.actors.turn.recovery.Restart`)."""
        self.restarts: Any = None
        """What the supervision remembers of earlier crashes."""
        self.stop_reason = ""
        self.stop_waiters: list[Waiter] | None = None
        self.waiters: dict[str, Waiter] = NOBODY
        """Who waits for the reply to a message, by message id. Changed by `expect` and `give_up` only."""
        self.subscribers: tuple[Callable[[Event], object], ...] = ()
        self._inbox: deque[Entry] | None = None
        self._draining = False
        self._wall = host.clock.wall
        self._moment = 0.0
        """When the first of what was collected happened. A handler takes no time: all of it bears that one."""
        self._collected: list[Event] | None = None
        self._mixed = False
        """Whether something ephemeral is among what was collected."""
        self._wakeups: list[Wakeup] | None = None
        """With the message to which it is the reply."""
        self._kept = 0
        """Generation of the last snapshot."""
        self._starts: list[Activity] | None = None
        self._unshown: deque[tuple[list[Event] | None, list[Wakeup] | None]] | None = None
        """What waits, with `durability="strict"`, until it is durable."""
        self._continuing = False
        self._continue: Activity | None = None
        self._ephemeral = 0
        self._objects = 0

    make_handle: ClassVar[Callable[["SessionActor"], Any]]
    """Makes the handle that handlers and hooks are given; set by `exeunt.actors.session`, which knows the actors."""

    def handle(self) -> Any:
        """Return a handle of this session."""
        return SessionActor.make_handle(self)

    def invocation(self, tool_call_id: str | None) -> HookInvocation:
        """Return what a hook or a permission handler is told about where it is called from."""
        return HookInvocation(self.handle(), self.id, tool_call_id)

    @property
    def context(self) -> Context:
        """What the model sees, as of the last event."""
        return self.state.context

    @property
    def free(self) -> bool:
        """Whether something new may begin."""
        return (
            self.turn is None and self.host_batch is None and self.aftermath is None and self.status == "live"
        )

    @property
    def quiescent(self) -> bool:
        """Whether it could leave memory: nothing runs, nothing waits, nobody waits for it."""
        if not self.free or self.active or self.mailbox_depth or self.waiters:
            return False
        # A handler that has not come back will talk to this actor.
        return not any(activity.actor is self for activity in self.host.fenced)

    def leave(self) -> None:
        """It leaves memory, to come back as another actor; handles that have this one ask for that."""
        self.status = "passive"
        state = self.state
        # The figures stay, for the handles that ask for them; what they count goes.
        state.context = Context(generation=state.context.generation, length=state.context.conversation_length)
        state.call_ids = None

    def here(self) -> "SessionActor":
        """Return the actor that has the session now: this one, or the last that came back after it had left."""
        actor = self
        while actor.successor is not None:
            actor = actor.successor
        return actor

    @property
    def batch(self) -> Batch | None:
        """The calls that are in flight: of the turn, or of the host."""
        return self.turn.batch if self.turn is not None else self.host_batch

    @property
    def mailbox_depth(self) -> int:
        """Accepted messages and calls of the host that are not at work yet."""
        state = self.state
        depth = len(state.queue) if state.queue else 0
        if state.steering:
            depth += len(state.steering)
        if self.host_calls:
            depth += len(self.host_calls)
        if self._inbox:
            depth += len(self._inbox)
        return depth

    def new_id(self) -> str:
        """Return an id that nothing else in this session has."""
        self._objects += 1
        return self.origin.object_id(self._objects)

    # --- The mailbox ---------------------------------------------------------------------------------------
    # Ctrl-C waits until a handler has returned: half of one would leave a state that no log tells.

    @trio.lowlevel.enable_ki_protection
    def put(self, handler: Handler, *arguments: Any) -> None:
        """Run *handler* now, or behind what runs. What it raises goes to the supervision, never to the caller."""
        if self._draining or self.status == "restarting":
            if self._inbox is None:
                self._inbox = deque()
            self._inbox.append((handler, arguments))
            return
        self._draining = True
        try:
            self._run(handler, arguments)
            if self._inbox:
                self.drain()
        finally:
            self._draining = False

    @trio.lowlevel.enable_ki_protection
    def drain(self) -> None:
        """Run what has queued, until it is done or the actor crashes. For `put` and the restart only."""
        self._draining = True
        try:
            while self._inbox and self.status != "restarting":
                handler, arguments = self._inbox.popleft()
                self._run(handler, arguments)
            if not self._inbox:
                self._inbox = None
        finally:
            self._draining = False

    @trio.lowlevel.enable_ki_protection
    def settled(self, activity: Activity, result: Any) -> Activity | None:
        """Report an activity's result; return the one that its task is to go on with."""
        if activity.done:
            self.host.fenced.discard(activity)
        self._continuing = True
        self._continue = None
        try:
            self.put(type(activity).settle, activity, result)
            return self._continue
        finally:
            self._continuing = False
            self._continue = None

    def record(self, event: type[Event], *payload: Any) -> None:
        """Emit one event from outside of a handler."""
        self.put(_record, event, payload)

    def crash(self, entry: str, cause: Exception) -> None:
        """Treat *cause* as if a handler had raised it; there is no entry that would be tried again."""
        self.put(fault, entry, cause)

    def _run(self, handler: Handler, arguments: tuple[Any, ...]) -> None:
        # What a handler that raises has changed beside the log is undone, as its events are.
        active, turn, host_batch, clear = self.active, self.turn, self.host_batch, self.clear
        try:
            handler(self, *arguments)
            if self._collected or self._starts or self._wakeups:
                self.apply()
        except Exception as error:  # noqa: BLE001 - whatever it is, the supervision decides
            from exeunt.actors.turn import recovery

            begun = self.turn, self.host_batch
            self.active, self.turn, self.host_batch, self.clear = active, turn, host_batch, clear
            recovery.crashed(self, (handler, arguments), error, begun)

    # --- What a handler collects ---------------------------------------------------------------------------

    def emit(self, event: type[Event], *payload: Any) -> Any:
        """Make the next event of this session, fold it, and show it when the handler has returned."""
        state = self.state
        collected = self._collected
        if collected is None:
            collected = self._collected = []
            self._moment = self._wall()
        # Each kind of event has fields of its own, which no type says here.
        make: Any = event
        if event.ephemeral:
            self._mixed = True
            self._ephemeral += 1
            made = make(self.origin, state.seq, self._moment, self._ephemeral, *payload)
        else:
            state.seq = seq = state.seq + 1
            made = make(self.origin, seq, self._moment, *payload)
            fold = FOLDS.get(event)
            if fold is not None:
                fold(state, made)
        collected.append(made)
        return made

    def start(self, activity: Activity) -> None:
        """Run *activity* when the handler has returned."""
        if self._starts is None:
            self._starts = [activity]
        else:
            self._starts.append(activity)

    def wake(self, waiter: Waiter, result: "outcome.Outcome[Any]") -> None:
        """Give *waiter* its value when the handler has returned."""
        self._wake(waiter, result, None)

    def expect(self, message_id: str, waiter: Waiter) -> None:
        """Note who waits for the reply to a message."""
        if self.waiters is NOBODY:
            self.waiters = {}
        self.waiters[message_id] = waiter

    def give_up(self, message_id: str) -> Waiter | None:
        """Forget, and return, who waits for the reply to a message, if anybody does."""
        waiter = self.waiters.pop(message_id, None)
        if not self.waiters:
            self.waiters = NOBODY
        return waiter

    def reply(self, message_id: str, result: "outcome.Outcome[Any]") -> None:
        """Give who waits for the reply to a message, if anybody does, the reply or the error."""
        waiter = self.give_up(message_id)
        if waiter is not None:
            self._wake(waiter, result, message_id)

    def _wake(self, waiter: Waiter, result: "outcome.Outcome[Any]", message_id: str | None) -> None:
        wakeup = (waiter, result, message_id)
        if self._wakeups is None:
            self._wakeups = [wakeup]
        else:
            self._wakeups.append(wakeup)

    def discard(self) -> list[Waiter]:
        """Forget what a handler that raised had collected; return whom it wanted to wake.

        Who waits for a reply is not among them: they go on waiting.
        """
        others: list[Waiter] = []
        for waiter, _, message_id in self._wakeups or ():
            if message_id is None:
                others.append(waiter)
            else:
                self.expect(message_id, waiter)
        self._collected = self._wakeups = self._starts = None
        self._mixed = False
        return others

    def subscribe(self, subscriber: Callable[[Event], object]) -> None:
        """Tell *subscriber* of every event from now on; also when the session has left memory and is back."""
        self.subscribers = (*self.subscribers, subscriber)
        if self.status == "passive":
            self.host.keep(self)

    def unsubscribe(self, subscriber: Callable[[Event], object]) -> None:
        """End a subscription; ending it again does nothing."""
        self.subscribers = tuple(other for other in self.subscribers if other is not subscriber)
        if self.status == "passive":
            self.host.keep(self)

    def restored(self) -> None:
        """The state was made anew: what is kept of it is as new."""
        self._kept = self.state.context.generation

    def put_back(self, entry: Entry) -> None:
        """Queue *entry* as the next one."""
        if self._inbox is None:
            self._inbox = deque()
        self._inbox.appendleft(entry)

    def inbox(self) -> tuple[Entry, ...]:
        """Return what has queued."""
        return tuple(self._inbox or ())

    def take_inbox(self) -> list[Entry]:
        """Remove and return what has queued."""
        entries = list(self._inbox or ())
        self._inbox = None
        return entries

    def apply(self) -> None:
        """Log and show what was collected, wake who waits, run what was started. For `put` and the recovery."""
        events, wakeups, starts = self._collected, self._wakeups, self._starts
        if events is not None:
            self._collected = None
            persisted = events
            if self._mixed:
                self._mixed = False
                persisted = [event for event in events if not event.ephemeral]
            if persisted:
                self.log.append(persisted)
                if self.log.outlives_process:
                    self._keep_snapshot(persisted)
        if wakeups is not None:
            self._wakeups = None
        if self._unshown or (self.options.durability == "strict" and self.log.durable_seq < self.state.seq):
            self._show_later(events, wakeups)
        else:
            self._show(events, wakeups)
        if starts is not None:
            self._starts = None
            for activity in starts:
                if self._continuing and self._continue is None:
                    self._continue = activity
                else:
                    self.host.workers.run(activity)

    def _keep_snapshot(self, persisted: list[Event]) -> None:
        """Keep the state now and then, and after a clear, where it is small and all that was before is past."""
        last, generation = persisted[-1], self.state.context.generation
        if generation != self._kept or last.seq // SNAPSHOT_EVERY != (persisted[0].seq - 1) // SNAPSHOT_EVERY:
            self._kept = generation
            self.log.snapshot(last.seq, dump(self.state, last.id))

    def _show_later(self, events: list[Event] | None, wakeups: list[Wakeup] | None) -> None:
        if self._unshown is None:
            self._unshown = deque()
        self._unshown.append((events, wakeups))
        self.log.when_durable(self.state.seq, self._show_next)

    def _show_next(self) -> None:
        if self._unshown:
            # One for each time that this is called, so that the order stands whatever the subscribers do.
            self._show(*self._unshown.popleft())
            self._unshown = self._unshown or None

    def drop_unshown(self) -> list[Waiter]:
        """Show nothing of what cannot become durable any more; return whom it would have woken."""
        unshown, self._unshown = self._unshown, None
        return [waiter for _, wakeups in unshown or () for waiter, _, _ in wakeups or ()]

    def wake_now(self) -> None:
        """Wake whom a handler wanted to wake, without the log. For the recovery."""
        wakeups, self._wakeups = self._wakeups, None
        self._show(None, wakeups)

    def _show(self, events: list[Event] | None, wakeups: list[Wakeup] | None) -> None:
        """Tell everybody what has happened, and who waited for it."""
        if events is not None:
            for observer in self.host.observers:
                try:
                    observer(self.id, events)
                except Exception as error:  # noqa: BLE001 - an observer is not part of the session
                    self.host.subscriber_failed(self.id, observer, error)
            for subscriber in self.subscribers:
                for event in events:
                    try:
                        subscriber(event)
                    except Exception as error:  # noqa: BLE001 - nor is a subscriber
                        self.host.subscriber_failed(self.id, subscriber, error)
        if wakeups is not None:
            for waiter, result, _ in wakeups:
                waiter.resolve(result)


def _record(actor: SessionActor, event: type[Event], payload: tuple[Any, ...]) -> None:
    actor.emit(event, *payload)


def fault(actor: SessionActor, entry: str, cause: Exception) -> None:
    """Raise what *entry*, which is no handler, has raised."""
    raise cause
