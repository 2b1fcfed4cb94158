"""CPU per user message with one tool call, against a bare trio loop that does the same without events.

Run: python -m loadtests.bench_turn [rounds]
"""

import gc
import json
import sys
import time
from collections.abc import Awaitable, Callable

import trio

from exeunt import ToolCall, approve_all, open_host, tool
from exeunt.actors.models import ModelRequest, ModelResponse

SESSIONS = 100
MESSAGES = 10


@tool
async def add(a: int, b: int) -> str:
    """Add two numbers."""
    return str(a + b)


class ZeroCostModel:
    """Asks for one tool call, then answers; costs one checkpoint a call."""

    model = provider = "zero"

    def __init__(self) -> None:
        self._call = ModelResponse("", (ToolCall("", "add", '{"a":1,"b":2}'),), "tool_calls")
        self._answer = ModelResponse("3")

    async def complete(self, request: ModelRequest, /) -> ModelResponse:
        """Answer by what the last message is."""
        await trio.lowlevel.checkpoint()
        return self._answer if request.messages[-1].role == "tool" else self._call

    def stream(self, request: ModelRequest, /):  # noqa: ANN201
        raise NotImplementedError


async def floor_model(history: list[dict[str, str]]) -> dict[str, str]:
    """The same zero-cost model, over plain dicts."""
    await trio.lowlevel.checkpoint()
    if history[-1]["role"] == "tool":
        return {"role": "assistant", "content": "3"}
    return {"role": "assistant", "call": "add", "arguments": '{"a":1,"b":2}'}


async def floor_tool(a: int, b: int, history: list[dict[str, str]]) -> None:
    history.append({"role": "tool", "content": str(a + b)})


async def floor_turn(history: list[dict[str, str]]) -> str:
    """The same work without a session: model, tool call in a nursery, model."""
    history.append({"role": "user", "content": "add 1 and 2"})
    while True:
        answer = await floor_model(history)
        history.append(answer)
        if "call" not in answer:
            return answer["content"]
        arguments = json.loads(answer["arguments"])
        async with trio.open_nursery() as nursery:
            nursery.start_soon(floor_tool, arguments["a"], arguments["b"], history, name="call")


async def floor_round(concurrent: bool) -> float:
    histories: list[list[dict[str, str]]] = [[] for _ in range(SESSIONS)]

    async def user(history: list[dict[str, str]]) -> None:
        for _ in range(MESSAGES):
            done = trio.Event()

            async def turn() -> None:
                await floor_turn(history)
                done.set()

            outer.start_soon(turn, name="turn")
            await done.wait()

    began = time.process_time()
    async with trio.open_nursery() as outer:
        if concurrent:
            async with trio.open_nursery() as users:
                for history in histories:
                    users.start_soon(user, history, name="user")
        else:
            for history in histories:
                await user(history)
    return (time.process_time() - began) / (SESSIONS * MESSAGES) * 1e6


async def exeunt_round(concurrent: bool, permission: bool = True) -> float:
    model = ZeroCostModel()
    async with open_host() as host:
        sessions = [
            await host.create_session(model=model, tools=[add], on_permission_request=approve_all)
            for _ in range(SESSIONS)
        ]

        async def user(session) -> None:
            for _ in range(MESSAGES):
                await session.send_and_wait("add 1 and 2")

        began = time.process_time()
        if concurrent:
            async with trio.open_nursery() as users:
                for session in sessions:
                    users.start_soon(user, session, name="user")
        else:
            for session in sessions:
                await user(session)
        return (time.process_time() - began) / (SESSIONS * MESSAGES) * 1e6


async def measure(rounds: int) -> None:
    gc.set_threshold(50_000, 20, 10)
    for concurrent in (True, False):
        floor, ours = [], []
        for _ in range(rounds):
            gc.collect()
            floor.append(await floor_round(concurrent))
            gc.collect()
            ours.append(await exeunt_round(concurrent))
        floor.sort(); ours.sort()
        f, o = floor[len(floor) // 4], ours[len(ours) // 4]
        print(f"{'concurrent' if concurrent else 'sequential'}: floor {f:.1f} us, exeunt {o:.1f} us, ratio {o / f:.2f}")


if __name__ == "__main__":
    trio.run(measure, int(sys.argv[1]) if len(sys.argv) > 1 else 10)
