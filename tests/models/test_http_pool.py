"""Connections: kept, found dead, bounded, expired, and never taken along by a cancelled call."""

import gc
import random
from collections import deque

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from exeunt import HostOptions
from exeunt.actors.errors import InvalidConfiguration
from exeunt.actors.models import ModelDelta, ModelError, ModelErrorKind, ModelRequest
from exeunt.models.http import PoolLimits, Timeouts
from exeunt.models.http.connection import Connection
from exeunt.models.http.pool import ConnectionPool
from exeunt.models.http.urls import Origin
from exeunt.models.openai import OpenAIModel
from exeunt.testing.http_double import HttpReply, event_stream, open_http_double
from tests.models.openai_support import HELLO, chunk, completion, model_at, streamed

FINE = HttpReply(body=completion())
STREAM = event_stream(chunk({"content": "Hi."}), chunk({}, "stop"))


def slow(clock: MockClock) -> None:
    """Let the bytes cross the sockets before the clock jumps."""
    clock.autojump_threshold = 0.02


def idle_connections(model: OpenAIModel) -> deque[Connection]:
    """The connections that wait in the model's pool."""
    pool: ConnectionPool = vars(model.http)["_pool"]
    found: deque[Connection] = vars(pool)["_idle"]
    return found


async def test_calls_one_after_the_other_use_one_connection() -> None:
    async with open_http_double(FINE, STREAM, FINE) as double:
        model = model_at(double)
        await model.complete(HELLO)
        await streamed(model)
        await model.complete(HELLO)
        pool = model.statistics().pool
        await model.aclose()
    assert double.connections == 1
    assert (pool.opened, pool.reused, pool.idle, pool.in_use) == (1, 2, 1, 0)


async def test_a_connection_whose_stream_ends_a_little_later_is_kept() -> None:
    late = HttpReply(
        body=[*STREAM.packets[:-1], b"data: [DONE]\n\n"],
        content_type="text/event-stream",
        framing="chunked",
        last_chunk=False,
    )
    async with open_http_double(late, FINE) as double:
        model = model_at(double)
        await streamed(model)
        assert model.statistics().pool.idle == 1
        # The end of the chunked body arrives after the answer was given.
        await wait_all_tasks_blocked()
        await double.send(b"0\r\n\r\n")
        await wait_all_tasks_blocked()
        await model.complete(HELLO)
        pool = model.statistics().pool
        await model.aclose()
    assert double.connections == 1
    assert pool.reused == 1


async def test_a_stream_that_does_not_end_after_its_end_marker_costs_its_connection(
    autojump_clock: MockClock,
) -> None:
    slow(autojump_clock)
    endless = HttpReply(
        body=[*STREAM.packets, 20.0, b": still here\n\n"], content_type="text/event-stream", framing="chunked"
    )
    async with open_http_double(endless, FINE) as double:
        model = model_at(double)
        start = trio.current_time()
        await streamed(model)
        assert trio.current_time() - start < 1
        await model.complete(HELLO)
        await model.aclose()
    assert double.connections == 2


async def test_an_answer_is_complete_with_its_finish_reason_though_the_stream_hangs(
    autojump_clock: MockClock,
) -> None:
    slow(autojump_clock)
    hanging = HttpReply(
        body=[*STREAM.packets[:-1], 500.0], content_type="text/event-stream", framing="chunked"
    )
    async with open_http_double(hanging) as double:
        model = model_at(double)
        start = trio.current_time()
        _, answer = await streamed(model)
        assert (answer.content, answer.finish_reason) == ("Hi.", "stop")
        assert trio.current_time() - start < 10
        await model.aclose()


async def test_a_connection_that_the_server_closed_is_not_used_again() -> None:
    async with open_http_double(FINE, FINE) as double:
        model = model_at(double)
        await model.complete(HELLO)
        await double.drop_connections()
        await model.complete(HELLO)
        pool = model.statistics().pool
        await model.aclose()
    assert double.connections == 2
    assert (pool.opened, pool.expired) == (2, 1)


