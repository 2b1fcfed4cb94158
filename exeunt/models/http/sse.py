"""Server-sent events, read incrementally. Pure.

Follows the event stream interpretation of the HTML standard: any mix of CR, LF and CRLF, a leading byte order
mark, comments, fields without a colon, data of several lines, blocks without data (no event), and an
unterminated last block (dropped). Invalid UTF-8 becomes U+FFFD. Where packets cut the bytes makes no difference.
"""

import msgspec

from exeunt.actors.models import ModelError, ModelErrorKind

_BOM = b"\xef\xbb\xbf"

# The longest single event seen in the field is a whole file as the arguments of one call; a model's answer is
# below 1 MiB, escapes and all.
MAX_EVENT_BYTES = 8 * 1024 * 1024


class SSEEvent(msgspec.Struct, frozen=True, gc=False):
    """One event."""

    event: str
    """Its name; `"message"` where the stream gave none."""
    data: str
    """Its data lines, joined by LF."""
    id: str = ""
    """The last id that the stream gave, up to this event."""


class SSEReader:
    """Turns bytes into events. One line, or the data of one event, of more than *max_event_bytes* is an error."""

    __slots__ = ("_after_cr", "_bom_possible", "_data", "_id", "_max", "_name", "_size", "_tail")

    def __init__(self, max_event_bytes: int = MAX_EVENT_BYTES) -> None:
        self._max = max_event_bytes
        self._tail = bytearray()
        self._after_cr = False
        self._bom_possible = True
        self._data: list[str] = []
        self._size = 0
        self._name = ""
        self._id = ""

    def feed(self, data: bytes) -> list[SSEEvent]:
        """Return the events that *data* completes. Raises `ModelError` where a line or an event is too long."""
        if not data:
            return []
        if self._after_cr or b"\r" in data:
            # The LF of a CRLF may come with the next packet, and is no line of its own then.
            if self._after_cr and data.startswith(b"\n"):
                data = data[1:]
                self._after_cr = False
                if not data:
                    return []
            self._after_cr = data.endswith(b"\r")
            data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        self._tail += data
        if len(self._tail) > self._max and len(self._tail) - self._tail.rfind(b"\n") > self._max:
            raise self._too_long()
        if b"\n" not in data:
            return []
        lines = bytes(self._tail).split(b"\n")
        self._tail = bytearray(lines.pop())
        events: list[SSEEvent] = []
        for line in lines:
            self._line(line, events)
        return events

    def _line(self, line: bytes, events: list[SSEEvent]) -> None:
        if self._bom_possible:
            self._bom_possible = False
            line = line.removeprefix(_BOM)
        if not line:
            if self._data:
                events.append(SSEEvent(self._name or "message", "\n".join(self._data), self._id))
                self._data = []
                self._size = 0
            self._name = ""
            return
        name, _, raw = line.partition(b":")
        if name == b"data":
            # One more for the LF, so that empty lines count too.
            self._size += len(raw) + 1
            if self._size > self._max:
                raise self._too_long()
            self._data.append(_text(raw))
        elif name == b"event":
            self._name = _text(raw)
        elif name == b"id" and b"\0" not in raw:
            self._id = _text(raw)
        # A line that begins with a colon is a comment; `retry` is for a reader that reconnects; others are unknown.

    def _too_long(self) -> ModelError:
        return ModelError(
            ModelErrorKind.MALFORMED_RESPONSE, f"an event of the answer has more than {self._max:,} bytes"
        )


def _text(raw: bytes) -> str:
    return (raw[1:] if raw.startswith(b" ") else raw).decode("utf-8", "replace")
