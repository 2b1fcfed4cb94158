"""Where a model says that its words come from."""

from typing import Any, Literal

import msgspec

LocationKind = Literal["char", "page", "block"]
CitationProvider = Literal["anthropic", "openai", "client"]


class CitableSource(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """What a tool found and the model may cite, where its provider can."""

    id: str
    """Unique within the result."""
    content: str
    """What the model reads of it. Not blank."""
    title: str = ""
    url: str = ""
    path: str = ""
    """Of a file: below the root of the agent's workspace."""


class CitationSource(msgspec.Struct, frozen=True):
    """What was cited. Each is named once in an answer."""

    id: str
    """Unique within its answer."""
    provider: CitationProvider
    """Who says so: the API of the model, or the host, from what a tool returned."""
    title: str = ""
    url: str = ""
    path: str = ""


class CitationLocation(msgspec.Struct, frozen=True, gc=False):
    """A place in a source."""

    kind: LocationKind
    """`char`: characters, from 0, without the last. `page`: pages, from 1, with the last. `block`: blocks of a
    structured document, from 0, without the last."""
    start: int
    end: int


class CitationReference(msgspec.Struct, frozen=True):
    """One use of a source."""

    source_id: str
    cited_text: str = ""
    """The words of the source, where the model tells them."""
    location: CitationLocation | None = None
    native: dict[str, Any] | None = None
    """What the API says besides, as it says it."""


class CitationSpan(msgspec.Struct, frozen=True):
    """A part of the answer, and what it rests on."""

    start: int
    """Its first character in the answer's content, from 0."""
    end: int
    """The character behind its last."""
    references: tuple[CitationReference, ...]


class Citations(msgspec.Struct, frozen=True):
    """All citations of one answer."""

    sources: tuple[CitationSource, ...]
    spans: tuple[CitationSpan, ...]
    """In the order of the text."""
