"""Finding and opening the files of one folder: bounded, and never out of the roots, whoever moves links meanwhile."""

import os
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from exeunt.wire import below
from exeunt.wire.instructions.places import root_of

AT_THE_TOP = (".github/copilot-instructions.md", "AGENTS.md", "CLAUDE.md")
"""Files that hold instructions by their name."""

BELOW = ".github/instructions"
"""The folder whose files hold them by their ending, in folders of it too."""

ENDING = ".instructions.md"

DEEPEST = 8
"""Folders below that one: deeper lies nothing that somebody wrote by hand."""

MOST_ENTRIES = 2_000
"""Entries of those folders that are looked at."""

LARGEST_FILE = 64 * 1024
"""Bytes: some 16,000 tokens, which every request of the session would have."""


class Unreadable(Exception):
    """A file or a folder cannot be read, or may not; its text says why."""


def candidates(folder: Path) -> Iterator[str]:
    """Give the relative paths of what may hold instructions, in the order in which they are read.

    Raises `Unreadable`, also after some were given.
    """
    if not folder.is_dir():
        raise Unreadable("is no folder")
    for name in AT_THE_TOP:
        if os.path.lexists(folder / name):
            yield name
    left = [MOST_ENTRIES]
    yield from _below(folder, BELOW, left, DEEPEST)


def _below(folder: Path, relative: str, left: list[int], deeper: int) -> Iterator[str]:
    """Give the files of a folder, sorted, then those of its folders; a folder that is a link is not followed."""
    place = folder / relative
    if place.is_symlink() or not place.is_dir():
        return
    try:
        with os.scandir(place) as entries:
            found = list(islice(entries, left[0] + 1))
    except OSError as error:
        raise Unreadable(f"{relative} cannot be listed: {error.strerror}") from error
    left[0] -= len(found)
    if left[0] < 0:
        raise Unreadable(f"{relative} has more than {MOST_ENTRIES} entries")
    found.sort(key=lambda entry: entry.name)
    for entry in found:
        if entry.name.endswith(ENDING) and not entry.is_dir(follow_symlinks=False):
            yield f"{relative}/{entry.name}"
    if deeper:
        for entry in found:
            if entry.is_dir(follow_symlinks=False):
                yield from _below(folder, f"{relative}/{entry.name}", left, deeper - 1)


def read(path: Path, roots: Sequence[Path]) -> tuple[Path, bytes]:
    """Return where a file truly is, and what is in it. Raises `Unreadable`."""
    real = Path(os.path.realpath(path))
    root = root_of(real, roots)
    if root is None:
        raise Unreadable("leads out of the folders that may be read")
    try:
        return real, below.read(root, real, LARGEST_FILE)
    except below.TooLong as error:
        raise Unreadable(str(error)) from error
    except OSError as error:
        raise Unreadable(f"cannot be read: {error.strerror}") from error
