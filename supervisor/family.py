"""The children of one run of a supervisor, and the rules that tie them.

Two changes never overlap: under `one_for_one` those of one child, under the other strategies those of all. A change
waits for its lock; a child's end is noted at once, in the child's own task, and takes no lock.
"""

import logging
from typing import Any

import attrs
import trio

from exeunt.actors.errors import ChildExists, SupervisorClosed
from exeunt.supervisor.child_run import ChildRun
from exeunt.supervisor.children import ChildEvent, ChildEventKind, ChildSpec, ChildState, Restart
from exeunt.supervisor.reports import Reporter
from exeunt.supervisor.restarts import RestartLog, RestartPolicy
from exeunt.supervisor.strategies import Strategy, covers
from exeunt.supervisor.virtual import VirtualChild

_logger = logging.getLogger(__name__)


@attrs.define(eq=False)
class Child:
    """A child of a supervisor, through all its runs. Made by `Supervisor.start_child`; for reading only."""

    spec: ChildSpec

    position: int
    """Its place in the start order. A place is never given twice."""

    lock: trio.Lock
    """Held while it is started or restarted. The children of a group share one."""

    state: ChildState = ChildState.STARTING

    value: Any = None
    """What it gave to `started()` at its last start."""

    restarts: int = 0
    """How often it was started again."""

    last_error: Exception | None = None
    """Why it failed last."""

    failures_in_row: int = 0
    """Failures since it last ran for a whole period of the intensity: the attempt number of its back-off."""

    established: bool = False
    """Whether it has ever started. Until then a failure is an error of `start_child`, not a reason to restart."""

    leaving: bool = False
    """Whether its next end is its last."""

    run: ChildRun | None = None
    """The present run, if there is one."""

    backoff: trio.CancelScope | None = None
    """Cancelled to end a back-off early."""

    @property
    def name(self) -> str:
        """The name of its spec."""
        return self.spec.name


