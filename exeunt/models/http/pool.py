"""Which connection serves a request."""

import os
import ssl
import weakref
from collections import deque
from contextlib import suppress

import attrs
import trio

from exeunt.actors.models import ModelError, ModelErrorKind
from exeunt.models.http.connect import NoFileLeft, dial
from exeunt.models.http.connection import Connection
from exeunt.models.http.timeouts import Timeouts, positive_seconds, whole_number
from exeunt.models.http.urls import Origin, Proxy

# The end of a body that was read up to its end marker is under way, or never comes. Waiting this long, in seconds,
# is still cheaper than a new connection with TLS.
_DRAIN_SECONDS = 0.02


@attrs.frozen(kw_only=True)
class PoolLimits:
    """How many connections one pool may hold."""

    max_connections: int = attrs.field(default=10_000, validator=whole_number(1))
    """In use and idle together. As many as a host runs turns (`HostOptions.running_turns`): a model takes seconds to
    answer, and who waits for a connection waits for all of them. One call more waits, up to `Timeouts.pool`, first come
    first served. Each takes a file, and a process often has 1,024: `exeunt.allow_many_files()` raises that."""
    max_idle: int = attrs.field(default=1000, validator=whole_number(0))
    """Kept open for the next call; the one idle for longest goes first. What a burst of calls has opened serves the
    next one, where opening it anew takes as long as a third of a turn. What is too many expires."""
    idle_expiry: float = attrs.field(default=30.0, validator=positive_seconds)
    """Seconds after which an idle connection is not used again: shorter than the 60 s of common load balancers.
    Looked at whenever a connection is taken, not by a timer."""


@attrs.frozen(kw_only=True)
class PoolStatistics:
    """A pool at one moment. The numbers of things that happened count since the pool was made."""

    in_use: int
    """Connections that serve a call, or are being opened for one."""
    idle: int
    """Connections that wait for a call."""
    waiting: int
    """Calls that wait for a connection."""
    opened: int
    """Connections that were opened."""
    reused: int
    """Calls that found an open connection."""
    stale: int
    """Calls that were sent again because the server had just closed the connection."""
    expired: int
    """Idle connections that were closed because of their age, or because the server had closed them."""
    evicted: int
    """Idle connections that were closed because there were too many, or no files were left."""
    refused: int
    """Calls that waited too long for a connection."""


