"""What `exeunt doctor` found, as values."""

from typing import Literal

import msgspec

State = Literal["ok", "note", "missing", "broken"]


class Finding(msgspec.Struct, frozen=True):
    """One thing that was looked at."""

    section: str
    name: str
    state: State
    """`note`: works, and there is something to know. `missing`: optional and not there. `broken`: needed and not there,
    or not working."""
    value: str
    hint: str = ""
    """What to do about it."""


class Report(msgspec.Struct, frozen=True):
    """All of it. `exeunt doctor --json` prints this."""

    version: str
    works: bool
    findings: list[Finding]
