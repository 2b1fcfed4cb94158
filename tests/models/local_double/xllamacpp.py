"""A double of the package that runs the model. `DOUBLE` in the environment says how it behaves."""

import ctypes
import http.server
import json
import os
import signal
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

BEHAVIOUR = os.environ.get("DOUBLE", "serve")


class CommonParams(SimpleNamespace):
    def __init__(self) -> None:
        threads = (SimpleNamespace(n_threads=-1), SimpleNamespace(n_threads=-1))
        super().__init__(
            health_questions=0,
            model=SimpleNamespace(path=""),
            cpuparams=threads[0],
            cpuparams_batch=threads[1],
        )


def _plain(value: object) -> Any:
    return [str(one) for one in cast("set[str]", value)] if isinstance(value, set) else vars(value)


class Handler(http.server.BaseHTTPRequestHandler):
    refusals = 2 if BEHAVIOUR == "ready_late" else 0

    def do_GET(self) -> None:
        if self.path == "/health":
            Server.params.health_questions += 1
            if Server.params.health_questions <= Handler.refusals:
                self.send_error(503)
                return
        body = json.dumps(Server.params, default=_plain)
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        pass


class Server:
    params: CommonParams

    def __init__(self, params: CommonParams) -> None:
        Server.params = params
        if alive := os.environ.get("DOUBLE_ALIVE"):
            Path(alive).write_text(str(os.getpid()))
        match BEHAVIOUR:
            case "fail":
                raise RuntimeError("no tensors in this file")
            case "old_release":
                raise AttributeError("no attribute 'hostnames'")
            case "crash":
                os.write(2, b"assertion failed in a kernel\n")
                os.kill(os.getpid(), signal.SIGSEGV)
            case "crash_with_a_long_log":
                os.write(2, b"x" * 300_000 + b"\nthe cause\n")
                os._exit(3)
            case "hang":
                # Holds the interpreter lock for long, as the library does while it loads.
                ctypes.PyDLL(None).sleep(600)
            case "ignore_sigterm":
                signal.signal(signal.SIGTERM, signal.SIG_IGN)
            case "print":
                print("loading ...", flush=True)
            case "bad_address":
                self.listening_address = "unix:/tmp/socket"
                return
            case _:
                pass
        server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.listening_address = f"http://127.0.0.1:{server.server_port}"
        print("log", file=sys.stderr)
