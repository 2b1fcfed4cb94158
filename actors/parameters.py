"""What a function of a user takes, also where Python evaluates annotations late."""

import inspect
import sys
from collections.abc import Callable, Mapping
from typing import Any

if sys.version_info >= (3, 14):
    from annotationlib import Format


def parameters_of(function: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    """Return its parameters by name, in order. An annotation may be a name in quotes, or a `ForwardRef`.

    From Python 3.14 on, annotations are evaluated when somebody looks. Names that stand below `if TYPE_CHECKING:` need
    no quotes there, so what is not defined is left as it is, for whoever needs that one annotation.

    Raises `TypeError` or `ValueError` where no signature is to be had, as with some callables written in C.
    """
    if sys.version_info >= (3, 14):
        return inspect.signature(function, annotation_format=Format.FORWARDREF).parameters
    return inspect.signature(function).parameters
