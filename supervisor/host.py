"""The host: holds sessions, makes them, finds them, ends them."""

import contextlib
import logging
import uuid
from collections import Counter
from collections.abc import Awaitable, Callable, Generator, Sequence
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
    UnknownEvent,
)
from exeunt.actors.events.envelope import seq_in
from exeunt.actors.options import SessionOptions
from exeunt.actors.ports import Observer
from exeunt.actors.session import PendingRequest, RemoteSession, Session, SessionTransport
from exeunt.actors.session.pending import pending_in
from exeunt.actors.session.putting import stop
from exeunt.actors.session.remote import ANSWER_TIMEOUT
from exeunt.actors.session.waiting import HOST_ENDED
from exeunt.actors.timers import Timers
from exeunt.actors.turn import aborts, birth, recovery
from exeunt.actors.turn.actor import SessionActor
from exeunt.actors.turn.live import Waiter
from exeunt.supervisor.admission import Admission
from exeunt.supervisor.checks import require_session_id, require_text, require_whole_number
from exeunt.supervisor.clock import HostClock
from exeunt.supervisor.journal import Journal, SessionMetadata, fork_log
from exeunt.supervisor.options import HostOptions
from exeunt.supervisor.passivation import Passivation
from exeunt.supervisor.remembered import RememberedOptions
from exeunt.supervisor.retention import Retention
from exeunt.supervisor.slots import FairSlots
from exeunt.supervisor.statistics import HostStatistics
from exeunt.supervisor.supervision import SessionSupervision
from exeunt.supervisor.threads import run_on_loop
from exeunt.supervisor.tree import Supervisor
from exeunt.supervisor.waking import PassiveSessions, Unconfigured

logger = logging.getLogger("exeunt.supervisor")

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

OptionsResolver = Callable[[str, SessionMetadata], Awaitable[SessionOptions]]

LIST_AT_ONCE = 1000
"""Sessions that a listing asks the journal for at once."""


