"""The official client at work: a model server, a client with its sessions, and the runtime that the client starts."""

import json
import subprocess
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from loadtests.wire.processes import output, running
from tests.interop.node import modules

HERE = Path(__file__).parent


@contextmanager
def playing(
    runtime: Path,
    sessions: int,
    rounds: int,
    *,
    tcp: bool = False,
    env: Mapping[str, str] | None = None,
    model_seconds: float = 0.0,
    with_reference: bool = False,
) -> "Generator[tuple[subprocess.Popen[str], subprocess.Popen[str]]]":
    """Run both in the body, which gets the client and the model; `parts` reads what the client does.

    *env* is the runtime's, beside that of this process. The model takes *model_seconds* for each answer.
    """
    packages = modules(optional=with_reference)
    slow = {"EXEUNT_MODEL_SECONDS": str(model_seconds)}
    with running(["node", str(HERE / "model.mjs")], slow) as model:
        url = f"http://127.0.0.1:{output(model).readline().strip()}/v1"
        job = {"runtime": str(runtime), "tcp": tcp, "model": url, "sessions": sessions, "rounds": rounds}
        known = {"EXEUNT_INTEROP_MODULES": str(packages), **(env or {})}
        with running(["node", str(HERE / "client.mjs"), json.dumps(job)], known) as client:
            yield client, model


def parts(client: "subprocess.Popen[str]") -> Iterator[dict[str, Any]]:
    """Yield what the client says of each part when that is over. It goes on when the next is asked for."""
    assert client.stdin is not None
    for line in output(client):
        yield json.loads(line)
        client.stdin.write("\n")
        client.stdin.flush()
