"""Paths within the files of a session: relative, with slashes, and never out of them."""

import re
from typing import Literal

from exeunt.actors.errors import InvalidFilePath

LONGEST_PATH = 1024
"""Characters: what common file systems take, with room for the folder before it."""

LONGEST_NAME = 255
"""Bytes of one step, which is the bound of nearly every file system."""

MOST_STEPS = 32
"""Folders within each other."""

Conventions = Literal["posix", "windows"]

_RESERVED = re.compile(r"(?i)(con|prn|aux|nul|com[0-9\u00b9\u00b2\u00b3]|lpt[0-9\u00b9\u00b2\u00b3])(\..*)?")
"""Names that are devices on Windows, with any extension."""

_UNFIT_ON_WINDOWS = frozenset('<>:"|?*')


def relative(path: str, conventions: Conventions = "posix") -> str:
    """Return *path*, which somebody outside gave, as the files of a session are named. Raises `InvalidFilePath`.

    It is relative, with `/` between its steps on every system; `.` and empty steps are left out. Refused is what
    leaves the files or might on some system: `..`, what is absolute, backslashes, drives, streams, device names.
    """
    if len(path) > LONGEST_PATH:
        raise InvalidFilePath(f"the path has {len(path)} characters; at most {LONGEST_PATH} are taken")
    if path.startswith("/"):
        raise InvalidFilePath(f"the path {path!r:.80} is absolute: name it relative to the folder")
    if "\\" in path:
        raise InvalidFilePath(f"the path {path!r:.80} has a backslash: put / between its steps")
    steps = [step for step in path.split("/") if step not in ("", ".")]
    if not steps:
        raise InvalidFilePath("the path is empty: name a file or a folder")
    if len(steps) > MOST_STEPS:
        raise InvalidFilePath(f"the path has {len(steps)} steps; at most {MOST_STEPS} are taken")
    for step in steps:
        _check(step, path, conventions)
    return "/".join(steps)


def _check(step: str, path: str, conventions: Conventions) -> None:
    if step == "..":
        raise InvalidFilePath(f"the path {path!r:.80} leaves the folder: `..` is not taken")
    if not step.isprintable():
        raise InvalidFilePath(f"the path {path!r:.80} has characters that cannot be printed")
    if len(step.encode("utf-8", "surrogatepass")) > LONGEST_NAME:
        raise InvalidFilePath(f"a step of the path {path!r:.80} is longer than {LONGEST_NAME} bytes")
    if conventions == "windows" and (
        not _UNFIT_ON_WINDOWS.isdisjoint(step) or step[-1] in " ." or _RESERVED.fullmatch(step)
    ):
        raise InvalidFilePath(f"{step!r:.80} is no name of a file on Windows, where the session's files are")


def joined(root: str, path: str, conventions: Conventions) -> str:
    """Return the whole name of *path*, which is relative, behind *root*, in the conventions of who keeps it."""
    if conventions == "windows":
        return f"{root.rstrip('/' + chr(92))}\\{path.replace('/', chr(92))}" if path else root
    return f"{root.rstrip('/')}/{path}" if path else root


def is_absolute(path: str) -> bool:
    """Say whether *path* is absolute on POSIX or on Windows: a client may be on another system than the server."""
    return path.startswith("/") or re.match(r"[A-Za-z]:[\\/]|\\\\", path) is not None


def same(one: str, other: str) -> bool:
    """Say whether two paths of clients are the same but for separators at their end."""
    return (one.rstrip("/\\") or one) == (other.rstrip("/\\") or other)
