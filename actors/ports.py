"""What the actors need from outside, as small protocols that the room owns. The host implements them."""

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    import trio

    from exeunt.actors.activities.activity import Activity
    from exeunt.actors.activities.workers import Workers
    from exeunt.actors.events import Event
    from exeunt.actors.events.codec import Data
    from exeunt.actors.state.session_state import Pending
    from exeunt.actors.timers import Timers
    from exeunt.actors.turn.actor import SessionActor


T = TypeVar("T")


class Reading(Protocol):
    """Reads a clock."""

    def __call__(self) -> float: ...


class Clock(Protocol):
    """Two clocks: one for the log, one for durations."""

    wall: Reading
    """Gives the seconds since the epoch."""
    now: Reading
    """Gives the seconds of a clock that never goes back, as fast as the one that trio's deadlines use."""


class SessionLog(Protocol):
    """The persisted events of one session, as its actor sees them."""

    def append(self, events: Sequence["Event"]) -> None:
        """Take one handler run's events, whole or not at all. Never waits.

        Raises `JournalError` when they do not follow what the log holds.
        """
        ...

    async def read(self, from_seq: int = 1, limit: int | None = None) -> Sequence["Event"]:
        """Return the events from number *from_seq* on, what is only appended so far included.

        Raises `JournalError`. A cancellation changes nothing.
        """
        ...

    def read_now(self, from_seq: int = 1) -> Sequence["Event"] | None:
        """Return the events from number *from_seq* on, or `None` if that takes waiting."""
        ...

    async def load(self) -> tuple["Data | None", Sequence["Event"]]:
        """Return the newest snapshot, if there is one, and the events behind it. Raises `JournalError`."""
        ...

    def snapshot(self, seq: int, data: bytes) -> None:
        """Keep *data* as the state after event *seq*, some time after that is durable. Never waits or raises."""
        ...

    @property
    def outlives_process(self) -> bool:
        """Whether the log is still there when the process is not: then a snapshot saves reading it again."""
        ...

    @property
    def has_room(self) -> bool:
        """Whether new work is taken. Events of work that runs always are."""
        ...

    async def wait_room(self) -> None:
        """Wait until new work is taken. A cancellation changes nothing."""
        ...

    def when_durable(self, seq: int, callback: Callable[[], None]) -> None:
        """Call *callback* once event *seq* cannot be lost, in the order of the numbers; now, if that is so."""
        ...

    def watch(self, on_lost: Callable[[Exception], None]) -> None:
        """Call *on_lost* when another host has taken the session over."""
        ...

    @property
    def durable_seq(self) -> int:
        """Number of the last event that a crash cannot take away."""
        ...

    async def wait_durable(self, seq: int) -> None:
        """Wait until event *seq* cannot be lost. Raises `JournalError`; a cancellation changes nothing."""
        ...


class Observer(Protocol):
    """Is told of every event, once, after it was logged."""

    def __call__(self, session_id: str, events: "Sequence[Event]", /) -> object:
        """Take the events of one handler run. What it raises is logged and counted, never a crash."""
        ...


class Tracing(Protocol):
    """Follows what happens across the border of the host: who sends, and what foreign code is called for.

    Asked where something is sent or called, in the task of who does that; never waits or raises.
    """

    def taking_up(self, session_id: str, waiting: "Sequence[Pending]", /) -> None:
        """A session comes into memory from its log; these messages wait in it."""
        ...

    def sending(self, note: "dict[str, Any] | None", /) -> "dict[str, Any] | None":
        """Return what is to be remembered with a message: its note, and where it comes from."""
        ...

    def calling_model(self, session_id: str, turn_id: str, /) -> object:
        """The model is called in this task. Returns what `called` takes."""
        ...

    def calling_tool(self, session_id: str, call_id: str, /) -> object:
        """A tool, its hooks and who approves it are called in this task. Returns what `called` takes."""
        ...

    def called(self, token: Any, /) -> None:
        """The call has returned."""
        ...

    def carrier(self, session_id: str, call_id: str, /) -> dict[str, str]:
        """Return the headers with which a tool call goes on elsewhere."""
        ...


class Slots(Protocol):
    """A bounded number of places, shared fairly between tenants."""

    def request(self, ticket: Any, /) -> bool:
        """Take a place, or queue for one and return `False`."""
        ...

    def requeue_front(self, ticket: Any, /) -> bool:
        """Ask for a place again, ahead of the tenant's others. Returns whether it is theirs at once."""
        ...

    def release(self, ticket: Any, /) -> bool:
        """Give a place back. Returns whether there was one."""
        ...

    def withdraw(self, ticket: Any, /) -> object:
        """Leave the queue."""
        ...


class TurnSlots(Slots, Protocol):
    """Places for running turns, with a bound on those who wait."""

    def offer(self, tenant: str, /, *, session_id: str) -> None:
        """Raise `Overloaded` when the host or the tenant's share has no room for another message."""
        ...

    def hand_over(self, ticket: Any, successor: Any, /) -> bool:
        """Let *successor*, of the same tenant, hold the place of *ticket*. Returns whether there was one."""
        ...


class Supervision(Protocol):
    """Decides what becomes of an actor that crashed."""

    def crashed(self, actor: "SessionActor", cause: Exception) -> float | None:
        """Return the seconds to wait before the restart, or `None` to give the session up."""
        ...

    def ended(self, actor: "SessionActor") -> None:
        """Take note that the session left memory: closed, deleted or failed."""
        ...


class Host(Protocol):
    """What one host offers to all of its actors."""

    @property
    def clock(self) -> Clock: ...
    @property
    def timers(self) -> "Timers": ...
    @property
    def workers(self) -> "Workers": ...
    @property
    def turn_slots(self) -> TurnSlots: ...
    @property
    def tool_slots(self) -> Slots: ...
    @property
    def supervision(self) -> Supervision: ...
    @property
    def observers(self) -> "list[Observer]": ...
    @property
    def tracing(self) -> Tracing | None: ...
    @property
    def threads(self) -> "trio.CapacityLimiter":
        """Bounds the worker threads of synchronous handlers."""
        ...

    @property
    def fenced(self) -> "set[Activity]":
        """Activities whose result was decided without their task, until that comes back."""
        ...

    async def wake(self, session_id: str) -> "SessionActor":
        """Bring a passive session back. Raises `SessionClosed`, `SessionNotConfigured`, `JournalError`."""
        ...

    async def deliver(self, session_id: str, act: "Callable[[SessionActor], T]") -> T:
        """Bring a passive session back, and return what *act* returns for its actor, or raise what it raises.

        Several are called in the order in which they asked, at once when it is back. Cancelled: *act* was not called.
        Raises what `wake` raises; at `SessionNotConfigured`, *act* was called, and what it put is durable.
        """
        ...

    def keep(self, actor: "SessionActor") -> None:
        """Note who is subscribed to *actor*, which is passive."""
        ...

    def spawn(self, function: Callable[[], Awaitable[None]]) -> None:
        """Run *function* in a task of the host, with nobody waiting for it."""
        ...

    def subscriber_failed(self, session_id: str, callback: Callable[..., object], cause: Exception) -> None:
        """Log and count an exception of an observer or of a subscriber's callback."""
        ...

    def subscriber_lagged(self) -> None:
        """Count a subscriber that lost events."""
        ...

    def mailbox_refused(self) -> None:
        """Count a message that a full mailbox or an overloaded host refused."""
        ...
