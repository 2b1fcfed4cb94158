"""Spans to a collector, over HTTP: by OpenTelemetry's own exporter, as protobuf or, where that is wanted, as JSON.

Headers, time-outs, certificates and compression are those of its environment variables (`OTEL_EXPORTER_OTLP_*`).
"""

import base64
from typing import Any, Literal

import msgspec
import requests
from google.protobuf import json_format  # type: ignore[import-untyped]
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace.export import SpanExporter
from requests.adapters import HTTPAdapter

Protocol = Literal["http/protobuf", "http/json"]

IDS = frozenset({"traceId", "spanId", "parentSpanId"})


def collector_exporter(url: str | None = None, protocol: Protocol = "http/protobuf") -> SpanExporter:
    """Return what sends spans to *url*, with its path (default: where the environment says, or this machine)."""
    if protocol == "http/protobuf":
        return OTLPSpanExporter(endpoint=url)
    session = requests.Session()
    for scheme in ("http://", "https://"):
        session.mount(scheme, _AsJson())
    # It is compressed before it comes here, and could not be read.
    return OTLPSpanExporter(endpoint=url, session=session, compression=Compression.NoCompression)


class _AsJson(HTTPAdapter):
    """Sends as JSON what the exporter has made as protobuf: it knows no other."""

    def send(self, request: requests.PreparedRequest, *args: Any, **options: Any) -> requests.Response:
        if isinstance(request.body, bytes):
            request.body = as_json(request.body)
            request.headers["Content-Type"] = "application/json"
            request.headers["Content-Length"] = str(len(request.body))
        return super().send(request, *args, **options)


def as_json(request: bytes) -> bytes:
    """Return an export request in OTLP's JSON: as protobuf's, but for ids in hexadecimal and enums as numbers."""
    message = ExportTraceServiceRequest.FromString(request)
    told = json_format.MessageToDict(message, use_integers_for_enums=True)
    for resource in told.get("resourceSpans", ()):
        for scope in resource.get("scopeSpans", ()):
            for span in scope.get("spans", ()):
                _hexadecimal(span)
                for link in span.get("links", ()):
                    _hexadecimal(link)
    return msgspec.json.encode(told)


def _hexadecimal(holder: dict[str, Any]) -> None:
    for name in IDS & holder.keys():
        holder[name] = base64.b64decode(holder[name]).hex()
