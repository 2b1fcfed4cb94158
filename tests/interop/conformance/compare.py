"""Where two things that were shown differ, in words."""

import json
from collections.abc import Iterator
from typing import Any

from exeunt.models.door.jsontext import is_dict, is_list

WIDTH = 160
"""Characters of a value in a difference."""


def differences(record: Any, ours: Any, path: str = "") -> Iterator[str]:
    """Each place at which `ours` differs from `record`, as a path and both values."""
    if is_dict(record) and is_dict(ours):
        for key in sorted(record.keys() | ours.keys()):
            if key not in ours:
                yield f"{path}.{key}: only in the record: {_brief(record[key])}"
            elif key not in record:
                yield f"{path}.{key}: not in the record: {_brief(ours[key])}"
            else:
                yield from differences(record[key], ours[key], f"{path}.{key}")
    elif is_list(record) and is_list(ours):
        yield from _lists(record, ours, path)
    elif record != ours or type(record) is not type(ours):
        yield f"{path}: {_brief(record)} became {_brief(ours)}"


def _lists(record: list[Any], ours: list[Any], path: str) -> Iterator[str]:
    kinds = [_kinds(each) for each in (record, ours)]
    if kinds[0] != kinds[1]:
        yield f"{path}: {' '.join(kinds[0])} became {' '.join(kinds[1])}"
        return
    for n in range(max(len(record), len(ours))):
        if n >= len(ours):
            yield f"{path}[{n}]: only in the record: {_brief(record[n])}"
        elif n >= len(record):
            yield f"{path}[{n}]: not in the record: {_brief(ours[n])}"
        else:
            yield from differences(record[n], ours[n], f"{path}[{n}]")


def _kinds(values: list[Any]) -> list[str]:
    """The types of events, the roles of messages: when these differ, the rest is noise."""
    return [str(each.get("type") or each.get("role")) for each in values if is_dict(each)]


def _brief(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= WIDTH else text[:WIDTH] + "..."
