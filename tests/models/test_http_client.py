"""One exchange: time-outs, sizes, content codings, statuses, and answers that are no HTTP."""

import gzip
import tracemalloc
import zlib
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import MockClock

from exeunt.actors.models import ModelError, ModelErrorKind
from exeunt.models.http.decoding import Decoder
from exeunt.testing.http_double import HttpReply, event_stream, open_http_double
from tests.models.openai_support import HELLO, chunk, completion, model_at, streamed

EVENTS = [
    packet
    for packet in event_stream(chunk({"content": "Hi."}), chunk({}, "stop")).packets
    if isinstance(packet, bytes)
]


async def failure(*replies: HttpReply, stream: bool = False, **settings: Any) -> ModelError:
    async with open_http_double(*replies) as double:
        model = model_at(double, **settings)
        with pytest.raises(ModelError) as caught:
            await (streamed(model) if stream else model.complete(HELLO))
        assert model.statistics().failures == 1
        await model.aclose()
        return caught.value


@pytest.mark.parametrize(
    ("body", "stream", "seconds"),
    [
        ([1000.0, completion()], False, 600),
        ([1000.0, *EVENTS], True, 120),
        ([EVENTS[0], 1000.0, *EVENTS[1:]], True, 60),
        ([EVENTS[0], *[b": ping\n\n", 30.0] * 200, *EVENTS[1:]], True, 3600),
    ],
    ids=["total", "first byte", "gap", "stream total"],
)
async def test_each_wait_is_bounded(
    body: list[bytes | float], stream: bool, seconds: float, autojump_clock: MockClock
) -> None:
    autojump_clock.autojump_threshold = 0.01
    start = trio.current_time()
    kind = "text/event-stream" if stream else "application/json"
    error = await failure(HttpReply(body=body, content_type=kind, framing="chunked"), stream=stream)
    assert (error.kind, error.retry) == (ModelErrorKind.TIMEOUT, True)
    assert trio.current_time() - start == pytest.approx(seconds, abs=1)


async def test_the_wait_for_a_connection_is_bounded(autojump_clock: MockClock) -> None:
    # A listener whose queue is full takes no more connections; the kernel keeps the caller waiting.
    listener = trio.socket.socket()
    await listener.bind(("127.0.0.1", 0))
    listener.listen(0)
    full = [trio.socket.socket() for _ in range(4)]
    autojump_clock.autojump_threshold = 0.02
    try:
        for each in full:
            with trio.move_on_after(0.001):
                await each.connect(listener.getsockname())
        model = model_at(_At(listener.getsockname()[1]))  # type: ignore[arg-type]
        start = trio.current_time()
        with pytest.raises(ModelError) as caught:
            await model.complete(HELLO)
        assert caught.value.kind is ModelErrorKind.TIMEOUT
        assert trio.current_time() - start == pytest.approx(10, abs=0.5)
    finally:
        for each in (listener, *full):
            each.close()


class _At:
    def __init__(self, port: int) -> None:
        self.port = port


@pytest.mark.parametrize(
    "reply",
    [
        HttpReply(body=completion("x" * 2000)),
        HttpReply(body=gzip.compress(completion("x" * 100_000)), headers=[("Content-Encoding", "gzip")]),
        HttpReply(body=[b"x" * 600] * 2, framing="chunked"),
    ],
    ids=["length", "bomb", "chunked"],
)
async def test_an_answer_that_is_too_large_is_refused(reply: HttpReply) -> None:
    error = await failure(reply, max_response_bytes=1000)
    assert (error.kind, error.retry) == (ModelErrorKind.MALFORMED_RESPONSE, False)


def raw_deflate(data: bytes) -> bytes:
    deflate = zlib.compressobj(wbits=-15)
    return deflate.compress(data) + deflate.flush()


CODINGS: list[tuple[str, Callable[[bytes], bytes]]] = [
    ("gzip", gzip.compress),
    ("x-gzip", lambda data: gzip.compress(data[:9]) + gzip.compress(data[9:])),
    ("gzip", lambda data: gzip.compress(data) + b"\0" * 7),
    ("deflate", zlib.compress),
    ("deflate", raw_deflate),
    ("identity", bytes),
]


