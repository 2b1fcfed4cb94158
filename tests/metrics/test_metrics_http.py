"""The endpoint that a Prometheus scrapes, over real sockets of this machine."""

import gzip
import http.client
import socket
from functools import partial
from typing import Any

import attrs
import pytest
import trio
from prometheus_client.registry import Collector

from exeunt.actors.errors import EndpointUnavailable, ExeuntError, InvalidConfiguration
from exeunt.metrics import Exposition, Metrics, open_exposition, serve_metrics
from exeunt.metrics.http_server import MAX_CONNECTIONS
from tests.metrics import event_makers as make
from tests.metrics.event_makers import Statistics
from tests.metrics.expositions import parse_openmetrics, parse_text

OPENMETRICS = "application/openmetrics-text; version=1.0.0"


@attrs.frozen
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes


async def get(port: int, path: str = "/metrics", *, method: str = "GET", **headers: str) -> Answer:
    def ask() -> Answer:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
        try:
            connection.request(method, path, headers={k.replace("_", "-"): v for k, v in headers.items()})
            answer = connection.getresponse()
            return Answer(answer.status, dict(answer.headers), answer.read())
        finally:
            connection.close()

    return await trio.to_thread.run_sync(ask)


@pytest.fixture
def metrics() -> Metrics:
    metrics = Metrics(strict=True)
    metrics.register_tools(["search"])
    metrics.observe("s1", [make.turn_end("terminal_tool"), make.tool_complete(terminal=True)])
    return metrics


async def test_a_scrape_gets_counters_and_gauges_in_the_text_format(metrics: Metrics) -> None:
    metrics.attach(Statistics)
    async with open_exposition(metrics) as exposition:
        answer = await get(exposition.port)
    assert answer.status == 200
    assert answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    samples = {
        (sample.name, tuple(value for _, value in sorted(sample.labels.items()))): sample.value
        for family in parse_text(answer.body)
        for sample in family.samples
    }
    assert samples["exeunt_turn_terminations_total", ("terminal_tool",)] == 1
    assert samples["exeunt_tool_calls_total", ("success", "true", "search")] == 1
    assert samples["exeunt_mailbox_depth", ()] == 7


async def test_a_scrape_gets_exemplars_in_openmetrics(metrics: Metrics) -> None:
    async with open_exposition(metrics) as exposition:
        answer = await get(exposition.port, Accept=OPENMETRICS)
    assert answer.headers["Content-Type"].startswith("application/openmetrics-text; version=1.0.0")
    exemplars = [
        sample.exemplar.labels
        for family in parse_openmetrics(answer.body)
        for sample in family.samples
        if sample.exemplar
    ]
    assert exemplars == [{"session_id": "s1"}]


async def test_a_scrape_is_compressed_for_those_who_accept_it(metrics: Metrics) -> None:
    async with open_exposition(metrics) as exposition:
        answer = await get(exposition.port, Accept_Encoding="gzip")
    assert answer.headers["Content-Encoding"] == "gzip"
    assert gzip.decompress(answer.body) == metrics.exposition()


async def test_a_scrape_may_name_the_samples_that_it_wants(metrics: Metrics) -> None:
    async with open_exposition(metrics) as exposition:
        answer = await get(exposition.port, "/metrics?name[]=exeunt_stale_results_total")
    assert [family.name for family in parse_text(answer.body)] == ["exeunt_stale_results"]


@pytest.mark.parametrize(
    ("method", "path", "accept", "status"),
    [
        ("GET", "/", "", 200),
        ("GET", "/metrics", "application/openmetrics-text; version=letters", 200),
        ("GET", "/secrets", "", 404),
        ("POST", "/metrics", "", 501),
    ],
)
async def test_what_is_no_scrape_gets_a_clear_answer(
    metrics: Metrics, method: str, path: str, accept: str, status: int
) -> None:
    async with open_exposition(metrics) as exposition:
        answer = await get(exposition.port, path, method=method, Accept=accept)
        assert answer.status == status
        assert (await get(exposition.port)).status == 200


async def test_a_request_that_is_no_http_gets_a_400(metrics: Metrics) -> None:
    async with open_exposition(metrics) as exposition:
        stream = await trio.open_tcp_stream("127.0.0.1", exposition.port)
        async with stream:
            await stream.send_all(b"\x00\x01 what is this\r\n\r\n")
            answer = b"".join([chunk async for chunk in stream])
    assert b"400" in answer


async def test_a_collector_that_raises_fails_the_scrape_and_nothing_else(
    metrics: Metrics, caplog: pytest.LogCaptureFixture
) -> None:
    class Broken(Collector):
        broken = True

        def collect(self) -> Any:
            if self.broken:
                raise RuntimeError("no")
            return []

    broken = Broken()
    metrics.registry.register(broken)
    async with open_exposition(metrics) as exposition:
        assert (await get(exposition.port)).status == 500
        broken.broken = False
        assert (await get(exposition.port)).status == 200
    assert "could not be collected" in caplog.text


