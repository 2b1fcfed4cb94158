"""A model server that refuses, is not there, or takes too long: what the session makes of it.

In virtual time, also where sockets are real: `slow` gives their bytes the time to arrive.
"""

import socket
import ssl
from typing import Any

import pytest
import trio
import trustme
from trio.testing import MockClock

from exeunt import RetryPolicy, TurnFailed, Waits
from exeunt.actors.events import AssistantMessageDelta, AssistantTurnRetry, ModelCallFailure, SessionError
from exeunt.actors.models import ModelErrorKind
from exeunt.models.http import Timeouts
from exeunt.testing.checked_host import checked_host
from exeunt.testing.http_double import HttpReply, event_stream, open_http_double
from tests.models.openai_session_support import KEY, QUICK, Toolbox, Watched, talking_to
from tests.models.openai_support import chunk, completion, model_at
from tests.models.strict_server import RECOVERED, recovered

EXACT = RetryPolicy(jitter=0)
"""The default, without chance: 0.5, 1, 2, 4 and 8 s."""


def slow(clock: MockClock) -> None:
    """Let the bytes cross the sockets before the clock jumps."""
    clock.autojump_threshold = 0.02


def status(number: int, *headers: tuple[str, str], words: str = "no") -> HttpReply:
    body = b'{"error":{"message":"%b"}}' % words.encode()
    return HttpReply(status=number, body=body, headers=headers)


def stream_of(*packets: bytes | float) -> HttpReply:
    return HttpReply(body=packets, content_type="text/event-stream", framing="chunked")


HEAD, HI, STOP, DONE = event_stream(
    chunk({"role": "assistant", "content": ""}), chunk({"content": "Hi."}), chunk({}, "stop")
).packets
assert isinstance(HEAD, bytes)
assert isinstance(HI, bytes)
assert isinstance(STOP, bytes)
assert isinstance(DONE, bytes)


async def failed(watched: Watched) -> SessionError:
    """Ask, be disappointed, and see that the session can be asked again; return what it said."""
    with pytest.raises(TurnFailed) as caught:
        await watched.session.send_and_wait("Go.", timeout=None)
    (event,) = watched.seen(SessionError)
    assert event.message in str(caught.value)
    assert (await watched.session.send_and_wait("And now?", timeout=None)).content == RECOVERED
    return event


# --- Statuses --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("headers", "delay"),
    [
        ([("Retry-After", "7")], 7.0),
        ([("Retry-After", "0.25")], 0.25),
        ([("retry-after-ms", "1500")], 1.5),
        ([("X-RateLimit-Reset-Requests", "1m0s")], 60.0),
        ([("Retry-After", "soon")], 0.5),
        ([], 0.5),
    ],
)
async def test_the_session_waits_as_long_as_the_provider_asks(
    headers: list[tuple[str, str]], delay: float, autojump_clock: MockClock
) -> None:
    slow(autojump_clock)
    async with (
        open_http_double(status(429, *headers)) as double,
        talking_to(double, retries=EXACT) as watched,
    ):
        start = trio.current_time()
        reply = await watched.session.send_and_wait("Go.", timeout=None)

        assert reply.content == RECOVERED
        assert trio.current_time() - start == pytest.approx(delay)
        (retry,) = watched.seen(AssistantTurnRetry)
        assert (retry.reason, retry.attempt, retry.delay) == ("rate_limited", 2, delay)


async def test_jitter_makes_no_wait_shorter_than_the_provider_asks(autojump_clock: MockClock) -> None:
    slow(autojump_clock)
    replies = [status(429, ("Retry-After", "7"))] * 5
    async with open_http_double(*replies) as double, talking_to(double, retries=RetryPolicy()) as watched:
        await watched.session.send_and_wait("Go.", timeout=None)
        delays = [event.delay for event in watched.seen(AssistantTurnRetry)]
    assert len(set(delays)) == 5
    assert all(7 <= delay <= 7 * 1.25 for delay in delays)


@pytest.mark.parametrize("seconds", ["61", "Fri, 31 Dec 2100 23:59:59 GMT"])
async def test_who_is_asked_to_wait_for_too_long_is_told_at_once(seconds: str) -> None:
    async with (
        open_http_double(status(429, ("Retry-After", seconds))) as double,
        talking_to(double) as watched,
    ):
        event = await failed(watched)
        assert (event.error_type, event.status_code) == (ModelErrorKind.RATE_LIMITED, 429)
        assert not watched.seen(AssistantTurnRetry)


@pytest.mark.parametrize("number", [500, 502, 503, 504, 520, 529])
@pytest.mark.parametrize("streaming", [False, True])
async def test_a_server_in_trouble_is_asked_again_and_then_no_more(
    number: int, streaming: bool, autojump_clock: MockClock
) -> None:
    slow(autojump_clock)
    async with (
        open_http_double(*[status(number)] * 6) as double,
        talking_to(double, retries=EXACT, streaming=streaming) as watched,
    ):
        event = await failed(watched)
        assert event.status_code == number
        assert [each.delay for each in watched.seen(AssistantTurnRetry)] == [0.5, 1, 2, 4, 8]
        failures = watched.seen(ModelCallFailure)
        assert [(each.attempt, each.status_code) for each in failures] == [(n, number) for n in range(1, 7)]
        assert {each.error_type for each in failures} == {event.error_type}
        assert len(double.requests) == 7


