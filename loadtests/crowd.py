"""Sessions whose model and tool cost nothing, so that what is measured is the host."""

from collections.abc import AsyncIterator, Sequence
from typing import Any

import trio

from exeunt import Session, SessionHost, ToolCall, approve_all, tool
from exeunt.actors.models import ModelDelta, ModelRequest, ModelResponse


@tool
async def add(a: int, b: int) -> str:
    """Add two numbers."""
    return str(a + b)


class ZeroCostModel:
    """Asks for one tool call, then answers. Costs one checkpoint a call."""

    model = provider = "zero"

    def __init__(self) -> None:
        self._call = ModelResponse("", (ToolCall("", "add", '{"a":1,"b":2}'),), "tool_calls")
        self._answer = ModelResponse("3")
        self._piece = ModelDelta("3")

    async def complete(self, request: ModelRequest, /) -> ModelResponse:
        """Answer by what the last message is."""
        await trio.lowlevel.checkpoint()
        return self._answer if request.messages[-1].role == "tool" else self._call

    async def stream(self, request: ModelRequest, /) -> AsyncIterator[ModelDelta | ModelResponse]:
        """Answer with one piece of text, call tools without any."""
        answer = await self.complete(request)
        if answer is self._answer:
            yield self._piece
        yield answer


async def open_crowd(host: SessionHost, count: int, **options: Any) -> list[Session]:
    """Make *count* sessions; *options* are those of `create_session`, beside model, tool and approval."""
    chosen: dict[str, Any] = {
        "model": ZeroCostModel(),
        "tools": [add],
        "on_permission_request": approve_all,
    } | options
    return [await host.create_session(**chosen) for _ in range(count)]


async def talk(sessions: Sequence[Session], exchanges: int, *, concurrent: bool = True) -> None:
    """Hold *exchanges* in each session: all sessions at once, or one after the other."""

    async def user(session: Session) -> None:
        for _ in range(exchanges):
            await session.send_and_wait("add 1 and 2")

    if concurrent:
        async with trio.open_nursery() as users:
            for session in sessions:
                users.start_soon(user, session, name="user")
    else:
        for session in sessions:
            await user(session)
