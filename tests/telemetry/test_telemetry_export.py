"""Spans in a file, and what becomes of them where they cannot be written."""

import json
import logging
import os
import stat
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import trio
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF

from exeunt import open_host
from exeunt.telemetry.export import BoundedSpanProcessor, JsonLinesExporter, open_export
from exeunt.testing import ScriptedModel, call, say
from tests.actors.session_support import open_session, plain_tool


async def _nothing() -> str:
    await trio.lowlevel.checkpoint()
    return "done"


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line]


def _spans(count: int) -> list[ReadableSpan]:
    tracer = TracerProvider(shutdown_on_exit=False).get_tracer("test")
    spans: list[Any] = [tracer.start_span(f"span {number}") for number in range(count)]
    for span in spans:
        span.end()
    return spans


class Slow(SpanExporter):
    """Exports nothing until it may."""

    def __init__(self) -> None:
        self.may = threading.Event()
        self.begun = threading.Event()
        self.exported = 0

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self.begun.set()
        self.may.wait(30)
        self.exported += len(spans)
        return SpanExportResult.SUCCESS


class Failing(SpanExporter):
    """Fails in the ways that there are, one after the other."""

    def __init__(self, *ways: Callable[[], SpanExportResult]) -> None:
        self._ways = list(ways)

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        return self._ways.pop(0)()


def _full() -> SpanExportResult:
    raise OSError(28, "No space left on device")


async def test_a_line_is_a_span_with_all_that_it_has(tmp_path: Path) -> None:
    path = tmp_path / "traces.jsonl"
    async with (
        open_export(JsonLinesExporter(path), str(path), source_name="theatre") as export,
        open_host(telemetry=export.telemetry) as host,
    ):
        model = ScriptedModel([call("look"), say("done")])
        session = await open_session(host, model, plain_tool("look", _nothing))
        await session.send_and_wait("go")
    lines = _lines(path)
    assert [line["name"] for line in lines] == [
        "chat ScriptedModel",
        "execute_tool look",
        "chat ScriptedModel",
        "invoke_agent",
    ]
    turn = lines[-1]
    assert {line["type"] for line in lines} == {"span"}
    assert [line.get("parentSpanId") for line in lines] == [turn["spanId"]] * 3 + [None]
    assert {line["traceId"] for line in lines} == {turn["traceId"]}
    assert {line["instrumentationScope"]["name"] for line in lines} == {"theatre"}
    assert [line["kind"] for line in lines] == [3, 1, 3, 1]
    assert turn["status"] == {"code": 0}
    assert turn["attributes"]["gen_ai.conversation.id"] == session.session_id
    assert turn["resource"]["attributes"]["service.name"] == "exeunt"
    assert int(turn["startTimeUnixNano"]) <= int(turn["endTimeUnixNano"])
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    statistics = export.processor.statistics()
    assert (statistics.exported, statistics.waiting, statistics.failed, statistics.dropped) == (4, 0, 0, 0)


def test_lines_are_added_to_those_that_are_there_and_a_file_that_was_moved_is_made_anew(
    tmp_path: Path,
) -> None:
    path = tmp_path / "traces.jsonl"
    exporter = JsonLinesExporter(path)
    for span in _spans(2):
        exporter.export([span])
    assert len(_lines(path)) == 2
    path.rename(tmp_path / "old.jsonl")
    exporter.export(_spans(1))
    assert len(_lines(path)) == 1


class Torn:
    """A file whose disk is full after five bytes."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self._is_full = False

    def __enter__(self) -> "Torn":
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def write(self, data: memoryview) -> int:
        if self._is_full:
            raise OSError(28, "No space left on device")
        self._is_full = True
        return int(self._file.write(data[:5]))


def test_a_batch_that_was_cut_off_spoils_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "traces.jsonl"
    exporter = JsonLinesExporter(path)
    fdopen: Any = os.fdopen

    def torn_file(*arguments: Any, **options: Any) -> Torn:
        return Torn(fdopen(*arguments, **options))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fdopen", torn_file)
        with pytest.raises(OSError, match="No space"):
            exporter.export(_spans(1))
    exporter.export(_spans(1))
    torn, whole = path.read_text(encoding="utf-8").splitlines()
    assert torn == '{"typ'
    assert json.loads(whole)["name"] == "span 0"


def test_a_place_that_fails_is_told_once_and_once_that_it_works_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    ways = (_full, _full, lambda: SpanExportResult.FAILURE, lambda: SpanExportResult.SUCCESS, _full)
    processor = BoundedSpanProcessor(Failing(*ways), "the file", most=10, delay=60_000)
    with caplog.at_level(logging.WARNING, "exeunt.telemetry"):
        for span in _spans(5):
            processor.on_end(span)
            processor.force_flush()
    processor.shutdown()
    assert caplog.messages == [
        "spans cannot be exported to the file, and are lost: No space left on device",
        "spans are exported to the file again",
        "spans cannot be exported to the file, and are lost: No space left on device",
    ]
    statistics = processor.statistics()
    assert (statistics.exported, statistics.failed, statistics.waiting) == (1, 4, 0)


async def test_a_file_that_cannot_be_written_hurts_no_session(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "no such folder" / "traces.jsonl"
    async with (
        open_export(JsonLinesExporter(path), str(path)) as export,
        open_host(telemetry=export.telemetry) as host,
    ):
        session = await open_session(host, ScriptedModel(["hi", "there"]))
        assert (await session.send_and_wait("go")).content == "hi"
        assert (await session.send_and_wait("go")).content == "there"
    assert export.processor.statistics().failed == 4
    assert [record.message for record in caplog.records if record.name == "exeunt.telemetry"] == [
        f"spans cannot be exported to {path}, and are lost: No such file or directory"
    ]


def test_spans_beyond_the_bound_are_dropped_counted_and_told_once(caplog: pytest.LogCaptureFixture) -> None:
    slow = Slow()
    processor = BoundedSpanProcessor(slow, "the collector", most=3, delay=60_000)
    with caplog.at_level(logging.WARNING, "exeunt.telemetry"):
        for span in _spans(8):
            processor.on_end(span)
        slow.begun.wait(10)
        assert processor.statistics().dropped == 5
        assert processor.statistics().waiting == 3
    assert caplog.messages == ["spans are dropped: 3 wait for the collector, which is slow"]
    slow.may.set()
    processor.shutdown()
    assert slow.exported == 3
    assert processor.statistics().waiting == 0


def test_a_span_that_is_not_sampled_is_not_exported() -> None:
    slow = Slow()
    processor = BoundedSpanProcessor(slow, "the collector", most=3, delay=60_000)
    provider = TracerProvider(sampler=ALWAYS_OFF, shutdown_on_exit=False)
    provider.add_span_processor(processor)
    provider.get_tracer("test").start_span("unseen").end()
    provider.shutdown()
    assert slow.exported == 0


async def test_an_export_that_does_not_end_is_left_behind_in_time_and_told(
    caplog: pytest.LogCaptureFixture,
) -> None:
    slow = Slow()
    with trio.fail_after(20):
        async with (
            open_export(slow, "the collector", flush_within=0.05) as export,
            open_host(telemetry=export.telemetry) as host,
        ):
            await (await open_session(host, ScriptedModel(["hi"]))).send_and_wait("go")
    assert "2 spans were not exported to the collector in time, and are lost" in caplog.messages
    slow.may.set()
