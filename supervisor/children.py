"""What a supervisor knows of its children: how each is to be kept, and how it is doing."""

import enum
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

import attrs

from exeunt.actors.errors import InvalidConfiguration
from exeunt.actors.parameters import parameters_of
from exeunt.supervisor.checks import named, number


class Restart(enum.StrEnum):
    """When a child that ended is started again. Closed."""

    PERMANENT = "permanent"
    """Always: its end, also a normal return, is a failure."""

    TRANSIENT = "transient"
    """When it raised. A normal return is its end for good."""

    TEMPORARY = "temporary"
    """Never, not even when the failure of a sibling stopped it."""

    def wanted_after(self, error: Exception | None) -> bool:
        """Say whether a child that ended by itself, with *error* or by returning, is started again."""
        return self is Restart.PERMANENT or (self is Restart.TRANSIENT and error is not None)


class ChildState(enum.StrEnum):
    """What a child does. Closed."""

    STARTING = "starting"
    """It is about to run, or runs and has not yet said that it has started."""

    RUNNING = "running"

    WAITING = "waiting"
    """It has ended and will be started again: after its back-off, or when its siblings have stopped."""

    STOPPING = "stopping"
    """It was asked to end, or cancelled, and has not yet ended."""

    ENDED = "ended"
    """It is gone for good, and its name is free."""


class ChildEventKind(enum.StrEnum):
    """What an observer is told. Closed."""

    STARTED = "started"
    """First start: for a child that reports it, when it has called `started()`."""

    FAILED = "failed"
    """It ended by itself and not as it should: `error`, and `delay` if it is to be restarted."""

    RESTARTED = "restarted"
    """Started again, after a failure of its own or of a sibling, or by `restart_child`."""

    GAVE_UP = "gave_up"
    """Its failure exceeded the intensity. A real child takes its supervisor down; a virtual one is let go."""

    STOPPED = "stopped"
    """It ended because it was asked to (`error`: what it raised then), or returned and may do so."""


@attrs.frozen
class ChildEvent:
    """Something happened to a child. Events of a child come in order."""

    kind: ChildEventKind
    supervisor: str
    """Name of the supervisor."""

    child: str
    """Name of the child."""

    error: Exception | None = None
    """What it raised. `None` with `failed` means that a permanent child returned."""

    delay: float | None = None
    """Seconds until the restart that follows a failure. `None`: there is none of its own."""


Observer = Callable[[ChildEvent], object]
"""Called synchronously, in the task in which it happened. What it raises is logged and counted."""


def _accepts(parameter: str) -> Any:
    """Return an attrs default: whether the spec's `task` takes a keyword of this name."""

    def look(spec: "ChildSpec") -> bool:
        try:
            return parameter in parameters_of(spec.task)
        except (TypeError, ValueError):
            # No signature to be had, as with some callables written in C.
            return False

    return attrs.Factory(look, takes_self=True)


def _callable(instance: object, attribute: "attrs.Attribute[Any]", value: object) -> None:
    if not callable(value):
        raise InvalidConfiguration(f"ChildSpec.task is {value!r}: give an async function")


def _arguments(value: Iterable[Any]) -> tuple[Any, ...]:
    # `tuple` itself as converter confuses mypy.
    return tuple(value)


def _restart(value: str) -> Restart:
    try:
        return Restart(value)
    except ValueError:
        choices = ", ".join(repr(str(choice)) for choice in Restart)
        raise InvalidConfiguration(f"ChildSpec.restart is {value!r}: give one of {choices}") from None


@attrs.frozen
class ChildSpec:
    """How to run one child. Wrong values raise `InvalidConfiguration`."""

    name: str = attrs.field(validator=named)
    """Unique among the children of a supervisor."""

    task: Callable[..., Awaitable[object]] = attrs.field(validator=_callable)
    """The async function that is the child, run anew at each start."""

    args: tuple[Any, ...] = attrs.field(default=(), kw_only=True, converter=_arguments)
    """Its positional arguments."""

    restart: Restart = attrs.field(default=Restart.PERMANENT, kw_only=True, converter=_restart)
    """When it is started again."""

    grace: float = attrs.field(default=5.0, kw_only=True, validator=number(least=0, finite=False))
    """Seconds that it has to end by itself once its `stopping` event is set; then it is cancelled. The default lets
    a service finish what it has in hand. Of no meaning for a task that takes no `stopping`."""

    start_timeout: float = attrs.field(
        default=30.0, kw_only=True, validator=number(least=0, open_at_least=True, finite=False)
    )
    """Seconds until it must have called `task_status.started()`; then it is cancelled and its start has failed. The
    default is far beyond a slow disk or handshake, so it catches only what hangs."""

    reports_started: bool = attrs.field(default=_accepts("task_status"), kw_only=True)
    """Whether it gets a `task_status` (as with `trio.Nursery.start`) and counts as started when it has called
    `started()`. By default: if it has a parameter of that name."""

    takes_stopping: bool = attrs.field(default=_accepts("stopping"), kw_only=True)
    """Whether it gets `stopping`, a `trio.Event`, set when it is asked to end. By default: if it has a parameter of
    that name. Without, it is cancelled at once."""


@attrs.frozen
class SupervisorStatistics:
    """A look at a supervisor. The totals go on through restarts of the supervisor itself."""

    children: int
    """Children with a task, in any of the four states below."""

    starting: int
    """Children that have not yet said that they have started."""

    running: int
    """Children that run."""

    waiting: int
    """Children between a failure and their restart."""

    stopping: int
    """Children that were asked to end, or cancelled, and have not yet ended."""

    virtual: int
    """Children without a task."""

    starts: int
    """First starts so far."""

    restarts: int
    """Restarts so far, those of siblings and those by `restart_child` included."""

    failures: int
    """Failures so far, failed starts included."""

    gave_up: int
    """Times that an intensity was exceeded, by a real or a virtual child."""

    observer_errors: int
    """Times that the observer raised."""
