"""Content codings of an answer's body: bounded, incremental. Pure."""

import zlib

from exeunt.actors.models import ModelError, ModelErrorKind

_GZIP = 16 + zlib.MAX_WBITS
_ZLIB = zlib.MAX_WBITS
_RAW_DEFLATE = -zlib.MAX_WBITS


class Decoder:
    """Undoes `gzip` or `deflate`. A decoded body of more than *limit* bytes is refused before it is made."""

    __slots__ = ("_begun", "_deflate", "_head", "_inflate", "_left", "_limit")

    def __init__(self, coding: str, limit: int) -> None:
        if coding not in ("gzip", "x-gzip", "deflate"):
            raise ModelError(
                ModelErrorKind.MALFORMED_RESPONSE,
                f"the answer has the unknown content coding {coding[:40]!r}",
            )
        self._deflate = coding == "deflate"
        self._inflate = zlib.decompressobj(_ZLIB if self._deflate else _GZIP)
        self._begun = False
        self._head: bytes = b""
        self._limit = limit
        self._left = limit

    def decode(self, data: bytes) -> bytes:
        """Return what *data* adds to the body, possibly nothing. Raises `ModelError`."""
        if not self._begun:
            # Two bytes tell zlib from raw deflate; packets may cut between them.
            data = self._head + data
            if len(data) < 2:
                self._head = data
                return b""
        out: list[bytes] = []
        while data:
            if self._inflate.eof:
                if not data.strip(b"\0"):
                    break
                # A gzip body may be several members in a row.
                self._inflate = zlib.decompressobj(_GZIP)
            try:
                piece = self._inflate.decompress(data, self._left + 1)
            except zlib.error as error:
                if self._deflate and not self._begun:
                    # `deflate` means zlib by the standard, and raw deflate to some servers.
                    self._inflate = zlib.decompressobj(_RAW_DEFLATE)
                    self._begun = True
                    continue
                raise ModelError(
                    ModelErrorKind.MALFORMED_RESPONSE,
                    f"the answer's body cannot be decoded: {error}",
                    retry=True,
                ) from error
            self._begun = True
            self._left -= len(piece)
            if self._left < 0:
                raise too_large(self._limit)
            out.append(piece)
            if self._deflate and self._inflate.eof:
                break
            data = self._inflate.unconsumed_tail or self._inflate.unused_data
        return b"".join(out)

    def end(self) -> None:
        """Check that nothing is missing. Raises `ModelError`."""
        if (self._begun or self._head) and not self._inflate.eof:
            raise ModelError(
                ModelErrorKind.CONNECTION_LOST, "the compressed answer ends too early", retry=True
            )


def too_large(limit: int) -> ModelError:
    """The error for a body of more than *limit* bytes."""
    return ModelError(ModelErrorKind.MALFORMED_RESPONSE, f"the answer has more than {limit:,} bytes")
