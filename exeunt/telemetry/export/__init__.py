"""Spans out of a process of our own: to a file, or to a collector over HTTP. For `exeunt serve` and `exeunt-runtime`.

A program that embeds a host brings its own `TracerProvider`, and needs nothing of this. Reading order: `bounded` (spans
that wait for their export), `lines` (a file), `collector` (OTLP over HTTP), `opening` (all of it for one server).
"""

from exeunt.telemetry.export.bounded import BoundedSpanProcessor, ExportStatistics
from exeunt.telemetry.export.collector import collector_exporter
from exeunt.telemetry.export.lines import JsonLinesExporter
from exeunt.telemetry.export.opening import MOST_WAITING, open_export

__all__ = [
    "MOST_WAITING",
    "BoundedSpanProcessor",
    "ExportStatistics",
    "JsonLinesExporter",
    "collector_exporter",
    "open_export",
]