@pytest.mark.parametrize("end", ["close", "reset"])
async def test_a_request_on_a_connection_that_dies_unanswered_is_sent_once_more(end: str) -> None:
    silent = HttpReply(framing="raw", end=end)  # type: ignore[arg-type]
    async with open_http_double(FINE, silent, FINE) as double:
        model = model_at(double)
        await model.complete(HELLO)
        await model.complete(HELLO)
        pool = model.statistics().pool
        await model.aclose()
    assert [request.connection for request in double.requests] == [1, 1, 2]
    assert pool.stale == 1


async def test_a_request_is_sent_at_most_twice() -> None:
    silent = HttpReply(framing="raw", end="close")
    async with open_http_double(FINE, silent, silent, FINE) as double:
        model = model_at(double)
        await model.complete(HELLO)
        with pytest.raises(ModelError) as caught:
            await model.complete(HELLO)
        await model.aclose()
    assert (caught.value.kind, caught.value.retry) == (ModelErrorKind.CONNECTION_LOST, True)
    assert len(double.requests) == 3


async def test_a_request_on_a_new_connection_is_not_sent_again() -> None:
    async with open_http_double(HttpReply(framing="raw", end="close"), FINE) as double:
        model = model_at(double)
        with pytest.raises(ModelError) as caught:
            await model.complete(HELLO)
        await model.aclose()
    assert caught.value.kind is ModelErrorKind.CONNECTION_LOST
    assert len(double.requests) == 1


async def test_a_request_is_not_sent_again_once_an_answer_began() -> None:
    half = HttpReply(body=b"HTTP/1.1 200 OK\r\nContent-", framing="raw", end="close")
    async with open_http_double(FINE, half, FINE) as double:
        model = model_at(double)
        await model.complete(HELLO)
        with pytest.raises(ModelError) as caught:
            await model.complete(HELLO)
        await model.aclose()
    assert caught.value.kind is ModelErrorKind.CONNECTION_LOST
    assert len(double.requests) == 2


async def test_a_cancelled_call_closes_its_own_connection_only() -> None:
    hanging = HttpReply(
        body=[b"data: " + b"{}" + b"\n\n", 1e6], content_type="text/event-stream", framing="chunked"
    )
    async with open_http_double(FINE, hanging, FINE) as double:
        model = model_at(double)
        await model.complete(HELLO)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(streamed, model)
            await wait_all_tasks_blocked(0.02)
            assert model.statistics().pool.in_use == 1
            await model.complete(HELLO)
            nursery.cancel_scope.cancel()
        statistics = model.statistics()
        await model.aclose()
    assert (statistics.cancelled, statistics.in_flight) == (1, 0)
    assert (statistics.pool.in_use, statistics.pool.idle) == (0, 1)


async def test_a_call_that_is_cancelled_before_its_answer_gives_its_place_back() -> None:
    async with open_http_double(HttpReply(body=[1e6], framing="raw"), FINE) as double:
        model = model_at(double, limits=PoolLimits(max_connections=1))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(model.complete, HELLO)
            await wait_all_tasks_blocked(0.02)
            assert len(double.requests) == 1
            nursery.cancel_scope.cancel()
        assert model.statistics().pool.in_use == 0
        with trio.fail_after(5):
            await model.complete(HELLO)
        await model.aclose()


async def test_idle_connections_make_room_for_a_new_one() -> None:
    async with open_http_double(FINE) as double:
        pool = ConnectionPool(
            Origin("http", "127.0.0.1", double.port),
            proxy=None,
            ssl_context=None,
            limits=PoolLimits(max_connections=1),
            timeouts=Timeouts(),
        )
        model = model_at(double)
        model.http._pool = pool  # pyright: ignore[reportPrivateUsage]
        await model.complete(HELLO)
        connection = await pool.acquire(fresh=True)
        assert (pool.statistics().in_use, pool.statistics().idle, pool.statistics().evicted) == (1, 0, 1)
        pool.discard(connection)


async def test_a_stream_that_is_closed_early_closes_its_connection() -> None:
    async with open_http_double(STREAM) as double:
        model = model_at(double)
        stream = model.stream(HELLO)
        assert await anext(stream) == ModelDelta("Hi.")
        await stream.aclose()  # type: ignore[attr-defined]
        statistics = model.statistics()
        await model.aclose()
    assert (statistics.cancelled, statistics.failures, statistics.pool.in_use) == (1, 0, 0)


