"""What the tests of the clear share: tools that clear, and short ways to ask what came of it."""

from collections.abc import Awaitable, Callable
from typing import Any

import attrs
import trio

from exeunt import ClearRefused, ClearResult, Session, SessionHost, Tool, ToolInvocation, tool
from exeunt.actors.events import Event
from exeunt.testing import ScriptedModel

Run = Callable[[ToolInvocation], Awaitable[Any]]


@tool(is_terminal=True, defer="never", skip_permission=True)
async def clear_context(prompt: str, invocation: ToolInvocation) -> str:
    """Clear the conversation and start a fresh context window."""
    result = await invocation.session.history.clear_context(prompt)
    return f"Cleared {result.messages_cleared} messages."


@tool(skip_permission=True)
async def clear_softly(prompt: str, invocation: ToolInvocation) -> str:
    """Clear the conversation, without being a terminal tool."""
    result = await invocation.session.history.clear_context(prompt)
    return f"Cleared {result.messages_cleared} messages."


@tool(skip_permission=True)
async def read() -> str:
    """Read something."""
    await trio.lowlevel.checkpoint()
    return "what was read"


@tool(is_terminal=True, skip_permission=True)
async def submit() -> str:
    """Hand in the work."""
    await trio.lowlevel.checkpoint()
    return "handed in"


def tool_of(name: str, run: Run, **options: Any) -> Tool[..., Any]:
    """A tool without arguments whose handler is *run*; it needs no permission unless *options* say so."""
    options.setdefault("skip_permission", True)

    async def handler(invocation: ToolInvocation) -> Any:
        return await run(invocation)

    made: Tool[..., Any] = tool(name, description=f"Does what {name} says.", **options)(handler)
    return made


def plain_tool(name: str, run: Callable[[], Awaitable[Any]], **options: Any) -> Tool[..., Any]:
    """The same, for a handler that looks at nothing: the doubles of `exeunt.testing`."""

    async def ignoring(_: ToolInvocation) -> Any:
        return await run()

    return tool_of(name, ignoring, **options)


async def open_session(
    host: SessionHost, model: ScriptedModel, *tools: Tool[..., Any], **options: Any
) -> Session:
    """A session with *tools*; they are all that it needs, as none of them asks for permission by default."""
    return await host.create_session(model=model, tools=tools, **options)


def watch(session: Session) -> list[Event]:
    """A list that gets every event of the session from now on, ephemeral ones too."""
    seen: list[Event] = []
    session.on(seen.append)
    return seen


def types(events: list[Event]) -> list[str]:
    """The names of *events*."""
    return [event.type for event in events]


def only(events: list[Event], *names: str) -> list[Any]:
    """Those of *events* that have one of these names."""
    return [event for event in events if event.type in names]


async def logged(session: Session, *names: str) -> list[Any]:
    """The logged events that have one of these names."""
    return only(list(await session.get_events()), *names)


async def ends(session: Session) -> list[str]:
    """Why each turn ended."""
    return [event.reason for event in await logged(session, "turn.end")]


async def outcomes(session: Session) -> list[tuple[str, str]]:
    """Tool and outcome of each call, in the order in which they were logged."""
    return [(e.tool_name, e.outcome) for e in await logged(session, "tool.execution_complete")]


async def seeds(session: Session) -> list[str]:
    """The seed of each clear that happened."""
    return [event.initial_message for event in await logged(session, "session.context_cleared")]


def clears_counted(host: SessionHost) -> dict[str, int]:
    """The clears of all sessions by the outcome under which they are counted, zeros left out."""
    return counted(host, "exeunt_context_clears_total", "outcome")


def turns_counted(host: SessionHost) -> dict[str, int]:
    """The ends of turns by reason, zeros left out."""
    return counted(host, "exeunt_turn_terminations_total", "reason")


def counted(host: SessionHost, metric: str, label: str) -> dict[str, int]:
    """The samples of a counter by one label, zeros left out."""
    return {
        sample.labels[label]: int(sample.value)
        for family in host.metrics.registry.collect()
        for sample in family.samples
        if sample.name == metric and sample.value
    }


async def picture(session: Session) -> tuple[Any, ...]:
    """All of a session that a refused clear must leave as it is."""
    now = session.statistics()
    return (
        session.history.messages(),
        tuple(await session.get_events()),
        (now.generation, now.messages, now.events, now.queued, now.steered, now.mailbox_depth),
        (now.turn_id, now.phase, now.in_flight, now.clear_staged, now.clears_in_a_row),
    )


@attrs.frozen
class Attempt:
    """What came of one call of `clear_context`."""

    error: ClearRefused | None
    unchanged: bool
    """Whether the session is as it was."""
    result: ClearResult | None = None

    @property
    def refused(self) -> type[ClearRefused] | None:
        """The class of the refusal; `None` where something changed in spite of it, or there was none."""
        return type(self.error) if self.error is not None and self.unchanged else None


async def attempt(session: Session, prompt: Any = "FRESH", **options: Any) -> Attempt:
    """Try to clear, and look at the session before and after."""
    before = await picture(session)
    try:
        result = await session.history.clear_context(prompt, **options)
    except ClearRefused as error:
        return Attempt(error, await picture(session) == before)
    return Attempt(None, await picture(session) == before, result)


async def settled(session: Session) -> None:
    """Wait until the session has nothing to do. Bounded by a day of virtual time."""
    changed = trio.Event()

    def note(_: Event) -> None:
        changed.set()

    unsubscribe = session.on(note)
    try:
        with trio.fail_after(86_400):
            await trio.lowlevel.checkpoint()
            while _busy(session):
                await changed.wait()
                changed = trio.Event()
    finally:
        unsubscribe()


def _busy(session: Session) -> bool:
    now = session.statistics()
    return now.phase != "idle" or now.mailbox_depth > 0 or now.status == "restarting"
