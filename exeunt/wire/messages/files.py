"""Files of sessions."""

from typing import Any, Literal

import attrs


@attrs.frozen(kw_only=True)
class Capabilities:
    """What a client's files can do beside being files."""

    sqlite: bool | None = None


@attrs.frozen(kw_only=True)
class SetProvider:
    """A client keeps the files of its sessions."""

    initialCwd: str
    sessionStatePath: str
    conventions: Literal["posix", "windows"]
    capabilities: Capabilities | None = None


@attrs.frozen(kw_only=True)
class Content:
    """A text for a session."""

    sessionId: str
    content: str


@attrs.frozen(kw_only=True)
class OneFile:
    """A file or a folder of a session."""

    sessionId: str
    path: str


@attrs.frozen(kw_only=True)
class NewFile:
    """A file, and what it is to hold."""

    sessionId: str
    path: str
    content: str


@attrs.frozen(kw_only=True)
class NewDirectory:
    """A folder to be made."""

    sessionId: str
    path: str
    recursive: bool | None = None


@attrs.frozen(kw_only=True)
class RemovePath:
    """A file or a folder to be removed."""

    sessionId: str
    path: str
    recursive: bool | None = None
    force: bool | None = None


@attrs.frozen(kw_only=True)
class RenamePath:
    """A file or a folder to be moved."""

    sessionId: str
    source: str
    destination: str


@attrs.frozen(kw_only=True)
class ReadCheckpoint:
    """One checkpoint."""

    sessionId: str
    number: int


@attrs.frozen(kw_only=True)
class AddSummary:
    """A summary to be kept."""

    sessionId: str
    title: str
    content: str


@attrs.frozen(kw_only=True)
class TruncateSummaries:
    """How many of the newest summaries stay."""

    sessionId: str
    keepCount: int


@attrs.frozen(kw_only=True)
class UpdateWorkspace:
    """What is known of a session."""

    sessionId: str
    name: str | None = None
    context: dict[str, Any] | None = None
