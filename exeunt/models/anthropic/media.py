"""The media of a message, as blocks. Pure."""

from collections.abc import Sequence

from exeunt.actors.citations import CitableSource
from exeunt.actors.media import Media
from exeunt.actors.models import Message
from exeunt.models.anthropic.blocks import CitationsConfig, Document, Image, SearchResult, Source, Text
from exeunt.models.door.calls import EMPTY_TEXT

# Longer ones the API refuses.
_LONGEST_TITLE = 500

CITED = CitationsConfig()
"""For a document and for what was found: either all of a request can be cited, or nothing of it."""


def shown_blocks(message: Message, *, cited: bool) -> list[Text | Image | Document]:
    """Return a message of a user or the result of a tool: its text, then its media. Empty if it has neither.

    *cited* lets the model cite the documents.
    """
    content = message.content
    blocks: list[Text | Image | Document] = [Text(content)] if content.strip() else []
    for media in message.media:
        if media.kind == "image":
            if media.name.strip():
                blocks.append(Text(media.name))
            blocks.append(Image(Source("base64", media.essence, media.base64)))
        else:
            blocks.append(Document(_source(media), _title(media), CITED if cited else None))
    return blocks


def cited_sources(messages: Sequence[Message]) -> list[CitableSource]:
    """Return what of the results of a request can be cited, in the order in which the API counts it."""
    return [source for message in messages if message.role == "tool" for source in sources_of(message)]


def sources_of(message: Message) -> tuple[CitableSource, ...]:
    """Return what of a result can be cited. Events of the log say it; other messages need not."""
    sources: tuple[CitableSource, ...] = getattr(message, "sources", ())
    return sources


def search_result(source: CitableSource) -> SearchResult:
    """Return what a tool has found."""
    place = source.url or source.path or source.id
    return SearchResult(place, source.title or place, [Text(source.content)], CITED)


def _source(media: Media) -> Source:
    text = media.text
    if text is not None:
        return Source("text", "text/plain", text if text.strip() else EMPTY_TEXT)
    return Source("base64", media.essence, media.base64)


def _title(media: Media) -> str | None:
    return media.name.strip()[:_LONGEST_TITLE] or None
