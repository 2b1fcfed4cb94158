"""Tool calls on their way to and from a model: names, ids and arguments, and what strict servers take. Pure."""

import re
import zlib
from collections.abc import Collection

from exeunt.actors.text import encodable
from exeunt.models.door.jsontext import is_object, without_lone_surrogates

EMPTY_TEXT = "(empty)"
"""In the place of a text that must not be blank: servers refuse an answer without content and calls, and some one of
white space only."""

_LEGAL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}", re.ASCII)
_LEGAL_ID = re.compile(r"[a-zA-Z0-9_-]+", re.ASCII)
_ILLEGAL = re.compile(r"[^a-zA-Z0-9_-]", re.ASCII)

# A prefix that models copy from the way in which some of them are shown their tools.
_NAMESPACE = "functions."


def legal_name(name: str) -> str:
    """Return *name* as strict servers take it. A name that a model made up must not spoil the history."""
    if _LEGAL_NAME.fullmatch(name):
        return name
    return _ILLEGAL.sub("_", name)[:64] or "unknown_tool"


def legal_id(call_id: str) -> str:
    """Return the id of a call as strict servers take it, the same for a call and for its result.

    Ids of other providers, from before a session changed its model, may have characters that these refuse.
    """
    if _LEGAL_ID.fullmatch(call_id):
        return call_id
    # Two ids that differ in such characters only stay two.
    return f"{_ILLEGAL.sub('_', call_id)}_{zlib.crc32(call_id.encode('utf-8', 'surrogatepass')):08x}"


def legal_arguments(text: str) -> str:
    """Return *text* if it is the JSON of an object, else `{}`: what was wrong with it stands in the result."""
    if is_object(text):
        return text
    mended = without_lone_surrogates(encodable(text))
    return mended if is_object(mended) else "{}"


def known_name(name: str, tools: Collection[str]) -> str:
    """Return the tool among *tools* that a model means by *name*, or else the name as it wrote it."""
    for candidate in (name, name.strip(), name.strip().removeprefix(_NAMESPACE)):
        if candidate in tools:
            return candidate
    return encodable(name)