@pytest.mark.parametrize(("coding", "encode"), CODINGS)
async def test_a_content_coding_is_undone(coding: str, encode: Callable[[bytes], bytes]) -> None:
    coded = encode(completion("Hello."))
    packets = [coded[place : place + 1] for place in range(len(coded))]
    async with open_http_double(
        HttpReply(body=packets, framing="chunked", headers=[("Content-Encoding", coding)])
    ) as double:
        model = model_at(double)
        assert (await model.complete(HELLO)).content == "Hello."
        await model.aclose()


@pytest.mark.parametrize(
    ("coding", "body", "kind"),
    [
        ("br", b"x", ModelErrorKind.MALFORMED_RESPONSE),
        ("gzip", b"no gzip at all", ModelErrorKind.MALFORMED_RESPONSE),
        ("gzip", gzip.compress(completion())[:-9], ModelErrorKind.CONNECTION_LOST),
    ],
)
async def test_a_content_coding_that_cannot_be_undone_is_an_error(
    coding: str, body: bytes, kind: ModelErrorKind
) -> None:
    assert (await failure(HttpReply(body=body, headers=[("Content-Encoding", coding)]))).kind is kind


@given(st.binary(max_size=200), st.sampled_from(CODINGS[:-1]), st.data())
def test_where_packets_cut_a_coded_body_makes_no_difference(
    body: bytes, coding: tuple[str, Callable[[bytes], bytes]], data: st.DataObject
) -> None:
    name, encode = coding
    coded = encode(body)
    cuts = sorted(data.draw(st.sets(st.integers(0, len(coded)), max_size=5)))
    decoder = Decoder(name, 1000)
    out = b"".join(decoder.decode(coded[a:b]) for a, b in zip([0, *cuts], [*cuts, len(coded)], strict=True))
    decoder.end()
    assert out == body


def test_a_body_that_would_be_too_large_is_refused_before_it_is_made() -> None:
    bomb = gzip.compress(bytes(20_000_000))
    decoder = Decoder("gzip", 1000)
    tracemalloc.start()
    try:
        with pytest.raises(ModelError):
            decoder.decode(bomb)
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


@given(st.binary(max_size=50), st.sampled_from(["gzip", "deflate"]))
def test_a_body_that_is_not_what_it_says_raises_nothing_but_typed_errors(body: bytes, coding: str) -> None:
    decoder = Decoder(coding, 1000)
    with suppress(ModelError):
        decoder.decode(body)
        decoder.end()


@pytest.mark.parametrize(
    ("status", "body", "kind", "retry"),
    [
        (400, b'{"error":{"message":"no","type":"invalid_request_error"}}', "bad_request", False),
        (400, b'{"error":{"code":"content_filter","message":"no"}}', "content_filtered", False),
        (400, b'{"error":{"code":"context_length_exceeded","message":"long"}}', "bad_request", False),
        (401, b"", "authentication", False),
        (403, b"[]", "authentication", False),
        (404, b'{"detail":"Not Found"}', "not_found", False),
        (405, b"", "misconfigured_endpoint", False),
        (408, b"", "timeout", True),
        (413, b"<html>", "bad_request", False),
        (429, b'{"error":{"code":"insufficient_quota","message":"pay"}}', "rate_limited", False),
        (429, b"null", "rate_limited", True),
        (500, b"\xff\xfe", "server_error", True),
        (503, b'{"error":{"type":"overloaded_error"}}', "overloaded", True),
        (504, b"", "timeout", True),
        (529, b"", "overloaded", True),
        (599, b'"text"', "server_error", True),
        (301, b"", "misconfigured_endpoint", False),
    ],
)
async def test_a_status_tells_what_went_wrong(status: int, body: bytes, kind: str, retry: bool) -> None:
    error = await failure(HttpReply(status=status, body=body, headers=[("Location", "https://x/")]))
    assert (error.kind, error.retry, error.status) == (kind, retry, status)


