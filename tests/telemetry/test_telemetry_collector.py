"""Spans to a collector over HTTP, against a double of one."""

import logging
import re
from collections.abc import Generator

import pytest
import trio

from exeunt import open_host
from exeunt.cli.serve.telemetry import TraceOptions, open_traces, trace_options
from exeunt.telemetry.export import collector_exporter, open_export
from exeunt.testing import ScriptedModel, call, say
from tests.actors.session_support import open_session, plain_tool
from tests.telemetry.collector_double import PROTOBUF, CollectorDouble, attributes


async def _nothing() -> str:
    await trio.lowlevel.checkpoint()
    return "done"


@pytest.fixture
def collector() -> Generator[CollectorDouble]:
    with CollectorDouble().serving() as double:
        yield double


async def _one_turn(options: TraceOptions | None) -> None:
    async with open_traces(options) as telemetry, open_host(telemetry=telemetry) as host:
        model = ScriptedModel([call("look"), say("done")])
        await (await open_session(host, model, plain_tool("look", _nothing))).send_and_wait("go")


@pytest.mark.parametrize("protocol", ["http/protobuf", "http/json"])
async def test_a_turn_arrives_whole(protocol: str, collector: CollectorDouble) -> None:
    environ = {"OTEL_EXPORTER_OTLP_PROTOCOL": protocol}
    await _one_turn(trace_options(environ, endpoint=collector.url))
    (export,) = collector.received
    assert export.path == "/v1/traces"
    assert export.content_type == (PROTOBUF if protocol == "http/protobuf" else "application/json")
    spans = {span["name"]: span for span in export.spans}
    assert set(spans) == {"invoke_agent", "chat ScriptedModel", "execute_tool look"}
    turn = spans["invoke_agent"]
    for child in ("chat ScriptedModel", "execute_tool look"):
        assert spans[child]["parentSpanId"] == turn["spanId"]
        assert spans[child]["traceId"] == turn["traceId"]
    assert attributes(turn)["exeunt.turn.reason"] == "completed"
    if protocol == "http/json":
        assert re.fullmatch("[0-9a-f]{32}", turn["traceId"])
        assert re.fullmatch("[0-9a-f]{16}", turn["spanId"])
        assert turn["kind"] == 1


async def test_headers_and_the_place_may_come_from_the_environment(
    collector: CollectorDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    environ = {
        "COPILOT_OTEL_ENABLED": "true",
        "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url,
        "OTEL_EXPORTER_OTLP_HEADERS": "x-team=theatre",
    }
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    await _one_turn(trace_options(environ))
    assert collector.received[0].path == "/v1/traces"
    assert collector.received[0].headers["x-team"] == "theatre"


@pytest.mark.parametrize("protocol", ["http/protobuf", "http/json"])
async def test_a_collector_that_refuses_is_told_once_and_hurts_no_session(
    protocol: str, collector: CollectorDouble, caplog: pytest.LogCaptureFixture
) -> None:
    collector.status = 400
    options = trace_options({"OTEL_EXPORTER_OTLP_PROTOCOL": protocol}, endpoint=collector.url)
    with caplog.at_level(logging.WARNING, "exeunt.telemetry"):
        await _one_turn(options)
    assert [record.message for record in caplog.records if record.name == "exeunt.telemetry"] == [
        f"spans cannot be exported to {collector.url}, and are lost: it does not answer, or refuses them"
    ]


async def test_a_collector_that_is_away_hurts_no_session(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    with CollectorDouble().serving() as double:
        url = double.url
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
    async with (
        open_export(collector_exporter(f"{url}/v1/traces"), url, flush_within=10) as export,
        open_host(telemetry=export.telemetry) as host,
    ):
        assert (await (await open_session(host, ScriptedModel(["hi"]))).send_and_wait("go")).content == "hi"
    assert export.processor.statistics().failed == 2
    told = [record.message for record in caplog.records if record.name == "exeunt.telemetry"]
    assert told == [f"spans cannot be exported to {url}, and are lost: it does not answer, or refuses them"]
