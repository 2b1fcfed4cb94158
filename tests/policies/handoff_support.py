"""A policy that hands off, for tests."""

from typing import Any

from exeunt.policies import HandoffPolicy, messages

STEP = 2
"""Messages that one tool call adds to a context."""


def policy(**options: Any) -> HandoffPolicy:
    """A policy whose mark is passed by the second tool call, and that reminds at every call."""
    chosen: dict[str, Any] = {"at": messages(3), "remind_every": 1, "force_after": 2, **options}
    return HandoffPolicy(**chosen)
