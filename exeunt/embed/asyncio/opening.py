"""`open_host`: the door through which an asyncio program gets a host."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import outcome
import trio
from prometheus_client import CollectorRegistry

import exeunt.host as trio_api
from exeunt.actors.errors import SessionClosed
from exeunt.actors.marks import is_on_trio
from exeunt.actors.options import SessionOptions
from exeunt.embed.asyncio.crossing import on_asyncio
from exeunt.embed.asyncio.guest import Guest, logger, outlast
from exeunt.embed.asyncio.handlers import adapter
from exeunt.embed.asyncio.host import SessionHost
from exeunt.embed.documented import like
from exeunt.supervisor.held import OptionsResolver
from exeunt.supervisor.journal import Journal, SessionMetadata
from exeunt.supervisor.options import HostOptions

if TYPE_CHECKING:
    from exeunt.telemetry import Telemetry


@asynccontextmanager
@like(trio_api.open_host)
async def open_host(
    *,
    journal: Journal | str | None = None,
    registry: CollectorRegistry | None = None,
    session_options: OptionsResolver | None = None,
    options: HostOptions | None = None,
    telemetry: "Telemetry | None" = None,
) -> AsyncGenerator[SessionHost]:
    """In an asyncio program: on its own loop (of asyncio or uvloop) and thread, for the body of the `async with`.

    Any number of hosts may be open in one loop. A cancellation in the body, or of the body, ends the host in order and
    is raised then; one that comes while it ends waits for that. If the host itself fails, the body is cancelled and
    the failure is raised in its place. A loop that ends with `asyncio.run` ends the host in order as well; what is
    left open in a loop that was closed in another way is ended in order when the next host is opened in that thread, or
    when the interpreter ends, without its asyncio tasks.

    Raises `TrioAlreadyRunning` where trio runs in this thread for somebody else, and `HostForked` in a fork of a
    process that had a host open in this thread.
    """
    guest = await Guest.enter()
    try:
        open_it = partial(
            trio_api.open_host,
            journal=journal,
            registry=registry,
            session_options=_resolver(session_options),
            options=options,
            telemetry=telemetry,
        )
        held = _Held(guest, open_it)
        host = await held.open()
        host.prepare = adapter(guest).options
        with held.cancelling(asyncio.current_task()):
            try:
                yield SessionHost(host, guest)
            finally:
                await held.close()  # noqa: ASYNC102 - it waits through a cancellation
    finally:
        await guest.exit()  # noqa: ASYNC102 - and so does this


class _Held:
    """A host that a trio task holds open for an asyncio task."""

    def __init__(
        self,
        guest: Guest,
        open_it: Callable[[], contextlib.AbstractAsyncContextManager[trio_api.SessionHost]],
    ) -> None:
        self._guest = guest
        self._open_it = open_it
        self._scope = trio.CancelScope()
        self._close = trio.Event()
        self._opened: asyncio.Future[trio_api.SessionHost | None] = guest.loop.create_future()
        self._over: asyncio.Future[None] = guest.loop.create_future()
        self._failure: BaseException | None = None
        self._body: asyncio.Task[Any] | None = None
        self._cancelled_body = False

    async def open(self) -> trio_api.SessionHost:
        """Open it. Raises what that raises; cancelled, it is closed again first."""
        self._guest.pending.add(self)
        self._guest.nursery.start_soon(self._hold)
        try:
            host = await asyncio.shield(self._opened)
        except BaseException:
            self._scope.cancel()
            await outlast(self._over)  # noqa: ASYNC102 - it waits through a cancellation
            raise
        if host is None:
            await outlast(self._over)
            raise self._failure or SessionClosed("the host ended while it was opened")
        return host

    async def _hold(self) -> None:
        result: outcome.Outcome[None] = outcome.Value(None)
        with self._scope:
            result = await outcome.acapture(self._until_closed)
        if isinstance(result, outcome.Error) and not isinstance(result.error, trio.Cancelled):
            self._failure = result.error
        self.lose()

    async def _until_closed(self) -> None:
        async with self._open_it() as host:
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits
                if not self._opened.done():
                    self._opened.set_result(host)
            await self._close.wait()

    def lose(self) -> None:
        """It is closed, or gone: tell the body, if that does not know."""
        self._guest.pending.discard(self)
        with contextlib.suppress(RuntimeError):
            for future in (self._opened, self._over):
                if not future.done():
                    future.set_result(None)
            if self._body is not None and not self._body.done() and not self._close.is_set():
                self._cancelled_body = True
                self._body.cancel("the host has failed")

    @contextlib.contextmanager
    def cancelling(self, body: "asyncio.Task[Any] | None") -> Generator[None]:
        """Cancel *body* while this lasts if the host fails, and raise the failure in the place of that."""
        self._body = body
        try:
            yield
        except asyncio.CancelledError:
            if self._cancelled_body and body is not None and body.uncancel() == 0:
                raise self._failure or SessionClosed("the host has ended") from None  # noqa: ASYNC104 - ours
            if self._failure is not None:
                logger.error("a host failed while its body was cancelled", exc_info=self._failure)
            raise
        finally:
            self._body = None

    async def close(self) -> None:
        """Let it end, and wait for that; then raise why it failed, if it did. In a fork, nothing happens."""
        if self._guest.loop.is_closed() or not self._guest.is_here:
            return
        self._close.set()
        await outlast(self._over)
        if self._failure is not None and not self._cancelled_body:
            raise self._failure


def _resolver(given: OptionsResolver | None) -> OptionsResolver | None:
    if given is None or is_on_trio(given):
        return given

    async def resolve(session_id: str, metadata: SessionMetadata) -> SessionOptions:
        answer: Awaitable[SessionOptions] = given(session_id, metadata)
        return await on_asyncio(answer)

    return resolve
