"""The host's own `AsyncOpenAI` object as a model."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import openai
import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from exeunt.actors.models import ModelClient, ModelDelta, ModelError, ModelErrorKind, ModelResponse, Usage
from exeunt.models.http import Timeouts
from exeunt.models.openai.adapter import OpenAIClientModel
from exeunt.testing.http_double import HttpDouble, HttpReply, Script, event_stream, open_http_double
from tests.models.openai_support import HELLO, chunk, completion, streamed

STREAM = event_stream(chunk({"content": "Hi"}), chunk({"content": "!"}), chunk({}, "stop"))


@asynccontextmanager
async def adapted(
    *replies: Script, timeouts: Timeouts | None = None
) -> AsyncGenerator[tuple[HttpDouble, OpenAIClientModel]]:
    async with (
        open_http_double(*replies) as double,
        openai.AsyncOpenAI(
            api_key="k", base_url=f"http://127.0.0.1:{double.port}/v1", max_retries=5
        ) as client,
    ):
        yield double, OpenAIClientModel(client, "m", timeouts=timeouts)


async def test_a_whole_answer_is_read() -> None:
    async with adapted(HttpReply(body=completion())) as (double, model):
        assert isinstance(model, ModelClient)
        assert await model.complete(HELLO) == ModelResponse("Hi.", (), "stop", Usage(3, 1))
    (request,) = double.requests
    assert request.target == "/v1/chat/completions"
    assert request.headers["content-type"] == "application/json"
    assert request.headers["authorization"] == "Bearer k"
    assert [message["content"] for message in request.json["messages"]] == ["Be brief.", "Hello"]


async def test_a_streamed_answer_comes_in_pieces_and_then_whole() -> None:
    async with adapted(STREAM) as (_, model):
        assert await streamed(model) == (
            [ModelDelta("Hi"), ModelDelta("!")],
            ModelResponse("Hi!", (), "stop"),
        )


@pytest.mark.parametrize("stream", [False, True])
async def test_a_status_is_the_same_error_as_without_the_client_and_not_tried_again(stream: bool) -> None:
    reply = HttpReply(status=429, body=b'{"error":{"message":"slow down"}}', headers=[("Retry-After", "2.5")])
    async with adapted(reply) as (double, model):
        with pytest.raises(ModelError) as caught:
            await (streamed(model) if stream else model.complete(HELLO))
    error = caught.value
    assert (error.kind, error.retry, error.status, error.retry_after) == (
        ModelErrorKind.RATE_LIMITED,
        True,
        429,
        2.5,
    )
    assert str(error) == "status 429: slow down"
    assert len(double.requests) == 1


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (HttpReply(framing="raw", end="close"), ModelErrorKind.CONNECTION_LOST),
        (
            HttpReply(body=b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{", framing="raw", end="close"),
            ModelErrorKind.CONNECTION_LOST,
        ),
        (
            HttpReply(body=b"no gzip", headers=[("Content-Encoding", "gzip")]),
            ModelErrorKind.MALFORMED_RESPONSE,
        ),
        (HttpReply(body=b"<html>"), ModelErrorKind.MISCONFIGURED_ENDPOINT),
    ],
)
async def test_a_broken_answer_is_a_typed_error(reply: HttpReply, kind: ModelErrorKind) -> None:
    async with adapted(reply) as (double, model):
        with pytest.raises(ModelError) as caught:
            await model.complete(HELLO)
    assert caught.value.kind is kind
    assert len(double.requests) == 1


@pytest.mark.parametrize("body", [[50.0], [b": x\n\n", 50.0]], ids=["first byte", "gap"])
async def test_each_wait_is_bounded(body: list[bytes | float], autojump_clock: MockClock) -> None:
    autojump_clock.autojump_threshold = 0.05
    reply = HttpReply(body=body, content_type="text/event-stream", framing="chunked")
    async with adapted(reply, timeouts=Timeouts(first_byte=5, gap=5)) as (_, model):
        start = trio.current_time()
        with pytest.raises(ModelError) as caught:
            await streamed(model)
        assert caught.value.kind is ModelErrorKind.TIMEOUT
        assert trio.current_time() - start < 7


async def test_a_stream_that_is_closed_early_leaves_nothing_behind() -> None:
    hanging = HttpReply(body=[STREAM.packets[0], 1e6], content_type="text/event-stream", framing="chunked")
    async with adapted(hanging, STREAM) as (_, model):
        stream = model.stream(HELLO)
        assert await anext(stream) == ModelDelta("Hi")
        with trio.fail_after(2):
            await stream.aclose()
        assert (await streamed(model))[1].content == "Hi!"


async def test_a_cancelled_call_leaves_the_client_usable() -> None:
    hanging = HttpReply(body=[b"data: {}\n\n", 1e6], content_type="text/event-stream", framing="chunked")
    async with adapted(hanging, HttpReply(body=completion())) as (double, model):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(streamed, model)
            await wait_all_tasks_blocked(0.1)
            assert len(double.requests) == 1
            nursery.cancel_scope.cancel()
        await wait_all_tasks_blocked(0.02)
        assert (await model.complete(HELLO)).content == "Hi."
