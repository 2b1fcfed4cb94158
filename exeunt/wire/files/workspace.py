"""`workspace.yaml`: what is known of a session beside its events, for people and programs that look at its files."""

import json
from collections.abc import Mapping
from typing import Any

import attrs

NAME = "workspace.yaml"

PLAN = "plan.md"
"""The session's plan, which clients read and write."""

FOLDER = "files"
"""Where clients keep files of the session."""

CONTEXT = {
    "gitRoot": "git_root",
    "repository": "repository",
    "hostType": "host_type",
    "branch": "branch",
}
"""What is kept of the context that clients report, and under which name."""


@attrs.define(kw_only=True)
class Workspace:
    """What is known of one session."""

    id: str
    cwd: str
    created_at: str
    updated_at: str
    name: str = ""
    client_name: str = ""
    summary_count: int = 0
    context: dict[str, str] = attrs.field(factory=dict[str, str])
    """Where in a repository it is, as a client has reported."""

    def described(self) -> dict[str, Any]:
        """Return it as the protocol names it; what is not known is left out."""
        about: dict[str, Any] = {"id": self.id, "cwd": self.cwd, **self.context}
        if self.name:
            about |= {"name": self.name, "user_named": True}
        if self.client_name:
            about["client_name"] = self.client_name
        return about | {
            "summary_count": self.summary_count,
            "created_at": self.created_at,
            "updated_at": self.updated_at,
        }

    def public(self) -> dict[str, Any]:
        """Return what the public summary of it has."""
        hidden = ("client_name", "summary_count")
        return {name: value for name, value in self.described().items() if name not in hidden}

    def yaml(self) -> str:
        """Return it as YAML: every JSON value is one."""
        return "".join(f"{name}: {_scalar(value)}\n" for name, value in self.described().items())


def _scalar(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def context_of(report: Mapping[str, Any]) -> dict[str, str]:
    """Return what is kept of a client's report."""
    return {ours: report[theirs] for theirs, ours in CONTEXT.items() if isinstance(report.get(theirs), str)}


def context_in(text: str) -> dict[str, str]:
    """Return what a `workspace.yaml` says of the context: of its lines those that can be read."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        name, separator, value = line.partition(": ")
        if separator and name in CONTEXT.values():
            try:
                read = json.loads(value)
            except ValueError:
                read = value.strip()
            if isinstance(read, str) and read:
                found[name] = read
    return found
