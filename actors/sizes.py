"""How large messages are, in tokens, where nobody has counted."""

from collections.abc import Iterable

from exeunt.actors.citations import CitableSource
from exeunt.actors.media import Media
from exeunt.actors.models import Message

CHARACTERS_A_TOKEN = 4
"""Of English text and code; where the provider reports no usage, tokens are guessed by it."""

IMAGE_TOKENS = 1_500
"""Of one picture: large providers take some 700 to 1,600 for one that fills a screen, however many bytes it has."""

BYTES_A_PDF_TOKEN = 40
"""Of a PDF: a page of 2,000 tokens or more often has 80 KB with its fonts and pictures."""


def characters_of(message: Message, *, cited: bool = False) -> int:
    """Return the characters of a message that a model reads: its text, what it calls, and what its media stand for.

    Where the model is to cite (*cited*), it reads what can be cited of a result beside the text of that.
    """
    called = sum(len(call.name) + len(call.arguments_json) for call in message.tool_calls)
    shown = sum(map(tokens_of_media, message.media)) * CHARACTERS_A_TOKEN
    return len(message.content) + called + shown + (_characters_of_sources(message) if cited else 0)


def _characters_of_sources(message: Message) -> int:
    # Events of the log have sources; other messages need not.
    sources: tuple[CitableSource, ...] = getattr(message, "sources", ())
    return sum(len(one.content) + len(one.title) + len(one.url or one.path) for one in sources)


def tokens_of_media(media: Media) -> int:
    """Return about how many tokens a model takes for what it is shown."""
    if media.kind == "image":
        return IMAGE_TOKENS
    if media.kind == "resource":
        return 0  # it is named only
    size = len(media.data)
    return size // (BYTES_A_PDF_TOKEN if media.text is None else CHARACTERS_A_TOKEN)


def guessed_tokens(messages: Iterable[Message], *, cited: bool = False) -> int:
    """Return about how many tokens *messages* have. Costs O(messages)."""
    return sum(characters_of(message, cited=cited) for message in messages) // CHARACTERS_A_TOKEN
