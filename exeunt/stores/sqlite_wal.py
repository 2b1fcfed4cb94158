"""What is left of a commit that was cut off: bytes at the end of SQLite's write-ahead log.

SQLite itself ignores them without a word. The file's format, and what is said here of frames, salts and checksums, is
from https://www.sqlite.org/fileformat2.html#the_write_ahead_log.
"""

import sqlite3
import struct
from pathlib import Path
from typing import BinaryIO

import attrs

HEADER_SIZE = 32
FRAME_HEADER_SIZE = 24
MAGIC = 0x377F0682
"""With the last bit set, the words of the checksums are big-endian."""

ZERO_SALTS = bytes(8)


def torn_bytes(connection: sqlite3.Connection, database: Path) -> int:
    """Return how many bytes of a commit that never came to its end lie in the write-ahead log of *database*.

    *connection* must have the file in WAL mode and be outside of a transaction. Raises `sqlite3.Error`, also when
    another process is writing for longer than the connection waits: what that has written so far looks like torn.
    """
    # Whole frames, as far as SQLite knows. It may know of more by now than when it answered.
    (_, known, _) = connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
    connection.execute("BEGIN IMMEDIATE")
    try:
        with Path(f"{database}-wal").open("rb") as file:
            return behind_last_commit(file, max(known, 0))
    except FileNotFoundError:
        return 0
    finally:
        connection.execute("ROLLBACK")


def behind_last_commit(file: BinaryIO, known: int) -> int:
    """Return how many bytes of the log *file* belong to no commit; its first *known* frames are known to be whole."""
    header = _Header.read(file)
    if header is None:
        return _size(file)
    place = HEADER_SIZE + (known - 1) * header.frame_size
    checksum = _checksum_at(file, place, header) if known else header.checksum
    if checksum is None:
        # Another process began the log anew since SQLite was asked.
        known, checksum = 0, header.checksum
    end = place = HEADER_SIZE + known * header.frame_size
    file.seek(place)
    intact = True
    while frame := file.read(header.frame_size):
        salts = frame[8:16]
        if salts != header.salts[: len(salts)] and salts != ZERO_SALTS[: len(salts)]:
            # Left over from before the log was begun anew: that was written to the database long ago.
            break
        place += len(frame)
        if intact and len(frame) == header.frame_size and salts == header.salts:
            checksum = header.sum_of(frame[FRAME_HEADER_SIZE:], header.sum_of(frame[:8], checksum))
            intact = checksum == struct.unpack(">II", frame[16:24])
            if intact and frame[4:8] != b"\0\0\0\0":
                # The size of the database stands in the frame that ends a commit.
                end = place
        else:
            intact = False
    return place - end


@attrs.frozen
class _Header:
    frame_size: int
    salts: bytes
    """What tells the frames of this round from those of earlier ones, which the file may still hold."""
    checksum: tuple[int, int]
    words: str
    """Byte order of the words that are summed up."""

    @classmethod
    def read(cls, file: BinaryIO) -> "_Header | None":
        """Return what the file begins with; `None` for a beginning that was cut off itself."""
        file.seek(0)
        data = file.read(HEADER_SIZE)
        if len(data) < HEADER_SIZE:
            return None
        magic, _, page_size = struct.unpack(">III", data[:12])
        if magic & ~1 != MAGIC:
            return None
        checksum: tuple[int, int] = struct.unpack(">II", data[24:32])
        header = cls(page_size + FRAME_HEADER_SIZE, data[16:24], checksum, ">" if magic & 1 else "<")
        return header if header.sum_of(data[:24], (0, 0)) == checksum else None

    def sum_of(self, data: bytes, before: tuple[int, int]) -> tuple[int, int]:
        """Return the checksum of what had *before*, and *data* behind it."""
        first, second = before
        words = iter(struct.unpack(f"{self.words}{len(data) // 4}I", data))
        for even, odd in zip(words, words, strict=True):
            first = (first + even + second) & 0xFFFFFFFF
            second = (second + odd + first) & 0xFFFFFFFF
        return first, second


def _checksum_at(file: BinaryIO, place: int, header: _Header) -> tuple[int, int] | None:
    """Return what the frame at *place* says to be its checksum, if it is of this round."""
    file.seek(place)
    frame = file.read(FRAME_HEADER_SIZE)
    if len(frame) < FRAME_HEADER_SIZE or frame[8:16] != header.salts:
        return None
    checksum: tuple[int, int] = struct.unpack(">II", frame[16:24])
    return checksum


def _size(file: BinaryIO) -> int:
    return file.seek(0, 2)
