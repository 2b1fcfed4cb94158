"""What a client attaches to a message: data for the model, and text that names or quotes the rest."""

from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import msgspec

from exeunt.actors.errors import InvalidMedia
from exeunt.actors.media import LONGEST_NAME, Media
from exeunt.actors.text import encodable
from exeunt.wire.events.media import PLACE
from exeunt.wire.serving.github_pointers import POINTERS, Fields, fields_of, line_range

BLOCK_OF = {"file": "tagged_files", "directory": "tagged_files", "selection": "ide_selection"}
"""Of the text; what stands on GitHub has a block of its own, and each context of an extension."""


@attrs.frozen
class Attached:
    """A message with what is attached to it."""

    prompt: str
    """What the model reads."""
    media: tuple[Media, ...] = ()
    """What the model is shown beside that."""
    noted: list[dict[str, Any]] | None = None
    """What is remembered for the events: the attachments without the data, which stand with the message."""


def attached(
    prompt: str, attachments: Sequence[Fields] | None, files: Mapping[int, Media | str] | None = None
) -> Attached:
    """Return *prompt* with what is attached to it, in the words that recordings of conversations hold.

    Selections stand before it, and what is only named, behind it. *files* says of paths, by their place, what was read
    there, or how the path is named. Nothing is read here: a path is a path of the client's. Raises `InvalidMedia`.
    """
    if not attachments:
        return Attached(prompt)
    media: list[Media] = []
    noted: list[dict[str, Any]] = []
    blocks: dict[str, list[str]] = {}
    contexts: list[str] = []
    for number, attachment in enumerate(attachments):
        kind = attachment.get("type")
        told = {name: value for name, value in attachment.items() if name not in ("data", PLACE)}
        read = None if files is None else files.get(number)
        if kind == "blob" or isinstance(read, Media):
            told[PLACE] = len(media)
            media.append(read if isinstance(read, Media) else _blob(attachment, number))
        elif kind == "extension_context":
            contexts.append(_context(attachment))
        else:
            block, line = _line(attachment, number) if read is None else ("tagged_files", f"* {read}")
            blocks.setdefault(block, []).append(line)
        if kind in BLOCK_OF:
            told.setdefault("displayName", _name(attachment))
        noted.append(told)
    before = (
        [_block("ide_selection", [SELECTED, *blocks.pop("ide_selection")])]
        if "ide_selection" in blocks
        else []
    )
    behind = [_block(name, blocks[name]) for name in ("tagged_files", "github_references") if name in blocks]
    return Attached("\n\n\n\n".join((*before, prompt, *behind, *contexts)), tuple(media), noted)


SELECTED = (
    "The user has the following text selected in their IDE. This may or may not be related to their request."
)


def _blob(attachment: Fields, number: int) -> Media:
    data, mime_type = attachment.get("data"), attachment.get("mimeType")
    if not isinstance(data, str):
        raise InvalidMedia(f"attachment {number} is a blob without data in base64")
    name = attachment.get("displayName")
    return Media.from_base64(
        mime_type if isinstance(mime_type, str) else "",
        data,
        encodable(name)[:LONGEST_NAME] if isinstance(name, str) else "",
    )


def _line(attachment: Fields, number: int) -> tuple[str, str]:
    """Return the block where an attachment is named, and its text there. Raises `InvalidMedia` for an unknown kind."""
    kind = attachment.get("type")
    if kind == "selection":
        return "ide_selection", _selection(attachment)
    if kind in ("file", "directory"):
        return "tagged_files", f"* {_path(attachment)}{line_range(attachment.get('lineRange'))}"
    describe = POINTERS.get(kind) if isinstance(kind, str) else None
    if describe is None:
        raise InvalidMedia(
            f"attachment {number} has the type {kind!r:.40}: there are blob, extension_context, {', '.join(BLOCK_OF)}, "
            f"{', '.join(POINTERS)}"
        )
    return "github_references", encodable(describe(attachment))


def _name(attachment: Fields) -> str:
    path = str(attachment.get("path") or attachment.get("filePath") or "")
    return path.replace("\\", "/").rstrip("/").rpartition("/")[2] or path


def _path(attachment: Fields) -> str:
    return encodable(str(attachment.get("path") or attachment.get("displayName") or ""))


def _block(name: str, lines: list[str]) -> str:
    return "\n".join((f"<{name}>", *lines, f"</{name}>"))


def _selection(attachment: Fields) -> str:
    name = attachment.get("displayName") or attachment.get("filePath") or ""
    lines = _lines(attachment.get("selection"))
    return encodable(f"File: {name}{lines}\n```\n{attachment.get('text') or ''}\n```")


def _lines(selection: Any) -> str:
    """Say which lines are selected; the protocol counts them from 0, people from 1."""
    first, last = (fields_of(fields_of(selection).get(end)).get("line") for end in ("start", "end"))
    if not isinstance(first, int):
        return ""
    if not isinstance(last, int) or last == first:
        return f" (line {first + 1})"
    return f" (lines {first + 1}-{last + 1})"


def _context(attachment: Fields) -> str:
    """Return what an extension has to say, as a block."""
    title = str(attachment.get("title") or "")
    payload = attachment.get("payload")
    text = "" if payload is None else msgspec.json.encode(payload).decode()
    head = f'<extension_context extension="{attachment.get("extensionId") or ""}" title="{title}">'
    return encodable("\n".join(part for part in (head, text, "</extension_context>") if part))
