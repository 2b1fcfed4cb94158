"""How large a context may grow before something is done about it."""

from typing import Any, Literal

import attrs

from exeunt.actors.errors import InvalidConfiguration
from exeunt.actors.media import Media
from exeunt.actors.models import Message
from exeunt.actors.session import Session

MarkKind = Literal["messages", "tokens", "share"]

CHARACTERS_A_TOKEN = 4
"""Of English text and code; where the provider reports no usage, tokens are guessed by it."""


IMAGE_TOKENS = 1_500
"""Of one picture: large providers take some 700 to 1,600 for one that fills a screen, however many bytes it has."""

BYTES_A_PDF_TOKEN = 40
"""Of a PDF: a page of 2,000 tokens or more often has 80 KB with its fonts and pictures."""


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
    return sum(map(characters_of, session.history.messages())) // CHARACTERS_A_TOKEN


def characters_of(message: Message) -> int:
    """Return the characters of a message that a model reads: its text, what it calls, and what its media stand for."""
    called = sum(len(call.name) + len(call.arguments_json) for call in message.tool_calls)
    shown = sum(map(tokens_of_media, message.media)) * CHARACTERS_A_TOKEN
    return len(message.content) + called + shown


def tokens_of_media(media: Media) -> int:
    """Return about how many tokens a model takes for what it is shown."""
    if media.kind == "image":
        return IMAGE_TOKENS
    if media.kind == "resource":
        return 0  # it is named only
    size = len(media.data)
    return size // (BYTES_A_PDF_TOKEN if media.text is None else CHARACTERS_A_TOKEN)


def _positive(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < float("inf"):
        raise InvalidConfiguration(f"{name} must be a positive number, not {value!r:.80}")
    return value
