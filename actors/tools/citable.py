"""What the Copilot SDK calls citable sources of a tool's result. Raises nothing: what is none is left out."""

from collections.abc import Iterable, Mapping
from typing import Any, cast

from exeunt.actors.citations import CitableSource
from exeunt.actors.text import encodable

_FIELDS = ("id", "content", "title", "url", "path")


def sources_from(sources: Any) -> tuple[CitableSource, ...]:
    """Return the sources among *sources*: each is a `CitableSource`, or a mapping or an object with its fields.

    One without an id or without words is none.
    """
    if not _is_list(sources):
        return ()
    items: Iterable[Any] = sources
    found: list[CitableSource] = []
    for source in items:
        if isinstance(source, CitableSource):
            found.append(source)
            continue
        texts = {name: _text(source, name) for name in _FIELDS}
        if texts["id"] and texts["content"].strip():
            found.append(CitableSource(**texts))
    return tuple(found)


def _is_list(value: Any) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, (str, bytes, Mapping))


def _text(source: Any, name: str) -> str:
    if isinstance(source, Mapping):
        value = cast("Mapping[str, Any]", source).get(name)
    else:
        value = getattr(source, name, None)
    return encodable(value) if isinstance(value, str) else ""


def sources_within(
    sources: tuple[CitableSource, ...], most: int
) -> tuple[tuple[CitableSource, ...], tuple[str, ...]]:
    """Return what of *sources* is taken in, of *most* bytes at most, and for each of the rest a line for the model."""
    kept: list[CitableSource] = []
    told: list[str] = []
    for source in sources:
        size = len(encodable(source.content).encode())
        if size > most:
            told.append(f"[source left out: {source.title or source.id}; the result holds too much]")
        else:
            most -= size
            kept.append(source)
    return tuple(kept), tuple(told)
