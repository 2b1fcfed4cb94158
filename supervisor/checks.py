"""Validators of options: each wrong value is an `InvalidConfiguration` that names the option and the remedy."""

import math
from typing import Any

import attrs

from exeunt.actors.errors import InvalidConfiguration


def whole_number(*, least: int) -> Any:
    """Return a validator: an `int` of at least *least*."""

    def check(instance: object, attribute: "attrs.Attribute[Any]", value: object) -> None:
        require_whole_number(f"{type(instance).__name__}.{attribute.name}", value, least=least)

    return check


def number(*, least: float, most: float = math.inf, finite: bool = True, open_at_least: bool = False) -> Any:
    """Return a validator: a number from *least* to *most*; without *least* itself if *open_at_least*."""

    def check(instance: object, attribute: "attrs.Attribute[Any]", value: object) -> None:
        require_number(
            f"{type(instance).__name__}.{attribute.name}",
            value,
            least=least,
            most=most,
            finite=finite,
            open_at_least=open_at_least,
        )

    return check


def require_whole_number(name: str, value: object, *, least: int) -> None:
    """Raise `InvalidConfiguration` unless *value* is an `int` of at least *least*."""
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise InvalidConfiguration(f"{name} is {value!r}: give a whole number of at least {least}")


def require_number(
    name: str,
    value: object,
    *,
    least: float,
    most: float = math.inf,
    finite: bool = True,
    open_at_least: bool = False,
) -> None:
    """Raise `InvalidConfiguration` unless *value* is a number within the given bounds."""
    # A NaN fails every comparison, so it needs no case of its own.
    if (
        not isinstance(value, int | float)
        or isinstance(value, bool)
        or not (least < value if open_at_least else least <= value)
        or not value <= most
        or (finite and math.isinf(value))
    ):
        lower = f"above {least:g}" if open_at_least else f"of at least {least:g}"
        upper = f" and at most {most:g}" if most != math.inf else ""
        raise InvalidConfiguration(
            f"{name} is {value!r}: give a {'finite ' if finite else ''}number {lower}{upper}"
        )


def named(instance: object, attribute: "attrs.Attribute[Any]", value: object) -> None:
    """Validate that a name is a text that is not blank."""
    if not isinstance(value, str) or not value.strip():
        raise InvalidConfiguration(
            f"{type(instance).__name__}.{attribute.name} is {value!r}: give a text that is not blank"
        )


LONGEST_ID = 128
"""Characters of a session id that a host chooses: enough for any key, short enough for a log line."""


def require_text(name: str, value: Any) -> str:
    """Return *value*, or raise `InvalidConfiguration` unless it is a text."""
    if not isinstance(value, str):
        raise InvalidConfiguration(f"{name} is a text, not {value!r:.80}")
    return value


def require_session_id(session_id: Any) -> str:
    """Return *session_id*, or raise `InvalidConfiguration` unless it can be the id of a new session."""
    if not isinstance(session_id, str) or not session_id or len(session_id) > LONGEST_ID:
        raise InvalidConfiguration(
            f"a session id is a text of 1 to {LONGEST_ID} characters, not {session_id!r:.80}"
        )
    if not session_id.isprintable():
        raise InvalidConfiguration(f"a session id holds printable characters only, not {session_id!r:.80}")
    return session_id
