"""Frames of a byte stream: `Content-Length: N`, an empty line, N bytes."""

from exeunt.actors.errors import ExeuntError

LONGEST_HEAD = 8 * 1024
"""Bytes of a frame's header lines. One line of 30 bytes is usual."""


BEGINNING = 1024
"""Bytes that are kept of a body that is too long: its id and its method, which clients write first."""


class FrameError(ExeuntError):
    """The bytes of a connection are no frames: there is no telling where the next one begins."""


class TooLong:
    """A frame that is passed over: how long its body is, and how it begins."""

    __slots__ = ("beginning", "length")

    def __init__(self, length: int, beginning: bytes) -> None:
        self.length = length
        self.beginning = beginning


class FrameReader:
    """Cuts a stream into bodies. Holds at most one frame that is not whole, and what was received with it.

    A body of more than *longest* bytes is passed over, up to *passed_over*; beyond that it is an error.
    """

    __slots__ = ("_buffer", "_expected", "_longest", "_passed_over", "_rest", "_start", "too_long")

    def __init__(self, longest: int, passed_over: int = 0) -> None:
        self._longest = longest
        self._passed_over = max(longest, passed_over)
        self._rest: int = 0
        """Bytes that are still to come, and to be passed over, of a body that is too long."""
        self.too_long: list[TooLong] = []
        """Bodies that were too long, for who reads to take away. Each is here once its beginning is."""
        self._buffer = bytearray()
        self._start: int = 0
        """Where in the buffer the next frame begins."""
        self._expected: int | None = None
        """Bytes of the body whose head is read."""

    @property
    def is_inside(self) -> bool:
        """Whether a part of a frame is here, and the rest is to come."""
        return self._expected is not None or self._rest > 0 or len(self._buffer) > self._start

    def feed(self, data: bytes | bytearray) -> list[bytes]:
        """Take what was received, return the bodies that are whole now.

        Raises `FrameError` for a head without a length, with a wrong one, or of a frame that is too long.
        """
        buffer = self._buffer
        buffer += data
        bodies: list[bytes] = []
        while True:
            if self._rest:
                passed = min(self._rest, len(buffer) - self._start)
                self._start += passed
                self._rest -= passed
                if self._rest:
                    break
            if self._expected is None:
                end = buffer.find(b"\r\n\r\n", self._start)
                if end < 0:
                    if len(buffer) - self._start > LONGEST_HEAD:
                        raise FrameError(f"a frame's header is longer than {LONGEST_HEAD} bytes")
                    break
                self._expected = self._length(bytes(buffer[self._start : end]))
                self._start = end + 4
            if self._expected > self._longest:
                if len(buffer) - self._start < min(self._expected, BEGINNING):
                    break
                beginning = bytes(buffer[self._start : self._start + BEGINNING])
                self.too_long.append(TooLong(self._expected, beginning))
                self._rest = self._expected
                self._expected = None
                continue
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
                if length > self._passed_over:
                    raise FrameError(f"a frame of {length} bytes is longer than {self._longest}, the limit")
                return length
        raise FrameError("Header must provide a Content-Length property.")


def frame(body: bytes) -> bytes:
    """Return *body* with its head."""
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
