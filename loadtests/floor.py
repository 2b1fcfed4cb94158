"""The least that trio can do for a message with one tool call: no session, no events, no promises."""

import json

import trio

Message = dict[str, str]


async def _model(history: list[Message]) -> Message:
    """A model that costs one checkpoint, over plain dicts."""
    await trio.lowlevel.checkpoint()
    if history[-1]["role"] == "tool":
        return {"role": "assistant", "content": "3"}
    return {"role": "assistant", "call": "add", "arguments": '{"a":1,"b":2}'}


async def _tool(a: int, b: int, history: list[Message]) -> None:
    history.append({"role": "tool", "content": str(a + b)})


async def _turn(history: list[Message]) -> str:
    history.append({"role": "user", "content": "add 1 and 2"})
    while True:
        answer = await _model(history)
        history.append(answer)
        if "call" not in answer:
            return answer["content"]
        arguments = json.loads(answer["arguments"])
        # An answer may ask for several calls.
        async with trio.open_nursery() as nursery:  # noqa: ASYNC112
            nursery.start_soon(_tool, arguments["a"], arguments["b"], history, name="call")


async def talk(conversations: int, exchanges: int, *, concurrent: bool) -> None:
    """Do what `loadtests.crowd.talk` does, without a host."""
    async with trio.open_nursery() as turns:

        async def user() -> None:
            history: list[Message] = []
            for _ in range(exchanges):
                done = trio.Event()

                async def turn(done: trio.Event = done) -> None:
                    await _turn(history)
                    done.set()

                turns.start_soon(turn, name="turn")
                await done.wait()

        if concurrent:
            async with trio.open_nursery() as users:
                for _ in range(conversations):
                    users.start_soon(user, name="user")
        else:
            for _ in range(conversations):
                await user()
