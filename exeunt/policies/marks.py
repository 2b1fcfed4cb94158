"""How large a context may grow before something is done about it."""

from typing import Any, Literal

import attrs

from exeunt.actors import sizes
from exeunt.actors.errors import InvalidConfiguration
from exeunt.actors.session import Session

MarkKind = Literal["messages", "tokens", "share"]


@attrs.frozen
class Mark:
    """A size of a context. Made by `messages`, `tokens` or `share`."""

    kind: MarkKind
    limit: float

    def passed(self, session: Session, reported_tokens: int) -> bool:
        """Say whether the context is larger. *reported_tokens* is what the provider said last, 0 if nothing."""
        if self.kind == "messages":
            return session.statistics().messages > self.limit
        return (reported_tokens or guessed_tokens(session)) > self.limit


def messages(count: int) -> Mark:
    """A context of more than *count* messages, system and developer messages not counted."""
    return Mark("messages", _positive("messages", count))


def tokens(count: int) -> Mark:
    """A context of more than *count* tokens, as the provider last reported them for a request and its answer."""
    return Mark("tokens", _positive("tokens", count))


def share(part: float, *, window: int) -> Mark:
    """More than *part* (above 0, at most 1) of the model's context window of *window* tokens."""
    if not _positive("share", part) <= 1:
        raise InvalidConfiguration(f"a share is above 0 and at most 1, not {part!r}")
    return Mark("share", part * _positive("window", window))


def guessed_tokens(session: Session) -> int:
    """Return about how many tokens the context has. Costs O(messages)."""
    return sizes.guessed_tokens(session.history.messages())


def _positive(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < float("inf"):
        raise InvalidConfiguration(f"{name} must be a positive number, not {value!r:.80}")
    return value
