"""Messages that are more than a text: the parts of a user's message, with images and documents as data URLs.

Results of tools are texts in this API. What they show stands in a message of the user right behind the results of the
batch: nothing may come between those.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from exeunt.actors.media import Media
from exeunt.actors.models import Message


class Parts(msgspec.Struct, gc=False):
    """A message of several parts."""

    role: str
    content: list[dict[str, Any]]


def parts_of(message: Message) -> Parts:
    """Return a user's message and its media: the text, then each of them with its name before it."""
    parts = [_text(message.content)] if message.content else []
    for media in message.media:
        # A document brings its name itself.
        if media.name and media.kind == "image":
            parts.append(_text(media.name))
        parts.append(_shown(media))
    return Parts(message.role, parts)


def results_of(results: Sequence[Message], names: Mapping[str, str]) -> Parts:
    """Return what the results of one batch show. *names* are the tools' by the ids of their calls."""
    parts: list[dict[str, Any]] = []
    for result in results:
        tool = names.get(result.tool_call_id or "", "")
        for media in result.media:
            parts += (_text(media.name or f"From the result of the tool '{tool}':"), _shown(media))
    return Parts("user", parts)


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _shown(media: Media) -> dict[str, Any]:
    # As it stands in the request: the letters of base64 and of MIME types need no escaping, and are many.
    url = msgspec.Raw(b'"data:%b;base64,%b"' % (media.essence.encode("ascii"), media.base64.encode("ascii")))
    if media.kind == "image":
        return {"type": "image_url", "image_url": {"url": url}}
    return {"type": "file", "file": {"filename": media.name or "document.pdf", "file_data": url}}
