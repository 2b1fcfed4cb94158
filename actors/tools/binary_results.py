"""What the Copilot SDK calls binary results, as media. Raises nothing: the model is told of what cannot be shown."""

from collections.abc import Iterable, Mapping
from typing import Any, cast

from exeunt.actors.errors import InvalidMedia
from exeunt.actors.media import LONGEST_NAME, Media
from exeunt.actors.text import encodable


def media_from(results: Any) -> tuple[tuple[Media, ...], tuple[str, ...]]:
    """Return the media of *results*, and for each that is none a line for the model.

    Each is a `Media`, or a mapping or an object with the protocol's fields: data in base64, MIME type, description.
    """
    if results is None:
        return (), ()
    if not _is_list(results):
        return (), ("[binary results left out: they are no list]",)
    media: list[Media] = []
    told: list[str] = []
    for result in results:
        try:
            media.append(_one(result))
        except InvalidMedia as error:
            told.append(f"[binary result left out: {encodable(str(error))}]")
    return tuple(media), tuple(told)


def _is_list(value: Any) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, (str, bytes, Mapping))


def _one(result: Any) -> Media:
    if isinstance(result, Media):
        return result
    data, name = _field(result, "data", "data"), _field(result, "description", "description")
    mime_type = _field(result, "mimeType", "mime_type")
    name = encodable(name)[:LONGEST_NAME] if isinstance(name, str) else ""
    if isinstance(data, bytes):
        return Media(mime_type, data, name)
    return Media.from_base64(mime_type, data, name)


def _field(result: Any, wire_name: str, name: str) -> Any:
    if isinstance(result, Mapping):
        fields = cast("Mapping[str, Any]", result)
        return fields.get(wire_name, fields.get(name))
    return getattr(result, name, None)
