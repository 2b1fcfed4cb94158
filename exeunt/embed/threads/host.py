"""The sessions of one process, for any of its threads."""

from collections.abc import Callable, Coroutine, Sequence
from typing import Any, ParamSpec, TypeVar, Unpack

import exeunt.host as trio_api
from exeunt.actors.ports import Observer
from exeunt.actors.session import PendingRequest, SessionTransport
from exeunt.actors.session.remote import ANSWER_TIMEOUT
from exeunt.configuration import SessionKeywords
from exeunt.embed.documented import like
from exeunt.embed.threads.crossing import at_once, call
from exeunt.embed.threads.remote import RemoteSession
from exeunt.embed.threads.runtime import Runtime
from exeunt.embed.threads.session import Session
from exeunt.metrics import Metrics
from exeunt.supervisor.journal import SessionMetadata
from exeunt.supervisor.options import HostOptions
from exeunt.supervisor.statistics import HostStatistics

T = TypeVar("T")
P = ParamSpec("P")


@like(trio_api.SessionHost)
class SessionHost:
    """In a program of threads: all methods block, and may be called from any thread but the host's own.

    Beside what is said there, every call raises `SessionClosed` when the host has ended, `HostForked` in a fork,
    `WouldBlockHost` in the host's own thread, and `HostLoopClosed` when that has failed.
    """

    def __init__(self, host: trio_api.SessionHost, runtime: Runtime) -> None:
        self._trio = host
        self._runtime = runtime

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
        """The same host for trio coroutines: of `async def` handlers, and of `run_trio`."""
        return self._trio

    def run_trio(
        self, async_fn: Callable[P, Coroutine[Any, Any, T]], /, *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run a coroutine function in the host's thread, in a copy of this thread's context; return its result.

        For all that has no method here: `host.run_trio(host.trio_host.journal.list, limit=100)`.
        """
        return call(self._runtime, async_fn, *args, **kwargs)

    @like(trio_api.SessionHost.create_session)
    def create_session(self, *, session_id: str | None = None, **options: Unpack[SessionKeywords]) -> Session:
        made = call(self._runtime, self._trio.create_session, session_id=session_id, **options)
        return Session(made, self._runtime)

    @like(trio_api.SessionHost.resume_session)
    def resume_session(
        self, session_id: str, *, continue_pending_work: bool = False, **options: Unpack[SessionKeywords]
    ) -> Session:
        resume = self._trio.resume_session
        made = call(self._runtime, resume, session_id, continue_pending_work=continue_pending_work, **options)
        return Session(made, self._runtime)

    @like(trio_api.SessionHost.fork_session)
    def fork_session(
        self,
        session_id: str,
        *,
        at: str | int | None = None,
        new_session_id: str | None = None,
        continue_pending_work: bool = False,
        **options: Unpack[SessionKeywords],
    ) -> Session:
        made = call(
            self._runtime,
            self._trio.fork_session,
            session_id,
            at=at,
            new_session_id=new_session_id,
            continue_pending_work=continue_pending_work,
            **options,
        )
        return Session(made, self._runtime)

    @like(trio_api.SessionHost.get_session)
    def get_session(self, session_id: str) -> Session:
        return Session(at_once(self._runtime, self._trio.get_session, session_id), self._runtime)

    @like(trio_api.SessionHost.attach_remote)
    def attach_remote(
        self, session_id: str, transport: SessionTransport, *, answer_timeout: float = ANSWER_TIMEOUT
    ) -> RemoteSession:
        """The transport is one for trio."""
        made = at_once(
            self._runtime, self._trio.attach_remote, session_id, transport, answer_timeout=answer_timeout
        )
        return RemoteSession(made, self._runtime)

    @like(trio_api.SessionHost.list_sessions)
    def list_sessions(
        self, *, tenant: str | None = None, limit: int | None = None
    ) -> Sequence[SessionMetadata]:
        return call(self._runtime, self._trio.list_sessions, tenant=tenant, limit=limit)

    @like(trio_api.SessionHost.prune_sessions)
    def prune_sessions(
        self, *, older_than: float | None = None, keep: int | None = None, tenant: str | None = None
    ) -> Sequence[str]:
        prune = self._trio.prune_sessions
        return call(self._runtime, prune, older_than=older_than, keep=keep, tenant=tenant)

    @like(trio_api.SessionHost.delete_session)
    def delete_session(self, session_id: str) -> None:
        call(self._runtime, self._trio.delete_session, session_id)

    @like(trio_api.SessionHost.observe)
    def observe(self, observer: Observer) -> None:
        """*observer* is called in the host's thread: it must not block, and not call the host."""
        at_once(self._runtime, self._trio.observe, observer)

    @like(trio_api.SessionHost.pending_requests)
    def pending_requests(self, *, tenant: str | None = None) -> Sequence[PendingRequest]:
        return at_once(self._runtime, self._trio.pending_requests, tenant=tenant)

    @like(trio_api.SessionHost.statistics)
    def statistics(self) -> HostStatistics:
        return at_once(self._runtime, self._trio.statistics)
