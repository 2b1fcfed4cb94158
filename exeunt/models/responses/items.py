"""The elements of `input`: messages, calls and their results, with images and documents as data URLs. Pure."""

from typing import Any

import msgspec

from exeunt.actors.media import Media
from exeunt.actors.models import Message

Content = str | list[dict[str, Any]]
"""A text, or parts of which some are none."""


class Text(msgspec.Struct, gc=False, omit_defaults=True, tag_field="type", tag="message"):
    """A message in `input`."""

    role: str
    content: Content
    phase: str | None = None


class Call(msgspec.Struct, gc=False, tag_field="type", tag="function_call"):
    """A call of a tool in `input`."""

    call_id: str
    name: str
    arguments: str


class Output(msgspec.Struct, gc=False, tag_field="type", tag="function_call_output"):
    """The result of a call in `input`."""

    call_id: str
    output: Content


Item = Text | Call | Output | msgspec.Raw
"""An element of `input`; reasoning is sent as it came."""


def parts_of(message: Message) -> list[dict[str, Any]]:
    """Return what a message of a user, or the result of a tool, says and shows: the text, then each of its media."""
    parts = [_text(message.content)] if message.content else []
    for media in message.media:
        # A document brings its name itself.
        if media.name and media.kind == "image":
            parts.append(_text(media.name))
        parts.append(_shown(media))
    return parts


def _text(text: str) -> dict[str, Any]:
    return {"type": "input_text", "text": text}


def _shown(media: Media) -> dict[str, Any]:
    # As it stands in the request: the letters of base64 and of MIME types need no escaping, and are many.
    url = msgspec.Raw(b'"data:%b;base64,%b"' % (media.essence.encode("ascii"), media.base64.encode("ascii")))
    if media.kind == "image":
        return {"type": "input_image", "image_url": url}
    return {"type": "input_file", "filename": media.name or "document.pdf", "file_data": url}
