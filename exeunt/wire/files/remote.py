"""Files that a client keeps: requests of the namespace `sessionFs`."""

from datetime import datetime
from typing import Any, Literal

import msgspec
import trio

from exeunt.actors.errors import (
    ClientGone,
    ClientRefused,
    SessionFileNotFound,
    SessionFilesUnavailable,
    SessionFileTooLarge,
)
from exeunt.wire.files.paths import Conventions, joined
from exeunt.wire.files.store import READ_AT_MOST, Entry, FileInfo, Provider
from exeunt.wire.serving.client import Peer

PAUSE = 30.0
"""Seconds for which a client is not asked that has not answered: what waits for each of its files would wait anew."""

MOST_ENTRIES = 10_000
"""Of one folder."""


class _Problem(msgspec.Struct, frozen=True):
    code: str
    message: str = ""


class _Read(msgspec.Struct, frozen=True):
    content: str


class _Exists(msgspec.Struct, frozen=True):
    exists: bool


class _Stat(msgspec.Struct, frozen=True):
    isFile: bool  # noqa: N815 - the protocol's name
    isDirectory: bool  # noqa: N815
    size: int | float
    mtime: datetime
    birthtime: datetime


class _Named(msgspec.Struct, frozen=True):
    name: str
    type: Literal["file", "directory"]


class _Names(msgspec.Struct, frozen=True):
    entries: list[_Named]


class RemoteStore:
    """The files of one session, with one of its clients at a time."""

    def __init__(self, session_id: str, peer: Peer, provider: Provider, seconds: float) -> None:
        """*seconds* bound each request."""
        self._session_id = session_id
        self._seconds = seconds
        self._rests_until = 0.0
        self.peer: Peer | None = peer
        """Who keeps the files; `None` while nobody does who is connected."""
        self.provider = provider

    @property
    def conventions(self) -> Conventions:
        """How its whole paths are written."""
        return self.provider.conventions

    @property
    def is_there(self) -> bool:
        """Whether a client keeps the files now."""
        return self.peer is not None

    def hold(self, peer: Peer, provider: Provider) -> None:
        """Ask this client from now on."""
        self.peer, self.provider = peer, provider
        self._rests_until = 0.0

    def place(self, path: str) -> str:
        """Return the whole path of a file, as the client knows it."""
        return joined(self.provider.state_path, path, self.provider.conventions)

    async def read(self, path: str) -> str:
        """Return what a file holds."""
        # A file too long for one message would end the client's connection.
        if (await self.stat(path)).size > READ_AT_MOST:
            raise SessionFileTooLarge(f"{path!r:.80} has more than {READ_AT_MOST} bytes")
        found: _Read = await self._ask("readFile", path, _Read)
        return found.content

    async def write(self, path: str, content: str) -> None:
        """Make a file, or put *content* in the place of what it holds."""
        await self._ask("writeFile", path, None, content=content, mode=0o600)

    async def append(self, path: str, content: str) -> None:
        """Add to the end of a file."""
        await self._ask("appendFile", path, None, content=content, mode=0o600)

    async def exists(self, path: str) -> bool:
        """Say whether there is a file or a folder."""
        found: _Exists = await self._ask("exists", path, _Exists)
        return found.exists

    async def stat(self, path: str) -> FileInfo:
        """Return what is known of a file or a folder."""
        found: _Stat = await self._ask("stat", path, _Stat)
        return FileInfo(
            is_file=found.isFile,
            is_directory=found.isDirectory,
            size=int(found.size),
            modified=found.mtime.timestamp(),
            born=found.birthtime.timestamp(),
        )

    async def mkdir(self, path: str, *, recursive: bool = True) -> None:
        """Make a folder."""
        await self._ask("mkdir", path, None, recursive=recursive, mode=0o700)

    async def readdir(self, path: str) -> list[Entry]:
        """Return what is in a folder, by name."""
        found = (await self._ask("readdirWithTypes", path, _Names)).entries
        if len(found) > MOST_ENTRIES:
            raise SessionFilesUnavailable(
                f"{path!r:.80} has {len(found)} entries; at most {MOST_ENTRIES} are read"
            )
        entries = [Entry(one.name, one.type == "directory") for one in found]
        return sorted(entries, key=lambda entry: entry.name)

    async def rm(self, path: str, *, recursive: bool = False, force: bool = False) -> None:
        """Remove a file, or with *recursive* a folder."""
        try:
            await self._ask("rm", path, None, recursive=recursive, force=force)
        except SessionFileNotFound:
            if not force:
                raise

    async def rename(self, path: str, to: str) -> None:
        """Move a file or a folder."""
        await self._request("rename", path, {"src": self.place(path), "dest": self.place(to)}, expected=None)

    async def _ask(self, name: str, path: str, expected: Any, **more: Any) -> Any:
        return await self._request(name, path, {"path": self.place(path), **more}, expected)

    async def _request(self, name: str, path: str, params: dict[str, Any], expected: Any) -> Any:
        """Ask the client; return its answer as the type that is *expected*, or nothing where none is."""
        await trio.lowlevel.checkpoint_if_cancelled()
        if self.peer is None:
            raise SessionFilesUnavailable("the client that keeps the files has disconnected")
        if trio.current_time() < self._rests_until:
            raise SessionFilesUnavailable("the client that keeps the files does not answer at present")
        answer: Any = None
        params = {"sessionId": self._session_id, **params}
        method = f"sessionFs.{name}"
        began = trio.current_time()
        try:
            answer = await self.peer.ask(method, params, self._seconds)
        except ClientGone as error:
            if trio.current_time() - began >= self._seconds:
                self._rests_until = trio.current_time() + PAUSE
            raise SessionFilesUnavailable(str(error)) from error
        except ClientRefused as error:
            raise SessionFilesUnavailable(f"{method} of {path!r:.80}: {error}") from error
        _check(method, path, answer, wrapped=expected is not None)
        if expected is None:
            return None
        try:
            return msgspec.convert(answer, expected)
        except msgspec.ValidationError as error:
            raise SessionFilesUnavailable(
                f"{method} of {path!r:.80}: the client answered nonsense: {error}"
            ) from error


def _check(method: str, path: str, answer: Any, *, wrapped: bool) -> None:
    """Raise what the client says went wrong: beside a result under `error`, else in the place of one."""
    said: Any = answer
    if isinstance(answer, dict) and wrapped:
        said = answer.get("error")  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    elif wrapped:
        return  # no object, and so no result: the caller says so
    if said is None:
        return
    try:
        problem = msgspec.convert(said, _Problem)
    except msgspec.ValidationError as error:
        raise SessionFilesUnavailable(
            f"{method} of {path!r:.80}: the client answered nonsense: {error}"
        ) from error
    text = f"{method} of {path!r:.80}: {problem.message[:500] or problem.code[:80]}"
    raise SessionFileNotFound(text) if problem.code == "ENOENT" else SessionFilesUnavailable(text)
