"""CPU of one model call: our own clients and, in the same run, the official SDK behind our adapter and by itself.

The server is a child process of its own, so only the client's CPU is counted. Read ratios within one run: on a
shared machine the numbers themselves move.
"""

import json
import sys
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import msgspec
import openai
import trio

from exeunt.actors.media import Media
from exeunt.actors.models import ModelRequest, Role, ToolCall
from exeunt.models.anthropic import AnthropicModel
from exeunt.models.anthropic.requests import RequestEncoder as MessagesEncoder
from exeunt.models.media import IMAGES_AND_PDFS
from exeunt.models.openai import OpenAIModel
from exeunt.models.openai.adapter import OpenAIClientModel
from exeunt.models.openai.requests import RequestEncoder
from exeunt.models.responses import ResponsesModel
from exeunt.models.responses.requests import RequestEncoder as ResponsesEncoder
from exeunt.testing.http_double import HttpReply, HttpRequest, event_stream, open_http_double
from loadtests.frame import Size, Table, main

Call = Callable[[], Awaitable[object]]

ROUNDS = 3
"""Of each, in turn, so that a slow moment of the machine hits all."""

CHAT = "own client, chat completions"
MESSAGES = "own client, messages"
RESPONSES = "own client, responses"

PIECES = 20
"""Text pieces of a streamed answer."""


class Said(msgspec.Struct, frozen=True, gc=False):
    """A message."""

    role: Role
    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    media: tuple[Media, ...] = ()


REQUEST = ModelRequest([Said("system", "Be brief."), Said("user", "What is the way out?" * 5)])

_MESSAGE = {"role": "assistant", "content": "Exit, left. " * 10}
_ANSWER = {
    "id": "a",
    "object": "chat.completion",
    "created": 1,
    "model": "m",
    "choices": [{"index": 0, "message": _MESSAGE, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 20, "completion_tokens": 40, "total_tokens": 60},
}


def _chunk(delta: dict[str, str], finish: str | None = None) -> dict[str, object]:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {"id": "a", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}


_WHOLE = HttpReply(body=json.dumps(_ANSWER).encode())
_STREAM = event_stream(*[_chunk({"content": f"piece {n} "}) for n in range(PIECES)], _chunk({}, "stop"))


_TEXT = [{"type": "text", "text": _MESSAGE["content"]}]
_MESSAGES_WHOLE = HttpReply(
    body=json.dumps(
        {
            "id": "a",
            "type": "message",
            "role": "assistant",
            "model": "m",
            "content": _TEXT,
            "stop_reason": "end_turn",
            "usage": {"input_tokens": 20, "output_tokens": 40},
        }
    ).encode()
)
_MESSAGES_STREAM = event_stream(
    {"type": "message_start", "message": {"id": "a", "content": [], "usage": {"input_tokens": 20}}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    *[
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": f"piece {n} "}}
        for n in range(PIECES)
    ],
    {"type": "content_block_stop", "index": 0},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 40}},
    {"type": "message_stop"},
    done=False,
)


_ITEM: dict[str, object] = {
    "type": "message",
    "id": "m",
    "role": "assistant",
    "status": "completed",
    "content": [{"type": "output_text", "text": _MESSAGE["content"], "annotations": []}],
}
_RESPONSE: dict[str, object] = {
    "id": "a",
    "object": "response",
    "status": "completed",
    "output": [_ITEM],
    "usage": {"input_tokens": 20, "output_tokens": 40},
}
_AT = {"item_id": "m", "output_index": 0, "content_index": 0}
_STREAMED = "".join(f"piece {n} " for n in range(PIECES))
_DONE: dict[str, object] = {
    **_ITEM,
    "content": [{"type": "output_text", "text": _STREAMED, "annotations": []}],
}
_RESPONSES_WHOLE = HttpReply(body=json.dumps(_RESPONSE).encode())
_RESPONSES_STREAM = event_stream(
    {"type": "response.created", "response": {**_RESPONSE, "status": "in_progress", "output": []}},
    {"type": "response.output_item.added", "output_index": 0, "item": {**_ITEM, "content": []}},
    *[{"type": "response.output_text.delta", **_AT, "delta": f"piece {n} "} for n in range(PIECES)],
    {"type": "response.output_text.done", **_AT, "text": _STREAMED},
    {"type": "response.output_item.done", "output_index": 0, "item": _DONE},
    {"type": "response.completed", "response": {**_RESPONSE, "output": [_DONE]}},
    done=False,
)


async def serve() -> None:
    """Answer each request at once, for ever; tell the port on standard output."""

    def answer(request: HttpRequest) -> HttpReply:
        # Requests would pile up.
        double.requests.clear()
        streams = b'"stream":true' in request.body.replace(b" ", b"")
        if request.target.endswith("/messages"):
            return _MESSAGES_STREAM if streams else _MESSAGES_WHOLE
        if request.target.endswith("/responses"):
            return _RESPONSES_STREAM if streams else _RESPONSES_WHOLE
        return _STREAM if streams else _WHOLE

    async with open_http_double() as double:
        double.otherwise = answer
        print(double.port, flush=True)
        await trio.sleep_forever()


@asynccontextmanager
async def server() -> AsyncGenerator[str]:
    """Run `serve` in a child process; yield its base URL."""
    process = await trio.lowlevel.open_process(
        [sys.executable, "-m", "loadtests.bench_model_http", "serve"], stdout=-1
    )
    assert process.stdout is not None
    try:
        port = bytes(await process.stdout.receive_some()).decode().strip()
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.kill()
        with trio.move_on_after(5, shield=True):
            await process.wait()
            await process.stdout.aclose()