class Family:
    """All state of one run of a supervisor."""

    def __init__(
        self, nursery: trio.Nursery, strategy: Strategy, policy: RestartPolicy, reporter: Reporter
    ) -> None:
        self.nursery = nursery
        self.policy = policy
        self.reporter = reporter
        self.children: dict[str, Child | VirtualChild] = {}
        """In start order."""
        self.life = trio.CancelScope()
        """Cancelled when the supervisor is to shut down."""
        self.closing = False
        self.exceeded: ChildEvent | None = None
        """The failure that exceeded the intensity."""
        self._strategy = strategy
        self._log = RestartLog(policy.intensity)
        self._group_lock = trio.Lock()
        self._pending: set[Child] = set()
        """Failed children whose recovery has not yet stopped the others."""
        self._next_position = 0

    def close(self) -> None:
        """Take no more orders, restart nobody, and let the shutdown begin."""
        self.closing = True
        self.life.cancel()

    def check_open(self) -> None:
        """Raise `SupervisorClosed` if the shutdown has begun."""
        if self.closing:
            raise SupervisorClosed(f"Supervisor {self.reporter.name!r} is shutting down: it takes no orders")

    def new_child(self, spec: ChildSpec) -> Child:
        """Give *spec* the next place in the start order."""
        lock = trio.Lock() if self._strategy is Strategy.ONE_FOR_ONE else self._group_lock
        child = Child(spec, self._next_position, lock)
        self.add(child)
        self._next_position += 1
        return child

    def add(self, child: Child | VirtualChild) -> None:
        """Put *child* at the end of the start order. Raises `ChildExists`."""
        if child.name in self.children:
            raise ChildExists(
                f"Supervisor {self.reporter.name!r} has a child named {child.name!r}: stop it first, or choose "
                f"another name"
            )
        self.children[child.name] = child

    def forget(self, child: Child | VirtualChild) -> bool:
        """Free the name of *child*; say whether it was still known."""
        if isinstance(child, Child):
            child.state = ChildState.ENDED
        if self.children.get(child.name) is not child:
            return False
        del self.children[child.name]
        return True

    async def start(self, child: Child) -> ChildRun:
        """Start a run of *child* and wait until it has started or ended. The caller holds the lock."""
        run = ChildRun(child.spec, on_started=lambda: self._started(child))
        child.run = run
        child.state = ChildState.STARTING
        self.nursery.start_soon(self._run, child, run, name=child.name)
        if child.spec.reports_started:
            await run.wait_ready(self.reporter.name)
        else:
            run.started()
        return run

    def ask_to_stop(self, child: Child) -> None:
        """Ask the present run of *child*, if any, to end."""
        if child.run is not None:
            child.state = ChildState.STOPPING
            child.run.request_stop()

    async def stop(self, child: Child) -> None:
        """End the present run of *child*, if any, and wait for it."""
        run = child.run
        if run is not None:
            self.ask_to_stop(child)
            await run.wait_ended(self.reporter.name)

    async def restart(self, child: Child, finished: trio.Event) -> None:
        """Stop *child* and start it again now, unless someone else does so first."""
        before = child.run
        try:
            if child.backoff is not None:
                child.backoff.cancel()
            async with child.lock:
                if child.run is before or child.run is None:
                    await self.stop(child)
                    if child.state is ChildState.WAITING:
                        await self.start(child)
        finally:
            finished.set()

    async def shut_down(self) -> None:
        """Stop all children in reverse start order, the next when the one before has ended."""
        self.closing = True
        # Ends back-offs and restarts under way. The children do not feel it: they are shielded.
        self.nursery.cancel_scope.cancel()
        with trio.CancelScope(shield=True):  # noqa: ASYNC912 - nothing to wait for where nothing runs
            for child in reversed(list(self.children.values())):
                if isinstance(child, VirtualChild):
                    await child.shut_down()
                elif child.run is not None:
                    await self.stop(child)
                elif self.forget(child) and child.established:
                    self.reporter.tell(ChildEventKind.STOPPED, child.name)

    # --- What children do ----------------------------------------------------------------------------------

    async def _run(self, child: Child, run: ChildRun) -> None:
        await run.execute()
        self._ended(child, run)

    def _started(self, child: Child) -> None:
        assert child.run is not None
        child.value = child.run.value
        if child.state is ChildState.STARTING:
            child.state = ChildState.RUNNING
        if child.established:
            child.restarts += 1
            self.reporter.tell(ChildEventKind.RESTARTED, child.name)
        else:
            child.established = True
            self.reporter.tell(ChildEventKind.STARTED, child.name)

    def _ended(self, child: Child, run: ChildRun) -> None:
        child.run = None
        error = run.error
        if error is not None:
            child.last_error = error
            _logger.warning(
                "child %r of supervisor %r failed", child.name, self.reporter.name, exc_info=error
            )
        if run.stop_requested:
            if child.leaving or self.closing:
                self.forget(child)
            else:
                child.state = ChildState.WAITING
            self.reporter.tell(ChildEventKind.STOPPED, child.name, error)
        elif self.closing or not child.established or not child.spec.restart.wanted_after(error):
            self.forget(child)
            failed = error is not None or child.spec.restart is Restart.PERMANENT
            self.reporter.tell(ChildEventKind.FAILED if failed else ChildEventKind.STOPPED, child.name, error)
        else:
            self._failed(child, run, error)

    def _failed(self, child: Child, run: ChildRun, error: Exception | None) -> None:
        now = trio.current_time()
        child.state = ChildState.WAITING
        if now - run.started_at >= self.policy.intensity.period:
            child.failures_in_row = 0
        child.failures_in_row += 1
        if self._is_covered(child):
            self.reporter.tell(ChildEventKind.FAILED, child.name, error)
        elif self._log.record(now):
            delay = self.policy.delay(child.failures_in_row)
            self._pending.add(child)
            self.nursery.start_soon(self._recover, child, delay, name=f"recovery of {child.name}")
            self.reporter.tell(ChildEventKind.FAILED, child.name, error, delay)
        else:
            self.close()
            self.forget(child)
            self.reporter.tell(ChildEventKind.FAILED, child.name, error)
            self.exceeded = self.reporter.tell(ChildEventKind.GAVE_UP, child.name, error)

    # --- Recovery ------------------------------------------------------------------------------------------

    def _is_covered(self, child: Child) -> bool:
        """Say whether the recovery of another child, still to come, will restart *child*."""
        if self._strategy is Strategy.ONE_FOR_ONE:
            return False
        return any(
            covers(self._strategy, failed.position, child.position)
            for failed in self._pending
            if failed is not child
        )

    def _affected(self, failed: Child) -> list[Child]:
        if self._strategy is Strategy.ONE_FOR_ONE:
            return [failed]
        return [
            child
            for child in self.children.values()
            if isinstance(child, Child)
            and child.established
            and covers(self._strategy, failed.position, child.position)
        ]

    async def _recover(self, failed: Child, delay: float) -> None:
        async with failed.lock:
            if self._is_overtaken(failed):
                self._pending.discard(failed)
                return
            affected = self._affected(failed)
            for child in reversed(affected):
                child.leaving = child.leaving or child.spec.restart is Restart.TEMPORARY
                await self.stop(child)
            self._pending.discard(failed)
            with trio.CancelScope() as backoff:
                for child in affected:
                    child.backoff = backoff
                await trio.sleep(delay)
            for child in affected:
                child.backoff = None
                # Who fails during this has a recovery of its own, which covers those that are left out here.
                if child.state is ChildState.WAITING and not self._is_blocked(child):
                    await self.start(child)

    def _is_overtaken(self, failed: Child) -> bool:
        """Say whether there is nothing left to do: another recovery does it, or an order came first."""
        if self._strategy is Strategy.ONE_FOR_ONE:
            return failed.state is not ChildState.WAITING
        # An order concerns one child: the siblings still need their restart.
        return self._is_covered(failed)

    def _is_blocked(self, child: Child) -> bool:
        return child in self._pending or self._is_covered(child)
