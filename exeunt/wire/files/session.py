"""All files of one session, and the one task that writes what follows from its events."""

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

import attrs
import trio

from exeunt.actors.errors import NoSessionFiles, SessionFilesError
from exeunt.actors.outcomes import ToolResult
from exeunt.wire.events.mapper import WireEvent
from exeunt.wire.files import workspace as ws
from exeunt.wire.files.checkpoints import Checkpoint, Checkpoints, title_of
from exeunt.wire.files.counts import FileCounts
from exeunt.wire.files.results import is_long, moved
from exeunt.wire.files.store import FileStore
from exeunt.wire.files.transcript import Transcript, Whole
from exeunt.wire.files.workspace import Workspace
from exeunt.wire.messages.sessions import LargeOutput

logger = logging.getLogger("exeunt.wire")

BATCH = 0.1
"""Seconds in which events gather before they are appended: a turn's are mostly one request then."""

RETRIES = (1.0, 5.0, 15.0, 60.0)
"""Seconds until what could not be written is tried again; the last of them for ever."""

MOVE_WITHIN = 60.0
"""Seconds for which a turn waits for a long result to be written, in all its pieces."""

CLOSE_WITHIN = 5.0
"""Seconds in which the last events may still be written of a session that leaves memory, or with its server ends."""


@attrs.frozen(kw_only=True)
class Surroundings:
    """What the files need of the session and its server."""

    whole: Whole
    counts: FileCounts
    spawn: Callable[[Callable[[], Awaitable[None]]], None]
    """Runs something in a task of the server."""
    wall: Callable[[], float]
    """Seconds since the epoch."""
    done: Callable[[], object]
    """Called when nothing more is written."""


