"""The sessions that a host has in memory: made, taken up, waking and leaving; and what their actors need of it."""

import contextlib
import logging
import uuid
from collections.abc import Awaitable, Callable, Generator
from functools import partial
from typing import TypeVar, TypeVarTuple

import attrs
import trio

from exeunt.actors.activities.activity import Activity
from exeunt.actors.activities.workers import Workers
from exeunt.actors.errors import (
    InvalidConfiguration,
    SessionClosed,
    SessionExists,
    SessionNotConfigured,
    SessionNotFound,
    SessionOwnedElsewhere,
)
from exeunt.actors.options import SessionOptions
from exeunt.actors.ports import Observer, Tracing
from exeunt.actors.session import Session
from exeunt.actors.state import SessionState
from exeunt.actors.timers import Timers
from exeunt.actors.turn import aborts, birth, rate_limits, recovery
from exeunt.actors.turn.actor import SessionActor
from exeunt.actors.turn.live import Waiter
from exeunt.supervisor.admission import Admission
from exeunt.supervisor.checks import require_session_id, require_text
from exeunt.supervisor.clock import HostClock
from exeunt.supervisor.journal import Journal, SessionMetadata
from exeunt.supervisor.options import HostOptions
from exeunt.supervisor.passivation import Passivation
from exeunt.supervisor.remembered import RememberedOptions
from exeunt.supervisor.slots import FairSlots
from exeunt.supervisor.supervision import SessionSupervision
from exeunt.supervisor.tree import Supervisor
from exeunt.supervisor.waking import PassiveSessions, Unconfigured

logger = logging.getLogger("exeunt.supervisor")

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

TAKE_UPS = 5
"""Attempts to take a session up from another host, each of which that one's last writes may come before. They come some
milliseconds apart; a host that goes on writing for longer was given the session meanwhile."""

UNKNOWN_YET = SessionOptions(model=Unconfigured())
"""Of a session whose log is being read."""

Chooser = Callable[[SessionState], Awaitable[SessionOptions]]

OptionsResolver = Callable[[str, SessionMetadata], Awaitable[SessionOptions]]


