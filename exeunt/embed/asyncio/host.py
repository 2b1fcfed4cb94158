"""The sessions of one process, for asyncio tasks."""

from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, ParamSpec, TypeVar, TypeVarTuple, Unpack

import exeunt.host as trio_api
from exeunt.actors.ports import Observer
from exeunt.actors.session import PendingRequest, SessionTransport
from exeunt.actors.session.remote import ANSWER_TIMEOUT
from exeunt.configuration import SessionKeywords
from exeunt.embed.asyncio.crossing import call
from exeunt.embed.asyncio.guest import Guest
from exeunt.embed.asyncio.remote import RemoteSession
from exeunt.embed.asyncio.session import Session
from exeunt.embed.documented import like
from exeunt.metrics import Metrics
from exeunt.supervisor.journal import SessionMetadata
from exeunt.supervisor.options import HostOptions
from exeunt.supervisor.statistics import HostStatistics

T = TypeVar("T")
P = ParamSpec("P")
Ts = TypeVarTuple("Ts")


@like(trio_api.SessionHost)
class SessionHost:
    """In an asyncio program. All methods are for tasks of the loop in which the host was opened.

    Beside what is said there, every call raises `SessionClosed` when the host has ended, and `HostLoopClosed`,
    `WrongEventLoop` or `HostForked` where it can no longer, or cannot, be reached.
    """

    def __init__(self, host: trio_api.SessionHost, guest: Guest) -> None:
        self._trio = host
        self._guest = guest

    @property
    def metrics(self) -> Metrics:
        """What is counted; `metrics.registry` is for Prometheus."""
        return self._trio.metrics

    @property
    def options(self) -> HostOptions:
        """The bounds of the host."""
        return self._trio.options

    @property
    def trio_host(self) -> trio_api.SessionHost:
        """The same host for trio coroutines: of handlers that run on trio, and of `run_trio`."""
        return self._trio

    async def run_trio(
        self, async_fn: Callable[P, Coroutine[Any, Any, T]], /, *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run a coroutine function in the host's trio run, in a copy of this task's context; return its result.

        For all that has no method here: `await host.run_trio(host.trio_host.journal.list, limit=100)`. A
        cancellation of this task cancels it there, and is raised when it has ended there.
        """
        return await call(self._guest, async_fn, *args, **kwargs)

    @like(trio_api.SessionHost.create_session)
    async def create_session(
        self, *, session_id: str | None = None, **options: Unpack[SessionKeywords]
    ) -> Session:
        made = await call(self._guest, self._trio.create_session, session_id=session_id, **options)
        return Session(made, self._guest)

    @like(trio_api.SessionHost.resume_session)
    async def resume_session(
        self, session_id: str, *, continue_pending_work: bool = False, **options: Unpack[SessionKeywords]
    ) -> Session:
        resume = self._trio.resume_session
        made = await call(
            self._guest, resume, session_id, continue_pending_work=continue_pending_work, **options
        )
        return Session(made, self._guest)

    @like(trio_api.SessionHost.fork_session)
    async def fork_session(
        self,
        session_id: str,
        *,
        at: str | int | None = None,
        new_session_id: str | None = None,
        continue_pending_work: bool = False,
        **options: Unpack[SessionKeywords],
    ) -> Session:
        made = await call(
            self._guest,
            self._trio.fork_session,
            session_id,
            at=at,
            new_session_id=new_session_id,
            continue_pending_work=continue_pending_work,
            **options,
        )
        return Session(made, self._guest)

    @like(trio_api.SessionHost.get_session)
    def get_session(self, session_id: str) -> Session:
        self._guest.check_thread()
        return Session(self._trio.get_session(session_id), self._guest)

    @like(trio_api.SessionHost.attach_remote)
    def attach_remote(
        self, session_id: str, transport: SessionTransport, *, answer_timeout: float = ANSWER_TIMEOUT
    ) -> RemoteSession:
        """A transport of asyncio goes through `asyncio_transport` first."""
        self._guest.check_thread()
        made = self._trio.attach_remote(session_id, transport, answer_timeout=answer_timeout)
        return RemoteSession(made, self._guest)

    @like(trio_api.SessionHost.list_sessions)
    async def list_sessions(
        self, *, tenant: str | None = None, limit: int | None = None
    ) -> Sequence[SessionMetadata]:
        return await call(self._guest, self._trio.list_sessions, tenant=tenant, limit=limit)

    @like(trio_api.SessionHost.prune_sessions)
    async def prune_sessions(
        self, *, older_than: float | None = None, keep: int | None = None, tenant: str | None = None
    ) -> Sequence[str]:
        prune = self._trio.prune_sessions
        return await call(self._guest, prune, older_than=older_than, keep=keep, tenant=tenant)

    @like(trio_api.SessionHost.delete_session)
    async def delete_session(self, session_id: str) -> None:
        await call(self._guest, self._trio.delete_session, session_id)

    @like(trio_api.SessionHost.observe)
    def observe(self, observer: Observer) -> None:
        self._guest.check_thread()
        self._trio.observe(observer)

    @like(trio_api.SessionHost.pending_requests)
    def pending_requests(self, *, tenant: str | None = None) -> Sequence[PendingRequest]:
        self._guest.check_thread()
        return self._trio.pending_requests(tenant=tenant)

    @like(trio_api.SessionHost.run_from_thread)
    def run_from_thread(self, async_fn: Callable[[*Ts], Awaitable[T]], *args: *Ts) -> T:
        """The function is one of asyncio, such as the methods of the sessions of this host."""
        return self._guest.run_from_thread(async_fn, *args)

    @like(trio_api.SessionHost.statistics)
    def statistics(self) -> HostStatistics:
        self._guest.check_thread()
        return self._trio.statistics()
