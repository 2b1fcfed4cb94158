"""A relay to the suite's recordings that takes as long as a quick model does.

The recordings answer within some 5 ms. Several tests of the suite listen for the answer only after their message has
been acknowledged, and an acknowledgement here waits for the disk: without this they would miss the answer now and then.
"""

import http.client
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

LATENCY = 0.1
"""Seconds before a request goes on: models take longer, and the disk of a busy machine does not."""

KEPT_BACK = frozenset({"connection", "transfer-encoding", "content-length", "host"})
"""Headers that are of one hop."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._relay()

    def do_POST(self) -> None:
        self._relay()

    def log_request(self, code: object = "-", size: object = "-") -> None:
        """Say nothing."""

    def _relay(self) -> None:
        """Pass on a request for `/HOST:PORT/PATH`, and its answer piece by piece."""
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        time.sleep(LATENCY)
        _, place, path = self.path.split("/", 2)
        headers = {name: value for name, value in self.headers.items() if name.lower() not in KEPT_BACK}
        there = http.client.HTTPConnection(place, timeout=60)
        try:
            there.request(self.command, f"/{path}", body or None, headers)
            answer = there.getresponse()
            self.send_response(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in KEPT_BACK:
                    self.send_header(name, value)
            self.send_header("transfer-encoding", "chunked")
            self.end_headers()
            while piece := answer.read1(65_536):
                self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece))
            self.wfile.write(b"0\r\n\r\n")
        except OSError:
            self.close_connection = True
        finally:
            there.close()


@contextmanager
def relay() -> Generator[str]:
    """Relay while the context lasts; yield the address before which the true one is written, without `http://`."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
