"""What a client attaches to a message, as text for the model."""

from collections.abc import Mapping
from typing import Any, cast


def with_attachments(prompt: str, attachments: list[dict[str, Any]] | None) -> str:
    """Return *prompt* with what is attached to it, in the words that recordings of conversations hold.

    Selections stand before it, and what is only named, behind it. Nothing is read here: a path is a path of the
    client's.
    """
    if not attachments:
        return prompt
    selections: list[str] = []
    files: list[str] = []
    references: list[str] = []
    for attachment in attachments:
        kind = attachment.get("type")
        if kind == "selection":
            selections.append(_selection(attachment))
        elif kind in ("file", "directory"):
            files.append(f"* {attachment.get('path') or attachment.get('displayName') or ''}")
        elif kind == "blob":
            files.append(f"* {attachment.get('displayName') or attachment.get('mimeType') or 'attachment'}")
        elif kind == "github_reference":
            references.append(_reference(attachment))
    parts = [prompt]
    if selections:
        parts.insert(0, _block("ide_selection", [SELECTED, *selections]))
    if files:
        parts.append(_block("tagged_files", files))
    if references:
        parts.append(_block("github_references", references))
    return "\n\n\n\n".join(parts)


SELECTED = (
    "The user has the following text selected in their IDE. This may or may not be related to their request."
)


def _block(name: str, lines: list[str]) -> str:
    return "\n".join((f"<{name}>", *lines, f"</{name}>"))


def _selection(attachment: Mapping[str, Any]) -> str:
    name = attachment.get("displayName") or attachment.get("filePath") or ""
    return f"File: {name}{_lines(attachment.get('selection'))}\n```\n{attachment.get('text') or ''}\n```"


def _lines(selection: Any) -> str:
    """Say which lines are selected; the protocol counts them from 0, people from 1."""
    if not isinstance(selection, Mapping):
        return ""
    places = cast("Mapping[str, Any]", selection)
    first, last = (
        cast("Mapping[str, Any]", place).get("line") if isinstance(place, Mapping) else None
        for place in (places.get("start"), places.get("end"))
    )
    if not isinstance(first, int):
        return ""
    if not isinstance(last, int) or last == first:
        return f" (line {first + 1})"
    return f" (lines {first + 1}-{last + 1})"


def _reference(attachment: Mapping[str, Any]) -> str:
    kind, state = attachment.get("referenceType") or "reference", attachment.get("state") or ""
    about = f"#{attachment.get('number')} - {attachment.get('title') or ''} [{kind}]"
    return f"{about}{f' [{state}]' if state else ''} ({attachment.get('url') or ''})"
