"""Sessions that have left memory while they were idle, and the way back.

What a passive session keeps in memory is its id, a reference to its options (none, where the host has a function that
gives them anew), and what its host was told for it: subscriptions, and approvals for the session. Everything else is
in its log. Handles that are held keep the figures of what they have seen.
"""

import copy
import weakref
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import attrs
import outcome
import trio

from exeunt.actors.errors import JournalError, SessionClosed, SessionNotConfigured, SessionNotFound
from exeunt.actors.events import Event, SessionIdle
from exeunt.actors.models import ModelDelta, ModelRequest, ModelResponse
from exeunt.actors.options import SessionOptions
from exeunt.actors.state import SessionState
from exeunt.actors.turn import birth
from exeunt.actors.turn.actor import SessionActor
from exeunt.actors.turn.live import Waiter

if TYPE_CHECKING:
    from exeunt.supervisor.held import HeldSessions

T = TypeVar("T")


@attrs.frozen
class Kept:
    """What a host was told for a session, and what an activation is to remember, where that is anything."""

    subscribers: tuple[Callable[[Event], object], ...] = ()
    approved_tools: frozenset[str] | None = None
    greeted: bool = False
    resumed: bool = False
    epoch: int = 0
    restarts: Any = None

    @classmethod
    def of(cls, actor: SessionActor) -> "Kept | None":
        """Return what is to be kept of *actor*."""
        approved = None if actor.approved_tools is None else frozenset(actor.approved_tools)
        kept = cls(actor.subscribers, approved, actor.greeted, actor.resumed, actor.epoch, actor.restarts)
        return None if kept == NOTHING else kept

    def give_back(self, actor: SessionActor) -> None:
        """Give *actor*, which has come back, what was kept."""
        actor.subscribers = self.subscribers
        actor.approved_tools = None if self.approved_tools is None else set(self.approved_tools)
        actor.greeted, actor.resumed = self.greeted, self.resumed
        actor.epoch, actor.restarts = self.epoch, self.restarts
        self.tell(actor)

    def tell(self, actor: SessionActor) -> None:
        """Tell the streams of events which actor is theirs now."""
        for subscriber in self.subscribers:
            moved = getattr(subscriber, "moved", None)
            if moved is not None:
                moved(actor)


NOTHING = Kept()


@attrs.frozen(eq=False, weakref_slot=False)
class Passive:
    """What stays in memory of a session that has left it. 48 B, and its place in a table."""

    options: SessionOptions | None
    kept: Kept | None


ONLY_ITS_ID = Passive(None, None)
"""Shared by all of which nothing is to be kept: a million of them cost their ids and their places in the table."""


class Unconfigured:
    """The model of a session whose options nobody gives. It is never asked."""

    model = provider = ""

    async def complete(self, request: ModelRequest, /) -> ModelResponse:
        """Raise `SessionNotConfigured`."""
        await trio.lowlevel.checkpoint()
        return self._refuse()

    async def stream(self, request: ModelRequest, /) -> AsyncIterator[ModelDelta | ModelResponse]:
        """Raise `SessionNotConfigured`."""
        yield await self.complete(request)

    def _refuse(self) -> NoReturn:
        raise SessionNotConfigured("nobody says which model the session has")


Act = tuple[Waiter, Callable[[SessionActor], Any]]
"""Who waits for a session to be back, and what is to be done then."""