class HeldSessions:
    """The sessions of one process that are in memory, and what they share."""

    def __init__(
        self,
        nursery: trio.Nursery,
        services: Supervisor,
        journal: Journal,
        options: HostOptions,
        resolver: OptionsResolver | None,
    ) -> None:
        self.nursery = nursery
        self._token = trio.lowlevel.current_trio_token()
        self.clock = HostClock()
        self.workers = Workers(nursery)
        self.timers = Timers(self.clock.now)
        self.turn_slots = Admission(
            running=options.running_turns,
            waiting=options.waiting_turns,
            tenant_share=options.tenant_turns,
            weights=options.weights,
        )
        self.tool_slots = FairSlots(
            options.tool_slots, tenant_capacity=options.tenant_tool_slots, weights=options.weights
        )
        self.threads = trio.CapacityLimiter(options.threads)
        self.observers: list[Observer] = []
        self.tracing: Tracing | None = None
        self.fenced: set[Activity] = set()
        self.supervision = SessionSupervision(
            options.intensity, options.backoff, self.clock.now, self._session_ended
        )
        self.options = options
        self.services = services
        self.journal = journal
        self._resolver = resolver
        self.serving: list[Callable[[str], SessionOptions | None]] = []
        """Who serves sessions of its own here: asked for their options before the program is, which knows nothing of
        them. For the doors."""
        self._actors: dict[str, SessionActor] = {}
        self._remembered = RememberedOptions(options.remembered_options)
        self._passive = PassiveSessions(self, keep_options=resolver is None)
        self.passivation: Passivation | None = None
        if options.passivate_after is not None or options.most_live is not None:
            self.passivation = Passivation(self, options.passivate_after, options.most_live)
            self.observers.append(self.passivation)
        self._resuming: dict[str, trio.Event] = {}
        self._closing = False
        self._refused = 0
        self._lagged = 0
        self._subscriber_errors = 0

    # --- Sessions ------------------------------------------------------------------------------------------

    async def open_session(self, options: SessionOptions, session_id: str | None = None) -> Session:
        """Make a session. Raises `SessionExists`, `InvalidConfiguration`, `SessionClosed` when the host ends."""
        self._check_open()
        chosen = str(uuid.uuid4()) if session_id is None else require_session_id(session_id)
        if chosen in self._actors:
            raise SessionExists(
                f"session {chosen!r} exists already: resume it, or delete it first", session_id=chosen
            )
        log = await self.journal.create(chosen)
        actor = SessionActor(chosen, options, self, log)
        log.watch(partial(recovery.lose, actor))
        self._actors[chosen] = actor
        actor.put(birth.begin)
        if self.passivation is not None:
            self.passivation.idle(chosen)
        return Session(actor)

    async def reopen_session(
        self, session_id: str, options: SessionOptions | None = None, *, continue_pending_work: bool = False
    ) -> Session:
        """Take up a stored session, or attach to it if it is in memory; eight at once make one actor.

        Without *options* those that it had in this process are used, or what the host's resolver gives. Returns when
        it is durable that this host has the session; cancelled meanwhile, it has it all the same. Another host that
        is at work on it may write once more before that: then it is read again, `TAKE_UPS` times.
        Raises `SessionNotFound`, `SessionNotConfigured`, `SessionOwnedElsewhere`, `JournalError`.
        """
        for _ in range(TAKE_UPS - 1):
            with contextlib.suppress(SessionOwnedElsewhere):
                return await self._reopen(session_id, options, continue_pending_work)
        return await self._reopen(session_id, options, continue_pending_work)

    async def _reopen(
        self, session_id: str, options: SessionOptions | None, continue_pending_work: bool
    ) -> Session:
        self._check_open()
        await self.wait_taken_up(require_text("a session id", session_id))
        actor = self._actors.get(session_id)
        if actor is not None and actor.status == "stopping":
            waiter = Waiter()
            actor.put(aborts.stop, actor.stop_reason, waiter)
            await waiter.wait()
            return await self._reopen(session_id, options, continue_pending_work)
        if actor is not None and actor.status not in ("closed", "failed"):
            await trio.lowlevel.checkpoint()
            if options is not None:
                actor.put(birth.given_anew, options)
            return Session(actor)
        # A failed actor stays until somebody takes its session up; its options are known still.
        known = options or self._known_options(session_id)
        passive = session_id in self._passive
        with self.taking_up(session_id):
            actor = await self.load(session_id, partial(self._choose, session_id, known))
        if passive:
            actor.put(birth.come_back, continue_pending_work)
        else:
            actor.resumed = True
            actor.put(birth.take_up, continue_pending_work)
        if actor.options.durability != "relaxed" and actor.status == "live":
            # Only now is it ours, and no other host's.
            await actor.log.wait_durable(actor.state.seq)
        return Session(actor)

    # --- Passive sessions ----------------------------------------------------------------------------------

    @property
    def live(self) -> int:
        """Sessions in memory."""
        return len(self._actors)

    def find(self, session_id: str) -> SessionActor | None:
        """Return the actor of a session, if it is in memory."""
        return self._actors.get(session_id)

    def passivate(self, actor: SessionActor) -> None:
        """Let an idle session leave memory."""
        del self._actors[actor.id]
        self._passive.leave(actor)

    def compact(self) -> None:
        """Give back the memory of a table that was full once."""
        self._actors = dict(self._actors)

    async def wake(self, session_id: str) -> SessionActor:
        """Bring a passive session back; eight at once make one actor.

        Raises `SessionClosed`, `SessionNotConfigured`, `JournalError`. Cancelled: it comes back all the same.
        """
        self._check_open()
        return await self._passive.wake(session_id)

    async def deliver(self, session_id: str, act: Callable[[SessionActor], T]) -> T:
        """Bring a passive session back, and call *act* with its actor. See `exeunt.actors.ports.Host`."""
        self._check_open()
        return await self._passive.deliver(session_id, act)

    def keep(self, actor: SessionActor) -> None:
        """Note who is subscribed to *actor*, which is passive. Wakes nobody."""
        self._passive.keep(actor)

    async def wait_taken_up(self, session_id: str) -> None:
        """Wait until nobody is reading the session's log to take it up."""
        while session_id in self._resuming:
            await self._resuming[session_id].wait()

    @contextlib.contextmanager
    def taking_up(self, session_id: str) -> Generator[None]:
        """Let everybody else wait who would take the session up, or delete it."""
        done = self._resuming[session_id] = trio.Event()
        try:
            yield
        finally:
            del self._resuming[session_id]
            done.set()

    async def load(self, session_id: str, choose: Chooser) -> SessionActor:
        """Make an actor from a stored log, in `taking_up`. *choose* is given its state and returns the options.

        Raises `SessionNotFound`, `JournalError`, `SessionClosed`, and what *choose* raises.
        """
        log = await self.journal.open(session_id)
        actor = SessionActor(session_id, UNKNOWN_YET, self, log)
        await birth.load(actor)
        actor.options = await choose(actor.state)
        # The host may have begun to end meanwhile, and has told those to stop that it had.
        self._check_open()
        log.watch(partial(recovery.lose, actor))
        if self.tracing is not None and actor.state.waiting:
            self.tracing.taking_up(session_id, actor.state.pending())
        self._remembered.forget(session_id)
        self._actors[session_id] = actor
        self._passive.came_back(actor)
        if self.passivation is not None:
            self.passivation.idle(session_id)
        return actor

    def get_session(self, session_id: str) -> Session:
        """Return a session that is in memory. Raises `SessionNotFound`; makes nothing."""
        actor = self._actors.get(require_text("a session id", session_id))
        if actor is None:
            raise SessionNotFound(
                f"no session with the id {session_id!r} is in memory; resume it, if it is stored",
                session_id=session_id,
            )
        return Session(actor)

    def _known_options(self, session_id: str) -> SessionOptions | None:
        actor = self._actors.get(session_id)
        if actor is not None:
            return actor.options
        return self._passive.options(session_id) or self._remembered.get(session_id)

    async def _forget(self, session_id: str) -> None:
        self._actors.pop(session_id, None)
        self._remembered.forget(session_id)
        self._passive.forget(session_id)
        await self.journal.delete(session_id)

    async def _choose(
        self, session_id: str, options: SessionOptions | None, state: SessionState
    ) -> SessionOptions:
        return options or await self.resolve(session_id, state)

    async def resolve(self, session_id: str, state: SessionState | None = None) -> SessionOptions:
        """Return the options of a stored session: of who serves it, or else those that the program gives.

        With its *state*, what was chosen while it ran holds on: the program is told the model, and one that has taken
        over at a limit of the provider is that of the options. Raises `SessionNotConfigured`, and what they raise.
        """
        for serving in self.serving:
            options = serving(session_id)
            if options is not None:
                await trio.lowlevel.checkpoint()
                return options
        metadata = await self.journal.metadata(session_id)
        model = "" if state is None else (state.labels or {}).get("model", "")
        options = await self._ask_program(session_id, attrs.evolve(metadata, model=model))
        return rate_limits.gone_on(options, model)

    async def _ask_program(self, session_id: str, metadata: SessionMetadata) -> SessionOptions:
        if self._resolver is None:
            raise SessionNotConfigured(
                f"session {session_id!r} is stored, but nobody says with which model, tools and handlers it runs; "
                "pass them when it is resumed, or give open_host() a session_options function",
                session_id=session_id,
            )
        options = await self._resolver(session_id, metadata)
        if not isinstance(options, SessionOptions):
            raise InvalidConfiguration(
                f"session_options returned {options!r:.80}, which are no SessionOptions"
            )
        return options

    def _check_open(self) -> None:
        if self._closing:
            raise SessionClosed("the host is ending and takes no sessions")

    def _session_ended(self, actor: SessionActor) -> None:
        if actor.status == "closed" and self._actors.get(actor.id) is actor:
            del self._actors[actor.id]
            if not isinstance(actor.options.model, Unconfigured):
                self._remembered.remember(actor.id, actor.options)

    # --- What the actors need (exeunt.actors.ports.Host) ----------------------------------------------------

    def spawn(self, function: Callable[[], Awaitable[None]]) -> None:
        """Run *function* in a task of the host, with nobody waiting for it."""
        self.nursery.start_soon(function, name="exeunt task")

    def subscriber_failed(self, session_id: str, callback: Callable[..., object], cause: Exception) -> None:
        """Log and count an exception of an observer or of a subscriber's callback."""
        self._subscriber_errors += 1
        logger.error("session %s: subscriber %r raised", session_id, callback, exc_info=cause)

    def subscriber_lagged(self) -> None:
        """Count a subscriber that lost events."""
        self._lagged += 1

    def mailbox_refused(self) -> None:
        """Count a message that a full mailbox refused."""
        self._refused += 1
