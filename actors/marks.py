"""Which handlers are trio coroutines also in a host that is embedded in a program of another kind."""

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from exeunt.actors.errors import InvalidConfiguration

F = TypeVar("F", bound=Callable[..., Any])

MARK = "__exeunt_trio__"


def runs_on_trio(handler: F) -> F:
    """Mark an `async def` handler of a tool, a hook or an approval as a trio coroutine, and return it.

    In a host that is embedded in asyncio an `async def` handler is an asyncio coroutine; with this mark it is run by
    trio, and is given the invocation of the trio API. Below `@tool`, or around what is given to `create_session`.
    Marking a method marks it for each of its objects. Raises `InvalidConfiguration` for what cannot be marked.
    """
    if not callable(handler):
        raise InvalidConfiguration(f"a handler must be callable, not {handler!r:.80}")
    try:
        setattr(getattr(handler, "__func__", handler), MARK, True)
    except AttributeError as error:
        raise InvalidConfiguration(f"{handler!r:.80} cannot be marked: give a function instead") from error
    return handler


def is_on_trio(handler: Any) -> bool:
    """Say whether a handler has the mark: it, the function of a method, or what a partial calls."""
    while True:
        if getattr(handler, MARK, False) is True:
            return True
        if not isinstance(handler, functools.partial):
            return False
        handler = handler.func  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
