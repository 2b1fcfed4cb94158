"""`open_host`: the door through which a program of threads gets a host."""

import threading
from collections.abc import Awaitable, Callable, Generator
from contextlib import AbstractAsyncContextManager, contextmanager
from functools import partial
from typing import TYPE_CHECKING

import outcome
import trio
from prometheus_client import CollectorRegistry

import exeunt.host as trio_api
from exeunt.actors.errors import SessionClosed
from exeunt.actors.options import SessionOptions
from exeunt.embed.documented import like
from exeunt.embed.threads.crossing import Crossing
from exeunt.embed.threads.handlers import adapter, in_thread
from exeunt.embed.threads.host import SessionHost
from exeunt.embed.threads.runtime import Runtime
from exeunt.supervisor.held import OptionsResolver
from exeunt.supervisor.journal import Journal, SessionMetadata
from exeunt.supervisor.options import HostOptions

if TYPE_CHECKING:
    from exeunt.telemetry import Telemetry

Resolver = Callable[[str, SessionMetadata], SessionOptions | Awaitable[SessionOptions]]


@contextmanager
@like(trio_api.open_host)
def open_host(
    *,
    journal: Journal | str | None = None,
    registry: CollectorRegistry | None = None,
    session_options: Resolver | None = None,
    options: HostOptions | None = None,
    telemetry: "Telemetry | None" = None,
) -> Generator[SessionHost]:
    """In a program of threads: for the body of the `with`, in a thread of its own, which all hosts share.

    *session_options* may be synchronous; it runs in a worker thread then. Ctrl-C in the body ends the host in order;
    a second one, while it ends, is raised at once, and the host ends behind it. If the host itself fails, calls raise
    `SessionClosed`, and the failure is raised at the end. A host that is still open when the main thread has ended is
    ended in order before the interpreter goes, which waits 10 s for it at most. In a fork of the process every call
    raises `HostForked`, and leaving the `with` does nothing.
    """
    runtime = Runtime.enter()
    in_order = False
    try:
        held = _Held(runtime)
        threads = (options or HostOptions()).threads
        open_it = partial(
            trio_api.open_host,
            journal=journal,
            registry=registry,
            session_options=_resolver(session_options, threads),
            options=options,
            telemetry=telemetry,
        )
        host = held.open(open_it)
        host.prepare = adapter(runtime, threads).options
        try:
            yield SessionHost(host, runtime)
        finally:
            held.close()
        in_order = True
    except Exception:
        in_order = True
        raise
    finally:
        runtime.exit(wait=in_order)


class _Held:
    """A host that a trio task holds open for a program of threads."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._scope = trio.CancelScope()
        self._close = trio.Event()
        self._opening = Crossing(runtime)
        self._over = threading.Event()
        self._failure: BaseException | None = None

    def open(
        self, open_it: Callable[[], AbstractAsyncContextManager[trio_api.SessionHost]]
    ) -> trio_api.SessionHost:
        """Open it. Raises what that raises; interrupted, it is closed again behind it."""
        self._opening.start(self._begin, open_it)
        self._runtime.pending.add(self)
        try:
            host: trio_api.SessionHost = self._opening.wait().unwrap()
        except Exception:
            raise
        except BaseException:
            self._runtime.soon(self._scope.cancel)
            raise
        return host

    def close(self) -> None:
        """Let it end, and wait for that; then raise why it failed, if it did. In a fork, nothing happens."""
        if not self._runtime.is_here:
            return
        self._runtime.soon(self._close.set)
        self._over.wait()
        if self._failure is not None:
            raise self._failure

    def lose(self) -> None:
        """It is closed, or gone."""
        self._runtime.pending.discard(self)
        self._over.set()

    def _begin(self, open_it: Callable[[], AbstractAsyncContextManager[trio_api.SessionHost]]) -> None:
        if self._runtime.leaving:
            self._opening.lose()
            self.lose()
        else:
            self._runtime.nursery.start_soon(self._hold, open_it)

    async def _hold(self, open_it: Callable[[], AbstractAsyncContextManager[trio_api.SessionHost]]) -> None:
        result: outcome.Outcome[None] = outcome.Value(None)
        with self._scope:
            result = await outcome.acapture(self._until_closed, open_it)
        if isinstance(result, outcome.Error) and not isinstance(result.error, trio.Cancelled):
            self._failure = result.error
        self._opening.finish(
            outcome.Error(self._failure or SessionClosed("the host ended while it was opened"))
        )
        self.lose()

    async def _until_closed(
        self, open_it: Callable[[], AbstractAsyncContextManager[trio_api.SessionHost]]
    ) -> None:
        async with open_it() as host:
            self._opening.finish(outcome.Value(host))
            await self._close.wait()


def _resolver(given: Resolver | None, threads: int) -> OptionsResolver | None:
    if given is None:
        return None
    limiter: list[trio.CapacityLimiter] = []

    async def resolve(session_id: str, metadata: SessionMetadata) -> SessionOptions:
        if not limiter:
            limiter.append(trio.CapacityLimiter(threads))
        options: SessionOptions = await in_thread(limiter[0], given, session_id, metadata)
        return options

    return resolve
