"""Blocks of thoughts: kept with an answer, signed by the API, and given back to it unchanged. Pure.

They are given back to the model that had them only, at the same server, in the places where they stood: between the
texts and the calls of their answer. What stands between them is kept as its length, since the log has it already.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from exeunt.actors.models import (
    Message,
    ModelError,
    ModelErrorKind,
    ReasoningBlocks,
    reasoning_blocks_of,
)
from exeunt.models.anthropic.blocks import Block, Text
from exeunt.models.door.jsontext import dumps, is_dict, is_list, loads

KINDS = ("thinking", "redacted_thinking")


def provider_tag(authority: str, model: str) -> str:
    """Return what marks the thoughts of *model* at a server: others that know the name may not know the signature."""
    return f"anthropic {authority} {model}"


def refuses_thoughts(error: ModelError) -> bool:
    """Whether a server refuses a request for the thoughts of earlier answers in it."""
    if error.kind is not ModelErrorKind.BAD_REQUEST:
        return False
    words = str(error).lower()
    return "signature" in words or ("thinking" in words and "block" in words)


class Layout:
    """The order of the blocks of one answer, noted while it comes."""

    def __init__(self) -> None:
        self._blocks: list[dict[str, Any]] = []
        self._any = False

    def add_thought(self, block: dict[str, Any]) -> None:
        """Note a block of thoughts, as the API wrote it."""
        self._blocks.append(block)
        self._any = True

    def add_text(self, length: int) -> None:
        """Note a text of so many characters."""
        self._blocks.append({"type": "text", "length": length})

    def add_call(self) -> None:
        """Note a call."""
        self._blocks.append({"type": "tool_use"})

    def result(self, tag: str) -> ReasoningBlocks | None:
        """Return what is kept, under the *tag* of the model; `None` without thoughts."""
        if not self._any:
            return None
        blocks = self._blocks
        while blocks[-1]["type"] not in KINDS:
            blocks.pop()  # What stands behind the last thought needs no place.
        return ReasoningBlocks(tag, dumps(blocks))


def blocks_with_thoughts(message: Message, tag: str, text: str, calls: Sequence[Block]) -> list[Block]:
    """Return the blocks of an answer: with its thoughts, where they are those of the model with this *tag*.

    Where *text* or *calls* are not what the thoughts stood between, they come first, as thoughts do.
    """
    kept = reasoning_blocks_of(message)
    if kept is None or kept.provider != tag:
        return [*_texts(text), *calls]
    layout = _read(kept.blocks)
    blocks: list[Block] = []
    at = called = 0
    for each in layout:
        kind = each.get("type")
        if kind in KINDS:
            blocks.append(msgspec.Raw(dumps(each).encode()))
        elif kind == "text":
            length = each.get("length", 0)
            blocks += _texts(text[at : at + length])
            at += length
        elif called < len(calls):
            # Texts come before calls.
            blocks += _texts(text[at:])
            at = len(text)
            blocks.append(calls[called])
            called += 1
    return [*blocks, *_texts(text[at:]), *calls[called:]]


def _texts(text: str) -> list[Block]:
    return [Text(text)] if text.strip() else []


def _read(blocks: str) -> list[dict[str, Any]]:
    try:
        value = loads(blocks)
    except ValueError:
        return []
    return [each for each in value if is_dict(each)] if is_list(value) else []
