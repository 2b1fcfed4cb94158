"""What servers say of tokens. Pure."""

from typing import Any

from exeunt.actors.models import MOST_TOKENS


def tokens(value: Any) -> int:
    """Return a number of tokens, 0 for what is none. What no answer can have becomes the most that is counted."""
    if not isinstance(value, int) or isinstance(value, bool):
        return 0
    return min(max(value, 0), MOST_TOKENS)
