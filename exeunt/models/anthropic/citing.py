"""From the citations of an answer's blocks to those of its text. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

from exeunt.actors.citations import (
    CitableSource,
    CitationLocation,
    CitationReference,
    Citations,
    CitationSource,
    CitationSpan,
    LocationKind,
)
from exeunt.actors.text import encodable

# Where a citation's type says its place: our kind, the field of its begin, that of its end, and what is to be added
# to the end. The API names the page behind the last.
_PLACES: Mapping[str, tuple[LocationKind, str, str, int]] = {
    "char_location": ("char", "start_char_index", "end_char_index", 0),
    "page_location": ("page", "start_page_number", "end_page_number", -1),
    "content_block_location": ("block", "start_block_index", "end_block_index", 0),
    "search_result_location": ("block", "start_block_index", "end_block_index", 0),
}

# What tells a source from others, and is handed on as it is.
_NATIVE = ("type", "document_index", "file_id", "search_result_index", "encrypted_index")


class Citing:
    """Collects the citations of the texts of one answer, in their order."""

    def __init__(self, found: Sequence[CitableSource] = ()) -> None:
        """*found* is what tools have found, in the order in which the API counts it."""
        self._found = found
        self._sources: dict[tuple[Any, ...], CitationSource] = {}
        self._ids: set[str] = set()
        self._spans: list[CitationSpan] = []
        self._at = 0

    def add(self, length: int, cited: Sequence[Mapping[str, Any]]) -> None:
        """Add the next text, of *length* characters, and what it cites."""
        start, self._at = self._at, self._at + length
        if cited and length:
            references = tuple(self._reference(one) for one in cited)
            self._spans.append(CitationSpan(start, self._at, references))

    def result(self) -> Citations | None:
        """Return all of them; `None` if there are none."""
        if not self._spans:
            return None
        return Citations(tuple(self._sources.values()), tuple(self._spans))

    def _reference(self, cited: Mapping[str, Any]) -> CitationReference:
        source = self._source(cited)
        native = {name: cited[name] for name in _NATIVE if isinstance(cited.get(name), int | str)}
        text = encodable(_string(cited.get("cited_text")))
        return CitationReference(source.id, text, _place(cited), native)

    def _source(self, cited: Mapping[str, Any]) -> CitationSource:
        title = _string(cited.get("document_title")) or _string(cited.get("title"))
        url = _string(cited.get("url")) or _string(cited.get("source"))
        index = cited.get("search_result_index")
        if isinstance(index, int) and 0 <= index < len(self._found):
            return self._own(index)
        numbers = (cited.get("document_index"), cited.get("search_result_index"))
        key = (*map(str, numbers), title, url)
        source = self._sources.get(key)
        if source is None:
            name = self._free(f"source-{len(self._sources) + 1}")
            source = CitationSource(name, "anthropic", encodable(title), encodable(url))
            self._sources[key] = source
        return source

    def _own(self, index: int) -> CitationSource:
        """Return what a tool has found as a source, under the id that the tool gave it if that is free."""
        found = self._found[index]
        key = ("found", index)
        source = self._sources.get(key)
        if source is None:
            source = CitationSource(self._free(found.id), "client", found.title, found.url, found.path)
            self._sources[key] = source
        return source

    def _free(self, wanted: str) -> str:
        name, number = wanted, len(self._ids) + 1
        while name in self._ids:
            name, number = f"{wanted}-{number}", number + 1
        self._ids.add(name)
        return name


def _place(cited: Mapping[str, Any]) -> CitationLocation | None:
    place = _PLACES.get(_string(cited.get("type")))
    if place is None:
        return None
    kind, first, behind, shift = place
    start, end = cited.get(first), cited.get(behind)
    if not isinstance(start, int) or not isinstance(end, int) or start < 0 or end + shift < start:
        return None
    return CitationLocation(kind, start, end + shift)


def _string(value: Any) -> str:
    return value if isinstance(value, str) else ""
