"""What the bodies of requests have in common, whatever the API: the fields that stay, and the tools. Pure."""

import json
from collections.abc import Collection, Mapping
from typing import Any

import msgspec

from exeunt.actors.errors import InvalidConfiguration
from exeunt.actors.models import MediaSupport
from exeunt.actors.text import encodable

_encode = msgspec.json.Encoder().encode


def check_described(
    model: Any, options: Mapping[Any, Any], reserved: Collection[str], media: MediaSupport | None
) -> None:
    """Refuse a model that is none. *reserved* are the fields that a door sets for each request.

    Raises `InvalidConfiguration`.
    """
    given: Any = media
    if given is not None and not isinstance(given, MediaSupport):
        raise InvalidConfiguration(f"media says what the model takes: a MediaSupport, not {media!r:.80}")
    if not isinstance(model, str) or not model.strip():
        raise InvalidConfiguration(f"model must be a name, not {model!r}")
    for name in options:
        if not isinstance(name, str) or name in reserved:
            raise InvalidConfiguration(f"options must not hold {name!r}: it is set for each request")


def open_object(fields: Mapping[str, Any]) -> bytes:
    """Return *fields* as a JSON object that is still open. Raises `InvalidConfiguration`."""
    try:
        return _encode(fields)[:-1]
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidConfiguration(f"model and options must be encodable as JSON: {error}") from error


def encoded_tools(tools: list[dict[str, Any]]) -> bytes:
    """Return tools as JSON, whatever half of a surrogate pair their descriptions hold."""
    try:
        return _encode(tools)
    except UnicodeEncodeError:
        return encodable(json.dumps(tools, ensure_ascii=False)).encode()
