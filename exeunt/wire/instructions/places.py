"""Which folders clients may name, and no way out of them."""

import os
from collections.abc import Sequence
from pathlib import Path

import attrs

from exeunt.actors.errors import InstructionsRefused

MOST_NAMED = 32
"""Folders of one session: a repository, and some that its users share."""

LONGEST_NAME = 4096
"""Characters of a path, as most systems have it."""


@attrs.frozen
class Place:
    """A folder that may be read."""

    named: str
    """As the client has it."""
    path: Path
    """Without links in it."""


def check_named(named: Sequence[str]) -> None:
    """Refuse what is no list of paths. Raises `InstructionsRefused`."""
    if len(named) > MOST_NAMED:
        raise InstructionsRefused(
            f"instructionDirectories names {len(named)} folders; at most {MOST_NAMED} may be"
        )
    for name in named:
        if not name or "\0" in name or len(name) > LONGEST_NAME:
            raise InstructionsRefused(f"instructionDirectories: {name!r:.80} is no path of a folder")


def places(named: Sequence[str], working_directory: str, roots: Sequence[Path]) -> list[Place]:
    """Return the folders, links followed; a relative path begins in *working_directory*.

    Raises `InstructionsRefused` for one that does not lie in any of *roots*, whether it is there or not.
    """
    found: list[Place] = []
    for name in named:
        try:
            path = Path(os.path.realpath(Path(working_directory, name)))
        except (OSError, ValueError) as error:
            raise InstructionsRefused(
                f"instructionDirectories: {name!r:.200} is no path of a folder"
            ) from error
        if root_of(path, roots) is None:
            raise InstructionsRefused(
                f"instructionDirectories: {name!r:.200} lies in no folder that this server reads for its clients; "
                "it reads those of --instruction-root and EXEUNT_INSTRUCTION_ROOTS"
            )
        if all(place.path != path for place in found):
            found.append(Place(name, path))
    return found


def root_of(path: Path, roots: Sequence[Path]) -> Path | None:
    """Return the root in which a path without links lies, if there is one."""
    return next((root for root in roots if path.is_relative_to(root)), None)
