"""Files below a folder, and no way out of it, whoever puts links in the way meanwhile. Blocks: for threads.

A path is walked step by step, each step opened in the one before it, and none may be a link. Where links are to be
followed, they are followed first (`os.path.realpath`), and what that came to is walked here.
"""

import errno
import os
import stat
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

CAN_WALK = os.open in os.supports_dir_fd
"""Whether the system can open a file in a folder that is open."""

PASSING = getattr(os, "O_PATH", os.O_RDONLY) | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0)
"""How folders are opened on the way: enough to open what is in them."""

# A pipe or a device would wait for who writes to it.
WITHOUT_WAITING = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


class TooLong(ValueError):
    """A file has more bytes than it may."""


@contextmanager
def folder(base: Path, steps: Sequence[str], *, make: bool = False) -> Generator[int]:
    """Open a folder below *base* for what is done in it; with *make*, those that are missing are made.

    Raises `OSError`, also for a step that is a link or a file.
    """
    here = os.open(base, PASSING)
    try:
        for step in steps:
            if make:
                with suppress(FileExistsError):
                    os.mkdir(step, 0o700, dir_fd=here)
            there = os.open(step, PASSING, dir_fd=here)
            os.close(here)
            here = there
        yield here
    finally:
        os.close(here)


@contextmanager
def opened(base: Path, path: Path, flags: int = os.O_RDONLY) -> Generator[int]:
    """Open what is at *path*, which lies below *base* and has no links in it. Raises `OSError`."""
    if CAN_WALK:
        *steps, name = path.relative_to(base).parts or (".",)
        with folder(base, steps) as here:
            descriptor = os.open(name, flags | WITHOUT_WAITING, dir_fd=here)
    else:
        descriptor = os.open(path, flags | WITHOUT_WAITING)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def read(base: Path, path: Path, most: int) -> bytes:
    """Return what is in a file below *base*. Raises `OSError`, also for what is no file, and `TooLong`."""
    with opened(base, path) as descriptor:
        require_file(descriptor)
        with open(descriptor, "rb", closefd=False) as file:
            content = file.read(most + 1)
    if len(content) > most:
        raise TooLong(f"has more than {most} bytes")
    return content


def require_file(descriptor: int) -> None:
    """Raise `OSError` for what is no ordinary file."""
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        raise OSError(errno.EINVAL, "it is no ordinary file")
