"""What one file says: its text, and what stands in front of it."""

from typing import Any, cast

import attrs

FENCE = "---"

LONGEST_FRONT = 4096
"""Characters in front of a text, between two fences: a description and some patterns."""

LONGEST_DESCRIPTION = 200
"""Characters: a line of a list."""


class Unfit(Exception):
    """A file is no text with instructions; says why."""


@attrs.frozen(kw_only=True)
class Source:
    """A file with instructions."""

    label: str
    """Its path in the folder that the client has named."""
    path: str
    """Its path as the client would write it."""
    content: str
    """All of it."""
    text: str
    """What the model is told: without what stands in front."""
    applies_to: tuple[str, ...] = ()
    """Patterns of files that the instructions are for; none: all."""
    description: str = ""

    def told(self) -> str:
        """Return the text as it stands in the system message."""
        for_files = f' applies_to="{_attribute(",".join(self.applies_to))}"' if self.applies_to else ""
        return f'<instructions file="{_attribute(self.path)}"{for_files}>\n{self.text}\n</instructions>'

    def shown(self) -> dict[str, Any]:
        """Return what clients are told of it."""
        about: dict[str, Any] = {
            "id": self.path,
            "label": self.label,
            "sourcePath": self.path,
            "content": self.content,
            "type": "vscode" if self.label.endswith(".instructions.md") else "repo",
            "location": "repository",
        }
        if self.applies_to:
            about["applyTo"] = list(self.applies_to)
        if self.description:
            about["description"] = self.description
        return about


def source(label: str, path: str, data: bytes) -> Source | None:
    """Return what a file says, or `None` where that is nothing. Raises `Unfit`."""
    try:
        content = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Unfit("is no text in UTF-8") from error
    front, text = _parted(content.replace("\r\n", "\n"))
    if not text.strip():
        return None
    settings = _settings(front)
    patterns = settings.get("applyTo")
    listed: list[Any] = patterns.split(",") if isinstance(patterns, str) else patterns or []
    if not isinstance(patterns, (str, list, type(None))) or not all(isinstance(one, str) for one in listed):
        raise Unfit("its applyTo is no text and no list of texts")
    described = settings.get("description")
    return Source(
        label=label,
        path=path,
        content=content,
        text=text.strip(),
        applies_to=tuple(one.strip() for one in listed if one.strip()),
        description=described[:LONGEST_DESCRIPTION] if isinstance(described, str) else "",
    )


def _parted(content: str) -> tuple[str, str]:
    """Return what stands between two fences at the beginning, and the rest."""
    first, _, rest = content.partition("\n")
    if first.rstrip() != FENCE:
        return "", content
    front = ""
    for line in rest.splitlines(keepends=True):
        if line.rstrip() == FENCE:
            return front, rest[len(front) + len(line) :]
        front += line
        if len(front) > LONGEST_FRONT:
            raise Unfit(f"has more than {LONGEST_FRONT} characters before its second {FENCE}")
    # A line of three dashes that nothing closes is a line.
    return "", content


def _settings(front: str) -> dict[str, Any]:
    import yaml

    try:
        found: Any = yaml.safe_load(front)
    except Exception as error:
        problem = getattr(error, "problem", None) or type(error).__name__
        raise Unfit(f"what stands between its {FENCE} is no YAML: {problem}") from error
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


def _attribute(text: str) -> str:
    return text.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;").replace("\n", " ")
