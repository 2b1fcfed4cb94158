"""Which connection serves a call."""

import weakref
from collections import OrderedDict

import trio

from exeunt.models.http import PoolStatistics
from exeunt.models.responses.sockets.line import Line

# As many as of idle HTTP connections: each is a file, and the handshake that it saves takes some 100 ms.
MOST_IDLE = 200

# Seconds without a request after which a connection is not used again: load balancers between close it unseen.
IDLE_EXPIRY = 240.0

# Seconds: servers close a connection that is an hour old, whatever it is doing.
OLDEST = 3300.0


class Lines:
    """The idle connections of a model, one for each session at most, the one idle for longest first.

    There are as many in use as calls: those are bounded by the host's turns.
    """

    def __init__(self) -> None:
        self._idle: OrderedDict[str, Line] = OrderedDict()
        self._in_use = 0
        self._opened = 0
        self._reused = 0
        self._expired = 0
        self._evicted = 0
        self._closed = False
        self.stale = 0
        """Calls that were sent again on a new connection, because the kept one was dead."""
        # They go with the last session that holds the model, and nobody is there to close them.
        weakref.finalize(self, _abandon, self._idle)

    async def take(self, session_id: str) -> Line | None:
        """Return the session's connection, if there is one that can be used. End with `give_back` or `drop`."""
        self._expire(trio.current_time())
        line = self._idle.pop(session_id, None)
        if line is None:
            return None
        usable = False
        try:
            usable = await line.socket.rest()
        finally:
            if not usable:
                self._expired += 1
                line.socket.close()
        if not usable:
            return None
        self._in_use += 1
        self._reused += 1
        return line

    def opened(self) -> None:
        """A connection was opened, and is in use."""
        self._opened += 1
        self._in_use += 1

    async def give_back(self, line: Line) -> None:
        """Keep a connection that has served a call to its end; cancelled, it is closed."""
        self._in_use -= 1
        line.served += 1
        line.idle_since = trio.current_time()
        usable = False
        try:
            usable = not self._closed and line.session_id not in self._idle and await line.socket.rest()
        finally:
            if usable:
                self._idle[line.session_id] = line
            else:
                line.socket.close()
        while len(self._idle) > MOST_IDLE:
            self._evicted += 1
            self._idle.popitem(last=False)[1].socket.close()

    def drop(self, line: Line) -> None:
        """Close a connection that was in use."""
        self._in_use -= 1
        line.socket.close()

    def close(self) -> None:
        """Close the idle connections; none is kept any more."""
        self._closed = True
        while self._idle:
            self._idle.popitem()[1].socket.close()

    def statistics(self) -> PoolStatistics:
        """Return the numbers."""
        return PoolStatistics(
            in_use=self._in_use,
            idle=len(self._idle),
            waiting=0,
            opened=self._opened,
            reused=self._reused,
            stale=self.stale,
            expired=self._expired,
            evicted=self._evicted,
            refused=0,
        )

    def _expire(self, now: float) -> None:
        old = [
            key
            for key, line in self._idle.items()
            if line.idle_since <= now - IDLE_EXPIRY or line.began <= now - OLDEST
        ]
        for key in old:
            self._expired += 1
            self._idle.pop(key).socket.close()


def _abandon(lines: OrderedDict[str, Line]) -> None:
    while lines:
        lines.popitem()[1].socket.abandon()