async def test_calls_wait_in_turn_for_one_of_a_bounded_number_of_connections() -> None:
    async with open_http_double() as double:
        double.otherwise = HttpReply(body=[0.01, completion()])
        model = model_at(double, limits=PoolLimits(max_connections=3))
        async with trio.open_nursery() as nursery:
            for _ in range(12):
                nursery.start_soon(model.complete, HELLO)
            await wait_all_tasks_blocked()
            assert model.statistics().pool.waiting == 9
        await model.aclose()
    assert double.connections == 3


async def test_a_call_that_waits_too_long_for_a_connection_is_refused(autojump_clock: MockClock) -> None:
    slow(autojump_clock)
    async with open_http_double() as double:
        double.otherwise = HttpReply(body=[500.0, completion()])
        model = model_at(double, limits=PoolLimits(max_connections=1), timeouts=Timeouts(pool=5))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(model.complete, HELLO)
            await wait_all_tasks_blocked(0.01)
            with pytest.raises(ModelError) as caught:
                await model.complete(HELLO)
        assert (caught.value.kind, caught.value.retry) == (ModelErrorKind.OVERLOADED, True)
        assert model.statistics().pool.refused == 1
        await model.aclose()


async def test_idle_connections_are_few_and_not_old(autojump_clock: MockClock) -> None:
    slow(autojump_clock)
    async with open_http_double() as double:
        double.otherwise = HttpReply(body=[1.0, completion()])
        model = model_at(double, limits=PoolLimits(max_idle=2, idle_expiry=30))
        async with trio.open_nursery() as nursery:
            for _ in range(5):
                nursery.start_soon(model.complete, HELLO)
        pool = model.statistics().pool
        assert (pool.opened, pool.idle, pool.evicted) == (5, 2, 3)
        await trio.sleep(31)
        await model.complete(HELLO)
        pool = model.statistics().pool
        assert (pool.opened, pool.idle, pool.expired) == (6, 1, 2)
        await model.aclose()


def test_every_turn_that_a_host_runs_finds_a_connection() -> None:
    assert PoolLimits().max_connections >= HostOptions().running_turns


async def test_what_a_burst_of_calls_has_opened_serves_the_next_burst(autojump_clock: MockClock) -> None:
    slow(autojump_clock)
    burst = 250
    async with open_http_double() as double:
        double.otherwise = HttpReply(body=[1.0, completion()])
        model = model_at(double)
        for _ in range(2):
            async with trio.open_nursery() as nursery:
                for _ in range(burst):
                    nursery.start_soon(model.complete, HELLO)
        pool = model.statistics().pool
        assert (pool.opened, pool.reused, pool.idle, pool.evicted) == (burst, burst, burst, 0)
        await model.aclose()
        # Nothing had to make room.
        pool = model.statistics().pool
        assert (pool.idle, pool.evicted) == (0, 0)


async def test_a_closed_client_refuses_calls_and_lets_those_under_way_end() -> None:
    async with open_http_double(HttpReply(body=[0.05, completion()])) as double:
        model = model_at(double)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(model.complete, HELLO)
            await wait_all_tasks_blocked()
            await model.aclose()
            await model.aclose()
            with pytest.raises(ModelError):
                await model.complete(HELLO)
        statistics = model.statistics()
    assert (statistics.calls, statistics.failures) == (2, 1)
    assert (statistics.pool.idle, statistics.pool.in_use) == (0, 0)


async def test_a_client_in_a_cycle_closes_its_connections_before_they_are_collected() -> None:
    # The collector finalizes the members of a cycle in any order, and a socket that it finds open is a warning.
    async with open_http_double(FINE) as double:
        model = model_at(double)
        await model.complete(HELLO)
        (connection,) = idle_connections(model)
        # Older than the pool that holds it, it would be finalized first.
        idle_connections(model).clear()
        gc.collect()
        model = model_at(double)
        idle_connections(model).append(connection)
        vars(model.http)["cycle"] = model
        del model, connection
        gc.collect()
        await wait_all_tasks_blocked(0.02)
        assert double.open_connections == 0