class SessionFiles:
    """Made when a session comes into memory, closed when it leaves."""

    __slots__ = (
        "_around",
        "_checkpoints",
        "_closing",
        "_fails",
        "_hurry",
        "_indexed",
        "_lock",
        "_news",
        "_runs",
        "_scope",
        "_workspace_due",
        "closed",
        "store",
        "transcript",
        "workspace",
    )

    def __init__(self, store: FileStore, workspace: Workspace | None, around: Surroundings) -> None:
        """Without a *workspace* there are the transcript and long results, and nothing else."""
        self.store = store
        self.workspace = workspace
        self.transcript = Transcript(store, around.whole, around.counts)
        self.closed = trio.Event()
        """Set when nothing more is written."""
        self._checkpoints = Checkpoints(store)
        self._around = around
        self._lock = trio.Lock()
        self._scope: trio.CancelScope | None = None
        """Of the task, while it runs."""
        self._runs = False
        self._closing = False
        self._workspace_due = False
        self._indexed = workspace is None
        self._fails = 0
        """Attempts in a row that failed."""
        self._hurry = trio.Event()
        self._news = trio.Event()

    # --- What the session does: at once --------------------------------------------------------------------

    def note(self, wire: WireEvent) -> None:
        """Take an event of the session."""
        self.transcript.note(wire)
        self._wake()

    def touch(self) -> None:
        """What the workspace says has changed."""
        self._workspace_due = self.workspace is not None
        self._wake()

    def moved(self) -> None:
        """Another client keeps the files, or the same one over another connection."""
        self.transcript.recheck()
        self._checkpoints = Checkpoints(self.store)
        self._indexed = self.workspace is None
        self._workspace_due = not self._indexed
        self._fails = 0
        self._hurry.set()
        self._wake()

    def close(self) -> None:
        """The session has left memory: write what is left, for a moment, and end."""
        if not self._closing:
            self._closing = True
            if self._scope is not None:
                self._last_words(self._scope)
            self._hurry.set()
            self._wake()
            if not self._runs:
                self._end()

    def abandon(self) -> None:
        """The session did not come into memory after all: write nothing."""
        self._closing = True
        if self._scope is not None:
            self._scope.cancel()
        self._end()

    # --- What clients and calls wait for ---------------------------------------------------------------------

    async def flushed(self, seconds: float) -> bool:
        """Wait until all that has happened is in the transcript; say whether it is. *seconds* bound that."""
        with trio.move_on_after(seconds):
            await trio.lowlevel.checkpoint()
            while self._is_due and self._runs and not self._fails:
                self._hurry.set()
                await self._news.wait()
        return not self.transcript.is_due

    async def shorten(self, result: ToolResult, config: LargeOutput | None) -> ToolResult:
        """Move a long result into a file; where that cannot be done, return it as it is."""
        if not is_long(result, config) or not self.store.is_there:
            return result
        counts = self._around.counts
        why: object = f"it was not written within {MOVE_WITHIN:g} s"
        try:
            with trio.move_on_after(MOVE_WITHIN):
                short = await moved(self.store, result, self._around.wall())
                counts.results_moved += 1
                return short
        except SessionFilesError as error:
            why = error
        counts.results_kept += 1
        logger.warning("a long result was not moved to a file: %s", why)
        return result

    def require_workspace(self) -> Workspace:
        """Return what is known of the session. Raises `NoSessionFiles`."""
        if self.workspace is None:
            raise NoSessionFiles(
                "the session has no workspace, since its infiniteSessions are not enabled: enable them"
            )
        return self.workspace

    @asynccontextmanager
    async def checkpoints(self) -> AsyncGenerator[Checkpoints]:
        """Have the checkpoints to oneself in the body. Raises `NoSessionFiles`."""
        workspace = self.require_workspace()
        async with self._lock:
            yield self._checkpoints
            count = len(await self._checkpoints.all())
        if count != workspace.summary_count:
            workspace.summary_count = count
            self.touch()

    async def keep_summary(self, summary: str) -> Checkpoint | None:
        """Write a checkpoint of a conversation that is summed up; `None` where there is no place for it."""
        if self.workspace is None:
            return None
        try:
            async with self.checkpoints() as checkpoints:
                return await checkpoints.add(title_of(summary), summary)
        except SessionFilesError as error:
            logger.warning("a summary has no checkpoint: %s", error)
            return None

    async def drop_summary(self, checkpoint: Checkpoint) -> None:
        """Remove the checkpoint of a conversation that was not summed up in the end."""
        try:
            async with self.checkpoints() as checkpoints:
                await checkpoints.remove(checkpoint.number)
        except SessionFilesError as error:
            logger.warning("checkpoint %d stays: %s", checkpoint.number, error)

    async def remove(self) -> None:
        """Remove all files of a session that is deleted, once nothing more is written. Raises nothing of theirs."""
        with trio.move_on_after(CLOSE_WITHIN + 1):
            await self.closed.wait()
        await remove_all(self.store)

    # --- The task --------------------------------------------------------------------------------------------

    @property
    def _is_due(self) -> bool:
        return self.transcript.is_due or self._workspace_due

    def _wake(self) -> None:
        if not self._runs and self._is_due and self.store.is_there and not self.closed.is_set():
            self._runs = True
            self._around.spawn(self._run)

    async def _run(self) -> None:
        try:
            with trio.CancelScope() as self._scope:
                if self._closing:
                    self._last_words(self._scope)
                await trio.lowlevel.checkpoint()
                while self._is_due and self.store.is_there:
                    if not self._closing:
                        await self._pause()
                    done = await self._advance()
                    self._fails = 0 if done else self._fails + 1
                    self._tell()
                    if self._closing and self._fails:
                        break
        except Exception:
            # Whatever it is, it is no reason to end the server, nor to try again with every event.
            self._closing = True
            logger.exception("files are not written any more: %s", self.store.place(""))
        finally:
            self._runs, self._scope = False, None
            self._tell()
            if self._closing:
                self._end()

    @staticmethod
    def _last_words(scope: trio.CancelScope) -> None:
        # Also when the server itself ends.
        scope.shield = True
        scope.deadline = trio.current_time() + CLOSE_WITHIN

    async def _pause(self) -> None:
        seconds = RETRIES[min(self._fails, len(RETRIES)) - 1] if self._fails else BATCH
        with trio.move_on_after(seconds):
            await self._hurry.wait()
        self._hurry = trio.Event()

    async def _advance(self) -> bool:
        """Write some of what is due; say whether that was possible."""
        return await self.transcript.advance() and await self._write_workspace()

    async def _write_workspace(self) -> bool:
        workspace = self.workspace
        if not self._workspace_due or workspace is None:
            return True
        try:
            if not self._indexed:
                await self._before_first(workspace)
            self._workspace_due = False
            await self.store.write(ws.NAME, workspace.yaml())
        except SessionFilesError as error:
            self._workspace_due = True
            if not self._fails:
                logger.warning("%s is not up to date: %s", self.store.place(ws.NAME), error)
            return False
        return True

    async def _before_first(self, workspace: Workspace) -> None:
        """See what an earlier process has left."""
        async with self._lock:
            await self._checkpoints.ensure_index()
            workspace.summary_count = len(await self._checkpoints.all())
        if not workspace.context and await self.store.exists(ws.NAME):
            workspace.context = ws.context_in(await self.store.read(ws.NAME))
        self._indexed = True

    def _end(self) -> None:
        self.closed.set()
        self._around.done()

    def _tell(self) -> None:
        news, self._news = self._news, trio.Event()
        news.set()


async def remove_all(store: FileStore) -> None:
    """Remove all files of a session; what cannot be removed is left to the log to tell of."""
    try:
        await store.rm("", recursive=True, force=True)
    except SessionFilesError as error:
        logger.warning("files of a deleted session stay: %s", error)
