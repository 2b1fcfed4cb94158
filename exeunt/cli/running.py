"""How a command is run."""

from collections.abc import Awaitable, Callable
from typing import Any, NoReturn

import typer

from exeunt.groups import lone
from exeunt.tuning import allow_many_files, tune_garbage_collector

WRONG_USAGE = 2
"""The exit status that the library gives wrong options."""


def run(command: Callable[..., Awaitable[int]], *arguments: Any) -> NoReturn:
    """Run *command* in trio; exit with the status that it returns. Raises what it raises, out of its groups."""
    import trio

    tune_garbage_collector()
    allow_many_files()
    try:
        status = trio.run(command, *arguments)
    except BaseExceptionGroup as group:
        raise lone(group) from None
    raise typer.Exit(status)
