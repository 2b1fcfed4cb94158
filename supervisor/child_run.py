"""One run of a child: from the spawn of its task to its end."""

import logging
from collections.abc import Callable
from typing import Any

import trio

from exeunt.actors.errors import ChildStartFailed
from exeunt.supervisor.children import ChildSpec

_logger = logging.getLogger(__name__)

REPORT_EVERY = 5.0
"""Seconds between two log lines about a task that ignores its cancellation: seldom enough to read, often enough
to be found at the end of a log."""


class ChildRun:
    """One run of a child, and what it said about itself. It is its own `task_status`.

    The task runs in a shielded scope of its own. So the cancellation of the nursery around it does not reach it,
    and the supervisor can end its children one after the other, in order.
    """

    __slots__ = (
        "_on_started", "ended", "failure", "is_started", "ready", "scope", "spec", "started_at", "stop_requested",
        "stopping", "value",
    )  # fmt: skip

    def __init__(self, spec: ChildSpec, on_started: Callable[[], None]) -> None:
        self.spec = spec
        self._on_started = on_started
        self.started_at = trio.current_time()
        deadline = self.started_at + spec.start_timeout if spec.reports_started else float("inf")
        self.scope = trio.CancelScope(shield=True, deadline=deadline)
        self.stopping = trio.Event() if spec.takes_stopping else None
        self.ready = trio.Event()
        """Set when it has started or ended."""
        self.ended = trio.Event()
        self.is_started = False
        self.stop_requested = False
        self.value: Any = None
        """What it gave to `started()`."""
        self.failure: Exception | None = None
        """What it raised."""

    def started(self, value: Any = None) -> None:
        """Say that the child has started. A second call raises `RuntimeError`, as in trio."""
        if self.is_started:
            raise RuntimeError(f"child {self.spec.name!r} called started() twice")
        if self.scope.cancel_called and not self.stop_requested:
            # Too late: its start has timed out, and what follows is the end of that cancellation.
            return
        self.is_started = True
        self.value = value
        if not self.stop_requested:
            self.scope.deadline = float("inf")
        self.ready.set()
        self._on_started()

    def request_stop(self) -> None:
        """Ask the child to end: `stopping` now and a cancellation after its grace, or a cancellation at once."""
        if self.stop_requested:
            return
        self.stop_requested = True
        if self.stopping is None:
            self.scope.cancel()
        else:
            self.stopping.set()
            self.scope.deadline = min(self.scope.deadline, trio.current_time() + self.spec.grace)

    async def execute(self) -> None:
        """Run the child's task to its end. Raises nothing but what is no `Exception`, `KeyboardInterrupt` say.

        Shielded: a cancellation from outside has no effect, only `request_stop` and the start time-out have.
        """
        options: dict[str, Any] = {}
        if self.spec.reports_started:
            options["task_status"] = self
        if self.stopping is not None:
            options["stopping"] = self.stopping
        try:
            with self.scope:
                await self.spec.task(*self.spec.args, **options)
        except Exception as error:  # noqa: BLE001 - kept for the supervisor, which decides and reports
            self.failure = error
        finally:
            self.ready.set()
            self.ended.set()

    @property
    def error(self) -> Exception | None:
        """Why the run counts as a failure: what it raised, or that it never started. `None` if it does not."""
        if self.is_started or self.stop_requested:
            return self.failure
        return self.start_failure()

    def start_failure(self) -> ChildStartFailed:
        """Return the error of a run that ended before it had started."""
        name = self.spec.name
        if self.failure is not None:
            message = f"Child {name!r} raised {self.failure!r} before it had started"
        elif self.stop_requested:
            message = f"Child {name!r} was stopped before it had started"
        elif self.scope.cancel_called:
            message = f"Child {name!r} did not call started() within {self.spec.start_timeout:g} s, and was cancelled"
        else:
            message = f"Child {name!r} returned without calling started()"
        error = ChildStartFailed(message)
        error.__cause__ = self.failure
        return error

    async def wait_ready(self, supervisor: str) -> None:
        """Wait until the run has started or ended; otherwise as `wait_ended`."""
        await self._wait(self.ready, supervisor)

    async def wait_ended(self, supervisor: str) -> None:
        """Wait until the run, which was asked to stop, has ended; name it in the log while it ignores that.

        trio cannot leave a task that shields itself or swallows its cancellation, so nothing else can be done.
        Cancelled, it gives up the wait and nothing else.
        """
        await self._wait(self.ended, supervisor)

    async def _wait(self, event: trio.Event, supervisor: str) -> None:
        asked_at = trio.current_time()
        left = 0.0 if self.scope.cancel_called else self.scope.deadline - asked_at
        patience = left + REPORT_EVERY
        while True:
            with trio.move_on_after(patience):
                await event.wait()
                return
            patience = REPORT_EVERY
            _logger.warning(
                "child %r of supervisor %r ignores its cancellation: waited %.0f s for it, and going on",
                self.spec.name,
                supervisor,
                trio.current_time() - asked_at,
            )
