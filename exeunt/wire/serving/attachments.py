"""What a client attaches to a message, as text for the model."""

from typing import Any


def with_attachments(prompt: str, attachments: list[dict[str, Any]] | None) -> str:
    """Return *prompt* with what is attached to it.

    Files and folders are named, selections are quoted. Nothing is read here: a path is a path of the client's.
    """
    if not attachments:
        return prompt
    files: list[str] = []
    selections: list[str] = []
    for attachment in attachments:
        kind = attachment.get("type")
        if kind in ("file", "directory"):
            files.append(f"* {attachment.get('path') or attachment.get('displayName') or ''}")
        elif kind == "selection":
            place = attachment.get("filePath") or attachment.get("displayName") or ""
            selections.append(f"User-selected lines from {place}:\n{attachment.get('text') or ''}")
        elif kind == "blob":
            files.append(f"* {attachment.get('displayName') or attachment.get('mimeType') or 'attachment'}")
    parts = [prompt]
    if files:
        parts.append("<tagged_files>\n" + "\n".join(files) + "\n</tagged_files>")
    if selections:
        parts.append("<ide_selection>\n" + "\n\n".join(selections) + "\n</ide_selection>")
    return "\n\n".join(parts)
