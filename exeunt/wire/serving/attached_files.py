"""Files that clients attach by their path, read where the server was told that it may: below one folder."""

import logging
import mimetypes
import os
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import trio

from exeunt.actors.errors import InvalidMedia
from exeunt.actors.media import LONGEST_NAME, Media, MediaLimits
from exeunt.models.media import image_type
from exeunt.wire import below
from exeunt.wire.serving.github_pointers import Fields, fields_of, line_range

logger = logging.getLogger("exeunt.wire")

AT_ONCE = 4
"""Threads that read: a disk that hangs holds these, and no tool."""

SECONDS = 30.0
"""For the files of one message, which waits for them. Local disks take a moment; one that takes longer hangs."""

LONGEST_TEXT = 256 * 1024
"""Bytes of a text that is quoted: some 65,000 tokens. A longer one is named with the number of its lines."""

MOST_ITEMS = 10_000
"""Of a folder that are counted."""

Read = Mapping[int, Media | str]
"""By the place of an attachment: what was read, or how its path is named."""


def names_files(attachments: Sequence[Fields] | None) -> bool:
    """Say whether anything of *attachments* could be read."""
    return any(attachment.get("type") in ("file", "directory") for attachment in attachments or ())


class AttachedFiles:
    """Reads for the clients of one server."""

    def __init__(self, root: Path, limits: MediaLimits, seconds: float = SECONDS) -> None:
        """*root* is the folder below which is read; *seconds* bound what one message waits for."""
        self._root = root
        self._limits = limits
        self._seconds = seconds
        self._threads = trio.CapacityLimiter(AT_ONCE)

    async def read(self, attachments: Sequence[Fields] | None) -> Read:
        """Read what is attached by its path, in a thread. Raises nothing: what cannot be read is only named.

        Images, PDF documents and texts are read; links are followed as long as they stay below the root. Cancelled, or
        too slow: the thread is left to itself.
        """
        paths = {
            number: attachment
            for number, attachment in enumerate(attachments or ())
            if attachment.get("type") in ("file", "directory")
        }
        with trio.move_on_after(self._seconds):
            return await trio.to_thread.run_sync(
                _read_all, paths, self._root, self._limits, limiter=self._threads, abandon_on_cancel=True
            )
        logger.warning("attached files are only named: the disk did not answer within %g s", self._seconds)
        return {}


def _read_all(attachments: Mapping[int, Fields], root: Path, limits: MediaLimits) -> Read:
    found: dict[int, Media | str] = {}
    room = min(limits.message, limits.session)
    for number, attachment in attachments.items():
        try:
            read = _read(attachment, root.resolve(), min(limits.item, room))
        except (OSError, ValueError, RuntimeError, InvalidMedia):
            # Not there, not below the folder, or a name that cannot be: it is named, as all paths are elsewhere.
            continue
        if isinstance(read, Media):
            room -= len(read.data)
        found[number] = read
    return found


def _read(attachment: Fields, root: Path, most: int) -> Media | str:
    path = Path(str(attachment.get("path") or ""))
    if not path.is_absolute():
        raise ValueError("a relative path names nothing")
    real = path.resolve(strict=True)
    if not real.is_relative_to(root):
        raise ValueError("not below the folder")
    if attachment.get("type") == "directory":
        return f"{path} ({_count(root, real)} items)"
    lines = fields_of(attachment.get("lineRange"))
    return _media(str(path), below.read(root, real, most), lines)


def _count(root: Path, real: Path) -> int:
    if not below.CAN_WALK:
        with os.scandir(real) as entries:
            return sum(1 for _ in islice(entries, MOST_ITEMS))
    with below.opened(root, real, os.O_RDONLY | os.O_DIRECTORY) as folder, os.scandir(folder) as entries:
        return sum(1 for _ in islice(entries, MOST_ITEMS))


def _media(path: str, data: bytes, lines: Mapping[str, Any]) -> Media | str:
    image = image_type(data)
    if image is not None:
        return Media(image, data, path[-LONGEST_NAME:])
    if data.startswith(b"%PDF-"):
        return Media("application/pdf", data, path[-LONGEST_NAME:])
    text = data.decode("utf-8-sig")  # what is no text is a ValueError
    if "\0" in text:
        raise ValueError("no text")
    every = text.splitlines(keepends=True)
    first, last = lines.get("start"), lines.get("end")
    if isinstance(first, int) and isinstance(last, int) and 0 < first <= last:
        text = "".join(every[first - 1 : last])
    encoded = text.encode()
    if not encoded or len(encoded) > LONGEST_TEXT:
        return f"{path} ({len(every)} lines)"
    kind = mimetypes.guess_type(path)[0] or ""
    name = f"{path}{line_range(lines)}"[-LONGEST_NAME:]
    return Media(kind if kind.startswith("text/") else "text/plain", encoded, name)
