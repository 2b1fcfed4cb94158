"""What the tests of policies share."""

from typing import Any

from exeunt import Session, approve_all, tool
from exeunt.testing import ScriptedModel, call
from tests.actors.session_support import logged


@tool
async def look(line: int = 0) -> str:
    """Look at a line."""
    return f"line {line}"


@tool(is_terminal=True)
async def submit() -> str:
    """Hand in."""
    return "handed in"


@tool
async def broken() -> str:
    """Never work."""
    raise RuntimeError("it broke")


def looks(count: int) -> list[Any]:
    """So many answers of a model that looks at one line each."""
    return [call("look", line=number) for number in range(count)]


async def open_session(host: Any, model: ScriptedModel, **options: Any) -> Session:
    """A session that approves everything."""
    session: Session = await host.create_session(model=model, on_permission_request=approve_all, **options)
    return session


async def handoffs(session: Session) -> list[tuple[str, str]]:
    """Action and trigger of each step of a handoff, in order."""
    return [(event.action, event.trigger) for event in await logged(session, "session.handoff")]


async def triggers(session: Session) -> list[str]:
    """What brought each clear about, in order."""
    return [event.trigger for event in await logged(session, "session.context_cleared")]
