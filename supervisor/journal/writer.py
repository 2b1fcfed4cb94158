"""The thread that writes: group commit, retries, and what becomes of that which cannot be written.

It takes what has come in meanwhile, from all sessions, writes it in one transaction, and tells the loop. So the number
of commits follows the speed of the disk, not the number of sessions.
"""

import logging
import queue
import threading
import time
from collections.abc import Callable
from typing import Protocol

import attrs
import trio

from exeunt.actors.errors import JournalError, JournalUnavailable
from exeunt.actors.events import Event
from exeunt.actors.text import cause_of
from exeunt.supervisor.journal.log import DurableLog
from exeunt.supervisor.journal.slices import Slices, batches, rows, seal
from exeunt.supervisor.journal.store import Row, Store, StoreUnavailable

logger = logging.getLogger("exeunt.supervisor")

FIRST_RETRY, LONGEST_RETRY = 0.05, 2.0
"""Seconds between attempts to write while the database is unavailable: soon enough to catch a lock that is let go,
rare enough not to load a server that is coming up."""


class Reports(Protocol):
    """Whom the writer tells, in the loop, what has become of what it was given."""

    def committed(self, batch: Slices, seconds: float) -> None:
        """What is not fenced of *batch* is durable; it took *seconds*. The fenced has lost its session."""
        ...

    def settled(self, batch: Slices) -> None:
        """*batch* needed no writing: it was fenced before."""
        ...

    def refused(self, log: DurableLog, events: list[Event], error: JournalError) -> None:
        """*events* of *log* will never be written."""
        ...

    def failed(self, error: StoreUnavailable) -> None:
        """An attempt found the database unavailable; there will be another."""
        ...


@attrs.frozen
class _Snapshot:
    session_id: str
    seq: int
    data: bytes


class Writer:
    """One thread, in which all writing of one journal is done, in the order in which it was asked for."""

    def __init__(self, store: Store, reports: Reports) -> None:
        self._store = store
        self._reports = reports
        self._queue: queue.SimpleQueue[Slices | _Snapshot | None] = queue.SimpleQueue()
        self._ending = threading.Event()
        self._token: trio.lowlevel.TrioToken | None = None
        self._gave_up: StoreUnavailable | None = None
        """Why not everything could be written before the end."""
        self._given_up = 0
        """How many events that were."""

    async def run(self) -> None:
        """Write until `end`, and all that was asked for before it. A cancellation changes nothing."""
        self._token = trio.lowlevel.current_trio_token()
        try:
            with trio.CancelScope(shield=True):
                # A limiter of its own: whatever else uses threads must not keep it waiting.
                await trio.to_thread.run_sync(self._write_for_ever, limiter=trio.CapacityLimiter(1))
        finally:
            # Ready to run again. Not at the beginning: `end` may have been called before this task came to run.
            self._ending.clear()
            self._gave_up = None

    def write(self, slices: Slices) -> None:
        """Write *slices*, and report each. Never waits."""
        self._queue.put(slices)

    def write_snapshot(self, session_id: str, seq: int, data: bytes) -> None:
        """Write a snapshot, if that can be done. Never waits."""
        self._queue.put(_Snapshot(session_id, seq, data))

    def end(self) -> None:
        """Write what is left, then end; where the database is away, do not wait for it any more."""
        self._ending.set()
        self._queue.put(None)

    # --- In the thread ---------------------------------------------------------------------------------------

    def _write_for_ever(self) -> None:
        go_on = True
        while go_on:
            slices, go_on = self._next_slices()
            for batch in batches(slices) if slices else ():
                self._write(batch)
        if self._given_up:
            logger.critical("%d events could not be written to %s", self._given_up, self._store.name)
            self._given_up = 0

    def _next_slices(self) -> tuple[Slices, bool]:
        """Wait for work and take all that there is; say whether more may come."""
        item = self._queue.get()
        slices: Slices = []
        while True:
            if item is None:
                if self._ending.is_set():
                    return slices, False
            elif isinstance(item, _Snapshot):
                self._keep(item)
            else:
                slices.extend(item)
            try:
                item = self._queue.get_nowait()
            except queue.Empty:
                return slices, True

    def _keep(self, snapshot: _Snapshot) -> None:
        if self._gave_up is not None:
            return
        try:
            self._store.write_snapshot(snapshot.session_id, snapshot.seq, seal(snapshot.data))
        except JournalError as error:
            logger.warning("the snapshot of session %s was not kept: %s", snapshot.session_id, error)

    def _write(self, batch: Slices) -> None:
        """Write one batch: until it is durable, or the journal ends without its database."""
        if self._gave_up is not None:
            self._give_up(batch, self._gave_up)
            return
        fenced = [(log, events) for log, events in batch if log.fenced]
        if fenced:
            self._tell(self._reports.settled, fenced)
            batch = [(log, events) for log, events in batch if not log.fenced]
            if not batch:
                return
        delay = FIRST_RETRY
        encoded: list[Row] | None = None
        while True:
            began = time.perf_counter()
            try:
                if encoded is None:
                    encoded = [row for log, events in batch for row in rows(log, events)]
                lost = frozenset(self._store.write(encoded))
            except StoreUnavailable as error:
                self._tell(self._reports.failed, error)
                if self._ending.is_set():
                    self._give_up(batch, error)
                    return
                self._ending.wait(delay)
                delay = min(LONGEST_RETRY, delay * 2)
            except Exception as error:  # noqa: BLE001 - damage, or a bug: of one session, and others must go on
                self._write_each(batch, error)
                return
            else:
                for log, _ in batch:
                    if log.session_id in lost:
                        log.fenced = True
                self._tell(self._reports.committed, batch, time.perf_counter() - began)
                return

    def _write_each(self, batch: Slices, error: Exception) -> None:
        """Something in *batch* cannot be written: find it, and write the rest."""
        if len(batch) > 1:
            for part in batch:
                self._write([part])
            return
        ((log, events),) = batch
        log.fenced = True
        text = f"the log of session {log.session_id} cannot be written: {cause_of(error)}"
        logger.error("%s; %d events are lost", text, len(events))
        self._tell(self._reports.refused, log, events, JournalError(text))

    def _give_up(self, batch: Slices, error: StoreUnavailable) -> None:
        self._gave_up = error
        text = f"the journal {self._store.name} ended while its database was unavailable: {error}"
        for log, events in batch:
            log.fenced = True
            self._given_up += len(events)
            self._tell(self._reports.refused, log, events, JournalUnavailable(text))

    def _tell(self, function: Callable[..., None], *arguments: object) -> None:
        assert self._token is not None
        try:
            self._token.run_sync_soon(function, *arguments)
        except trio.RunFinishedError:
            logger.warning("the journal %s wrote after the end of its loop", self._store.name)
