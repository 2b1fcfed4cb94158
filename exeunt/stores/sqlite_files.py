"""What can be seen of a SQLite journal without opening it as a database."""

import os
import stat
from pathlib import Path

from exeunt.actors.errors import JournalError
from exeunt.supervisor.journal.store import StoreUnavailable

SHORTEST = 100
"""Bytes of the header of a SQLite file. SQLite itself takes a file of one byte for an empty one, and writes over it."""


def check_readable(path: Path) -> None:
    """See whether a journal could be read at *path*; change nothing.

    Raises `JournalError` where there is none, and `StoreUnavailable` for a file that may not be read.
    """
    try:
        status = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        raise JournalError(f"there is no journal {path}") from None
    except OSError as error:
        raise _unreadable(path, error.strerror or str(error)) from error
    if not stat.S_ISREG(status.st_mode):
        raise JournalError(f"there is no journal {path}: that is a folder, or no file at all")
    if not os.access(path, os.R_OK):
        raise _unreadable(path, "you may not read it")
    if not status.st_size:
        raise JournalError(f"there is no journal in {path}: the file is empty")
    check_length(path, f"there is no journal in {path}")


def check_length(path: Path, refusal: str) -> None:
    """Raise `JournalError` for a file that is not empty and too short to be a database. Raises `OSError` for none."""
    size = path.stat().st_size
    if 0 < size < SHORTEST:
        raise JournalError(f"{refusal}: a file of {size} bytes is no database; nothing was changed")


def _unreadable(path: Path, why: str) -> StoreUnavailable:
    return StoreUnavailable(f"the journal {path} cannot be read: {why}")
