"""What is to be sent to one client: in order, bounded, and without ever making anybody wait.

A session writes here and goes on. When the client reads too slowly, what it can do without goes first; when that is
not enough, the connection is given up. A burst is no slowness: one long answer and what follows it may pass the limit
for a moment.
"""

from collections import deque
from collections.abc import Callable

import trio

from exeunt.wire.framing import frame

WRITE_AT_ONCE = 256 * 1024
"""Bytes that are joined for one system call: it costs more than all else of a frame, up to about this size."""

PATIENCE = 5.0
"""Seconds that more than the limit may wait."""

BURST = 4
"""Times the limit that may wait for a moment, and one message more."""


class Outbox:
    """Frames that wait for their client."""

    __slots__ = ("_frames", "_full_since", "_limit", "_now", "_wakeup", "dropped", "overflowed", "size")

    def __init__(self, limit: int, now: Callable[[], float] = trio.current_time) -> None:
        """*limit* is in bytes, *now* gives seconds."""
        self._limit = limit
        self._now = now
        self._full_since: float | None = None
        """Since when more than the limit waits."""
        self._frames: deque[tuple[bytes, bool]] = deque()
        self._wakeup = trio.Event()
        self.size = 0
        """Bytes that wait."""
        self.dropped = 0
        """Events that the client did without."""
        self.overflowed = False
        """Whether the bound was passed by what no client can do without."""

    def put(self, body: bytes, *, droppable: bool = False) -> None:
        """Take one message. One that is *droppable* may be left out when the client is slow. Never waits."""
        if self.overflowed:
            return
        data = frame(body)
        if self.size + len(data) > self._limit:
            self._make_room()
            if droppable:
                self.dropped += 1
                return
            if self._is_too_late():
                self.overflowed = True
                return
        self._frames.append((data, droppable))
        self.size += len(data)
        self._wakeup.set()

    def _is_too_late(self) -> bool:
        if self.size <= self._limit:
            self._full_since = None
            return False
        if self._full_since is None:
            self._full_since = self._now()
        return self.size > BURST * self._limit or self._now() - self._full_since > PATIENCE

    @property
    def is_full(self) -> bool:
        """Whether more than the limit waits: then nothing more is asked for in the client's name."""
        return self.size > self._limit

    def _make_room(self) -> None:
        kept: deque[tuple[bytes, bool]] = deque()
        for entry in self._frames:
            if entry[1]:
                self.dropped += 1
                self.size -= len(entry[0])
            else:
                kept.append(entry)
        self._frames = kept

    def take(self) -> bytes:
        """Return what to write next, and forget it; empty when nothing waits."""
        frames = self._frames
        if not frames:
            return b""
        data, _ = frames.popleft()
        size = len(data)
        if frames and size < WRITE_AT_ONCE:
            parts = [data]
            while frames and size < WRITE_AT_ONCE:
                more, _ = frames.popleft()
                parts.append(more)
                size += len(more)
            data = b"".join(parts)
        self.size -= size
        if self.size <= self._limit:
            self._full_since = None
        return data

    async def wait(self) -> None:
        """Wait until something is there. For the one task that writes."""
        if not self._frames:
            self._wakeup = trio.Event()
            await self._wakeup.wait()
        else:
            await trio.lowlevel.checkpoint()
