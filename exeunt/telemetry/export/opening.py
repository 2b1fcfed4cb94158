"""The telemetry of a server, for as long as it runs."""

import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from importlib.metadata import version

import attrs
import trio
from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, OTELResourceDetector, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SpanExporter

from exeunt.telemetry.export.bounded import BoundedSpanProcessor
from exeunt.telemetry.telemetry import Telemetry

logger = logging.getLogger("exeunt.telemetry")

MOST_WAITING = 2048
"""Spans that wait for their export: OpenTelemetry's own default. Some 500 turns, and a few MiB without content."""

FLUSH_WITHIN = 5.0
"""Seconds that the export of the last spans may take. Clients wait about ten for the end of a server that they end."""


@attrs.frozen
class Export:
    """An export while it is open."""

    telemetry: Telemetry
    """For the host: `open_host(telemetry=...)`."""
    processor: BoundedSpanProcessor
    """What has become of the spans: its `statistics()`."""


@asynccontextmanager
async def open_export(
    exporter: SpanExporter,
    where: str,
    *,
    source_name: str = "exeunt",
    capture_content: bool = False,
    most_waiting: int = MOST_WAITING,
    flush_within: float = FLUSH_WITHIN,
) -> AsyncGenerator[Export]:
    """Export the spans of one host by *exporter* to *where*, a name for people; open the host inside.

    Samplers, limits and the resource are those of OpenTelemetry's environment variables; the service is `exeunt` where
    they name none. Leaving exports what waits, for *flush_within* seconds at most, also when it is cancelled; what is
    left then is lost, and said.
    """
    processor = BoundedSpanProcessor(exporter, where, most=most_waiting)
    provider = TracerProvider(resource=_resource(), shutdown_on_exit=False)
    provider.add_span_processor(processor)
    telemetry = Telemetry(provider, source_name=source_name, capture_content=capture_content)
    try:
        yield Export(telemetry, processor)
    finally:
        with trio.move_on_after(flush_within, shield=True):
            await trio.to_thread.run_sync(provider.shutdown, abandon_on_cancel=True)
        left = processor.statistics().waiting
        if left:
            logger.warning("%d spans were not exported to %s in time, and are lost", left, where)


def _resource() -> Resource:
    attributes: dict[str, str] = {}
    if SERVICE_NAME not in OTELResourceDetector().detect().attributes:
        attributes = {SERVICE_NAME: "exeunt", SERVICE_VERSION: version("exeunt")}
    return Resource.create(attributes)
