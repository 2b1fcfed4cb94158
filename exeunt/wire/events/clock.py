"""Times as the protocol writes them."""

import functools
import time


@functools.lru_cache(maxsize=4)
def _second(seconds: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))


def iso(moment: float) -> str:
    """Return seconds since the epoch as `2026-11-30T16:22:48.123Z`. Most events share their second with others."""
    milliseconds = int(moment * 1000)
    return f"{_second(milliseconds // 1000)}.{milliseconds % 1000:03d}Z"
