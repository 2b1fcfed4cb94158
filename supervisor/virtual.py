"""Children without a task of their own, such as session actors that are idle."""

import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import trio

from exeunt.supervisor.child_run import ChildRun
from exeunt.supervisor.children import ChildEventKind, ChildSpec
from exeunt.supervisor.restarts import RestartLog

if TYPE_CHECKING:
    from exeunt.supervisor.family import Family

_logger = logging.getLogger(__name__)


class VirtualChild:
    """A child that its owner runs, and of which the supervisor keeps the books. Made by `Supervisor.adopt`.

    It has a restart log of its own, made at its first failure. When that is exceeded the child is let go and nobody
    else notices: what becomes of it is its owner's business. No method waits.
    """

    __slots__ = ("_family", "_grace", "_log", "_stop", "name")

    def __init__(
        self, name: str, stop: Callable[[], Awaitable[object]] | None, grace: float, family: "Family"
    ) -> None:
        self.name = name
        self._stop = stop
        self._grace = grace
        self._family = family
        self._log: RestartLog | None = None

    def failed(self, error: Exception) -> float | None:
        """Report a failure; get the seconds to wait before the restart, or `None`: give it up.

        The attempt number of the back-off is that of the restart within the period of the intensity.
        """
        family = self._family
        if self._log is None:
            self._log = RestartLog(family.policy.intensity)
        if self._log.record(trio.current_time()):
            delay = family.policy.delay(self._log.recent)
            family.reporter.tell(ChildEventKind.FAILED, self.name, error, delay)
            return delay
        family.forget(self)
        family.reporter.tell(ChildEventKind.FAILED, self.name, error)
        family.reporter.tell(ChildEventKind.GAVE_UP, self.name, error)
        return None

    def restarted(self) -> None:
        """Report that it was restarted."""
        self._family.reporter.tell(ChildEventKind.RESTARTED, self.name)

    def ended(self) -> None:
        """Report that it has ended for good: its name is free. Does nothing once it was let go."""
        if self._family.forget(self):
            self._family.reporter.tell(ChildEventKind.STOPPED, self.name)

    async def shut_down(self) -> None:
        """Run its `stop` for at most the grace, at the shutdown of the supervisor; log what that raises.

        In a task of the nursery, like a child's: so one that ignores its cancellation is named in the log.
        """
        error: Exception | None = None
        if self._stop is not None:
            spec = ChildSpec(self.name, self._stop, reports_started=False, takes_stopping=False)
            run = ChildRun(spec, on_started=lambda: None)
            run.scope.deadline = trio.current_time() + self._grace
            self._family.nursery.start_soon(run.execute, name=f"stop of {self.name}")
            await run.wait_ended(self._family.reporter.name)
            error = run.failure
            if error is not None:
                _logger.warning("stopping %r raised", self.name, exc_info=error)
        if self._family.forget(self):
            self._family.reporter.tell(ChildEventKind.STOPPED, self.name, error)
