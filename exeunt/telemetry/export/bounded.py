"""Spans that wait for their export: so many, and no more. OpenTelemetry's processor exports them, in its own thread.

That one drops without telling how many. Here each span is counted: it waits, is exported, has failed or was dropped.
"""

import logging
import threading
from collections.abc import Sequence

import attrs
from opentelemetry.context import Context
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

logger = logging.getLogger("exeunt.telemetry")

BATCH = 512
"""Spans of one export at most: OpenTelemetry's own default."""

DELAY = 1000
"""Milliseconds that a span waits for others. Somebody who looks at traces as they come should not wait long."""


@attrs.frozen
class ExportStatistics:
    """An export at one moment."""

    waiting: int
    """Spans that wait for their export, or are being exported."""
    exported: int
    """Spans that were written or sent so far."""
    failed: int
    """Spans that could not be written or sent, and are lost."""
    dropped: int
    """Spans that are lost because too many were waiting."""


class BoundedSpanProcessor(SpanProcessor):
    """Hands spans to *exporter*, by *most* at the same time; those beyond are dropped, and counted.

    *where* names the place for people. They are told once when it fails, and once when it works again.
    """

    def __init__(self, exporter: SpanExporter, where: str, *, most: int, delay: float = DELAY) -> None:
        self._most = most
        self._where = where
        self._lock = threading.Lock()
        self._waiting = self._exported = self._failed = self._dropped = 0
        self._is_failing = self._is_full = False
        self._batches = BatchSpanProcessor(
            _Watched(exporter, self),
            max_queue_size=most,
            schedule_delay_millis=delay,
            max_export_batch_size=min(BATCH, most),
        )

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        """Do nothing: spans are exported when they have ended."""

    def on_end(self, span: ReadableSpan) -> None:
        """Take a span that has ended. Never waits."""
        if span.context is None or not span.context.trace_flags.sampled:
            return
        with self._lock:
            full = self._waiting >= self._most
            if full:
                self._dropped += 1
                first, self._is_full = not self._is_full, True
            else:
                self._waiting += 1
                first = False
        if not full:
            self._batches.on_end(span)
        elif first:
            logger.warning("spans are dropped: %d wait for %s, which is slow", self._most, self._where)

    def shutdown(self) -> None:
        """Export what waits, and end. May take as long as the exporter does: for a thread."""
        self._batches.shutdown()  # type: ignore[no-untyped-call]

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Export what waits. May take as long as the exporter does: for a thread."""
        return self._batches.force_flush(timeout_millis)

    def statistics(self) -> ExportStatistics:
        """Return a look at the export. From any thread."""
        with self._lock:
            return ExportStatistics(self._waiting, self._exported, self._failed, self._dropped)

    def exported(self, count: int, failure: str | None) -> None:
        """*count* spans were exported, or could not be."""
        with self._lock:
            self._waiting -= count
            self._is_full = False
            if failure is None:
                self._exported += count
            else:
                self._failed += count
            changed = self._is_failing is (failure is None)
            self._is_failing = failure is not None
        if changed and failure is not None:
            logger.warning("spans cannot be exported to %s, and are lost: %s", self._where, failure)
        elif changed:
            logger.warning("spans are exported to %s again", self._where)


class _Watched(SpanExporter):
    """An exporter, and what became of the spans."""

    def __init__(self, exporter: SpanExporter, told: BoundedSpanProcessor) -> None:
        self._exporter = exporter
        self._told = told

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        failure: str | None = "it does not answer, or refuses them"
        try:
            result = self._exporter.export(spans)
            if result is SpanExportResult.SUCCESS:
                failure = None
        except OSError as error:
            failure = error.strerror or str(error)
            result = SpanExportResult.FAILURE
        finally:
            self._told.exported(len(spans), failure)
        return result

    def shutdown(self) -> None:
        self._exporter.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        return self._exporter.force_flush(timeout_millis)