class PassiveSessions:
    """The sessions of one host that have left memory: who they are, and how they come back."""

    def __init__(self, host: "HeldSessions", *, keep_options: bool) -> None:
        self._host = host
        self._keep_options = keep_options
        self._passive: dict[str, Passive] = {}
        self._left: weakref.WeakValueDictionary[str, SessionActor] = weakref.WeakValueDictionary()
        """The actors that have left last, of those that somebody still holds."""
        self._waking: dict[str, list[Act]] = {}

    def __len__(self) -> int:
        return len(self._passive)

    def __contains__(self, session_id: object) -> bool:
        return session_id in self._passive

    def options(self, session_id: str) -> SessionOptions | None:
        """Return the options that were kept of a passive session."""
        passive = self._passive.get(session_id)
        return None if passive is None else passive.options

    # --- Leaving ---------------------------------------------------------------------------------------------

    def leave(self, actor: SessionActor) -> None:
        """Note that *actor* leaves memory."""
        actor.leave()
        self._left[actor.id] = actor
        self.keep(actor)

    def keep(self, actor: SessionActor) -> None:
        """Note what is to be kept of *actor*, which has left."""
        if self._left.get(actor.id) is not actor:
            return
        configured = not isinstance(actor.options.model, Unconfigured)
        options = actor.options if self._keep_options and configured else None
        kept = Kept.of(actor)
        self._passive[actor.id] = ONLY_ITS_ID if options is None and kept is None else Passive(options, kept)

    def came_back(self, actor: SessionActor) -> None:
        """Give *actor*, which is made of the log, what was kept, and to the handles that are held."""
        passive = self._passive.pop(actor.id, None)
        left = self._left.pop(actor.id, None)
        if left is not None:
            left.successor = actor
        if passive is not None and passive.kept is not None:
            passive.kept.give_back(actor)

    def forget(self, session_id: str) -> None:
        """End a passive session without a word in its log: handles and streams are told."""
        passive = self._passive.pop(session_id, None)
        left = self._left.pop(session_id, None)
        if left is not None:
            left.status = "closed"
            if passive is not None and passive.kept is not None:
                passive.kept.tell(left)

    def forget_all(self) -> None:
        """The host ends."""
        for session_id in list(self._left):
            self.forget(session_id)

    # --- Coming back -----------------------------------------------------------------------------------------

    async def wake(self, session_id: str) -> SessionActor:
        """Bring a session back. See `exeunt.actors.ports.Host`."""
        while True:
            actor = await self.deliver(session_id, _itself)
            # With more sessions than may be in memory it may have left before this task's turn came.
            if actor.status != "passive":
                return actor

    async def deliver(self, session_id: str, act: Callable[[SessionActor], T]) -> T:
        """Bring a session back and act on it. See `exeunt.actors.ports.Host`."""
        waiter = Waiter()
        entry = (waiter, act)
        waiting = self._waking.get(session_id)
        if waiting is None:
            waiting = self._waking[session_id] = [entry]
            # In a task of its own: whoever asked first may be cancelled, and the others wait on.
            self._host.nursery.start_soon(self._bring_back, session_id, name="exeunt wake")
        else:
            waiting.append(entry)
        try:
            result: T = await waiter.wait()
            return result
        finally:
            if entry in waiting:
                waiting.remove(entry)

    async def _bring_back(self, session_id: str) -> None:
        waiting = self._waking[session_id]
        try:
            while waiting:
                try:
                    await self._act(session_id, waiting)
                except Exception as error:  # noqa: BLE001 - each who waits is told
                    _fail(_taken(waiting), error)
        finally:
            del self._waking[session_id]
            _fail(_taken(waiting), _host_ends(session_id))

    async def _act(self, session_id: str, waiting: list[Act]) -> None:
        host = self._host
        await host.wait_taken_up(session_id)
        actor = host.find(session_id)
        if actor is None:
            if session_id not in self._passive:
                raise SessionClosed(
                    f"session {session_id} is not in memory; resume it to go on with it",
                    session_id=session_id,
                )
            with host.taking_up(session_id):
                options = _Options(host, session_id, self.options(session_id))
                try:
                    actor = await host.load(session_id, options.choose)
                except Exception:
                    if options.failure is None:
                        raise
                    await self._accept_only(session_id, waiting, options.failure)
                    return
                actor.put(birth.come_back, False)
        for waiter, act in _taken(waiting):
            waiter.resolve(outcome.capture(act, actor))

    async def _accept_only(self, session_id: str, waiting: list[Act], cause: Exception) -> None:
        """Take what is sent into the log, and tell the senders that nobody answers it."""
        tenant = (await self._host.journal.metadata(session_id)).tenant
        options = _Options(self._host, session_id, SessionOptions(model=Unconfigured(), tenant=tenant))
        actor = await self._host.load(session_id, options.choose)
        actor.status = "unconfigured"
        actor.active = actor.state.waiting > 0
        try:
            while waiting:
                await _accept_and_refuse(actor, _taken(waiting), cause)
        finally:
            if actor.status == "unconfigured":
                if actor.active and not actor.state.waiting:
                    # An abort has dropped them all.
                    actor.record(SessionIdle)
                self._host.passivate(actor)


class _Options:
    """Finds the options of a session that comes back, and knows whether that has failed."""

    def __init__(self, host: "HeldSessions", session_id: str, known: SessionOptions | None) -> None:
        self.failure: Exception | None = None
        self._host = host
        self._session_id = session_id
        self._known = known

    async def choose(self, state: SessionState) -> SessionOptions:
        """Return them. For `HeldSessions.load`."""
        if self._known is not None:
            return self._known
        try:
            return await self._host.resolve(self._session_id, state)
        except (JournalError, SessionNotFound):
            raise
        except Exception as error:
            # Whatever the function of the program raises.
            self.failure = error
            raise


def _itself(actor: SessionActor) -> SessionActor:
    return actor


def _taken(waiting: list[Act]) -> list[Act]:
    taken = waiting.copy()
    waiting.clear()
    return taken


async def _accept_and_refuse(actor: SessionActor, acts: list[Act], cause: Exception) -> None:
    """Let *acts* be done, and say that they were in vain once it is durable that they are not lost."""
    done = [(waiter, outcome.capture(act, actor)) for waiter, act in acts]
    refusal: Exception = _host_ends(actor.id)
    try:
        await actor.log.wait_durable(actor.state.seq)
        refusal = SessionNotConfigured(
            f"nobody says with which model session {actor.id} runs, so what was sent waits in its log; "
            f"session_options of the host failed: {type(cause).__name__}: {cause}",
            session_id=actor.id,
        )
        refusal.__cause__ = cause
    except Exception as error:  # noqa: BLE001 - each who waits is told
        refusal = error
    finally:
        for waiter, result in done:
            waiter.resolve(result if isinstance(result, outcome.Error) else outcome.Error(_another(refusal)))
        del refusal, done  # an error holds this frame


def _fail(acts: list[Act], error: Exception) -> None:
    for waiter, _ in acts:
        waiter.resolve(outcome.Error(_another(error)))


def _another(error: Exception) -> Exception:
    """Return an error that says the same: each task that raises one adds its frames to it."""
    other = copy.copy(error)
    other.__cause__ = error.__cause__
    return other


def _host_ends(session_id: str) -> SessionClosed:
    return SessionClosed("the host is ending and takes nothing more", session_id=session_id)
