"""Whether this process is a fork: then the loops and threads of hosts that were opened before are in the parent."""

import os
from collections.abc import Callable

from exeunt.actors.errors import HostForked


class _Forks:
    """Counts how often the memory of this process was handed to a child."""

    depth = 0


def _forked() -> None:
    _Forks.depth += 1


if hasattr(os, "register_at_fork"):  # there is no fork on Windows
    os.register_at_fork(after_in_child=_forked)


def depth() -> int:
    """Return how many forks lie between the first process and this one. Costs no system call."""
    return _Forks.depth


def check(opened_at: int) -> None:
    """Raise `HostForked` if a host that was opened at this depth is in the parent of this process."""
    if opened_at != _Forks.depth:
        raise HostForked(
            "the host was opened before this process was forked, and lives in the parent only; open a host in the "
            "child, after the fork (in gunicorn's post_fork, in Celery's worker_process_init)"
        )


def after_fork(function: Callable[[], object]) -> None:
    """Call *function* in each child that this process is forked into."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=function)
