"""The host: holds sessions, makes them, finds them, ends them."""

import logging
import uuid
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

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
)
from exeunt.actors.options import SessionOptions
from exeunt.actors.ports import Observer
from exeunt.actors.session import RemoteSession, Session, SessionTransport
from exeunt.actors.session.remote import ANSWER_TIMEOUT
from exeunt.actors.timers import Timers
from exeunt.actors.turn import aborts, birth, recovery
from exeunt.actors.turn.actor import SessionActor
from exeunt.actors.turn.live import Waiter
from exeunt.supervisor.admission import Admission
from exeunt.supervisor.clock import HostClock
from exeunt.supervisor.journal import Journal, SessionMetadata
from exeunt.supervisor.options import HostOptions
from exeunt.supervisor.slots import FairSlots
from exeunt.supervisor.statistics import HostStatistics
from exeunt.supervisor.supervision import SessionSupervision
from exeunt.supervisor.tree import Supervisor

logger = logging.getLogger("exeunt.supervisor")

OptionsResolver = Callable[[str, SessionMetadata], Awaitable[SessionOptions]]

LONGEST_ID = 128
"""Characters of a session id that a host chooses: enough for any key, short enough for a log line."""


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
        self._journal = journal
        self._resolver = resolver
        self._actors: dict[str, SessionActor] = {}
        self._stored: dict[str, SessionOptions] = {}
        """Options of sessions that left memory, so that a message to them need not be lost."""
        self._resuming: dict[str, trio.Event] = {}
        self._closing = False
        self._refused = 0
        self._lagged = 0
        self._subscriber_errors = 0

    # --- Sessions ------------------------------------------------------------------------------------------

    async def open_session(self, options: SessionOptions, session_id: str | None = None) -> Session:
        """Make a session. Raises `SessionExists`, `InvalidConfiguration`, `SessionClosed` when the host ends."""
        self._check_open()
        chosen = str(uuid.uuid4()) if session_id is None else _checked_id(session_id)
        if chosen in self._actors:
            raise SessionExists(f"session {chosen!r} exists already", session_id=chosen)
        log = await self._journal.create(chosen)
        actor = SessionActor(chosen, options, self, log)
        self._actors[chosen] = actor
        actor.put(birth.begin)
        return Session(actor)

    async def reopen_session(
        self, session_id: str, options: SessionOptions | None = None, *, continue_pending_work: bool = False
    ) -> Session:
        """Take up a stored session, or attach to it if it is in memory; eight at once make one actor.

        Without *options* those that it had in this process are used, or what the host's resolver gives.
        Raises `SessionNotFound`, `SessionNotConfigured`.
        """
        self._check_open()
        while session_id in self._resuming:
            await self._resuming[session_id].wait()
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
        done = self._resuming[session_id] = trio.Event()
        try:
            log = await self._journal.open(session_id)
            # A failed actor stays until somebody takes its session up; its options are known still.
            known = self._stored.get(session_id) if actor is None else actor.options
            chosen = options or known or await self._resolve(session_id)
            actor = SessionActor(session_id, chosen, self, log)
            birth.load(actor)
            self._actors[session_id] = actor
            self._stored.pop(session_id, None)
            actor.put(birth.take_up, continue_pending_work)
        finally:
            del self._resuming[session_id]
            done.set()
        return Session(actor)

    def get_session(self, session_id: str) -> Session:
        """Return a session that is in memory. Raises `SessionNotFound`; makes nothing."""
        actor = self._actors.get(session_id)
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
        return RemoteSession(_checked_id(session_id), transport, self, answer_timeout=answer_timeout)

    async def list_sessions(self, *, tenant: str | None = None) -> Sequence[SessionMetadata]:
        """Return what is stored, the session used last first; of one tenant, if asked. Wakes nobody."""
        stored = await self._journal.list()
        return [
            attrs.evolve(item, live=item.session_id in self._actors)
            for item in stored
            if tenant is None or item.tenant == tenant
        ]

    async def delete_session(self, session_id: str) -> None:
        """End a session and forget its log. From one of its own handlers this is a request.

        Raises `SessionNotFound`.
        """
        actor = self._actors.get(session_id)
        if actor is None:
            await self._journal.delete(session_id)
            self._stored.pop(session_id, None)
            return
        session = Session(actor)
        await session.disconnect(reason="deleted")
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
        self._stored.pop(session_id, None)
        await self._journal.delete(session_id)

    async def _resolve(self, session_id: str) -> SessionOptions:
        if self._resolver is None:
            raise SessionNotConfigured(
                f"session {session_id!r} is stored, but nobody says with which model, tools and handlers it runs; "
                "pass them to resume_session(), or give open_host() a session_options function",
                session_id=session_id,
            )
        metadata = next(item for item in await self._journal.list() if item.session_id == session_id)
        return await self._resolver(session_id, metadata)

    def _check_open(self) -> None:
        if self._closing:
            raise SessionClosed("the host is ending and takes no sessions")

    def _session_ended(self, actor: SessionActor) -> None:
        if actor.status == "closed" and self._actors.get(actor.id) is actor:
            del self._actors[actor.id]
            self._stored[actor.id] = actor.options

    def actors(self) -> Sequence[SessionActor]:
        """Return the actors in memory: for the testing kit, which looks into them."""
        return list(self._actors.values())

    # --- What the actors need (exeunt.actors.ports.Host) ----------------------------------------------------

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

    def statistics(self) -> HostStatistics:
        """Return a look at the host. Costs O(sessions)."""
        actors = list(self._actors.values())
        turns = self.turn_slots.statistics()
        return HostStatistics(
            sessions=Counter(actor.status for actor in actors),
            busy=sum(actor.turn is not None or actor.host_batch is not None for actor in actors),
            mailbox_depth=sum(actor.mailbox_depth for actor in actors),
            mailbox_refused=self._refused,
            tool_calls_in_flight=sum(0 if actor.batch is None else actor.batch.open for actor in actors),
            subscriber_lag=self._lagged,
            subscriber_errors=self._subscriber_errors,
            stuck_handlers=len(self.fenced),
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
                actor.put(aborts.stop, "host", waiter)
                if actor.restart is not None:
                    # There is no time for its back-off.
                    actor.restart.expire()
            await trio.lowlevel.checkpoint()
            for waiter in waiters:
                await waiter.wait()
        for actor in list(self._actors.values()):
            recovery.abandon(actor)

    def stuck(self) -> list[str]:
        """Name the handlers that have not come back after their outcome was decided."""
        return sorted(f"{getattr(a, 'name', type(a).__name__)} of session {a.actor.id}" for a in self.fenced)


def _checked_id(session_id: Any) -> str:
    if not isinstance(session_id, str) or not session_id or len(session_id) > LONGEST_ID:
        raise InvalidConfiguration(
            f"a session id is a text of 1 to {LONGEST_ID} characters, not {session_id!r:.80}"
        )
    if not session_id.isprintable():
        raise InvalidConfiguration(f"a session id holds printable characters only, not {session_id!r:.80}")
    return session_id
