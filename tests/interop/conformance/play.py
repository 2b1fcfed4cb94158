"""Play scenarios with the official JavaScript client against a runtime."""

import json
import os
import subprocess
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from tests.interop.conformance.records import Record

PLAYER = Path(__file__).with_name("play.mjs")

PARALLEL = 6
"""Scenarios at once: most of their time is waiting, and six of them keep two cores busy."""

SCENARIO_LIMIT = 60
"""Seconds for one scenario; the slowest that is not marked so waits 15 s for a provider's retries."""


@attrs.frozen
class Runtime:
    """What the client starts: `path` with `args` before its own, in an environment changed by `env`."""

    path: str
    args: Sequence[str] = ()
    env: Mapping[str, str] = attrs.field(factory=dict[str, str])


def play(
    runtime: Runtime, records: Iterable[Record], modules: Path, *, limit: float = SCENARIO_LIMIT
) -> dict[str, dict[str, Any]]:
    """What each of `records` showed: `error`, `events`, `requests` and `notes`, by its name.

    A scenario that is not done within `limit` seconds, or whose client raised, has its `error` set. Raises
    `RuntimeError` if the player itself failed.
    """
    chosen = [{"name": each.name, "script": each.script, "sent": each.sent} for each in records]
    with tempfile.TemporaryDirectory(prefix="exeunt-interop-") as home:
        env = {"COPILOT_HOME": home, **runtime.env}
        request = {
            "runtime": {"path": runtime.path, "args": [*runtime.args], "env": env},
            "parallel": PARALLEL,
            "limit": limit * 1000,
            "scenarios": chosen,
        }
        done = subprocess.run(
            ["node", str(PLAYER)],
            input=json.dumps(request),
            capture_output=True,
            text=True,
            check=False,
            cwd=home,
            env={**os.environ, "EXEUNT_INTEROP_MODULES": str(modules)},
        )
    if done.returncode:
        raise RuntimeError(f"the player ended with exit code {done.returncode}:\n{done.stderr[-4000:]}")
    outcomes = [json.loads(line) for line in done.stdout.splitlines()]
    return {outcome["name"]: outcome for outcome in outcomes}
