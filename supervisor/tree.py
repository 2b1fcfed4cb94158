"""The supervisor: OTP's rules on a trio nursery, and the orders that it takes."""

import random
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager

import trio

from exeunt.actors.errors import (
    ChildNotFound,
    ChildStartFailed,
    InvalidConfiguration,
    RestartIntensityExceeded,
    SupervisorClosed,
    SupervisorError,
)
from exeunt.supervisor.checks import require_number
from exeunt.supervisor.children import ChildEventKind, ChildSpec, ChildState, Observer, SupervisorStatistics
from exeunt.supervisor.family import Child, Family
from exeunt.supervisor.reports import Reporter
from exeunt.supervisor.restarts import Backoff, RestartIntensity, RestartPolicy
from exeunt.supervisor.strategies import Strategy
from exeunt.supervisor.virtual import VirtualChild


class Supervisor:
    """Keeps children running: restarts those that fail, and gives up loudly when that does not help.

    `await run()` is the supervisor's life: use `open_supervisor`, `nursery.start(supervisor.run)`, or make it the
    task of a `ChildSpec`, which is how a tree grows. It may run again after it has ended, but not twice at once.

    The rules:

    * A child that failed (`Restart` says what a failure is) is restarted after its back-off, with those others that
      the strategy couples to it: they are stopped in reverse start order before, and started in start order after.
      Coupled children that fail by themselves before they could be stopped are part of the same failure.
    * More restarts than the intensity allows, over all children: all are stopped, and `run` raises
      `RestartIntensityExceeded`. For a parent supervisor that is a failure of the child that this supervisor is.
    * A child that ended for good is forgotten, its name is free. So nothing grows but with the living.
    * There are never two runs of a child at once. One that ignores its cancellation holds up its own restart and
      the shutdown, and its name is in the log every 5 s.
    * What is no `Exception` (`KeyboardInterrupt`, `SystemExit`) is never a reason to restart: it takes the
      supervisor down and leaves `run` in an exception group, as it leaves any nursery.
    """

    def __init__(
        self,
        children: Iterable[ChildSpec] = (),
        *,
        name: str = "supervisor",
        strategy: Strategy | str = Strategy.ONE_FOR_ONE,
        intensity: RestartIntensity | None = None,
        backoff: Backoff | None = None,
        observer: Observer | None = None,
        random: Callable[[], float] = random.random,
    ) -> None:
        """Say what is to be supervised, and how; nothing runs yet.

        *children* are started, in this order, each time the supervisor starts; those that were added later are not.
        *random* gives numbers in [0, 1) for the jitter of the back-off. Raises `InvalidConfiguration`.
        """
        try:
            self._strategy = Strategy(strategy)
        except ValueError:
            choices = ", ".join(repr(str(choice)) for choice in Strategy)
            raise InvalidConfiguration(f"strategy is {strategy!r}: give one of {choices}") from None
        self._specs = tuple(children)
        for spec_name, count in Counter(spec.name for spec in self._specs).items():
            if count > 1:
                raise InvalidConfiguration(
                    f"{count} children are named {spec_name!r}: give each its own name"
                )
        self.name = name
        self._policy = RestartPolicy(intensity or RestartIntensity(), backoff or Backoff(), random)
        self._reporter = Reporter(name, observer)
        self._family: Family | None = None

    async def run(self, *, task_status: "trio.TaskStatus[Supervisor]" = trio.TASK_STATUS_IGNORED) -> None:
        """Start the children and supervise, until `stop` is called, the intensity is exceeded, or it is cancelled.

        *task_status* gets the supervisor when all static children have started. However it ends, the children are
        stopped in reverse start order: each by its `stopping` event, its grace and then a cancellation, the next
        only when the one before has ended. So a cancellation of `run` is a request for this shutdown: it takes
        effect at the latest after the sum of the graces, unless a child ignores its own cancellation.

        Raises `RestartIntensityExceeded` from the last failure (`details` is its `ChildEvent`), or
        `ChildStartFailed` when a static child does not start; `SupervisorError` if it runs already.
        """
        if self._family is not None:
            raise SupervisorError(f"Supervisor {self.name!r} runs already: make another one")
        refused: SupervisorError | None = None
        async with trio.open_nursery() as nursery:
            family = self._family = Family(nursery, self._strategy, self._policy, self._reporter)
            try:
                with family.life:
                    for spec in self._specs:
                        await self.start_child(spec)
                    task_status.started(self)
                    await trio.sleep_forever()
            except SupervisorError as error:
                refused = error
            finally:
                await family.shut_down()  # noqa: ASYNC102 - shields itself; the graces bound it
                self._family = None
        if family.exceeded is not None:
            intensity = self._policy.intensity
            raise RestartIntensityExceeded(
                f"Supervisor {self.name!r} gave up after a failure of child {family.exceeded.child!r}: it allows "
                f"{intensity.max_restarts} restarts within {intensity.period:g} s",
                details=family.exceeded,
            ) from family.exceeded.error
        if refused is not None:
            raise refused

    def stop(self) -> None:
        """Ask for the ordered shutdown, after which `run` returns. Returns at once; repeating it is harmless."""
        if self._family is not None:
            self._family.close()

    async def start_child(self, spec: ChildSpec) -> Child:
        """Add a child at the end of the start order; return when it has started.

        A child that ends before it has started is not restarted but forgotten: `ChildStartFailed` is raised from
        its error. Raises `ChildExists`, `SupervisorClosed` too. Cancelled, it asks the child to stop, which frees
        its name when it has ended: so the child is started and returned, or it goes.
        """
        family = self._open()
        child = family.new_child(spec)
        try:
            async with child.lock:
                family.check_open()
                if child.leaving:
                    raise ChildStartFailed(f"Child {spec.name!r} was stopped before it had started")
                run = await family.start(child)
        except BaseException:
            child.leaving = True
            if child.run is None:
                family.forget(child)
            family.ask_to_stop(child)
            raise
        if not run.is_started:
            raise run.start_failure()
        return child

    async def stop_child(self, name: str) -> None:
        """End a child in order and forget it; return when it has ended. Its siblings do not notice.

        Raises `ChildNotFound`, `SupervisorClosed`. Cancelled, it gives up the wait and nothing else: the child
        ends. A child that stops itself is cancelled inside this call.
        """
        family = self._open()
        child = self._find(family, name)
        child.leaving = True
        if child.state is ChildState.WAITING:
            family.forget(child)
            self._reporter.tell(ChildEventKind.STOPPED, name)
            await trio.lowlevel.checkpoint()
        else:
            await family.stop(child)

    async def restart_child(self, name: str) -> Child:
        """End a child in order and start it again without back-off; return when it has started.

        It counts as a restart but not towards the intensity, and its siblings do not notice. Raises
        `ChildStartFailed` if it does not run after that; a failed start is a failure like any other, and is tried
        again. Raises `ChildNotFound`, `SupervisorClosed` too. Cancelled, it gives up the wait and nothing else: the
        restart goes on.
        """
        family = self._open()
        child = self._find(family, name)
        finished = trio.Event()
        family.nursery.start_soon(family.restart, child, finished, name=f"restart of {name}")
        await finished.wait()
        if child.state is not ChildState.RUNNING:
            raise ChildStartFailed(
                f"Child {name!r} did not start again: it is {child.state}"
            ) from child.last_error
        return child

    def adopt(
        self, name: str, *, stop: Callable[[], Awaitable[object]] | None = None, grace: float = 5.0
    ) -> VirtualChild:
        """Add a child that has no task of its own; its owner reports what happens to it.

        At shutdown *stop* is awaited when it is the child's turn, and cancelled after *grace* seconds. Raises
        `ChildExists`, `SupervisorClosed`, and `InvalidConfiguration` under another strategy than `one_for_one`:
        nobody could stop and start it for the sake of its siblings.
        """
        if self._strategy is not Strategy.ONE_FOR_ONE:
            raise InvalidConfiguration(f"a child without a task cannot be restarted under {self._strategy}")
        require_number("grace", grace, least=0, finite=False)
        family = self._open()
        child = VirtualChild(name, stop, grace, family)
        family.add(child)
        self._reporter.tell(ChildEventKind.STARTED, name)
        return child

    def statistics(self) -> SupervisorStatistics:
        """Return the counts of this moment. Costs O(children)."""
        children = () if self._family is None else self._family.children.values()
        states = Counter(child.state for child in children if isinstance(child, Child))
        counts = self._reporter.counts
        return SupervisorStatistics(
            children=states.total(),
            starting=states[ChildState.STARTING],
            running=states[ChildState.RUNNING],
            waiting=states[ChildState.WAITING],
            stopping=states[ChildState.STOPPING],
            virtual=len(children) - states.total(),
            starts=counts[ChildEventKind.STARTED],
            restarts=counts[ChildEventKind.RESTARTED],
            failures=counts[ChildEventKind.FAILED],
            gave_up=counts[ChildEventKind.GAVE_UP],
            observer_errors=self._reporter.observer_errors,
        )

    def _open(self) -> Family:
        if self._family is None:
            raise SupervisorClosed(f"Supervisor {self.name!r} does not run: it takes no orders")
        self._family.check_open()
        return self._family

    def _find(self, family: Family, name: str) -> Child:
        child = family.children.get(name)
        if not isinstance(child, Child):
            raise ChildNotFound(
                f"Supervisor {self.name!r} has no child named {name!r} that it could stop or start"
            )
        return child


