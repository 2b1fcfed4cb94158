"""The media of a message, as blocks. Pure."""

from exeunt.actors.media import Media
from exeunt.actors.models import Message
from exeunt.models.anthropic.blocks import CitationsConfig, Document, Image, Source, Text
from exeunt.models.door.calls import EMPTY_TEXT

# Longer ones the API refuses.
_LONGEST_TITLE = 500

_CITED = CitationsConfig()


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
            blocks.append(Document(_source(media), _title(media), _CITED if cited else None))
    return blocks


def _source(media: Media) -> Source:
    text = media.text
    if text is not None:
        return Source("text", "text/plain", text if text.strip() else EMPTY_TEXT)
    return Source("base64", media.essence, media.base64)


def _title(media: Media) -> str | None:
    return media.name.strip()[:_LONGEST_TITLE] or None