class ConnectionPool:
    """Keep-alive connections to one origin, last used first.

    Belongs to the trio run that uses it. Calls of one pool never wait for each other, except for a free
    connection when `max_connections` are busy.
    """

    def __init__(
        self,
        origin: Origin,
        *,
        proxy: Proxy | None,
        ssl_context: ssl.SSLContext | None,
        limits: PoolLimits,
        timeouts: Timeouts,
    ) -> None:
        self._origin = origin
        self._proxy = proxy
        self._ssl_context = ssl_context
        self._limits = limits
        self._timeouts = timeouts
        self._idle: deque[Connection] = deque()
        self._draining: deque[Connection] = deque()
        self._permits = trio.Semaphore(limits.max_connections, max_value=limits.max_connections)
        self._closed = False
        self._opened = 0
        self._reused = 0
        self._expired = 0
        self._evicted = 0
        self._refused = 0
        self.stale = 0
        """See `PoolStatistics.stale`; counted by the client."""
        # A shared pool goes with the last session that used it, and nobody is there to close it. No `__del__`: the
        # collector finalizes the members of a cycle in any order, and would complain of open sockets.
        weakref.finalize(self, _close_left_behind, self._idle, self._draining)

    async def acquire(self, *, fresh: bool = False) -> Connection:
        """Return a connection for one exchange, a new one if *fresh*.

        The caller ends with exactly one `release` or `discard`. Raises `ModelError`; then, and when cancelled,
        there is nothing to give back. Where an idle connection can be had it does not wait at all.
        """
        if self._closed:
            raise ModelError(ModelErrorKind.CONNECTION_LOST, "this model client was closed")
        await self._permit()
        try:
            connection = None if fresh else await self._take()
            if connection is not None:
                self._reused += 1
                return connection
            return await self._open()
        except BaseException:
            self._permits.release()
            raise

    def release(self, connection: Connection) -> None:
        """Give *connection* back after a complete answer: kept where it can be used again, else closed."""
        self._permits.release()
        connection.idle_since = trio.current_time()
        if self._closed:
            connection.close()
        elif connection.is_drained():
            self._idle.append(connection)
        elif connection.can_drain():
            # The end of the body often comes a packet after the end marker of a stream. Nobody waits for it.
            self._draining.append(connection)
        else:
            connection.close()
        self._evict(self._limits.max_idle)

    def discard(self, connection: Connection) -> None:
        """Give *connection* back after a failure: closed at once."""
        self._permits.release()
        connection.close()

    def close(self) -> None:
        """Close the idle connections; those in use are closed when given back. No call is served any more."""
        self._closed = True
        self._close_idle()

    def make_room(self) -> int:
        """Close the idle connections, because no files are left; return how many there were."""
        closed = self._close_idle()
        self._evicted += closed
        return closed

    @property
    def is_closed(self) -> bool:
        """Whether `close` was called."""
        return self._closed

    def statistics(self) -> PoolStatistics:
        """Return the pool's numbers."""
        return PoolStatistics(
            in_use=self._in_use(),
            idle=len(self._idle) + len(self._draining),
            waiting=self._permits.statistics().tasks_waiting,
            opened=self._opened,
            reused=self._reused,
            stale=self.stale,
            expired=self._expired,
            evicted=self._evicted,
            refused=self._refused,
        )

    # --- Parts of `acquire` ---

    def _in_use(self) -> int:
        return self._limits.max_connections - self._permits.value

    async def _permit(self) -> None:
        with suppress(trio.WouldBlock):
            self._permits.acquire_nowait()
            return
        with trio.move_on_after(self._timeouts.pool):
            await self._permits.acquire()
            return
        self._refused += 1
        raise ModelError(
            ModelErrorKind.OVERLOADED,
            f"all {self._limits.max_connections} connections to {self._origin.address} were busy for "
            f"{self._timeouts.pool:g} s",
            retry=True,
        )

    async def _take(self) -> Connection | None:
        self._expire(trio.current_time())
        while self._idle:
            connection = self._idle.pop()
            if not connection.is_readable():
                return connection
            self._expired += 1
            connection.close()
        if not self._draining:
            return None
        connection = self._draining.pop()
        drained = False
        try:
            with trio.move_on_after(_DRAIN_SECONDS):
                drained = await connection.drain()
        finally:
            if not drained:
                self._expired += 1
                connection.close()
        return connection if drained else None

    async def _open(self) -> Connection:
        # The permits bound what is in use; what is idle must make room.
        self._evict(self._limits.max_connections - self._in_use())
        _pools_of_run().add(self)
        try:
            stream, tcp = await self.dial()
        except NoFileLeft:
            if not close_idle_connections():
                raise
            stream, tcp = await self.dial()
        self._opened += 1
        return Connection(stream, tcp)

    async def dial(self, *, tunnel: bool = False) -> tuple[trio.abc.Stream, trio.SocketStream]:
        """Connect, and keep nothing of it. With *tunnel* a proxy must let all through, also without TLS.

        Raises `ModelError`.
        """
        with trio.move_on_after(self._timeouts.connect):
            return await dial(self._origin, self._proxy, self._ssl_context, tunnel=tunnel)
        raise ModelError(
            ModelErrorKind.TIMEOUT,
            f"no connection to {self._origin.address} within {self._timeouts.connect:g} s",
            retry=True,
        )

    # --- Housekeeping ---

    def _close_idle(self) -> int:
        closed = 0
        for connections in (self._idle, self._draining):
            while connections:
                connections.pop().close()
                closed += 1
        return closed

    def _expire(self, now: float) -> None:
        oldest = now - self._limits.idle_expiry
        for connections in (self._idle, self._draining):
            while connections and connections[0].idle_since <= oldest:
                self._expired += 1
                connections.popleft().close()

    def _evict(self, room: int) -> None:
        while len(self._idle) + len(self._draining) > room:
            self._evicted += 1
            (self._draining or self._idle).popleft().close()


_pools: trio.lowlevel.RunVar[weakref.WeakSet[ConnectionPool]] = trio.lowlevel.RunVar(
    "exeunt.models.http.pool"
)


def _pools_of_run() -> weakref.WeakSet[ConnectionPool]:
    """The pools that have opened a connection in this trio run."""
    try:
        return _pools.get()
    except LookupError:
        _pools.set(made := weakref.WeakSet[ConnectionPool]())
        return made


def close_idle_connections() -> int:
    """Close the connections of this trio run on which no call is under way; return how many there were.

    For when no files are left: a pool that is not used looks at the age of its connections no more.
    """
    return sum(pool.make_room() for pool in _pools_of_run())


def _close_left_behind(*connections: deque[Connection]) -> None:
    for each in connections:
        while each:
            with suppress(OSError):
                os.close(each.pop().detach())
