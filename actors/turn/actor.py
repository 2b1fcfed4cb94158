"""The actor of a session: one owner of its state, one handler at a time, all or nothing.

`put` is the mailbox. A handler is a function of (actor, *arguments) that never waits, so `put` runs it to
completion in the caller; an entry that is put meanwhile queues behind it. There is no mailbox task: an idle
session has no task at all, and a burst costs no scheduler step. The promises are those of a mailbox: order, one
at a time, accepted or refused and nothing in between.

What a handler emits, wakes and starts is collected (`outbox`). Only when it has returned are the events logged and
shown, the tasks woken and the activities run. If it raises, none of that happens; the actor is built anew from its
log, and the entry is tried again.
"""

from collections import deque
from collections.abc import Callable
from typing import Any, ClassVar

import trio

from exeunt.actors.activities.activity import Activity
from exeunt.actors.events import Event
from exeunt.actors.hooks import HookInvocation
from exeunt.actors.options import SessionOptions
from exeunt.actors.ports import Host, SessionLog
from exeunt.actors.state.context import Context
from exeunt.actors.turn.live import Batch, Turn, Waiter
from exeunt.actors.turn.outbox import Outbox

Handler = Callable[..., None]
Entry = tuple[Handler, tuple[Any, ...]]


class SessionActor(Outbox):
    """One session in memory.

    What an idle session does not need is not made before it is needed: a list takes 56 B, a dict 0.2 KiB.
    """

    __slots__ = (
        "__weakref__",
        "_draining",
        "_inbox",
        "active",
        "aftermath",
        "approved_tools",
        "clear",
        "epoch",
        "greeted",
        "host_batch",
        "host_calls",
        "last_reason",
        "restart",
        "restarts",
        "resumed",
        "status",
        "stop_reason",
        "stop_waiters",
        "successor",
        "turn",
    )

    def __init__(self, session_id: str, options: SessionOptions, host: Host, log: SessionLog) -> None:
        super().__init__(session_id, options, host, log)
        self.status = "live"
        """`live`, `passive` (has left memory), `unconfigured` (takes messages, and cannot answer them), `restarting`,
        `stopping`, `failed` or `closed`."""
        self.successor: SessionActor | None = None
        """The actor that came back after this one had left memory."""
        self.epoch = 0
        """Restarts of this activation."""
        self.turn: Turn | None = None
        self.aftermath: Any = None
        """The hooks after a turn (`exeunt.actors.activities.prompts.EndHook`); nothing begins before they return."""
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
        self._inbox: deque[Entry] | None = None
        self._draining = False

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
        options = self.options
        try:
            handler(self, *arguments)
            if self._collected or self._starts or self._wakeups:
                self.apply()
        except Exception as error:  # noqa: BLE001 - whatever it is, the supervision decides
            from exeunt.actors.turn import recovery

            begun = self.turn, self.host_batch
            self.active, self.turn, self.host_batch, self.clear = active, turn, host_batch, clear
            self.options = options
            recovery.crashed(self, (handler, arguments), error, begun)

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


def _record(actor: SessionActor, event: type[Event], payload: tuple[Any, ...]) -> None:
    actor.emit(event, *payload)


def fault(actor: SessionActor, entry: str, cause: Exception) -> None:
    """Raise what *entry*, which is no handler, has raised."""
    raise cause
