"""How long clear_context takes while every session of the host is busy, and how many clears a host does.

Each session clears again and again: a request, a tool call, a request, the call that clears. Model and tools cost
nothing, so the loop is never idle. The task that ran the clearing tool goes on with the seed's request itself, so a
clear does not queue behind the other sessions.
"""

import time
from collections.abc import AsyncIterator, Sequence

import trio

from exeunt import Session, ToolCall, ToolInvocation, open_host, tool
from exeunt.actors.events import ContextCleared, Event
from exeunt.actors.models import ModelDelta, ModelRequest, ModelResponse
from loadtests.crowd import add, open_crowd
from loadtests.frame import Size, Table, main, percentile

SEED = "Go on with what is left."


class Stopwatch:
    """When each session called clear_context, and how long it was until the commit and the next request."""

    def __init__(self) -> None:
        self.called: dict[str, float] = {}
        self.committed: list[float] = []
        self.requested: list[float] = []

    def observe(self, session_id: str, events: Sequence[Event], /) -> None:
        """Take note of commits."""
        for event in events:
            if isinstance(event, ContextCleared):
                self.committed.append(time.perf_counter() - self.called[session_id])

    def asked(self, session_id: str) -> None:
        """Take note of the first request after a clear."""
        called = self.called.pop(session_id, None)
        if called is not None:
            self.requested.append(time.perf_counter() - called)


class ClearingModel:
    """Calls `add`, then `clear`, until each session has cleared so often."""

    def __init__(self, watch: Stopwatch, clears: int) -> None:
        self._watch = watch
        self._left: dict[str, int] = {}
        self._clears = clears
        self._add = ModelResponse("", (ToolCall("", "add", '{"a":1,"b":2}'),), "tool_calls")
        self._clear = ModelResponse("", (ToolCall("", "clear", "{}"),), "tool_calls")

    async def complete(self, request: ModelRequest, /) -> ModelResponse:
        """Answer by what the last message is."""
        self._watch.asked(request.session_id)
        await trio.lowlevel.checkpoint()
        if request.messages[-1].role != "tool":
            return self._add
        left = self._left.get(request.session_id, self._clears)
        self._left[request.session_id] = left - 1
        return self._clear if left else ModelResponse("done")

    async def stream(self, request: ModelRequest, /) -> AsyncIterator[ModelDelta | ModelResponse]:
        """Answer in one piece."""
        yield await self.complete(request)


async def clear_all(count: int, clears: int) -> tuple[Stopwatch, float]:
    """Let each of *count* sessions clear *clears* times; return the times, and the seconds that all took."""
    watch = Stopwatch()

    @tool(is_terminal=True, skip_permission=True)
    async def clear(invocation: ToolInvocation) -> str:
        """Clear the conversation."""
        watch.called[invocation.session.session_id] = time.perf_counter()
        await invocation.session.history.clear_context(SEED)
        return "cleared"

    async with open_host() as host:
        host.observe(watch.observe)
        sessions = await open_crowd(host, count, model=ClearingModel(watch, clears), tools=[add, clear])
        began = time.perf_counter()
        async with trio.open_nursery() as users:
            for session in sessions:
                users.start_soon(_user, session)
        return watch, time.perf_counter() - began


async def _user(session: Session) -> None:
    await session.send_and_wait("begin", None)


def run(size: Size) -> None:
    """Measure and print."""
    table = Table(
        "ms from the call of clear_context",
        "commit p50",
        "commit p99",
        "request p50",
        "request p99",
    )
    speeds: list[str] = []
    total = size.pick(full=20_000, quick=6_000, tiny=200)
    for count in size.pick(full=(1, 100, 2_000), quick=(1, 2_000), tiny=(1, 20)):
        clears = max(2, min(1_000, total // count))
        watch, seconds = trio.run(clear_all, count, clears)
        assert len(watch.committed) == len(watch.requested) == count * clears
        table.row(
            f"busy sessions: {count:,}, clears each: {clears:,}",
            *(
                percentile(values, percent) * 1e3
                for values in (watch.committed, watch.requested)
                for percent in (50, 99)
            ),
        )
        speeds.append(f"{count * clears / seconds:,.0f} with {count:,}")
    table.note(f"clears per second, a tool call and two requests with each: {'; '.join(speeds)}")


if __name__ == "__main__":
    main(run, __doc__)
