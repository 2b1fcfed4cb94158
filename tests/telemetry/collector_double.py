"""A collector of OpenTelemetry, as far as a client sees it: takes exports over HTTP, and keeps them."""

import json
import threading
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import attrs
from google.protobuf import json_format  # type: ignore[import-untyped]
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

PROTOBUF = "application/x-protobuf"


@attrs.frozen
class Received:
    """One export."""

    path: str
    content_type: str
    headers: dict[str, str]
    spans: list[dict[str, Any]]
    """As OTLP's JSON has them, the ids in hexadecimal where they came as JSON."""


class CollectorDouble:
    """Takes exports on a port of its own; answers with `status`."""

    def __init__(self) -> None:
        self.received: list[Received] = []
        self.status = 200
        double = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                headers = {name.lower(): value for name, value in self.headers.items()}
                double.take(self.path, headers, body)
                self.send_response(double.status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - its name there
                """Write nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def take(self, path: str, headers: dict[str, str], body: bytes) -> None:
        """Keep an export."""
        kind = headers["content-type"]
        told: dict[str, Any]
        if kind == PROTOBUF:
            message = ExportTraceServiceRequest.FromString(body)
            told = json_format.MessageToDict(message, use_integers_for_enums=True)
        else:
            told = json.loads(body)
        spans = [
            span
            for resource in told["resourceSpans"]
            for scope in resource["scopeSpans"]
            for span in scope["spans"]
        ]
        self.received.append(Received(path, kind, headers, spans))

    @property
    def spans(self) -> list[dict[str, Any]]:
        """All spans so far."""
        return [span for export in self.received for span in export.spans]

    @contextmanager
    def serving(self) -> Generator["CollectorDouble"]:
        """Answer while this lasts."""
        thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield self
        finally:
            self._server.shutdown()
            self._server.server_close()
            thread.join()


def attributes(span: dict[str, Any]) -> dict[str, Any]:
    """The attributes of a span in OTLP's JSON, by name."""
    return {pair["key"]: next(iter(pair["value"].values())) for pair in span["attributes"]}
