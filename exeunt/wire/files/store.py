"""What a session needs of who keeps its files."""

from typing import Protocol

import attrs

from exeunt.wire.files.paths import Conventions

READ_AT_MOST = 8 * 1024 * 1024
"""Bytes of a file that are read. Of a client they come as JSON, where one may take four times as much, in one message
of at most 32 MiB: a longer one would end its connection."""

WRITE_AT_ONCE = 256 * 1024
"""Characters of one request: what is longer is appended in pieces."""


@attrs.frozen(kw_only=True)
class Provider:
    """What a client has said of the files that it keeps."""

    initial_cwd: str
    """The working directory of sessions that name none."""
    state_path: str
    """Where the files of a session begin."""
    conventions: Conventions = "posix"


@attrs.frozen(kw_only=True)
class FileInfo:
    """What is known of a file or a folder."""

    is_file: bool
    is_directory: bool
    size: int
    """Bytes."""
    modified: float
    """Seconds since the epoch."""
    born: float
    """Seconds since the epoch; of systems that do not know it, the time of the last change."""


@attrs.frozen
class Entry:
    """One name in a folder."""

    name: str
    is_directory: bool


class FileStore(Protocol):
    """The files of one session. Paths are relative, as `paths.relative` makes them; `""` is the folder itself.

    Every method raises `SessionFilesUnavailable` when it fails or takes too long, and may be cancelled; what it was to
    do may then have been done or not. Texts are UTF-8.
    """

    @property
    def conventions(self) -> Conventions:
        """How its whole paths are written."""
        ...

    @property
    def is_there(self) -> bool:
        """Whether it can be asked at all."""
        ...

    def place(self, path: str) -> str:
        """Return the whole path of a file, as those know it who may look at it."""
        ...

    async def read(self, path: str) -> str:
        """Return what a file holds. Raises `SessionFileNotFound`, `SessionFileTooLarge`."""
        ...

    async def write(self, path: str, content: str) -> None:
        """Make a file, or put *content* in the place of what it holds. Folders before it are made."""
        ...

    async def append(self, path: str, content: str) -> None:
        """Add to the end of a file, which is made if it is not there."""
        ...

    async def exists(self, path: str) -> bool:
        """Say whether there is a file or a folder."""
        ...

    async def stat(self, path: str) -> FileInfo:
        """Return what is known of a file or a folder. Raises `SessionFileNotFound`."""
        ...

    async def mkdir(self, path: str, *, recursive: bool = True) -> None:
        """Make a folder; with *recursive* those before it too, and one that is there is no error."""
        ...

    async def readdir(self, path: str) -> list[Entry]:
        """Return what is in a folder, by name. Raises `SessionFileNotFound`."""
        ...

    async def rm(self, path: str, *, recursive: bool = False, force: bool = False) -> None:
        """Remove a file, or with *recursive* a folder. Raises `SessionFileNotFound`, unless *force*."""
        ...

    async def rename(self, path: str, to: str) -> None:
        """Move a file or a folder; a file at *to* is replaced. Raises `SessionFileNotFound`."""
        ...


async def write_long(store: FileStore, path: str, content: str) -> None:
    """Write a file in pieces. Raises `SessionFilesUnavailable`; then the file may hold the first of them."""
    await store.write(path, content[:WRITE_AT_ONCE])
    for begin in range(WRITE_AT_ONCE, len(content), WRITE_AT_ONCE):
        await store.append(path, content[begin : begin + WRITE_AT_ONCE])
