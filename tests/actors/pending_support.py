"""What the tests of open requests share: sessions that leave them open, and short ways to see what became of them."""

from typing import Any

import trio

from exeunt import PendingRequest, Session, SessionHost, Tool, ToolInvocation, leave_pending, tool
from exeunt.testing import ScriptedModel


@tool
async def write(path: str) -> str:
    """Write a file."""
    return f"wrote {path}"


@tool(skip_permission=True)
async def paint(invocation: ToolInvocation) -> str:
    """Paint it."""
    answer = await invocation.ask_user("Which colour?", ["red", "blue"])
    return answer.text


async def open_session(
    host: SessionHost, model: ScriptedModel, *tools: Tool[..., Any], **options: Any
) -> Session:
    """A session that leaves everything that it asks open, unless *options* say otherwise."""
    options.setdefault("on_permission_request", leave_pending)
    options.setdefault("on_user_input_request", leave_pending)
    return await host.create_session(model=model, tools=tools, **options)


async def pending(session: Session, count: int = 1) -> tuple[PendingRequest, ...]:
    """Wait until so many requests are open, and return them. Bounded by an hour."""
    with trio.fail_after(3600):
        await trio.lowlevel.checkpoint()
        while len(session.pending_requests()) != count:  # noqa: ASYNC110 - in virtual time a look costs nothing
            await trio.sleep(0.001)
    return session.pending_requests()


async def told(session: Session) -> list[tuple[str, str]]:
    """Kind of request and of its end, of each that has ended, in order."""
    return [
        (event.type.removesuffix(".completed"), event.payload()["kind"])
        for event in await session.get_events()
        if event.type in ("permission.completed", "user_input.completed")
    ]
