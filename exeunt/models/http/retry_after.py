"""How long a provider asks to wait, in all the forms that providers use. Pure."""

import datetime
import email.utils
import math
import re
from collections.abc import Mapping

import attrs

MAX_WAIT = 60.0
"""Seconds: who is asked to wait longer gives up at once, so that the user is told instead of left waiting."""

_UNITS = {"ms": 0.001, "s": 1.0, "sec": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|sec|s|min|m|h|d)\s*", re.ASCII)
_NUMBER = re.compile(r"\d+(?:\.\d*)?|\.\d+", re.ASCII)

# A plain number this large is a moment and not a wait: 2001 in seconds. A thousand times as much is milliseconds.
_EPOCH_SECONDS = 1e9
_EPOCH_MILLISECONDS = 1e12

_ORDERS = (("retry-after-ms", 0.001), ("retry-after", 1.0))
_RESETS = ("x-ratelimit-reset-requests", "x-ratelimit-reset-tokens", "x-ratelimit-reset", "ratelimit-reset")


@attrs.frozen
class RetryAdvice:
    """What the headers of a failed answer say about trying again."""

    retry: bool
    """`False` if the provider asks for more than `MAX_WAIT`."""
    after: float | None
    """Seconds from 0 to `MAX_WAIT`; `None` if the provider said nothing of use."""


def retry_advice(headers: Mapping[str, str], *, now: float) -> RetryAdvice:
    """Read the advice of *headers*, whose names are in lower case. *now* is the time of day in epoch seconds.

    `Retry-After` (and `Retry-After-Ms`) is an order. The `X-RateLimit-Reset-*` headers only say when some budget
    is full again, so they may set a wait and never forbid a retry.
    """
    seconds = limited_for(headers, now=now)
    if seconds is not None:
        return RetryAdvice(True, seconds) if seconds <= MAX_WAIT else RetryAdvice(False, None)
    resets = [parse_wait(headers.get(name, ""), now=now) for name in _RESETS]
    waits = [wait for wait in resets if wait is not None and 0 < wait <= MAX_WAIT]
    return RetryAdvice(True, min(waits, default=None))


def limited_for(headers: Mapping[str, str], *, now: float) -> float | None:
    """Return the seconds that a provider's order to wait says, however many: for who is told of them."""
    for name, scale in _ORDERS:
        seconds = parse_wait(headers.get(name, ""), now=now, scale=scale)
        if seconds is not None:
            return seconds
    return None


def parse_wait(text: str, *, now: float, scale: float = 1.0) -> float | None:
    """Return the finite, non-negative seconds that *text* means, or `None`.

    Takes seconds with or without fraction (times *scale*), epoch seconds and milliseconds, HTTP dates, and
    durations with units such as `1.57s`, `6m0s` or `120ms`. A moment in the past is 0.
    """
    text = text.strip()
    # Longer than any date; also bounds the work below.
    if not text or len(text) > 64:
        return None
    if _NUMBER.fullmatch(text):
        value = float(text)
        if value >= _EPOCH_MILLISECONDS:
            return max(0.0, value / 1000 - now)
        return max(0.0, value - now) if value >= _EPOCH_SECONDS else value * scale
    seconds = _duration(text.lower())
    return _until(text, now) if seconds is None else seconds


def _duration(text: str) -> float | None:
    total = 0.0
    position = 0
    while match := _DURATION.match(text, position):
        total += float(match[1]) * _UNITS[match[2]]
        position = match.end()
    return total if position == len(text) and math.isfinite(total) else None


def _until(text: str, now: float) -> float | None:
    try:
        moment = email.utils.parsedate_to_datetime(text)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=datetime.UTC)
        return max(0.0, moment.timestamp() - now)
    except (ValueError, TypeError, OverflowError, IndexError):
        return None
