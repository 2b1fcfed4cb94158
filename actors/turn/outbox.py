"""What a handler of the actor collects, and what becomes of it when the handler has returned.

Events with `emit`, values for waiting tasks with `wake` and `reply`, activities with `start`. The state is ahead of the
log while a handler runs; `apply` logs what was collected, shows it to observers and subscribers, wakes and starts.
`discard` forgets it.
"""

from collections import deque
from collections.abc import Callable
from typing import Any

import outcome

from exeunt.actors.activities.activity import Activity
from exeunt.actors.events import Event, Origin
from exeunt.actors.options import SessionOptions
from exeunt.actors.ports import Host, SessionLog
from exeunt.actors.state import SessionState
from exeunt.actors.state.session_state import FOLDS
from exeunt.actors.state.snapshot import dump
from exeunt.actors.turn.live import Waiter

SNAPSHOT_EVERY = 1000
"""Events between two snapshots of a session's state: reading so many back takes a few milliseconds."""

Wakeup = tuple[Waiter, "outcome.Outcome[Any]", str | None]
"""Who is woken, with what, and by which message's end."""

NOBODY: dict[str, Waiter] = {}
"""The waiters of a session for which nobody waits: shared, since most sessions are idle. Always empty."""


class Outbox:
    """The side of an actor on which things leave it."""

    __slots__ = (
        "_collected",
        "_continue",
        "_continuing",
        "_ephemeral",
        "_kept",
        "_mixed",
        "_moment",
        "_objects",
        "_starts",
        "_unshown",
        "_wakeups",
        "_wall",
        "host",
        "id",
        "log",
        "options",
        "origin",
        "state",
        "subscribers",
        "waiters",
    )

    def __init__(self, session_id: str, options: SessionOptions, host: Host, log: SessionLog) -> None:
        self.id = session_id
        self.options = options
        self.host = host
        self.log = log
        self.state = SessionState()
        self.origin = Origin.fresh()
        self.waiters: dict[str, Waiter] = NOBODY
        """Who waits for the reply to a message, by message id. Changed by `expect` and `give_up` only."""
        self.subscribers: tuple[Callable[[Event], object], ...] = ()
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

    def new_id(self) -> str:
        """Return an id that nothing else in this session has."""
        self._objects += 1
        return self.origin.object_id(self._objects)

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

    def restored(self) -> None:
        """The state was made anew: what is kept of it is as new."""
        self._kept = self.state.context.generation

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

    def tell_now(self) -> None:
        """Show what was collected, and wake who waits, without the log. For the recovery."""
        events, self._collected = self._collected, None
        wakeups, self._wakeups = self._wakeups, None
        self._mixed = False
        self._show(events, wakeups)

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