class HostCore:
    """The sessions of one process, and what they share. The public `SessionHost` adds the words of the Copilot SDK."""

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
        self.fenced: set[Activity] = set()
        self.supervision = SessionSupervision(
            options.intensity, options.backoff, self.clock.now, self._session_ended
        )
        self.options = options
        self.services = services
        self.journal = journal
        self._resolver = resolver
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
        self._pruned = 0
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
        it is durable that this host has the session; cancelled meanwhile, it has it all the same.
        Raises `SessionNotFound`, `SessionNotConfigured`, `SessionOwnedElsewhere`, `JournalError`.
        """
        self._check_open()
        await self.wait_taken_up(require_text("a session id", session_id))
        actor = self._actors.get(session_id)
        if actor is not None and actor.status == "stopping":
            waiter = Waiter()
            actor.put(aborts.stop, actor.stop_reason, waiter)
            await waiter.wait()
            return await self.reopen_session(session_id, options, continue_pending_work=continue_pending_work)
        if actor is not None and actor.status not in ("closed", "failed"):
            await trio.lowlevel.checkpoint()
            if options is not None:
                actor.put(birth.reconfigure, options)
            return Session(actor)
        # A failed actor stays until somebody takes its session up; its options are known still.
        known = options or self._known_options(session_id)
        passive = session_id in self._passive
        with self.taking_up(session_id):
            actor = await self.load(session_id, known)
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

    async def load(self, session_id: str, options: SessionOptions | None) -> SessionActor:
        """Make an actor from a stored log, in `taking_up`. Without *options* the program is asked for them.

        Raises `SessionNotFound`, `JournalError`, `SessionClosed`, and what `resolve` raises.
        """
        log = await self.journal.open(session_id)
        actor = SessionActor(session_id, options or await self.resolve(session_id), self, log)
        await birth.load(actor)
        # The host may have begun to end meanwhile, and has told those to stop that it had.
        self._check_open()
        log.watch(partial(recovery.lose, actor))
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
                f"no session with the id {session_id!r} is in memory; host.resume_session() takes up a stored one",
                session_id=session_id,
            )
        return Session(actor)

    def attach_remote(
        self, session_id: str, transport: SessionTransport, *, answer_timeout: float = ANSWER_TIMEOUT
    ) -> RemoteSession:
        """Return a handle of a session whose actor lives in another process, reached over *transport*.

        Nothing is sent yet, and the session is not one of `list_sessions`. Clears that the handle refuses are shown to
        this host's observers and metrics. *answer_timeout*, in seconds, bounds each wait for an answer.
        Raises `InvalidConfiguration`, `SessionClosed` when the host ends.
        """
        self._check_open()
        return RemoteSession(require_session_id(session_id), transport, self, answer_timeout=answer_timeout)

    async def list_sessions(
        self, *, tenant: str | None = None, limit: int | None = None
    ) -> Sequence[SessionMetadata]:
        """Return what is stored, the session used last first; of one tenant, if asked; at most *limit*.

        Wakes nobody. For very many sessions go through `host.journal.list()`, page by page.
        Raises `InvalidConfiguration`, `JournalError`.
        """
        if tenant is not None:
            require_text("tenant", tenant)
        if limit is not None:
            require_whole_number("limit", limit, least=1)
        found: list[SessionMetadata] = []
        page: str | None = None
        while True:
            wanted = LIST_AT_ONCE if limit is None else min(LIST_AT_ONCE, limit - len(found))
            part = await self.journal.list(tenant=tenant, limit=wanted, page=page)
            found.extend(attrs.evolve(item, live=item.session_id in self._actors) for item in part.sessions)
            page = part.next
            if page is None or (limit is not None and len(found) >= limit):
                return found

    async def fork(
        self,
        session_id: str,
        options: SessionOptions | None,
        at: str | int | None,
        new_session_id: str | None,
        continue_pending_work: bool,
    ) -> Session:
        """Make a session of the beginning of another's log. See `SessionHost.fork_session`."""
        self._check_open()
        require_text("a session id", session_id)
        chosen = str(uuid.uuid4()) if new_session_id is None else require_session_id(new_session_id)
        seq = at if isinstance(at, int) or at is None else await self._number_of(session_id, at)
        known = options or self._known_options(session_id) or await self.resolve(session_id)
        await fork_log(self.journal, session_id, chosen, seq)
        return await self.reopen_session(chosen, known, continue_pending_work=continue_pending_work)

    async def _number_of(self, session_id: str, event_id: str) -> int:
        # What is on its way to the database is waited for.
        await self.journal.metadata(session_id)
        seq = seq_in(event_id)
        found = await self.journal.read(session_id, seq, 1) if seq else ()
        if seq is None or not found or found[0].id != event_id:
            raise UnknownEvent(
                f"the log of session {session_id!r} has no event {event_id!r:.80}", session_id=session_id
            )
        return seq

    def _known_options(self, session_id: str) -> SessionOptions | None:
        actor = self._actors.get(session_id)
        if actor is not None:
            return actor.options
        return self._passive.options(session_id) or self._remembered.get(session_id)

    async def prune_sessions(
        self, *, older_than: float | None = None, keep: int | None = None, tenant: str | None = None
    ) -> Sequence[str]:
        """Delete stored sessions that are too old, or too many; return their ids, the oldest first.

        *older_than* is in seconds since a session's last event; *keep* is how many stay, those used last; with both, a
        session goes when either says so. *tenant* looks at the sessions of one only. Sessions in memory count, and
        stay. What another host has in memory cannot be seen from here: it loses its session. Costs one transaction
        for each deletion.

        Raises `InvalidConfiguration`, `JournalError`. Cancelled, or when it fails: those deleted before are gone.
        """
        self._check_open()
        expired = await Retention(older_than, keep).expired(self.journal, self.clock.wall(), tenant=tenant)
        gone: list[str] = []
        for session in expired:
            session_id = session.session_id
            # It may have been used, or deleted, since it was listed.
            if session_id in self._actors or session_id in self._resuming:
                continue
            with contextlib.suppress(SessionNotFound):
                if await self.journal.metadata(session_id) == session and session_id not in self._actors:
                    await self._forget(session_id)
                    self._pruned += 1
                    gone.append(session_id)
        return gone

    async def delete_session(self, session_id: str) -> None:
        """End a session and forget its log. From one of its own handlers this is a request.

        Raises `SessionNotFound`.
        """
        await self.wait_taken_up(require_text("a session id", session_id))
        actor = self._actors.get(session_id)
        if actor is None:
            await self._forget(session_id)
            return
        await stop(actor, aborts.DELETED)
        if actor.status in ("closed", "failed"):
            await self._forget(session_id)
        else:
            self.nursery.start_soon(self._delete_when_ended, actor, name="exeunt delete")

    async def _delete_when_ended(self, actor: SessionActor) -> None:
        waiter = Waiter()
        actor.put(aborts.stop, "deleted", waiter)
        await waiter.wait()
        await self._forget(actor.id)

    async def _forget(self, session_id: str) -> None:
        self._actors.pop(session_id, None)
        self._remembered.forget(session_id)
        self._passive.forget(session_id)
        await self.journal.delete(session_id)

    async def resolve(self, session_id: str) -> SessionOptions:
        """Ask the program for the options of a stored session. Raises `SessionNotConfigured`, and what it raises."""
        metadata = await self.journal.metadata(session_id)
        if self._resolver is None:
            raise SessionNotConfigured(
                f"session {session_id!r} is stored, but nobody says with which model, tools and handlers it runs; "
                "pass them to resume_session(), or give open_host() a session_options function",
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

    def actors(self) -> Sequence[SessionActor]:
        """Return the actors in memory: for the testing kit, which looks into them."""
        return list(self._actors.values())

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

    # --- The host itself -----------------------------------------------------------------------------------

    def observe(self, observer: Observer) -> None:
        """Tell *observer* of every event of every session, from now on, after it was logged."""
        self.observers.append(observer)

    def pending_requests(self, *, tenant: str | None = None) -> Sequence[PendingRequest]:
        """Return what the sessions in memory ask people, oldest first; of one tenant, if asked. Costs O(sessions).

        What a stored session asks that is not in memory is in its log: take it up with `continue_pending_work=True`.
        """
        return pending_in(self._actors.values(), tenant)

    def run_from_thread(self, async_fn: Callable[[*Ts], Awaitable[T]], *args: *Ts) -> T:
        """Run `async_fn(*args)` on the host's loop, from any other thread; return what it returns.

        The only way from a thread that the host did not start: everything else of a host, its sessions' methods too,
        belongs to the loop's thread. `host.run_from_thread(session.answer, request_id, "yes")`. Blocks the thread.

        Raises what *async_fn* raises, `WouldDeadlock` in the loop's own thread, and `SessionClosed` when the loop has
        ended, or ends meanwhile: then it may have been done.
        """
        return run_on_loop(self._token, async_fn, *args)

    def statistics(self) -> HostStatistics:
        """Return a look at the host. Costs O(sessions)."""
        actors = list(self._actors.values())
        sessions = Counter("passive" if a.status == "unconfigured" else a.status for a in actors)
        if self._passive:
            sessions["passive"] += len(self._passive)
        turns = self.turn_slots.statistics()
        return HostStatistics(
            sessions=sessions,
            busy=sum(actor.turn is not None or actor.host_batch is not None for actor in actors),
            mailbox_depth=sum(actor.mailbox_depth for actor in actors),
            mailbox_refused=self._refused,
            tool_calls_in_flight=sum(0 if actor.batch is None else actor.batch.open for actor in actors),
            pending_requests=len(self.pending_requests()),
            subscriber_lag=self._lagged,
            subscriber_errors=self._subscriber_errors,
            stuck_handlers=len(self.fenced),
            pruned=self._pruned,
            options_forgotten=self._remembered.forgotten,
            admission={"granted": turns.granted, "queued": turns.delayed, "refused": turns.refused},
            turns=turns,
            tools=self.tool_slots.statistics(),
            services=self.services.statistics(),
        )

    async def close(self) -> None:
        """End every session in order: turns are aborted, queues stay in the log. Bounded by the grace."""
        self._closing = True
        with trio.move_on_after(self.options.shutdown_grace):
            waiters: list[Waiter] = []
            for actor in list(self._actors.values()):
                waiter = Waiter()
                waiters.append(waiter)
                actor.put(aborts.stop, HOST_ENDED, waiter)
                if actor.restart is not None:
                    # There is no time for its back-off.
                    actor.restart.expire()
            await trio.lowlevel.checkpoint()
            for waiter in waiters:
                await waiter.wait()
        for actor in list(self._actors.values()):
            recovery.abandon(actor)
        self._passive.forget_all()

    def stuck(self) -> list[str]:
        """Name the handlers that have not come back after their outcome was decided."""
        return sorted(f"{getattr(a, 'name', type(a).__name__)} of session {a.actor.id}" for a in self.fenced)
