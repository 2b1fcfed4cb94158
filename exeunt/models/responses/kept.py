"""What a model is given back of its reasoning: kept with the answer, and put where it stood. Pure.

Without it a model that reasons begins anew after each call of a tool. The order of an answer's items counts: servers
refuse reasoning that does not stand before the item to which it led.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from exeunt.actors.models import ReasoningBlocks
from exeunt.actors.text import encodable
from exeunt.models.door.jsontext import dumps, is_dict, is_list, loads
from exeunt.models.responses.items import Call, Item, Text

ENCRYPTED = "reasoning.encrypted_content"
"""What `include` must hold for a model to give its reasoning away, encrypted."""

SEPARATOR = "\n\n"
"""Between the texts of two messages of one answer."""

# Of a reasoning item. What else there may be, such as its status, is refused when it comes back.
_FIELDS = ("id", "type", "summary", "content", "encrypted_content")


def keepable(item: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return what to give back of a reasoning item; `None` where it would be of no use.

    A server that stores nothing knows a summary without its reasoning no more.
    """
    if not (isinstance(item.get("encrypted_content"), str) or item.get("content")):
        return None
    kept = {name: item[name] for name in _FIELDS if item.get(name) is not None}
    return {"summary": [], **kept}


def kept_blocks(items: Iterable[dict[str, Any]], keeper: str) -> ReasoningBlocks | None:
    """Return what is to be kept of an answer whose output is *items*; `None` where that is nothing.

    *items* are what `keepable` returns, `{"type": "message", "length": ..., "phase": ...}` and
    `{"type": "function_call"}`, in order.
    """
    found = list(items)
    if not any(item["type"] == "reasoning" or item.get("phase") for item in found):
        return None
    return ReasoningBlocks(keeper, encodable(dumps(found)))


def restored(blocks: str, text: str, calls: Sequence[Call]) -> list[Item]:
    """Return an answer's items as its server sent them: *text* and *calls*, and what was kept, in its order."""
    layout: Any = loads(blocks)
    items: list[Item] = []
    at = 0
    left = list(calls)
    for item in layout if is_list(layout) else ():
        if not is_dict(item):
            continue
        if item.get("type") == "reasoning":
            items.append(msgspec.Raw(msgspec.json.encode(item)))
        elif item.get("type") == "message":
            length = item.get("length")
            end = at + length if isinstance(length, int) else len(text)
            piece, phase = text[at:end], item.get("phase")
            if piece.strip():
                items.append(Text("assistant", piece, phase if isinstance(phase, str) else None))
            at = end + len(SEPARATOR)
        elif left:
            items.append(left.pop(0))
    if text[at:].strip():
        items.append(Text("assistant", text[at:]))
    items += left
    while items and isinstance(items[-1], msgspec.Raw):
        del items[-1]
    return items