async def test_a_client_that_is_dropped_takes_its_connections_along() -> None:
    async with open_http_double(FINE) as double:
        model = model_at(double)
        await model.complete(HELLO)
        assert double.open_connections == 1
        del model
        gc.collect()
        await wait_all_tasks_blocked(0.02)
        assert double.open_connections == 0


async def test_a_server_that_hangs_up_between_two_answers_never_costs_a_call() -> None:
    closing = HttpReply(body=completion(), headers=[("Connection", "close")], end="close")
    async with open_http_double() as double:
        double.otherwise = closing
        model = model_at(double)
        for _ in range(5):
            await model.complete(HELLO)
        await model.aclose()
    assert (double.connections, model.statistics().failures) == (5, 0)


@pytest.mark.parametrize(
    "limits", [{"max_connections": 0}, {"max_idle": -1}, {"idle_expiry": 0}, {"idle_expiry": float("inf")}]
)
def test_limits_that_cannot_work_are_refused(limits: dict[str, float]) -> None:
    with pytest.raises(InvalidConfiguration):
        PoolLimits(**limits)  # type: ignore[arg-type]


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), float("inf"), "1", True])
def test_a_time_out_that_cannot_work_is_refused(seconds: float) -> None:
    with pytest.raises(InvalidConfiguration):
        Timeouts(gap=seconds)


async def test_nothing_listens() -> None:
    async with open_http_double() as double:
        port = double.port
    model = OpenAIModel("m", base_url=f"http://127.0.0.1:{port}", trust_env=False)
    with pytest.raises(ModelError) as caught:
        await model.complete(HELLO)
    assert (caught.value.kind, caught.value.retry) == (ModelErrorKind.CONNECTION_LOST, True)
    assert model.statistics().pool.in_use == 0


@pytest.mark.parametrize("seed", range(5))
async def test_whatever_is_cancelled_no_connection_and_no_permit_is_lost(seed: int) -> None:
    chance = random.Random(seed)
    replies = [
        FINE,
        STREAM,
        HttpReply(body=[completion()[:20], 0.003, completion()[20:]], framing="chunked"),
        HttpReply(body=[0.002, b"HTTP/1.1 204 No\r\n\r\n"], framing="raw"),
        HttpReply(framing="raw", end="close"),
        HttpReply(framing="raw", end="reset"),
        HttpReply(status=500, headers=[("Connection", "close")], end="close"),
    ]

    def reply(_: object) -> HttpReply:
        return chance.choice(replies)

    async def call() -> None:
        made = model.complete if chance.random() < 0.5 else whole_stream
        try:
            with trio.move_on_after(chance.choice([0, 0.001, 0.003, 1])):
                await made(HELLO)
                answers.append("done")
        except ModelError:
            answers.append("failed")

    async def whole_stream(request: ModelRequest) -> object:
        return await streamed(model, request)

    answers: list[str] = []
    async with open_http_double() as double:
        double.otherwise = reply
        model = model_at(double, limits=PoolLimits(max_connections=4, max_idle=2))
        async with trio.open_nursery() as nursery:
            for _ in range(150):
                nursery.start_soon(call)
        statistics = model.statistics()
        assert (statistics.in_flight, statistics.pool.in_use, statistics.pool.waiting) == (0, 0, 0)
        assert statistics.calls == 150
        assert statistics.cancelled == 150 - len(answers)
        assert statistics.pool.idle <= 2
        double.otherwise = FINE
        for _ in range(8):
            await model.complete(HELLO)
        await model.aclose()
        await wait_all_tasks_blocked(0.01)
        assert double.open_connections == 0


async def test_a_call_makes_no_garbage_that_only_the_collector_can_take() -> None:
    async with open_http_double() as double:
        double.otherwise = STREAM
        model = model_at(double)
        await streamed(model)
        gc.collect()
        gc.disable()
        try:
            for _ in range(10):
                await streamed(model)
                await model.complete(HELLO)
            assert gc.collect() == 0
        finally:
            gc.enable()
        await model.aclose()
