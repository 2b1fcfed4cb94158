"""Spans in a file: one JSON object in each line, by the names of OTLP's JSON, attributes as a plain object."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.trace import SpanContext, SpanKind

KINDS = {kind: number for number, kind in enumerate(SpanKind, start=1)}
"""Numbers of OTLP: OpenTelemetry's own begin with 0."""

OWNER_ONLY = 0o600
"""Spans may hold what people have said."""


class JsonLinesExporter(SpanExporter):
    """Appends spans to the file *path*, which is made when the first come; for its owner only.

    It is opened for each batch: it may be moved away, and is made again. `export` raises `OSError`.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._is_torn = False

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Write spans, whole batches at a time."""
        lines = b"".join(msgspec.json.encode(as_line(span)) + b"\n" for span in spans)
        if self._is_torn:
            # Half a line of the last batch may be there.
            lines = b"\n" + lines
        self._is_torn = True
        descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, OWNER_ONLY)
        with os.fdopen(descriptor, "wb", buffering=0) as file:
            left = memoryview(lines)
            while left:
                left = left[file.write(left) :]
        self._is_torn = False
        return SpanExportResult.SUCCESS

    def shutdown(self) -> None:
        """Do nothing: no file is open."""

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Do nothing: what was written is with the system."""
        return True


def as_line(span: ReadableSpan) -> dict[str, Any]:
    """Return a span as the object of a line."""
    context, scope = span.get_span_context(), span.instrumentation_scope
    told: dict[str, Any] = {"type": "span", "name": span.name, **_ids(context)}
    if span.parent is not None:
        told["parentSpanId"] = f"{span.parent.span_id:016x}"
    told |= {
        "kind": KINDS[span.kind],
        "startTimeUnixNano": str(span.start_time),
        "endTimeUnixNano": str(span.end_time),
        "status": _status(span),
        "attributes": dict(span.attributes or {}),
        "events": [
            {
                "name": event.name,
                "timeUnixNano": str(event.timestamp),
                "attributes": dict(event.attributes or {}),
            }
            for event in span.events
        ],
        "links": [{**_ids(link.context), "attributes": dict(link.attributes or {})} for link in span.links],
        "resource": {"attributes": dict(span.resource.attributes)},
    }
    if scope is not None:
        told["instrumentationScope"] = {"name": scope.name, "version": scope.version or ""}
    return told


def _ids(context: SpanContext | None) -> dict[str, str]:
    if context is None:
        return {}
    return {"traceId": f"{context.trace_id:032x}", "spanId": f"{context.span_id:016x}"}


def _status(span: ReadableSpan) -> dict[str, Any]:
    status: dict[str, Any] = {"code": span.status.status_code.value}
    if span.status.description:
        status["message"] = span.status.description
    return status