@pytest.mark.parametrize(
    ("number", "kind"),
    [
        (400, ModelErrorKind.BAD_REQUEST),
        (401, ModelErrorKind.AUTHENTICATION),
        (403, ModelErrorKind.AUTHENTICATION),
        (404, ModelErrorKind.NOT_FOUND),
        (413, ModelErrorKind.BAD_REQUEST),
        (307, ModelErrorKind.MISCONFIGURED_ENDPOINT),
    ],
)
@pytest.mark.parametrize("streaming", [False, True])
async def test_a_refusal_is_final_and_never_shows_the_key(number: int, kind: str, streaming: bool) -> None:
    refusal = status(
        number, ("Location", f"/elsewhere?key={KEY}"), words=f"Incorrect API key provided: {KEY}"
    )
    async with open_http_double(refusal) as double, talking_to(double, streaming=streaming) as watched:
        event = await failed(watched)

        assert (event.error_type, event.status_code) == (kind, number)
        assert not watched.seen(AssistantTurnRetry)
        assert double.requests[0].headers["authorization"] == f"Bearer {KEY}"
        assert KEY not in repr(watched.events)


# --- No server -------------------------------------------------------------------------------------------------


async def unreachable(base_url: str, **options: Any) -> tuple[SessionError, int]:
    """What a session says of a server that cannot be reached, and how often it tried again."""
    options = {"retries": QUICK, **options}
    settings = {"type": "openai", "base_url": base_url, "api_key": KEY, "trust_env": False}
    async with checked_host() as host:
        session = await host.create_session(model="m", provider=settings, **options)
        retries = 0

        def count(event: object) -> None:
            nonlocal retries
            retries += isinstance(event, AssistantTurnRetry)

        session.on(count)
        for _ in range(2):
            with pytest.raises(TurnFailed):
                await session.send_and_wait("Go.", timeout=20)
        first, second = [each for each in await session.get_events() if isinstance(each, SessionError)]
        assert (first.error_type, first.message) == (second.error_type, second.message)
        assert KEY not in first.message
        return first, retries // 2


@pytest.mark.parametrize("streaming", [False, True])
async def test_a_refused_connection_is_tried_again_and_then_an_error(streaming: bool) -> None:
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))  # bound, and nobody listens
        port = reserved.getsockname()[1]
        event, retries = await unreachable(f"http://127.0.0.1:{port}/v1", streaming=streaming)
    assert (event.error_type, event.status_code) == (ModelErrorKind.CONNECTION_LOST, None)
    assert f"127.0.0.1:{port}" in event.message
    assert retries == QUICK.attempts


class NoNames(trio.abc.HostnameResolver):
    """A name server that knows no name."""

    async def getaddrinfo(self, host: bytes | None, *_: Any, **__: Any) -> Any:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    async def getnameinfo(self, sockaddr: Any, flags: int) -> Any:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")


async def test_a_name_that_nobody_knows_is_an_error_that_says_the_name() -> None:
    trio.socket.set_custom_hostname_resolver(NoNames())
    event, retries = await unreachable("http://models.invalid/v1")
    assert (event.error_type, event.status_code) == (ModelErrorKind.CONNECTION_LOST, None)
    assert "models.invalid" in event.message
    assert "Name or service not known" in event.message
    assert retries == QUICK.attempts


async def test_a_certificate_that_nobody_vouches_for_is_final() -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("127.0.0.1").configure_cert(context)  # pyright: ignore[reportUnknownMemberType]
    async with open_http_double(ssl_context=context) as double:
        event, retries = await unreachable(f"https://127.0.0.1:{double.port}/v1")
        assert double.requests == []
    assert event.error_type == ModelErrorKind.MISCONFIGURED_ENDPOINT
    assert "certificate" in event.message
    assert retries == 0


async def test_a_server_that_speaks_no_tls_is_an_error() -> None:
    async def speak_plainly(stream: trio.SocketStream) -> None:
        await stream.receive_some()
        await stream.send_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")

    async with trio.open_nursery() as nursery:
        listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
        await nursery.start(trio.serve_listeners, speak_plainly, listeners)
        port = listeners[0].socket.getsockname()[1]
        event, retries = await unreachable(f"https://127.0.0.1:{port}/v1")
        nursery.cancel_scope.cancel()
    assert event.error_type == ModelErrorKind.CONNECTION_LOST
    assert "TLS" in event.message
    assert retries == QUICK.attempts


