"""Settings of the Python process that a host profits from. Offered, not imposed: the process is the embedder's."""

import errno
import gc
import os
import socket
import ssl
import sys
from typing import cast

GC_THRESHOLDS = (50_000, 20, 10)
"""A turn leaves no cyclic garbage, so collections only cost: with the default thresholds nearly half of the time of
10,000 turns at once, with these a sixth or less, and the longest pause is a fifth. `python -m loadtests.bench gc`
measures it; README.md has the figures."""

MOST_FILES = 65_536
"""What the limit of open files is raised to at most: six times the clients that a server takes (10,000), each with a
call of a model under way. Where the hard limit is infinite, or a thousand million as in some containers, programs that
this process starts would inherit that, and some close each number up to it one by one."""

DARWIN_FILES = 10_240
"""The most that macOS takes from a process of a user, whatever its hard limit says."""


def tune_garbage_collector() -> tuple[int, int, int]:
    """Set the collector's thresholds for many sessions; return those before, for `gc.set_threshold(*before)`.

    Exeunt's own executables call it. A program whose other parts make much cyclic garbage should measure first.
    """
    before = gc.get_threshold()
    gc.set_threshold(*GC_THRESHOLDS)
    return before


def allow_many_files() -> int | None:
    """Let this process open as many files as its hard limit allows, up to 65,536; return how many it may open now.

    Each client and each model call under way takes one, and the soft limit, with which a process begins, is often
    1,024. Never raises and never lowers the limit: where the system refuses, it stays. `None`: no limit is known, as on
    Windows. Exeunt's own executables call it. Programs that are started afterwards inherit the limit; `select()`
    of the C library, and `select.select` with it, cannot watch a file whose number is 1,024 or higher.
    """
    if sys.platform == "win32":
        return None
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    best = MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, MOST_FILES)
    for wanted in (best, min(best, DARWIN_FILES)):
        if soft == resource.RLIM_INFINITY or soft >= wanted:
            break
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        except (OSError, ValueError):
            continue
        break
    return most_files()


def most_files() -> int | None:
    """Return how many files this process may have open at once; `None` where no limit is known."""
    if sys.platform == "win32":
        return None
    import resource

    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return None if soft == resource.RLIM_INFINITY else soft


def why_no_file(error: BaseException | None) -> str | None:
    """Say that no more files can be opened, with the limit and what to do, where *error* comes of that; else `None`.

    Looks into groups and causes. A name that cannot be resolved and a certificate that nobody vouches for may come of
    it too, and do not say so: files are read for both. Then it is tried whether one can be opened now.
    """
    number = _file_errno(error)
    if number == errno.ENFILE:
        return "this machine has as many files open as it may: see fs.file-max"
    if number == errno.EMFILE:
        limit = most_files()
        said = "" if limit is None else f" ({limit:,})"
        return f"this process has as many files open as it may{said}: raise the limit (ulimit -n)"
    return None


def _file_errno(error: BaseException | None) -> int | None:
    if isinstance(error, BaseExceptionGroup):
        group = cast("BaseExceptionGroup[BaseException]", error)
        found = (_file_errno(each) for each in group.exceptions)
        return next((number for number in found if number is not None), None)
    if isinstance(error, (socket.gaierror, ssl.SSLCertVerificationError)):
        return _opening()
    if isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE):
        return error.errno
    return None if error is None else _file_errno(error.__cause__)


def _opening() -> int | None:
    """Try to open a file; return the error's number if it cannot be done."""
    try:
        os.close(os.open(os.devnull, os.O_RDONLY))
    except OSError as error:
        return error.errno
    return None
