"""What the tests of resuming share: databases as a `kill -9` leaves them, and hosts that run on them."""

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import trio

from exeunt import Session, SessionHost, Tool, ToolInvocation, approve_all, open_host, tool
from exeunt.supervisor.journal import Store
from exeunt.supervisor.journal.durable import DurableJournal
from exeunt.testing import ScriptedModel, checked_host

SESSION = "hamlet"


async def until(condition: Callable[[], object]) -> None:
    """Wait until *condition* holds: something that a thread brings about, and no event tells of."""
    with trio.fail_after(10):
        await trio.lowlevel.checkpoint()
        while not condition():  # noqa: ASYNC110
            await trio.sleep(0.001)


def checked(store: Store, **keywords: Any) -> AbstractAsyncContextManager[SessionHost]:
    """Run a host on *store* that checks itself."""
    return checked_host(journal=DurableJournal(store), **keywords)


@asynccontextmanager
async def doomed(store: Store) -> AsyncGenerator[SessionHost]:
    """Run a host on *store* whose end does not count: the test looks at a copy of the store from before."""
    async with open_host(journal=DurableJournal(store)) as host:
        yield host


def options(model: ScriptedModel, *tools: Tool[..., Any], **others: Any) -> dict[str, Any]:
    """Return the keywords of a session."""
    return {
        "model": model,
        "tools": tools,
        "system_message": "You are terse.",
        "on_permission_request": approve_all,
        **others,
    }


async def create(host: SessionHost, model: ScriptedModel, *tools: Tool[..., Any], **others: Any) -> Session:
    """Make the session of the test."""
    return await host.create_session(session_id=SESSION, **options(model, *tools, **others))


async def resume(
    host: SessionHost, model: ScriptedModel, *tools: Tool[..., Any], go_on: bool = False, **others: Any
) -> Session:
    """Take up the session of the test, and go on with its work if asked."""
    keywords = options(model, *tools, **others)
    return await host.resume_session(SESSION, continue_pending_work=go_on, **keywords)


async def durable(session: Session) -> None:
    """Wait until all events so far are durable."""
    await session.get_events()


@tool(is_terminal=True, defer="never")
async def clear_context(prompt: str, invocation: ToolInvocation) -> str:
    """Start a new context."""
    result = await invocation.session.history.clear_context(prompt)
    return f"Cleared {result.messages_cleared} messages."


@tool(is_terminal=True)
async def submit() -> str:
    """Hand in."""
    return "handed in"


@tool
async def read() -> str:
    """Read something."""
    return "what was read"