async def test_the_words_of_the_provider_are_handed_on_without_the_key() -> None:
    reply = HttpReply(status=401, body=b'{"error":{"message":"Wrong key\\nsk-secret-1: go away"}}')
    error = await failure(reply, api_key="sk-secret-1")
    assert str(error) == "status 401: Wrong key ***: go away"


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b'{"error": {"code": "user_weekly_rate_limited", "message": "no"}}', "user_weekly_rate_limited"),
        (b'{"error": {"code": 429, "type": "tokens"}}', "tokens"),
        (b'{"error": {"code": "429"}}', ""),
        (b'{"error": "no"}', ""),
        (b"no", ""),
        (b"", ""),
    ],
)
async def test_a_limit_is_told_with_the_providers_own_word_and_with_its_end(body: bytes, code: str) -> None:
    reply = HttpReply(status=429, body=body, headers=[("Retry-After", "86400")])
    error = await failure(reply)
    assert (error.kind, error.code, error.limited_for) == (ModelErrorKind.RATE_LIMITED, code, 86_400.0)
    # Nobody waits for so long.
    assert (error.retry, error.retry_after) == (False, None)


async def test_how_long_to_wait_is_handed_on() -> None:
    error = await failure(HttpReply(status=503, headers=[("Retry-After", "2.5")]))
    assert (error.retry, error.retry_after) == (True, 2.5)


async def test_an_endless_explanation_is_cut() -> None:
    error = await failure(HttpReply(status=500, body=[b"x" * 100_000] * 50, framing="chunked"))
    assert error.kind is ModelErrorKind.SERVER_ERROR


@pytest.mark.parametrize(
    "body",
    [
        b"SSH-2.0-OpenSSH\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nA: " + b"x" * 100_000,
        b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
    ],
)
async def test_an_answer_that_is_no_http_is_a_typed_error(body: bytes) -> None:
    error = await failure(HttpReply(body=body, framing="raw", end="close"))
    assert (error.kind, error.retry) == (ModelErrorKind.MALFORMED_RESPONSE, True)


async def test_a_broken_chunk_behind_good_ones_is_not_the_end_of_the_answer() -> None:
    body = completion()
    raw = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\nnonsense\r\n" % (len(body), body)
    error = await failure(HttpReply(body=raw, framing="raw"))
    assert (error.kind, error.retry) == (ModelErrorKind.MALFORMED_RESPONSE, True)


async def test_an_early_hint_is_not_the_answer() -> None:
    body = completion()
    raw = b"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (
        len(body),
        body,
    )
    async with open_http_double(HttpReply(body=raw, framing="raw")) as double:
        model = model_at(double)
        assert (await model.complete(HELLO)).content == "Hi."
        await model.aclose()


async def test_a_server_that_answers_before_it_has_read_the_request_is_heard() -> None:
    head = b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"

    async def refuse(stream: trio.SocketStream) -> None:
        await stream.receive_some(10)
        await stream.send_all(head)
        await trio.sleep(0.05)
        stream.socket.close()

    async with trio.open_nursery() as nursery:
        listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
        nursery.start_soon(trio.serve_listeners, refuse, listeners)
        model = model_at(_At(listeners[0].socket.getsockname()[1]), options={"x": "y" * 20_000_000})  # type: ignore[arg-type]
        with trio.fail_after(10), pytest.raises(ModelError) as caught:
            await model.complete(HELLO)
        nursery.cancel_scope.cancel()
    # A reset may overtake the answer; either way the call ends with an error that says what is known.
    assert (caught.value.kind, caught.value.status) in (
        (ModelErrorKind.BAD_REQUEST, 413),
        (ModelErrorKind.CONNECTION_LOST, None),
    )
    await model.aclose()


async def test_the_headers_are_as_they_were_set() -> None:
    async with open_http_double(HttpReply(body=completion())) as double:
        model = model_at(double, api_key="k", headers={"X-Team": "a", "User-Agent": "mine"})
        await model.complete(HELLO)
        await model.aclose()
    (request,) = double.requests
    assert (request.method, request.target) == ("POST", "/v1/chat/completions")
    assert request.headers == {
        "host": f"127.0.0.1:{double.port}",
        "user-agent": "mine",
        "content-type": "application/json",
        "accept-encoding": "identity",
        "authorization": "Bearer k",
        "x-team": "a",
        "accept": "application/json",
        "content-length": str(len(request.body)),
    }
