"""Citations as the SDK has them: texts are counted in UTF-16 code units. Pure."""

from bisect import bisect_left
from typing import Any

from exeunt.actors.citations import CitationLocation, CitationReference, Citations, CitationSource

# The fields of a place, by its kind.
_PLACES = {
    "char": ("startIndex", "endIndex"),
    "page": ("startPage", "endPage"),
    "block": ("startBlock", "endBlock"),
}


def citations(cited: Citations, content: str) -> dict[str, Any]:
    """Return the field `citations` of an answer with this *content*."""
    # Characters outside of the basic plane are two units.
    wide = [] if content.isascii() else [at for at, one in enumerate(content) if ord(one) > 0xFFFF]
    return {
        "sources": [_source(source) for source in cited.sources],
        "spans": [
            {
                "startIndex": span.start + bisect_left(wide, span.start),
                "endIndex": span.end + bisect_left(wide, span.end),
                "references": [_reference(one) for one in span.references],
            }
            for span in cited.spans
        ],
    }


def _source(source: CitationSource) -> dict[str, Any]:
    about = {"title": source.title, "url": source.url, "path": source.path}
    return {
        "id": source.id,
        "provider": source.provider,
        **{name: value for name, value in about.items() if value},
    }


def _reference(reference: CitationReference) -> dict[str, Any]:
    about: dict[str, Any] = {"sourceId": reference.source_id}
    if reference.cited_text:
        about["citedText"] = reference.cited_text
    if reference.location is not None:
        about["location"] = _place(reference.location)
    if reference.native:
        about["providerMetadata"] = reference.native
    return about


def _place(place: CitationLocation) -> dict[str, Any]:
    start, end = _PLACES[place.kind]
    return {"type": place.kind, start: place.start, end: place.end}
