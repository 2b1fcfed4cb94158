"""Where the official JavaScript client is: installed once into `.cache/`, at the versions of `package.json`."""

import fcntl
import hashlib
import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = Path(__file__).with_name("package.json")

INSTALL_LIMIT = 300
"""Seconds for npm: a few packages, some megabytes."""


def modules(package: Path = PACKAGE, *, optional: bool = False) -> Path:
    """The `node_modules` with what `package` names, installed if it is not there yet.

    Optional packages are left out unless asked for: of the client they are the runtime that it starts by itself, a
    hundred megabytes that only a comparison needs. Processes that ask at once wait for the first. Raises
    `subprocess.CalledProcessError` with npm's words in its `stderr`.
    """
    wanted = package.read_bytes()
    key = hashlib.sha256(wanted + bytes([optional])).hexdigest()[:12]
    folder = ROOT / ".cache" / "interop" / key
    folder.mkdir(parents=True, exist_ok=True)
    done = folder / "done"
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists():
            (folder / "package.json").write_bytes(wanted)
            # Scripts of packages would build a binding that only a runtime inside of the client's process needs, and
            # fail where there is no CMake.
            command = ["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--no-package-lock"]
            extra = [] if optional else ["--omit=optional"]
            subprocess.run(
                [*command, "--loglevel=error", *extra],
                cwd=folder,
                check=True,
                capture_output=True,
                text=True,
                timeout=INSTALL_LIMIT,
            )
            done.touch()
    return folder / "node_modules"


def modules_or_skip() -> Path:
    """`modules()` for a test: skips where Node.js is not installed, unless `EXEUNT_INTEROP=require` is set."""
    if not (shutil.which("node") and shutil.which("npm")) and os.environ.get("EXEUNT_INTEROP") != "require":
        pytest.skip(
            "node and npm are not installed; the official JavaScript client needs Node.js 20 or newer"
        )
    return modules()
