"""How long a model call may wait, and for what."""

import math
from collections.abc import Callable

import attrs

from exeunt.actors.errors import InvalidConfiguration


def positive_seconds(_instance: object, attribute: "attrs.Attribute[float]", value: object) -> None:
    """An attrs validator: a finite number of seconds above zero."""
    good = isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < math.inf
    if not good:
        raise InvalidConfiguration(
            f"{attribute.name} must be a finite number of seconds above zero, not {value!r}"
        )


def whole_number(least: int) -> "Callable[[object, attrs.Attribute[int], object], None]":
    """An attrs validator: a whole number of at least *least*."""

    def check(_instance: object, attribute: "attrs.Attribute[int]", value: object) -> None:
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            raise InvalidConfiguration(f"{attribute.name} must be a whole number from {least}, not {value!r}")

    return check


@attrs.frozen(kw_only=True)
class Timeouts:
    """Bounds of the waits of one model call, in seconds. A wait that runs out is a `ModelError` of kind `timeout`."""

    connect: float = attrs.field(default=10.0, validator=positive_seconds)
    """Name look-up, TCP, proxy and TLS together."""
    pool: float = attrs.field(default=60.0, validator=positive_seconds)
    """For a free connection when all of them are busy."""
    first_byte: float = attrs.field(default=120.0, validator=positive_seconds)
    """Streamed answers: from the start of the call to the first byte of the body. Large prompts take minutes."""
    gap: float = attrs.field(default=60.0, validator=positive_seconds)
    """Streamed answers: between two pieces of the body. Keep-alive comments count as pieces."""
    total: float = attrs.field(default=600.0, validator=positive_seconds)
    """Whole answers: from the start of the call to its end."""
    stream_total: float = attrs.field(default=3600.0, validator=positive_seconds)
    """Streamed answers: the same. Ends a server that sends keep-alives for ever."""
