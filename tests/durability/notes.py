"""What a process that may be killed at any moment leaves for those who come after it: lines that were written whole."""

import os
from pathlib import Path
from typing import Any

import msgspec

_line = msgspec.json.Encoder()


class Notes:
    """Files of JSON lines in one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def write(self, name: str, **fields: Any) -> None:
        """Add a line to the file *name*. What the kernel has is not lost with the process."""
        file = os.open(self.folder / name, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(file, _line.encode(fields) + b"\n")
        finally:
            os.close(file)

    def read(self, name: str) -> list[dict[str, Any]]:
        """Return the lines of the file *name*; none, if nobody has written one."""
        path = self.folder / name
        return [msgspec.json.decode(line) for line in path.read_bytes().splitlines()] if path.exists() else []
