"""What a docstring says to a model: its text up to the first section that is for programmers."""

import functools
import inspect
import re
from collections.abc import Callable
from typing import Any

# Headings of the three common styles: `Args:`, `Parameters` above a line of dashes, `:param name:`.
_SECTION = re.compile(
    r"""^(?:
        (?:args|arguments|parameters|params|keyword\ arguments|keyword\ args|other\ parameters
           |returns?|yields?|raises|warns):[ \t]*$
        |(?:parameters|other\ parameters|returns|yields|raises|warns)[ \t]*\n[ \t]*-{3,}
        |:(?:param|parameter|arg|argument|key|keyword|type|returns?|rtype|raises?)\b
    )""",
    re.IGNORECASE | re.MULTILINE | re.VERBOSE,
)


def summary(handler: Callable[..., Any]) -> str:
    """Return the description that the docstring of *handler* gives, or an empty text."""
    while isinstance(handler, functools.partial):
        handler = handler.func
    text = inspect.getdoc(handler) or ""
    section = _SECTION.search(text)
    return (text[: section.start()] if section else text).strip()
