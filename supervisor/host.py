"""The host: what it holds (`held`), what is stored, and its own beginning and end."""

import contextlib
import logging
import uuid
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar, TypeVarTuple

import attrs
import trio

from exeunt.actors.errors import (
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
from exeunt.actors.turn import aborts, recovery
from exeunt.actors.turn.actor import SessionActor
from exeunt.actors.turn.live import Waiter
from exeunt.supervisor.checks import require_session_id, require_text, require_whole_number
from exeunt.supervisor.held import HeldSessions
from exeunt.supervisor.journal import SessionMetadata, fork_log
from exeunt.supervisor.retention import Retention
from exeunt.supervisor.statistics import HostStatistics
from exeunt.supervisor.threads import run_on_loop

logger = logging.getLogger("exeunt.supervisor")

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

LIST_AT_ONCE = 1000
"""Sessions that a listing asks the journal for at once."""


class HostCore(HeldSessions):
    """The sessions of one process, in memory and stored. The public `SessionHost` adds the words of the Copilot SDK."""

    _pruned: int = 0

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

    def actors(self) -> Sequence[SessionActor]:
        """Return the actors in memory: for the testing kit, which looks into them."""
        return list(self._actors.values())

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
