"""Results too long for a model to read at once: kept in a file, and named to the model with their beginning."""

import secrets
import string

import msgspec

from exeunt.actors.outcomes import ToolResult
from exeunt.wire.files.store import FileStore, write_long
from exeunt.wire.messages.sessions import LargeOutput

LONGEST_RESULT = 51_200
"""Bytes of a result that a model reads as it is, where the client does not say: the protocol's default."""

PREVIEW = 500
"""Characters that the model reads of a longer one."""

FOLDER = "temp"

_LETTERS = string.ascii_lowercase + string.digits


def is_long(result: ToolResult, config: LargeOutput | None) -> bool:
    """Say whether a result is to be moved."""
    bound = LONGEST_RESULT if config is None else _bound(config)
    text = result.text_result_for_llm
    # Each character takes at least a byte and at most four: mostly its number of characters tells.
    return bound is not None and len(text) * 4 > bound and _size(text) > bound


def _bound(config: LargeOutput) -> int | None:
    """Bytes from which on a result is moved; `None`: never."""
    if config.enabled is False:
        return None
    return LONGEST_RESULT if config.maxSizeBytes is None or config.maxSizeBytes <= 0 else config.maxSizeBytes


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "replace"))


async def moved(store: FileStore, result: ToolResult, now: float) -> ToolResult:
    """Write a long result into a file; return what the model reads instead. Raises `SessionFilesUnavailable`.

    *now* is in seconds since the epoch.
    """
    text = result.text_result_for_llm
    suffix = "".join(secrets.choice(_LETTERS) for _ in range(6))
    path = f"{FOLDER}/{int(now * 1000)}-copilot-tool-output-{suffix}.txt"
    await write_long(store, path, text)
    # People see the whole of it, as they do where a tool gives them a text of their own.
    shown = text if result.session_log is None else result.session_log
    return msgspec.structs.replace(
        result, text_result_for_llm=named(store.place(path), text), session_log=shown
    )


def named(place: str, text: str) -> str:
    """Return what the model reads in the place of *text*. In the words that recorded conversations hold."""
    return (
        f"Output too large to read at once ({_amount(_size(text))}). Saved to: {place}\n"
        "Consider using tools like grep (for searching), head/tail (for viewing start/end), view with view_range (for"
        " specific sections), or jq (for JSON) to examine portions of the output.\n\n"
        f"Preview (first {PREVIEW} chars):\n{text[:PREVIEW]}"
    )


def _amount(size: int) -> str:
    kib = size / 1024
    return f"{kib:.1f} KB" if kib < 1024 else f"{kib / 1024:.1f} MB"
