"""What the tests of tool calls and of the ends of turns share: a few tools, and short ways to ask what happened."""

from collections.abc import Callable
from typing import Any, TypeVar

from exeunt import RetryPolicy, Session, SessionHost, Tool, approve_all, tool
from exeunt.actors.events import Event, ToolExecutionComplete, TurnEnd
from exeunt.testing import ScriptedModel

E = TypeVar("E", bound=Event)

STEADY = RetryPolicy(jitter=0.0)
"""Back-off whose times can be told in advance."""


@tool(is_terminal=True)
async def submit(answer: int) -> str:
    """Hand in the answer. Only 42 is right."""
    if answer != 42:
        raise ValueError(f"{answer} is wrong")
    return f"accepted {answer}"


@tool
async def read() -> str:
    """Read something."""
    return "what was read"


@tool
async def broken() -> str:
    """Never work."""
    raise RuntimeError("it broke")


def answering(output: Any) -> Callable[[Any, Any], Any]:
    """A hook, or a permission handler, that gives the same answer each time."""

    def answer(asked: Any, invocation: Any) -> Any:
        return output

    return answer


def noting(seen: list[Any]) -> Callable[[Any, Any], None]:
    """A hook that puts its input into *seen* and says nothing."""

    def note(hook_input: Any, invocation: Any) -> None:
        seen.append(hook_input)

    return note


async def open_session(
    host: SessionHost, model: ScriptedModel, *tools: Tool[..., Any], **options: Any
) -> Session:
    """A session that approves everything and backs off without chance, unless *options* say otherwise."""
    options.setdefault("on_permission_request", approve_all)
    options.setdefault("retries", STEADY)
    return await host.create_session(model=model, tools=tools, **options)


async def logged(session: Session, kind: type[E]) -> list[E]:
    """The logged events of one kind, in order."""
    return [event for event in await session.get_events() if isinstance(event, kind)]


async def outcomes(session: Session) -> list[tuple[str, str]]:
    """Tool and outcome of each call, in the order in which they settled."""
    return [(event.tool_name, str(event.outcome)) for event in await logged(session, ToolExecutionComplete)]


async def ends(session: Session) -> list[str]:
    """Why each turn ended."""
    return [str(event.reason) for event in await logged(session, TurnEnd)]


def watch(session: Session, kind: type[E]) -> list[E]:
    """A list that gets the session's events of one kind from now on, ephemeral ones too."""
    seen: list[E] = []

    def take(event: Event) -> None:
        if isinstance(event, kind):
            seen.append(event)

    session.on(take)
    return seen


def counted(host: SessionHost, metric: str, **labels: str) -> dict[tuple[str, ...], int]:
    """The samples of a counter that are not zero: values of its other labels, in their order, to the count."""
    found: dict[tuple[str, ...], int] = {}
    for family in host.metrics.registry.collect():
        for sample in family.samples:
            if sample.name == metric and sample.value and labels.items() <= sample.labels.items():
                key = tuple(value for name, value in sample.labels.items() if name not in labels)
                found[key] = int(sample.value)
    return found


def calls_counted(host: SessionHost) -> dict[tuple[str, ...], int]:
    """Calls by (tool, outcome, terminal)."""
    return counted(host, "exeunt_tool_calls_total")


def turns_counted(host: SessionHost) -> dict[str, int]:
    """Turns by the reason of their end."""
    return {reason: count for (reason,), count in counted(host, "exeunt_turn_terminations_total").items()}
