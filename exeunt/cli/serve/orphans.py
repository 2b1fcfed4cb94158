"""A runtime whose client was killed: nobody is left to end it.

A client that starts one ends it, too, and so does the end of its standard input where that is spoken on. On a port
nothing says that the client is gone. What can be seen are three things together: whoever started this process has
ended, nobody reads its standard output any more, and no client is connected. A shell script that starts a server to
stay gives it a file, a terminal or a log to write to, and is never taken for one.
"""

import logging
import os
import select
import stat
import sys
from collections.abc import Callable

import trio

logger = logging.getLogger("exeunt.wire")

LOOK_EVERY = 5.0
"""Seconds between two looks. Each takes two system calls."""

GRACE = 30.0
"""Seconds without a client after which the server ends: who has lost its connection is back long before."""


class Starter:
    """Whoever has started this process, by what can be seen of it. Made when the process begins."""

    def __init__(self) -> None:
        self._parent = os.getppid()
        self._output = _piped_output()

    @property
    def can_go(self) -> bool:
        """Whether its end could be seen: the output is a pipe, and the system tells about pipes. Windows does not."""
        return self._output is not None

    def is_gone(self) -> bool:
        """Whether it has ended, and nobody else reads what this process writes."""
        return self._output is not None and os.getppid() != self._parent and _is_unread(self._output)


async def until_abandoned(is_gone: Callable[[], bool], connected: Callable[[], int]) -> None:
    """Return when the starter is gone and no client has been connected for `GRACE` seconds since."""
    alone = 0.0
    while alone < GRACE:
        await trio.sleep(LOOK_EVERY)
        alone = alone + LOOK_EVERY if is_gone() and not connected() else 0.0
    logger.warning(
        "whoever started this server has ended, and no client has been connected for %g s: it ends", GRACE
    )


def _piped_output() -> int | None:
    """Return the number of the standard output where it is a pipe, or a pair of sockets, as of Node.js."""
    try:
        number = sys.stdout.fileno()
        mode = os.fstat(number).st_mode
    except (AttributeError, OSError, ValueError):
        return None  # there is none
    return number if hasattr(select, "poll") and (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)) else None


def _is_unread(output: int) -> bool:
    """Whether the other side of a pipe is closed, everywhere. Asks for nothing: that much is told always."""
    poll = select.poll()
    poll.register(output, 0)
    return any(told & (select.POLLERR | select.POLLHUP) for _, told in poll.poll(0))
