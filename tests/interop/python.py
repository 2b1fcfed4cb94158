"""Where the official Python client is: an environment of its own in `.cache/`, at a fixed version."""

import fcntl
import hashlib
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]

REQUIREMENT = "github-copilot-sdk==1.0.27"

INSTALL_LIMIT = 300
"""Seconds for pip: a few packages, some megabytes."""


def interpreter() -> Path:
    """The interpreter of that environment, which is made if it is not there yet.

    Raises `subprocess.CalledProcessError` with pip's words in its `stderr`.
    """
    key = hashlib.sha256(f"{REQUIREMENT} {sys.version}".encode()).hexdigest()[:12]
    folder = ROOT / ".cache" / "interop" / key
    folder.mkdir(parents=True, exist_ok=True)
    python, done = folder / "venv" / "bin" / "python", folder / "done"
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists():
            for command in (
                [sys.executable, "-m", "venv", "--clear", str(folder / "venv")],
                [str(python), "-m", "pip", "install", "--quiet", REQUIREMENT],
            ):
                subprocess.run(command, check=True, capture_output=True, text=True, timeout=INSTALL_LIMIT)
            done.touch()
    return python
