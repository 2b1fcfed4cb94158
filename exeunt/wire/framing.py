"""Frames of a byte stream: `Content-Length: N`, an empty line, N bytes."""

from exeunt.actors.errors import ExeuntError

LONGEST_HEAD = 8 * 1024
"""Bytes of a frame's header lines. One line of 30 bytes is usual."""


class FrameError(ExeuntError):
    """The bytes of a connection are no frames: there is no telling where the next one begins."""


class FrameReader:
    """Cuts a stream into bodies. Holds at most one frame that is not whole, and what was received with it."""

    __slots__ = ("_buffer", "_expected", "_longest", "_start")

    def __init__(self, longest: int) -> None:
        self._longest = longest
        self._buffer = bytearray()
        self._start = 0
        """Where in the buffer the next frame begins."""
        self._expected: int | None = None
        """Bytes of the body whose head is read."""

    @property
    def is_inside(self) -> bool:
        """Whether a part of a frame is here, and the rest is to come."""
        return self._expected is not None or len(self._buffer) > self._start

    def feed(self, data: bytes | bytearray) -> list[bytes]:
        """Take what was received, return the bodies that are whole now.

        Raises `FrameError` for a head without a length, with a wrong one, or of a frame that is too long.
        """
        buffer = self._buffer
        buffer += data
        bodies: list[bytes] = []
        while True:
            if self._expected is None:
                end = buffer.find(b"\r\n\r\n", self._start)
                if end < 0:
                    if len(buffer) - self._start > LONGEST_HEAD:
                        raise FrameError(f"a frame's header is longer than {LONGEST_HEAD} bytes")
                    break
                self._expected = self._length(bytes(buffer[self._start : end]))
                self._start = end + 4
            stop = self._start + self._expected
            if len(buffer) < stop:
                break
            bodies.append(bytes(buffer[self._start : stop]))
            self._start = stop
            self._expected = None
        if self._start:
            del buffer[: self._start]
            self._start = 0
        return bodies

    def _length(self, head: bytes) -> int:
        for line in head.split(b"\r\n"):
            name, _, value = line.partition(b":")
            if name.strip().lower() == b"content-length":
                text = value.strip()
                # int() would take signs, underscores and digits of other scripts.
                if not text.isdigit() or len(text) > 15:
                    raise FrameError(f"Content-Length is {text[:40]!r}, which is no number of bytes")
                length = int(text)
                if length > self._longest:
                    raise FrameError(f"a frame of {length} bytes is longer than {self._longest}, the limit")
                return length
        raise FrameError("Header must provide a Content-Length property.")


def frame(body: bytes) -> bytes:
    """Return *body* with its head."""
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
