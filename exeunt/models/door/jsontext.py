"""JSON as models and their servers write it. Pure."""

import json
import re
from typing import Any, TypeGuard

import msgspec

from exeunt.actors.text import REPLACEMENT

# One escape of a JSON string: a surrogate pair, any other \\uXXXX, or a backslash and one character. Reading
# them from the left keeps an escaped backslash from being taken for the begin of the next one.
_ESCAPE = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u([0-9a-fA-F]{4})|.)", re.DOTALL
)
_MAYBE_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def is_dict(value: object) -> TypeGuard[dict[str, Any]]:
    """Whether decoded JSON is an object."""
    return isinstance(value, dict)


def is_list(value: object) -> TypeGuard[list[Any]]:
    """Whether decoded JSON is an array."""
    return isinstance(value, list)


def loads(text: str | bytes) -> Any:
    """Decode JSON. Raises `ValueError`, also for a text nested too deep.

    Where the strict decoder refuses, takes raw control characters in strings, lone surrogates and numbers out of
    range, which some servers send.
    """
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError):
        pass
    except RecursionError:
        raise ValueError("nested too deep") from None
    try:
        return json.loads(text, strict=False)
    except RecursionError:
        raise ValueError("nested too deep") from None


def dumps(value: Any) -> str:
    """The JSON text of a value that came out of `loads`."""
    try:
        return msgspec.json.encode(value).decode()
    except (UnicodeEncodeError, RecursionError):
        return json.dumps(value)


def is_object(text: str) -> bool:
    """Whether *text* is, strictly, the JSON of an object."""
    try:
        return isinstance(msgspec.json.decode(text), dict)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return False


def without_lone_surrogates(text: str) -> str:
    """Replace each escaped half of a surrogate pair in a JSON text by U+FFFD; nothing else is touched."""
    if not _MAYBE_SURROGATE.search(text):
        return text
    return _ESCAPE.sub(_mend, text)


def _mend(match: re.Match[str]) -> str:
    code = match[1]
    return REPLACEMENT if code is not None and 0xD800 <= int(code, 16) < 0xE000 else match[0]
