"""What of a conversation's media a model is shown, for all doors alike.

A door says what its API can carry, and a request may say what its model takes. What is left over is told as text, so
that no request is refused, for ever after, because of a picture in its history.
"""

from collections.abc import Mapping, Sequence

import attrs
import msgspec

from exeunt.actors.media import Media, left_out, readable_size
from exeunt.actors.models import MediaSupport, Message, Role, ToolCall

IMAGE_TYPES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
"""What every large provider takes."""

IMAGES_AND_PDFS = MediaSupport()
"""What a model is taken to be shown where nobody says."""

_SIGNATURES = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)

_SHORTEST_IMAGE = 26
"""Bytes: the smallest GIF and the headers of the others. What is shorter was cut off."""


@attrs.frozen
class Fitted:
    """A message as a model is to be shown it: all its media can be carried, and what cannot stands in its text."""

    role: Role
    content: str
    tool_calls: tuple[ToolCall, ...]
    tool_call_id: str | None
    media: tuple[Media, ...]


def fitted(
    messages: Sequence[Message], support: MediaSupport, *, native_texts: bool = False
) -> Sequence[Message]:
    """Return *messages*; where any has media, a list in which each such message has only what *support* allows.

    Texts among the media are put into the messages' own text, unless the door has a place of its own for them
    (*native_texts*). Of more images than the model takes, the newest stay.
    """
    found = [index for index, message in enumerate(messages) if message.media]
    if not found:
        return messages
    result = list(messages)
    room = support.most_images
    for index in reversed(found):
        result[index], room = _fitted(messages[index], support, room, native_texts)
    return result


def _fitted(
    message: Message, support: MediaSupport, room: int | None, native_texts: bool
) -> tuple[Message, int | None]:
    told: list[str] = []
    kept: list[Media] = []
    for media in reversed(message.media):
        one = media if native_texts and media.text is not None else shown(media, support)
        if isinstance(one, Media) and one.kind == "image" and room is not None:
            if room <= 0:
                one = left_out(media, "the model takes no more images in one request")
            else:
                room -= 1
        if isinstance(one, Media):
            kept.insert(0, one)
        else:
            told.insert(0, one)
    if not told and len(kept) == len(message.media):
        content = message.content
    else:
        content = "\n\n".join(part for part in (message.content, *told) if part)
    return Fitted(message.role, content, message.tool_calls, message.tool_call_id, tuple(kept)), room


def shown(media: Media, support: MediaSupport) -> Media | str:
    """Return what the model is shown of *media*: an image or a PDF under its true type, or a text."""
    kind = media.kind
    if kind == "image":
        return _image(media, support)
    if kind == "document":
        if media.essence == "application/pdf":
            return _pdf(media, support)
        text = media.text
        if text is not None:
            return quoted(media.name, text)
        return left_out(media, "it is no text in UTF-8")
    return left_out(media, "the model takes images and documents only")


def quoted(name: str, text: str) -> str:
    """Return a text that was attached, so that the model sees where it begins and ends."""
    title = f' name="{" ".join(name.split()).replace(chr(34), chr(39))}"' if name else ""
    return f"<attached_document{title}>\n{text}\n</attached_document>"


def _image(media: Media, support: MediaSupport) -> Media | str:
    if not support.images:
        return left_out(media, "the model takes no images")
    found = image_type(media.data)
    if found is None:
        return left_out(media, "it is not a whole PNG, JPEG, GIF or WebP image")
    if support.image_types is not None and found not in support.image_types:
        return left_out(media, f"the model takes no {found}")
    size = len(media.data)
    if support.largest_image is not None and size > support.largest_image:
        return left_out(media, f"the model takes images of at most {readable_size(support.largest_image)}")
    # A type that the data belie is refused by strict providers.
    return media if media.mime_type == found else msgspec.structs.replace(media, mime_type=found)


def _pdf(media: Media, support: MediaSupport) -> Media | str:
    if not support.documents:
        return left_out(media, "the model takes no documents")
    # Writers may put some bytes before the header; readers look for it in the first 1,024.
    if b"%PDF-" not in media.data[:1024]:
        return left_out(media, "it is no PDF")
    return media


def image_type(data: bytes) -> str | None:
    """Return the type that the first bytes of an image tell; `None` for none of `IMAGE_TYPES`, and for a stump."""
    if len(data) < _SHORTEST_IMAGE:
        return None
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for signature, kind in _SIGNATURES if data.startswith(signature)), None)


def tool_names(messages: Sequence[Message]) -> Mapping[str, str]:
    """Return the names of the tools by the ids of their calls, for a text that says where an image comes from."""
    return {call.id: call.name for message in messages for call in message.tool_calls}