@asynccontextmanager
async def open_supervisor(
    children: Iterable[ChildSpec] = (),
    *,
    name: str = "supervisor",
    strategy: Strategy | str = Strategy.ONE_FOR_ONE,
    intensity: RestartIntensity | None = None,
    backoff: Backoff | None = None,
    observer: Observer | None = None,
    random: Callable[[], float] = random.random,
) -> AsyncGenerator[Supervisor]:
    """Run a `Supervisor` beside the body of the `async with`; the end of the body is its `stop`.

    The body begins when the static children have started. If the supervisor gives up, the body is cancelled, and
    `RestartIntensityExceeded` is raised in its place. An error of one side is raised as it is, errors of both come
    in an exception group. A cancellation reaches body and supervisor; see `Supervisor.run`.
    """
    supervisor = Supervisor(
        children,
        name=name,
        strategy=strategy,
        intensity=intensity,
        backoff=backoff,
        observer=observer,
        random=random,
    )
    only: BaseException | None = None
    try:
        async with trio.open_nursery() as nursery:
            await nursery.start(supervisor.run)
            try:
                yield supervisor
            finally:
                supervisor.stop()
    except BaseExceptionGroup as group:
        if len(group.exceptions) != 1:
            raise
        only = group.exceptions[0]
    if only is not None:
        # Outside of the handler, which would overwrite the context of an error that is not its own.
        raise only
