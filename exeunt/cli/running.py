"""How a command is run."""

from collections.abc import Awaitable, Callable
from typing import Any, NoReturn, cast

import typer

from exeunt.tuning import tune_garbage_collector


def run(command: Callable[..., Awaitable[int]], *arguments: Any) -> NoReturn:
    """Run *command* in trio; exit with the status that it returns. Raises what it raises, out of its groups."""
    import trio

    tune_garbage_collector()
    try:
        status = trio.run(command, *arguments)
    except BaseExceptionGroup as group:
        raise lone(group) from None
    raise typer.Exit(status)


def lone(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """Return the one error of *group*, or the group if it has several."""
    if len(group.exceptions) != 1:
        return group
    error = group.exceptions[0]
    return (
        lone(cast("BaseExceptionGroup[BaseException]", error))
        if isinstance(error, BaseExceptionGroup)
        else error
    )
