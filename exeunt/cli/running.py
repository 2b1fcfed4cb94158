"""How a command is run."""

import gc
from collections.abc import Awaitable, Callable
from typing import Any, NoReturn

import typer

from exeunt.groups import lone
from exeunt.tuning import GC_THRESHOLDS


def run(command: Callable[..., Awaitable[int]], *arguments: Any) -> NoReturn:
    """Run *command* in trio; exit with the status that it returns. Raises what it raises, out of its groups."""
    import trio

    gc.set_threshold(*GC_THRESHOLDS)
    try:
        status = trio.run(command, *arguments)
    except BaseExceptionGroup as group:
        raise lone(group) from None
    raise typer.Exit(status)