async def test_a_port_that_is_taken_is_a_clear_error(metrics: Metrics) -> None:
    async with open_exposition(metrics) as exposition:
        with pytest.raises(EndpointUnavailable, match=str(exposition.port)) as caught:
            async with open_exposition(Metrics(), port=exposition.port):
                pytest.fail("two servers at one port")
        assert isinstance(caught.value, ExeuntError)
        assert isinstance(caught.value.__cause__, OSError)
        assert (await get(exposition.port)).status == 200


async def test_an_address_of_another_machine_is_a_clear_error(metrics: Metrics) -> None:
    # 192.0.2.0/24 belongs to documentation, so to no machine.
    with pytest.raises(EndpointUnavailable, match=r"192\.0\.2\.1"):
        async with open_exposition(metrics, "192.0.2.1"):
            pytest.fail("listening where nobody can")


@pytest.mark.parametrize("port", [-1, 65_536, True, "80", 80.0])
async def test_a_port_that_cannot_exist_is_refused(metrics: Metrics, port: Any) -> None:
    with pytest.raises(InvalidConfiguration, match="port"):
        async with open_exposition(metrics, port=port):
            pytest.fail("listening nowhere")


async def test_the_url_is_the_one_to_scrape(metrics: Metrics) -> None:
    async with open_exposition(metrics) as exposition:
        assert exposition.url == f"http://127.0.0.1:{exposition.port}/metrics"


@pytest.mark.skipif(not socket.has_ipv6, reason="this Python knows no IPv6")
async def test_an_ipv6_address_is_served_too(metrics: Metrics) -> None:
    try:
        async with open_exposition(metrics, "::1") as exposition:
            assert exposition.url == f"http://[::1]:{exposition.port}/metrics"
            stream = await trio.open_tcp_stream("::1", exposition.port)
            async with stream:
                await stream.send_all(b"GET /metrics HTTP/1.0\r\n\r\n")
                answer = b"".join([chunk async for chunk in stream])
            assert answer.startswith(b"HTTP/1.0 200")
    except EndpointUnavailable:
        pytest.skip("this machine has no IPv6 loopback")


async def test_leaving_the_context_closes_the_port(metrics: Metrics) -> None:
    async with open_exposition(metrics) as exposition:
        pass
    with pytest.raises(ConnectionRefusedError):
        await get(exposition.port)
    async with open_exposition(metrics, port=exposition.port) as again:
        assert again.port == exposition.port


async def test_cancelling_the_task_closes_the_port(metrics: Metrics) -> None:
    async with trio.open_nursery() as nursery:
        exposition: Exposition = await nursery.start(serve_metrics, metrics)
        assert (await get(exposition.port)).status == 200
        nursery.cancel_scope.cancel()
    with pytest.raises(ConnectionRefusedError):
        await get(exposition.port)


async def test_the_task_reports_a_port_that_is_taken(metrics: Metrics) -> None:
    async with open_exposition(metrics) as exposition:
        with pytest.RaisesGroup(EndpointUnavailable):
            async with trio.open_nursery() as nursery:  # noqa: ASYNC112 - the way a supervisor does it
                await nursery.start(partial(serve_metrics, Metrics(), port=exposition.port))


async def test_connections_beyond_the_bound_are_closed_and_counted(metrics: Metrics) -> None:
    async with open_exposition(metrics) as exposition:
        idle = [await trio.open_tcp_stream("127.0.0.1", exposition.port) for _ in range(MAX_CONNECTIONS)]
        one_more = await trio.open_tcp_stream("127.0.0.1", exposition.port)
        assert await one_more.receive_some() == b""
        assert exposition.refused == 1
        # Connections are accepted in their order, so these were all open before; they still get their answer.
        for stream in idle:
            await stream.send_all(b"GET /metrics HTTP/1.0\r\n\r\n")
            assert b"".join([chunk async for chunk in stream]).startswith(b"HTTP/1.0 200")
            await stream.aclose()
        await one_more.aclose()
    assert exposition.refused == 1


async def test_closing_cuts_off_connections_that_say_nothing(
    metrics: Metrics, caplog: pytest.LogCaptureFixture
) -> None:
    async with open_exposition(metrics) as exposition:
        stream = await trio.open_tcp_stream("127.0.0.1", exposition.port)
        assert (await get(exposition.port)).status == 200  # so the silent one before it is accepted
    async with stream:
        assert await stream.receive_some() == b""
    assert "still under way" not in caplog.text