# --- Time ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("packets", "after"),
    [([400.0, HI, DONE], 30.0), ([HEAD, 5.0, HI, 400.0, DONE], 25.0)],
    ids=["first byte", "gap"],
)
async def test_a_silent_stream_ends_the_turn_and_its_connection(
    packets: list[bytes | float], after: float, autojump_clock: MockClock
) -> None:
    slow(autojump_clock)
    waits = Waits(model_first=30, model_gap=20)
    async with (
        open_http_double(stream_of(*packets)) as double,
        talking_to(double, streaming=True, waits=waits) as watched,
    ):
        start = trio.current_time()
        with pytest.raises(TurnFailed, match="the model took too long"):
            await watched.session.send_and_wait("Go.", timeout=None)
        assert trio.current_time() - start == pytest.approx(after)
        (event,) = watched.seen(SessionError)
        assert (event.error_type, event.status_code) == (ModelErrorKind.TIMEOUT, None)
        assert watched.model.statistics().pool.in_use == 0
        assert (await watched.ask("And now?")).content == RECOVERED
        assert [request.connection for request in double.requests] == [1, 2]


async def test_a_whole_answer_that_takes_too_long_ends_the_turn_and_its_connection(
    autojump_clock: MockClock,
) -> None:
    slow(autojump_clock)
    async with (
        open_http_double(HttpReply(body=[400.0, completion()], framing="close")) as double,
        talking_to(double, waits=Waits(model_total=30)) as watched,
    ):
        event = await failed(watched)
        assert event.error_type == ModelErrorKind.TIMEOUT
        assert "within 30 s" in event.message
        assert [request.connection for request in double.requests] == [1, 2]


def arguments_of_a_file(seconds: float) -> list[bytes | float]:
    """A call whose arguments come slowly: nothing of it can be shown."""
    call = {"index": 0, "id": "c", "function": {"name": "write_file", "arguments": '{"path":"a","content":"'}}
    pieces = [{"index": 0, "function": {"arguments": each}} for each in "long"]
    pieces.append({"index": 0, "function": {"arguments": '"}'}})
    events = event_stream(
        *(chunk({"tool_calls": [each]}) for each in (call, *pieces)), chunk({}, "tool_calls")
    )
    packets: list[bytes | float] = []
    for packet in events.packets:
        packets += (seconds, packet)
    return packets


async def test_a_model_that_writes_arguments_is_not_silent(autojump_clock: MockClock) -> None:
    slow(autojump_clock)
    box = Toolbox()
    async with (
        open_http_double(stream_of(*arguments_of_a_file(50))) as double,
        talking_to(double, streaming=True, tools=box.tools()) as watched,
    ):
        reply = await watched.session.send_and_wait("Go.", timeout=None)
        assert reply.content == RECOVERED
        assert box.calls == [("write_file", {"path": "a", "content": "long", "append": False})]
        assert trio.current_time() > 300
        assert not watched.seen(ModelCallFailure)
        assert {each.delta_content for each in watched.seen(AssistantMessageDelta)} == {RECOVERED}


async def test_a_provider_that_keeps_the_connection_alive_is_not_silent(autojump_clock: MockClock) -> None:
    slow(autojump_clock)
    alive = [packet for _ in range(10) for packet in (40.0, b": processing\n\n")]
    async with (
        open_http_double(stream_of(*alive, HI, STOP, DONE)) as double,
        talking_to(double, streaming=True) as watched,
    ):
        assert (await watched.session.send_and_wait("Go.", timeout=None)).content == "Hi."
        assert not watched.seen(ModelCallFailure)


async def test_a_provider_that_only_keeps_the_connection_alive_is_given_up(autojump_clock: MockClock) -> None:
    slow(autojump_clock)
    alive = [packet for _ in range(20) for packet in (40.0, b": processing\n\n")]
    async with (
        open_http_double(stream_of(*alive)) as double,
        talking_to(double, streaming=True, waits=Waits(model_stream=300)) as watched,
    ):
        event = await failed(watched)
        assert event.error_type == ModelErrorKind.TIMEOUT
        assert 300 <= trio.current_time() < 400


@pytest.mark.parametrize("streaming", [False, True])
async def test_a_session_may_wait_for_longer_than_is_usual(
    streaming: bool, autojump_clock: MockClock
) -> None:
    slow(autojump_clock)
    late = stream_of(1500.0, HI, 1500.0, STOP, DONE) if streaming else HttpReply(body=[1500.0, completion()])
    waits = Waits(model_first=1600, model_gap=1600, model_total=1600)
    async with (
        open_http_double(late) as double,
        talking_to(double, streaming=streaming, waits=waits) as watched,
    ):
        assert (await watched.session.send_and_wait("Go.", timeout=None)).content == "Hi."
        assert not watched.seen(ModelCallFailure)


async def test_a_time_out_of_the_door_itself_is_tried_again(autojump_clock: MockClock) -> None:
    slow(autojump_clock)
    async with open_http_double(stream_of(400.0, HI, DONE), stream_of(HI, 400.0, DONE)) as double:
        double.otherwise = recovered
        model = model_at(double, timeouts=Timeouts(first_byte=5, gap=5))
        async with checked_host() as host:
            session = await host.create_session(model=model, streaming=True, retries=EXACT)
            reply = await session.send_and_wait("Go.", timeout=None)
        await model.aclose()
    assert reply.content == RECOVERED
    assert len(double.requests) == 3
    assert (model.statistics().failures, model.statistics().pool.in_use) == (2, 0)
