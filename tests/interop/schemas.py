"""The JSON Schemas of the protocol, out of the package that ships them."""

import fcntl
import json
import subprocess
import tarfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]

PACKAGE = "@github/copilot-sdk-linux-x64@1.0.14"

DOWNLOAD_LIMIT = 300
"""Seconds for npm: it is a hundred megabytes, of which the schemas are one."""


def schema(name: str) -> dict[str, Any]:
    """The schema of this name, such as `session-events`. Raises `subprocess.CalledProcessError` where npm fails."""
    folder = ROOT / ".cache" / "interop" / "schemas-1.0.14"
    folder.mkdir(parents=True, exist_ok=True)
    wanted = folder / f"{name}.schema.json"
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not wanted.exists():
            command = ["npm", "pack", "--silent", PACKAGE]
            packed = subprocess.run(
                command, cwd=folder, check=True, capture_output=True, text=True, timeout=DOWNLOAD_LIMIT
            )
            archive = folder / packed.stdout.split()[-1]
            with tarfile.open(archive) as tar:
                for member in tar:
                    if member.name.startswith("package/schemas/") and member.isfile():
                        content = tar.extractfile(member)
                        assert content is not None
                        (folder / Path(member.name).name).write_bytes(content.read())
            archive.unlink()
    found: dict[str, Any] = json.loads(wanted.read_text(encoding="utf-8"))
    return found
