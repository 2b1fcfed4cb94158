"""Files in a folder on the disk of the server.

Each step of a path is opened from the folder before it, and a symbolic link is never followed: whoever can write into
the folder cannot lead the server out of it. What takes time is done in a thread.
"""

import errno
import os
import shutil
import stat as modes
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

import trio

from exeunt.actors.errors import (
    InvalidConfiguration,
    InvalidFilePath,
    SessionFileNotFound,
    SessionFilesUnavailable,
    SessionFileTooLarge,
)
from exeunt.wire import below
from exeunt.wire.files.paths import Conventions
from exeunt.wire.files.store import READ_AT_MOST, Entry, FileInfo

T = TypeVar("T")

THREADS = 8
"""For all files of a server. A disk that hangs holds these, and not those of the journal."""

LONGEST_FOLDER = 200
"""Characters of the name of a session's folder: file systems take 255 bytes."""


def folder_name(session_id: str) -> str:
    """Return the name of a session's folder: its id, with what a file system might take for something else escaped."""
    name = quote(session_id, safe=" @+=,()")
    if name.startswith("."):
        name = "%2E" + name[1:]
    if len(name) > LONGEST_FOLDER:
        return f"{name[: LONGEST_FOLDER - 65]}-{sha256(session_id.encode()).hexdigest()}"
    return name


class Disk:
    """The folder in which the server keeps the files of its sessions, one folder for each."""

    def __init__(self, path: Path, seconds: float) -> None:
        """*seconds* bound each piece of work. Raises `InvalidConfiguration` unless *path* can be written to."""
        if not below.CAN_WALK:
            raise InvalidConfiguration("session files on the server's disk need a POSIX system")
        try:
            made = path.expanduser().absolute()
            made.mkdir(mode=0o700, parents=True, exist_ok=True)
            # Where the folder itself is behind a link, that is its owner's business.
            self.base = made.resolve(strict=True)
        except (OSError, RuntimeError) as error:
            raise InvalidConfiguration(f"session files cannot be kept in {path}: {error}") from error
        if not os.access(self.base, os.W_OK | os.X_OK):
            raise InvalidConfiguration(f"session files cannot be kept in {path}: it cannot be written to")
        self.seconds = seconds
        self.threads = trio.CapacityLimiter(THREADS)


