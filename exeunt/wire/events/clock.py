"""Times as the protocol writes them."""

import functools
import time


# Most events share their second with others, and many their millisecond: those of one step, of all sessions.
@functools.lru_cache(maxsize=4)
def _second(seconds: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))


@functools.lru_cache(maxsize=4)
def _text(milliseconds: int) -> str:
    return f"{_second(milliseconds // 1000)}.{milliseconds % 1000:03d}Z"


def iso(moment: float) -> str:
    """Return seconds since the epoch as `2026-11-30T16:22:48.123Z`."""
    return _text(int(moment * 1000))
