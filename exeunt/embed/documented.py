"""Taking over what the trio API says of itself, so that it is written once."""

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


def like(original: Any) -> Callable[[T], T]:
    """Give a class, a method or a function the docstring of the one in the trio API that it stands for.

    What it says itself stands behind: in what it differs.
    """

    def document(thing: T) -> T:
        own, said = thing.__doc__, inspect.cleandoc(original.__doc__ or "")
        thing.__doc__ = f"{said}\n\n{inspect.cleandoc(own)}" if own else said
        return thing

    return document