class FolderStore:
    """The files of one session, in a folder of its own."""

    conventions: Conventions = "posix"
    is_there = True

    def __init__(self, disk: Disk, tenant: str, session_id: str) -> None:
        self._disk = disk
        # No session's own folder begins with a dot.
        self._folders = [".tenants", folder_name(tenant)] if tenant else []
        self._name = folder_name(session_id)

    def place(self, path: str) -> str:
        """Return the whole path of a file."""
        root = "/".join((str(self._disk.base), *self._folders, self._name))
        return f"{root}/{path}" if path else root

    async def read(self, path: str) -> str:
        """Return what a file holds."""

        def work(folder: int, name: str) -> str:
            with _opened(name, os.O_RDONLY, folder) as file:
                if os.fstat(file).st_size > READ_AT_MOST:
                    raise SessionFileTooLarge(f"{path!r:.80} has more than {READ_AT_MOST} bytes")
                with open(file, "rb", closefd=False) as content:
                    return content.read(READ_AT_MOST).decode("utf-8", "replace")

        return await self._do(path, work)

    async def write(self, path: str, content: str) -> None:
        """Make a file, or put *content* in the place of what it holds: whole, or not at all."""
        data = content.encode("utf-8", "replace")

        def work(folder: int, name: str) -> None:
            beside = f".{os.urandom(6).hex()}.tmp"
            try:
                _put(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, folder, data)
                with suppress(FileNotFoundError):
                    if modes.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
                        raise IsADirectoryError(errno.EISDIR, "it is a folder")
                os.replace(beside, name, src_dir_fd=folder, dst_dir_fd=folder)
            except BaseException:
                with suppress(OSError):
                    os.unlink(beside, dir_fd=folder)
                raise

        await self._do(path, work, make=True)

    async def append(self, path: str, content: str) -> None:
        """Add to the end of a file."""
        data = content.encode("utf-8", "replace")
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        await self._do(path, lambda folder, name: _put(name, flags, folder, data), make=True)

    async def exists(self, path: str) -> bool:
        """Say whether there is a file or a folder."""
        try:
            await self.stat(path)
        except SessionFileNotFound:
            return False
        return True

    async def stat(self, path: str) -> FileInfo:
        """Return what is known of a file or a folder."""

        def work(folder: int, name: str) -> FileInfo:
            found = os.stat(name, dir_fd=folder, follow_symlinks=False)
            return FileInfo(
                is_file=modes.S_ISREG(found.st_mode),
                is_directory=modes.S_ISDIR(found.st_mode),
                size=found.st_size,
                modified=found.st_mtime,
                born=getattr(found, "st_birthtime", found.st_ctime),
            )

        return await self._do(path, work)

    async def mkdir(self, path: str, *, recursive: bool = True) -> None:
        """Make a folder."""

        def work(folder: int, name: str) -> None:
            try:
                os.mkdir(name, 0o700, dir_fd=folder)
            except FileExistsError:
                if not recursive or not modes.S_ISDIR(
                    os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
                ):
                    raise

        await self._do(path, work, make=recursive)

    async def readdir(self, path: str) -> list[Entry]:
        """Return what is in a folder, by name."""

        def work(folder: int, name: str) -> list[Entry]:
            with _opened(name, os.O_RDONLY | os.O_DIRECTORY, folder) as found, os.scandir(found) as entries:
                return sorted(
                    (Entry(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries),
                    key=lambda entry: entry.name,
                )

        return await self._do(path, work)

    async def rm(self, path: str, *, recursive: bool = False, force: bool = False) -> None:
        """Remove a file, or with *recursive* a folder. A link is removed, not what it leads to."""

        def work(folder: int, name: str) -> None:
            if not modes.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
                os.unlink(name, dir_fd=folder)
            elif recursive:
                shutil.rmtree(name, dir_fd=folder)
            else:
                os.rmdir(name, dir_fd=folder)

        try:
            await self._do(path, work)
        except SessionFileNotFound:
            if not force:
                raise

    async def rename(self, path: str, to: str) -> None:
        """Move a file or a folder."""

        def work(folder: int, name: str) -> None:
            with self._parent(to, make=True) as (target, new_name):
                os.rename(name, new_name, src_dir_fd=folder, dst_dir_fd=target)

        await self._do(path, work)

    # --- On the way to a file -------------------------------------------------------------------------------

    async def _do(self, path: str, work: Callable[[int, str], T], *, make: bool = False) -> T:
        """Run *work* in a thread with the folder that *path* is in, and its name there."""
        disk = self._disk
        with trio.move_on_after(disk.seconds):
            try:
                return await trio.to_thread.run_sync(
                    partial(self._work, path, work, make), limiter=disk.threads, abandon_on_cancel=True
                )
            except OSError as error:
                raise _failure(path, error) from error
        raise SessionFilesUnavailable(f"{path!r:.80}: the disk did not answer within {disk.seconds:g} s")

    def _work(self, path: str, work: Callable[[int, str], T], make: bool) -> T:
        with self._parent(path, make=make) as (folder, name):
            return work(folder, name)

    @contextmanager
    def _parent(self, path: str, *, make: bool) -> Generator[tuple[int, str]]:
        steps = [*self._folders, self._name, *(step for step in path.split("/") if step)]
        name = steps.pop()
        if make:
            # Somebody may empty the disk while the server runs.
            self._disk.base.mkdir(mode=0o700, parents=True, exist_ok=True)
        with below.folder(self._disk.base, steps, make=make) as here:
            yield here, name


@contextmanager
def _opened(name: str, flags: int, folder: int) -> Generator[int]:
    file = os.open(name, flags | below.WITHOUT_WAITING, 0o600, dir_fd=folder)
    try:
        yield file
    finally:
        os.close(file)


def _put(name: str, flags: int, folder: int, data: bytes) -> None:
    with _opened(name, flags, folder) as file:
        below.require_file(file)
        left: Any = memoryview(data)
        while left:
            left = left[os.write(file, left) :]


def _failure(path: str, error: OSError) -> Exception:
    shown = path or "the folder of the session"
    if isinstance(error, FileNotFoundError):
        return SessionFileNotFound(f"there is no {shown!r:.80}")
    if error.errno in (errno.ELOOP, errno.ENOTDIR):
        return InvalidFilePath(
            f"{shown!r:.80} is not below the session's folder, or leads through a link or a file"
        )
    return SessionFilesUnavailable(f"{shown!r:.80}: {error.strerror or error}")
