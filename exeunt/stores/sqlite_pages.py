"""The records of a SQLite file that SQLite itself may refuse to read, page by page.

Follows https://www.sqlite.org/fileformat2.html. Nothing that a page says is trusted: what does not add up is passed
over, and whoever reads the records has a checksum of their own.
"""

import struct
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

import attrs

from exeunt.actors.errors import JournalError

HEADER = b"SQLite format 3\0"
TABLE_LEAF, INDEX_LEAF, INDEX_INTERIOR = 0x0D, 0x0A, 0x02

DEFAULT_PAGE = 4096
"""Bytes of a page where the header is gone: what SQLite takes by default."""

Column = None | int | float | bytes | str
WAL_MAGIC = {0x377F0682: "<", 0x377F0683: ">"}
"""Byte order of the checksums, by the number that the file begins with."""


@attrs.frozen
class Record:
    """One record: a row of a table, or an entry of an index."""

    page_kind: int
    columns: tuple[Column, ...]


class Pages:
    """The pages of a database, with what was committed to its write-ahead log. A context manager."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: BinaryIO = path.open("rb")
        self._wal: BinaryIO | None = None
        header = self._file.read(100)
        self.problem = "" if header.startswith(HEADER) else "its first page is not that of a database"
        size = int.from_bytes(header[16:18], "big")
        size = 65536 if size == 1 else size
        known = not self.problem and 512 <= size <= 65536 and not size & (size - 1)
        self.size = size if known else DEFAULT_PAGE
        self.usable = self.size - (header[20] if known else 0)
        self._length = self._file.seek(0, 2)
        self._frames: dict[int, int] = {}
        """Where in the write-ahead log the newest committed version of a page stands."""
        with suppress(FileNotFoundError):
            self._wal = path.with_name(path.name + "-wal").open("rb")
            self._frames = _committed_frames(self._wal, self.size)
        self.count = max([-(-self._length // self.size), *self._frames])

    def __enter__(self) -> "Pages":
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
        if self._wal is not None:
            self._wal.close()

    def page(self, number: int) -> bytes:
        """Return page *number*, from 1; what is missing of it is zero."""
        place = self._frames.get(number)
        if place is not None and self._wal is not None:
            self._wal.seek(place)
            data = self._wal.read(self.size)
        elif 1 <= number <= self.count:
            self._file.seek((number - 1) * self.size)
            data = self._file.read(self.size)
        else:
            raise JournalError(f"there is no page {number}")
        return data.ljust(self.size, b"\0")

    def records(self) -> Iterator[Record]:
        """Yield what can be read on any page, in the order of the pages."""
        for number in range(1, self.count + 1):
            page = self.page(number)
            begin = 100 if number == 1 else 0
            kind = page[begin]
            if kind not in (TABLE_LEAF, INDEX_LEAF, INDEX_INTERIOR):
                continue
            pointers = begin + (12 if kind == INDEX_INTERIOR else 8)
            cells = int.from_bytes(page[begin + 3 : begin + 5], "big")
            for place in range(pointers, min(pointers + 2 * cells, self.size - 1), 2):
                # A cell that makes no sense says nothing about the next one.
                with suppress(JournalError, IndexError, struct.error, UnicodeDecodeError):
                    offset = int.from_bytes(page[place : place + 2], "big")
                    yield Record(kind, _columns(self._payload(page, kind, offset)))

    def _payload(self, page: bytes, kind: int, offset: int) -> bytes:
        if kind == INDEX_INTERIOR:
            offset += 4
        length, offset = _varint(page, offset)
        if kind == TABLE_LEAF:
            _, offset = _varint(page, offset)
        most = self.usable - 35 if kind == TABLE_LEAF else (self.usable - 12) * 64 // 255 - 23
        if length <= most:
            return _part(page, offset, length)
        least = (self.usable - 12) * 32 // 255 - 23
        here = least + (length - least) % (self.usable - 4)
        here = here if here <= most else least
        parts = [_part(page, offset, here)]
        missing = length - here
        following = int.from_bytes(_part(page, offset + here, 4), "big")
        # A chain that runs in a circle ends with the payload.
        if missing > self.count * self.size:
            raise JournalError("a record is longer than the file")
        while missing > 0:
            overflow = self.page(following)
            parts.append(overflow[4 : 4 + min(missing, self.usable - 4)])
            missing -= len(parts[-1])
            following = int.from_bytes(overflow[:4], "big")
        return b"".join(parts)


def _part(page: bytes, offset: int, length: int) -> bytes:
    part = page[offset : offset + length]
    if len(part) != length:
        raise JournalError("a record does not fit its page")
    return part


def _varint(data: bytes, offset: int) -> tuple[int, int]:
    value = 0
    for index in range(9):
        byte = data[offset + index]
        if index == 8:
            return value << 8 | byte, offset + 9
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, offset + index + 1
    raise AssertionError("the ninth byte ends it")


_INTEGERS = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8}
"""Bytes of an integer, by its type in the record."""


def _columns(payload: bytes) -> tuple[Column, ...]:
    end, offset = _varint(payload, 0)
    place = end
    columns: list[Column] = []
    while offset < end:
        kind, offset = _varint(payload, offset)
        column, place = _column(payload, kind, place)
        columns.append(column)
    if place != len(payload):
        raise JournalError("a record is not as long as it says")
    return tuple(columns)


def _column(payload: bytes, kind: int, place: int) -> tuple[Column, int]:
    if kind in (0, 8, 9):
        return (None if kind == 0 else kind - 8), place
    if kind in _INTEGERS:
        data = _part(payload, place, _INTEGERS[kind])
        return int.from_bytes(data, "big", signed=True), place + len(data)
    if kind == 7:
        return struct.unpack(">d", _part(payload, place, 8))[0], place + 8
    if kind < 12:
        raise JournalError("a column has a type that there is not")
    data = _part(payload, place, (kind - 12) // 2)
    return (data.decode() if kind % 2 else data), place + len(data)


def _committed_frames(wal: BinaryIO, size: int) -> dict[int, int]:
    """Return where the pages stand that were committed, by SQLite's own rules: up to the first frame that is torn."""
    header = wal.read(32)
    order = WAL_MAGIC.get(int.from_bytes(header[:4], "big"))
    if len(header) < 32 or order is None or int.from_bytes(header[8:12], "big") != size:
        return {}
    sums = _checksum(header[:24], (0, 0), order)
    if sums != struct.unpack(">II", header[24:32]):
        return {}
    committed: dict[int, int] = {}
    open_frames: dict[int, int] = {}
    while True:
        place = wal.tell()
        frame = wal.read(24 + size)
        if len(frame) < 24 + size or frame[8:16] != header[16:24]:
            return committed
        sums = _checksum(frame[24:], _checksum(frame[:8], sums, order), order)
        if sums != struct.unpack(">II", frame[16:24]):
            return committed
        number, pages_after_commit = struct.unpack(">II", frame[:8])
        open_frames[number] = place + 24
        if pages_after_commit:
            committed |= open_frames
            open_frames = {}


def _checksum(data: bytes, sums: tuple[int, int], order: str) -> tuple[int, int]:
    first, second = sums
    words = struct.unpack(f"{order}{len(data) // 4}I", data)
    for index in range(0, len(words), 2):
        first = (first + words[index] + second) & 0xFFFFFFFF
        second = (second + words[index + 1] + first) & 0xFFFFFFFF
    return first, second
