"""`events.jsonl`: the events of a session as its clients see them, one a line, in order.

It follows the log and never holds it up. Events wait in a bounded buffer and are appended in batches. When an append
fails, is of unknown outcome, or the buffer is full, the transcript *falls behind*: the buffer is given up, since the
log has it all, and once the files can be written again the transcript is written anew from the log. So it may be late,
but it has no gap, nothing twice, and no order but the log's.
"""

import logging
import re
from collections import deque
from collections.abc import Awaitable, Callable, Sequence

import msgspec
import trio

from exeunt.actors.errors import ExeuntError, SessionFileNotFound, SessionFileTooLarge
from exeunt.actors.events.envelope import seq_in
from exeunt.wire.events.mapper import WireEvent
from exeunt.wire.events.outside import OUTSIDE
from exeunt.wire.files.counts import FileCounts
from exeunt.wire.files.store import WRITE_AT_ONCE, FileStore
from exeunt.wire.rpc import encode

logger = logging.getLogger("exeunt.wire")

NAME = "events.jsonl"

BESIDE = "events.jsonl.tmp"
"""What a long transcript is written into before it takes the place of the old one."""

MOST_WAITING = 1024 * 1024
"""Bytes of events that wait to be appended: seconds of a busy session. Beyond it, the log is read instead."""

_UNFIT = re.compile(r"[^0-9A-Za-z-]")

Whole = Callable[[], Awaitable[tuple[int, Sequence[WireEvent]]]]
"""Reads the log: the number of its last event, and all that clients see of it. Raises `ExeuntError`."""


class Transcript:
    """One session's. `advance` writes it, one call at a time; all else returns at once."""

    __slots__ = (
        "_behind",
        "_counts",
        "_fails",
        "_found",
        "_last_id",
        "_new",
        "_size",
        "_store",
        "_through",
        "_unchecked",
        "_waiting",
        "_whole",
    )

    def __init__(self, store: FileStore, whole: Whole, counts: FileCounts) -> None:
        self._store = store
        self._whole = whole
        self._counts = counts
        self._waiting: deque[tuple[int, str, bytes]] = deque()
        self._size = 0
        self._through = 0
        """Number of the last event that is in the file, or was given up for a reading of the log."""
        self._last_id = ""
        """The event with which the file ends."""
        self._new = False
        """Whether there should be no file yet."""
        self._behind = False
        self._unchecked: str | None = None
        """The event with which a file must end that an earlier process has written."""
        self._found = ""
        """The event with which the file ended that was found, where that is not the log's end."""
        self._fails = False
        """Whether the last attempt failed: falling behind is told of and counted once."""

    @property
    def place(self) -> str:
        """Its whole path."""
        return self._store.place(NAME)

    @property
    def is_due(self) -> bool:
        """Whether there is anything to write."""
        return bool(self._waiting) or self._behind or self._unchecked is not None

    @property
    def is_behind(self) -> bool:
        """Whether it could not be gone on with."""
        return self._behind

    def begins_behind(self, last_id: str | None) -> None:
        """Let it go on where an earlier process has left it: *last_id* is the last event that clients saw."""
        self._unchecked = last_id or ""

    def begins_anew(self) -> None:
        """Let it begin: the session is new here. What is there already is of another one, and is kept beside it."""
        self._new = True

    def recheck(self) -> None:
        """Let it be looked at before it is gone on with: somebody else keeps it now."""
        self._unchecked = self._last_id

    def note(self, wire: WireEvent) -> None:
        """Take an event. Never waits, and never fails."""
        if wire.ephemeral or self._behind or wire.type in OUTSIDE:
            return
        seq = seq_in(wire.id)
        line = encode(wire) + b"\n"
        if self._size + len(line) > MOST_WAITING:
            self.fall_behind("more events wait than its buffer takes")
        elif seq is not None:
            self._waiting.append((seq, wire.id, line))
            self._size += len(line)

    def fall_behind(self, why: object) -> None:
        """Give up what waits: the log has it."""
        if not self._behind and not self._fails:
            self._counts.transcripts_behind += 1
            # It mends itself, and is counted; a thousand clients that are cut off are no thousand alarms.
            logger.info("the transcript %s is behind: %s", self.place, why)
        self.start_over()

    def start_over(self) -> None:
        """Let it be written anew from the log: the session went back behind what is in it."""
        self._behind = True
        self._waiting.clear()
        self._size = 0

    async def advance(self) -> bool:
        """Write some of what is due; say whether that was possible. Cancelled: the transcript is behind."""
        try:
            if self._unchecked is not None:
                await self._check(self._unchecked)
                self._unchecked = None
            if self._behind:
                await self._rewrite()
            elif self._waiting:
                await self._append()
        except ExeuntError as error:
            self.fall_behind(error)
            self._unchecked = None
            self._fails = True
            return False
        except trio.Cancelled:
            self.fall_behind("its writing was cut off")
            raise
        self._fails = False
        return True

    async def _append(self) -> None:
        lines: list[bytes] = []
        event_id = ""
        size = count = 0
        while self._waiting and size < WRITE_AT_ONCE:
            seq, event_id, line = self._waiting.popleft()
            self._size -= len(line)
            if seq > self._through:
                lines.append(line)
                size += len(line)
                count += 1
                self._through, self._last_id = seq, event_id
        if lines:
            await self._make_way(event_id)
            await self._store.append(NAME, b"".join(lines).decode())
            self._counts.events_written += count

    async def _make_way(self, event_id: str) -> None:
        """Keep what is there already of another session."""
        if self._new:
            if await self._store.exists(NAME):
                await self._store.rename(NAME, f"events.before-{event_id}.jsonl")
            self._new = False

    async def _check(self, last_id: str) -> None:
        """See whether the file holds what it should, by its first and its last line."""
        try:
            content = await self._store.read(NAME)
        except (SessionFileNotFound, SessionFileTooLarge) as error:
            return self.fall_behind(error)
        lines = content.split("\n")
        whole = len(lines) > 1 and not lines[-1]
        end = _kind_of(lines[-2])[1] if whole else ""
        if not whole or _kind_of(lines[0])[0] != "session.start" or end != last_id:
            self._found = end
            self.fall_behind("it does not end where the log does")
        self._last_id = last_id
        return None

    async def _rewrite(self) -> None:
        # Not to read a log for nobody who takes it.
        await self._store.exists(NAME)
        self._behind = False
        seq, events = await self._whole()
        self._through = seq
        if self._found and all(event.id != self._found for event in events):
            # Another server has written it: what it says may be said nowhere else.
            await self._store.rename(NAME, f"events.{_UNFIT.sub('', self._found)[:64]}.jsonl")
        self._found = ""
        if events:
            await self._make_way(events[0].id)
        await self._write([encode(event) + b"\n" for event in events])
        self._last_id = events[-1].id if events else ""
        self._counts.transcripts_rewritten += 1

    async def _write(self, lines: Sequence[bytes]) -> None:
        text = b"".join(lines).decode()
        if len(text) <= WRITE_AT_ONCE:
            await self._store.write(NAME, text)
            return
        await self._store.write(BESIDE, text[:WRITE_AT_ONCE])
        for begin in range(WRITE_AT_ONCE, len(text), WRITE_AT_ONCE):
            await self._store.append(BESIDE, text[begin : begin + WRITE_AT_ONCE])
        await self._store.rename(BESIDE, NAME)


class _Line(msgspec.Struct):
    type: str
    id: str


_line = msgspec.json.Decoder(_Line)


def _kind_of(line: str) -> tuple[str, str]:
    try:
        found = _line.decode(line)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return "", ""
    return found.type, found.id
