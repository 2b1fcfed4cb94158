"""Answers that real servers gave and that no server should give.

The cases are files in `dirty/`: the packets in Latin-1, one character for each byte; a list in place of a text
is its parts, each a text or [text, times]; a number is a pause in seconds.
"""

import json
import pathlib
from typing import Any

from exeunt.models.door.jsontext import is_list
from exeunt.testing.http_double import HttpReply

CASES = sorted((pathlib.Path(__file__).parent / "dirty").glob("*.json"))


def read(path: pathlib.Path) -> dict[str, Any]:
    """A case."""
    case: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return case


def packet(written: Any) -> bytes | float:
    """A packet, or a pause."""
    if is_list(written):
        written = "".join(part if isinstance(part, str) else part[0] * part[1] for part in written)
    return written.encode("latin-1") if isinstance(written, str) else float(written)


def reply_of(case: dict[str, Any], *, faster: float = 1.0) -> HttpReply:
    """What a server plays, with its pauses made shorter."""
    packets = [packet(each) for each in case["packets"]]
    return HttpReply(
        body=[each if isinstance(each, bytes) else each / faster for each in packets],
        status=case.get("status", 200),
        content_type=case["content_type"],
        framing=case["framing"],
        end=case["end"],
    )