async def cpu_per_call(call: Call, calls: int, at_once: int) -> float:
    """Return the microseconds of CPU of this process for each of *calls* calls, *at_once* at a time."""
    left = calls

    async def worker() -> None:
        nonlocal left
        while left > 0:
            left -= 1
            await call()

    start = time.process_time()
    async with trio.open_nursery() as nursery:
        for _ in range(at_once):
            nursery.start_soon(worker)
    return (time.process_time() - start) / calls * 1e6


async def exhaust(stream: AsyncIterator[object]) -> None:
    """Read a stream to its end."""
    async for _ in stream:
        pass


async def measure(calls_each: int, best: dict[tuple[str, int], float]) -> None:
    """Fill *best* with the microseconds of CPU of each kind of call, by how many there are at once."""
    async with server() as url, openai.AsyncOpenAI(api_key="k", base_url=url, max_retries=0) as client:
        own = OpenAIModel("m", base_url=url, trust_env=False)
        messages = AnthropicModel("m", base_url=url, trust_env=False)
        responses = ResponsesModel("m", base_url=url, trust_env=False)
        adapter = OpenAIClientModel(client, "m")

        async def sdk() -> None:
            await client.chat.completions.create(
                model="m",
                messages=[{"role": "user", "content": str(said.content)} for said in REQUEST.messages],
            )

        async def sdk_stream() -> None:
            stream = await client.chat.completions.create(
                model="m",
                stream=True,
                messages=[{"role": "user", "content": str(said.content)} for said in REQUEST.messages],
            )
            await exhaust(stream)

        calls: dict[str, Call] = {
            CHAT: lambda: own.complete(REQUEST),
            MESSAGES: lambda: messages.complete(REQUEST),
            RESPONSES: lambda: responses.complete(REQUEST),
            "adapter": lambda: adapter.complete(REQUEST),
            "SDK create": sdk,
            f"{CHAT}, stream of {PIECES}": lambda: exhaust(own.stream(REQUEST)),
            f"{MESSAGES}, stream of {PIECES}": lambda: exhaust(messages.stream(REQUEST)),
            f"{RESPONSES}, stream of {PIECES}": lambda: exhaust(responses.stream(REQUEST)),
            f"adapter, stream of {PIECES}": lambda: exhaust(adapter.stream(REQUEST)),
            f"SDK create, stream of {PIECES}": sdk_stream,
        }
        for _ in range(ROUNDS):
            for name, call in calls.items():
                for at_once in (1, 50):
                    cost = await cpu_per_call(call, calls_each, at_once)
                    best[name, at_once] = min(cost, best.get((name, at_once), cost))
        await own.aclose()
        await messages.aclose()
        await responses.aclose()


def run(size: Size) -> None:
    """Measure and print."""
    best: dict[tuple[str, int], float] = {}
    try:
        trio.run(measure, size.pick(full=200, quick=50, tiny=2), best)
    finally:
        table = Table("us of CPU for a model call", "1 at a time", "50 at once")
        for name in dict.fromkeys(name for name, _ in best):
            table.row(name, *(best.get((name, at_once), "") for at_once in (1, 50)))
        for door, short in ((MESSAGES, "messages"), (RESPONSES, "responses")):
            for way in ("", f", stream of {PIECES}"):
                costs = [(best.get((door + way, n)), best.get((CHAT + way, n))) for n in (1, 50)]
                ratios = [round(mine / theirs, 2) if mine and theirs else "" for mine, theirs in costs]
                table.row(f"{short} to chat completions{way}, ratio", *ratios)
    table = Table("us to encode a request", "messages only", "with calls")
    chat = RequestEncoder("m", {}, developer_role="system", stream_usage=True)
    messages = MessagesEncoder(
        "m",
        {},
        max_tokens=None,
        effort=None,
        prompt_cache=True,
        citations=False,
        media=IMAGES_AND_PDFS,
        tag="bench",
    )
    responses = ResponsesEncoder("m", {}, developer_role="developer", keeper="bench")
    for count in size.pick(full=(20, 200, 2_000), quick=(20, 200, 2_000), tiny=(20,)):
        for name, encoder in (
            ("", chat),
            (", for the Messages API", messages),
            (", for the Responses API", responses),
        ):
            table.row(
                f"{count:,} messages{name}", encoding(encoder, count, False), encoding(encoder, count, True)
            )


def encoding(
    encoder: RequestEncoder | MessagesEncoder | ResponsesEncoder, messages: int, calls: bool
) -> float:
    """Return the microseconds to encode a request of so many *messages*, a third of them calls if *calls*."""
    made = (
        (ToolCall("call_1", "look_up", json.dumps({"word": "exit", "languages": ["en", "la"]})),)
        if calls
        else ()
    )
    turn = [
        Said("user", "What is the way out?" * 5),
        Said("assistant", "Exit, left. " * 10, made),
        Said("tool" if calls else "user", "To go off stage. " * 10, (), "call_1"),
    ]
    request = ModelRequest([turn[number % 3] for number in range(messages)])
    best = float("inf")
    for _ in range(20):
        start = time.perf_counter()
        encoder.encode(request, stream=True)
        best = min(best, time.perf_counter() - start)
    return best * 1e6


if __name__ == "__main__":
    if sys.argv[1:] == ["serve"]:
        trio.run(serve)
    else:
        main(run, __doc__)
