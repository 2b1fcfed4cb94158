"""Attachments that point to what stands on GitHub: a line each, with what the client knows. Nothing is fetched."""

from collections.abc import Callable, Mapping
from typing import Any, cast

Fields = Mapping[str, Any]


def fields_of(value: Any) -> Fields:
    """Return an object of the protocol; an empty one in the place of anything else."""
    return cast("Fields", value) if isinstance(value, Mapping) else {}


def line_range(value: Any) -> str:
    """Say which lines of a file are meant; here the protocol counts them from 1."""
    first, last = (fields_of(value).get(end) for end in ("start", "end"))
    if not isinstance(first, int) or not isinstance(last, int):
        return ""
    return f" (line {first})" if first == last else f" (lines {first}-{last})"


def _reference(attachment: Fields) -> str:
    kind, state = attachment.get("referenceType") or "reference", attachment.get("state") or ""
    about = f"#{attachment.get('number')} - {attachment.get('title') or ''} [{kind}]"
    return f"{about}{f' [{state}]' if state else ''} ({attachment.get('url') or ''})"


def _repository(attachment: Fields) -> str:
    repo = fields_of(attachment.get("repo"))
    return f"{repo.get('owner') or ''}/{repo.get('name') or ''}"


def _pointer(kind: str, describe: Callable[[Fields], str]) -> Callable[[Fields], str]:
    def line(attachment: Fields) -> str:
        url = attachment.get("url")
        return f"{describe(attachment)} [{kind}]" + (f" ({url})" if url else "")

    return line


def _commit(attachment: Fields) -> str:
    return f"{_repository(attachment)}@{str(attachment.get('oid') or '')[:12]} - {attachment.get('message') or ''}"


def _release(attachment: Fields) -> str:
    return f"{_repository(attachment)} {attachment.get('tagName') or ''} - {attachment.get('name') or ''}"


def _job(attachment: Fields) -> str:
    end = attachment.get("conclusion") or "in progress"
    return f"{_repository(attachment)} {attachment.get('workflowName')} / {attachment.get('jobName')}: {end}"


def _whole_repository(attachment: Fields) -> str:
    ref, description = attachment.get("ref"), attachment.get("description")
    return _repository(attachment) + (f"@{ref}" if ref else "") + (f" - {description}" if description else "")


def _file(attachment: Fields) -> str:
    place = f"{_repository(attachment)}@{attachment.get('ref') or ''}:{attachment.get('path') or ''}"
    return place + line_range(attachment.get("lineRange"))


def _diff(attachment: Fields) -> str:
    sides = [fields_of(attachment.get(side)) for side in ("base", "head")]
    return " -> ".join(_file(side) for side in sides if side) or "diff"


def _comparison(attachment: Fields) -> str:
    sides = (fields_of(attachment.get(side)) for side in ("base", "head"))
    return "...".join(f"{_repository(side)}@{side.get('revision') or ''}" for side in sides)


POINTERS: dict[str, Callable[[Fields], str]] = {
    "github_reference": _reference,
    "github_commit": _pointer("commit", _commit),
    "github_release": _pointer("release", _release),
    "github_actions_job": _pointer("job", _job),
    "github_repository": _pointer("repository", _whole_repository),
    "github_file_diff": _pointer("diff", _diff),
    "github_tree_comparison": _pointer("comparison", _comparison),
    "github_url": lambda attachment: str(attachment.get("url") or ""),
    "github_file": _pointer("file", _file),
    "github_snippet": _pointer("snippet", _file),
}
"""What is told of each kind."""
