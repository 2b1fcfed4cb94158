"""Options: how their help names what holds without them, and values that somebody meant to give.

`--model "$MODEL"` where nobody has set the variable gives none.
"""

from pathlib import Path

import typer

EMPTY = "it is empty: leave the option out, or give it a value"


def text(value: str | None) -> str | None:
    """Refuse an empty text: a callback of options."""
    if value is not None and not value.strip():
        raise typer.BadParameter(EMPTY)
    return value


def path(value: str) -> Path:
    """Return the path; an empty one would be the folder in which the command runs. A parser of options."""
    if not value.strip():
        raise typer.BadParameter(EMPTY)
    return Path(value)


def default(value: str) -> str:
    """Return how the help of an option names what holds without it."""
    return f"[dim]\\[default: {value}][/dim]"
