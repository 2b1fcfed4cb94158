"""The blocks that messages to the API are made of. Pure."""

import msgspec

from exeunt.actors.text import encodable


class CacheControl(msgspec.Struct, frozen=True, gc=False):
    """Where a part of the request ends that the server is to keep."""

    type: str = "ephemeral"


EPHEMERAL = CacheControl()
"""For five minutes from its last use, which is what servers do without being told more."""


class Text(msgspec.Struct, tag="text", omit_defaults=True, gc=False):
    """Words. Never blank."""

    text: str
    cache_control: CacheControl | None = None


class ToolUse(msgspec.Struct, tag="tool_use", omit_defaults=True, gc=False):
    """A call that the model asked for."""

    id: str
    name: str
    input: msgspec.Raw
    cache_control: CacheControl | None = None


class Source(msgspec.Struct, gc=False):
    """The data of a picture or of a document: as base64, or a plain text."""

    type: str
    media_type: str
    data: str


class Image(msgspec.Struct, tag="image", omit_defaults=True, gc=False):
    """A picture."""

    source: Source
    cache_control: CacheControl | None = None


class CitationsConfig(msgspec.Struct, frozen=True, gc=False):
    """That a document may be cited."""

    enabled: bool = True


class Document(msgspec.Struct, tag="document", omit_defaults=True, gc=False):
    """A PDF, or a plain text."""

    source: Source
    title: str | None = None
    citations: CitationsConfig | None = None
    cache_control: CacheControl | None = None


class SearchResult(msgspec.Struct, tag="search_result", omit_defaults=True, gc=False):
    """What a tool has found and may be cited."""

    source: str
    title: str
    content: list[Text]
    citations: CitationsConfig


class ToolResult(msgspec.Struct, tag="tool_result", omit_defaults=True, gc=False):
    """What came of a call."""

    tool_use_id: str
    content: str | list[Text | Image | Document | SearchResult]
    is_error: bool = False
    cache_control: CacheControl | None = None


Block = Text | ToolUse | ToolResult | Image | Document | msgspec.Raw
"""Raw ones are blocks of thoughts, as the API wrote them."""


class Said(msgspec.Struct, gc=False):
    """A message of the conversation."""

    role: str
    content: list[Block]


def make_encodable(value: Block | SearchResult | Said) -> None:
    """Replace what is no text, such as half of a surrogate pair, in a block or a message."""
    if isinstance(value, Said):
        for block in value.content:
            make_encodable(block)
    elif isinstance(value, Text):
        value.text = encodable(value.text)
    elif isinstance(value, Document):
        value.source.data = encodable(value.source.data)
        value.title = value.title and encodable(value.title)
    elif isinstance(value, SearchResult):
        value.source, value.title = encodable(value.source), encodable(value.title)
        for text in value.content:
            make_encodable(text)
    elif isinstance(value, ToolResult):
        if isinstance(value.content, str):
            value.content = encodable(value.content)
        else:
            for part in value.content:
                make_encodable(part)
