"""The workspace of a session: what is known of it, files of clients, and checkpoints."""

from collections import deque
from typing import Any

from exeunt.actors.errors import NoSessionFiles, SessionFileNotFound
from exeunt.wire.connection import Connection
from exeunt.wire.events.clock import iso
from exeunt.wire.files import paths
from exeunt.wire.files.checkpoints import Checkpoint
from exeunt.wire.files.opening import files_of
from exeunt.wire.files.session import SessionFiles
from exeunt.wire.files.store import write_long
from exeunt.wire.files.workspace import FOLDER, context_of
from exeunt.wire.messages import files as fi
from exeunt.wire.messages.sessions import OneSession
from exeunt.wire.methods.files import check_length
from exeunt.wire.methods.settings import rename
from exeunt.wire.serving.served import Served

MOST_LISTED = 10_000
"""Files of one listing, and folders that are looked into for it."""


def get(connection: Connection, params: OneSession) -> dict[str, Any]:
    """Say what is known of a session, and where its files are."""
    return _workspace(connection.hub.find(connection.owner, params.sessionId))


def _workspace(served: Served) -> dict[str, Any]:
    files = served.files
    if files is None or files.workspace is None:
        return {"workspace": None}
    return {"workspace": files.workspace.described(), "path": files.store.place("")}


async def ensure(connection: Connection, params: fi.UpdateWorkspace) -> dict[str, Any]:
    """See to it that the session's folder is there."""
    served, files = _find(connection, params.sessionId)
    await files.store.mkdir(FOLDER)
    return update(connection, params) if params.context is not None else _workspace(served)


def update(connection: Connection, params: fi.UpdateWorkspace) -> dict[str, Any]:
    """Note what a client knows of the session."""
    served, files = _find(connection, params.sessionId)
    workspace = files.require_workspace()
    if params.name is not None:
        rename(served, params.name)
    if params.context is not None:
        workspace.context = context_of(params.context)
    workspace.updated_at = iso(connection.hub.wall())
    files.touch()
    return _workspace(served)


# --- Files of clients ----------------------------------------------------------------------------------------


async def list_files(connection: Connection, params: OneSession) -> dict[str, Any]:
    """List the files, those in folders too."""
    _, files = _find(connection, params.sessionId)
    found: list[str] = []
    folders, looked = deque([""]), 0
    while folders and len(found) < MOST_LISTED and looked < MOST_LISTED:
        folder = folders.popleft()
        looked += 1
        try:
            entries = await files.store.readdir(f"{FOLDER}/{folder}".rstrip("/"))
        except SessionFileNotFound:
            continue
        for entry in entries:
            path = f"{folder}/{entry.name}".lstrip("/")
            if entry.is_directory and path.count("/") < paths.MOST_STEPS:
                folders.append(path)
            elif not entry.is_directory:
                found.append(path)
    return {"files": sorted(found[:MOST_LISTED])}


async def read_file(connection: Connection, params: fi.OneFile) -> dict[str, Any]:
    """Return what a file holds."""
    _, files = _find(connection, params.sessionId)
    return {"content": await files.store.read(_inside(files, params.path))}


async def create_file(connection: Connection, params: fi.NewFile) -> None:
    """Write a file."""
    served, files = _find(connection, params.sessionId)
    path = _inside(files, params.path)
    check_length(params.content)
    existed = await files.store.exists(path)
    await write_long(files.store, path, params.content)
    data = {"path": path.removeprefix(f"{FOLDER}/"), "operation": "update" if existed else "create"}
    served.notify("session.workspace_file_changed", data)


async def stat_file(connection: Connection, params: fi.OneFile) -> dict[str, Any]:
    """Say what is known of a file or a folder."""
    _, files = _find(connection, params.sessionId)
    found = await files.store.stat(_inside(files, params.path))
    return {
        "isFile": found.is_file,
        "isDirectory": found.is_directory,
        "size": found.size,
        "mtimeMs": int(found.modified * 1000),
        "birthtimeMs": int(found.born * 1000),
    }


async def create_directory(connection: Connection, params: fi.NewDirectory) -> None:
    """Make a folder."""
    _, files = _find(connection, params.sessionId)
    path = _inside(files, params.path)
    if not params.recursive:
        # The folder of all files is no business of the client's.
        await files.store.mkdir(FOLDER)
    await files.store.mkdir(path, recursive=bool(params.recursive))


async def remove_path(connection: Connection, params: fi.RemovePath) -> None:
    """Remove a file or a folder."""
    _, files = _find(connection, params.sessionId)
    path = _inside(files, params.path)
    await files.store.rm(path, recursive=bool(params.recursive), force=bool(params.force))


async def rename_path(connection: Connection, params: fi.RenamePath) -> None:
    """Move a file or a folder."""
    _, files = _find(connection, params.sessionId)
    await files.store.rename(_inside(files, params.source), _inside(files, params.destination))


async def save_large_paste(connection: Connection, params: fi.Content) -> dict[str, Any]:
    """Write a text that is too long for a prompt into a file."""
    served = connection.hub.find(connection.owner, params.sessionId)
    if served.files is None or served.files.workspace is None:
        return {"saved": None}
    check_length(params.content)
    store = served.files.store
    filename = f"paste-{served.new_id()}.txt"
    path = f"{FOLDER}/{filename}"
    await write_long(store, path, params.content)
    size = len(params.content.encode("utf-8", "replace"))
    return {"saved": {"filePath": store.place(path), "filename": filename, "sizeBytes": size}}


def _inside(files: SessionFiles, path: str) -> str:
    """Return a client's path as one of the session's. Raises `InvalidFilePath`."""
    return f"{FOLDER}/{paths.relative(path, files.store.conventions)}"


def _find(connection: Connection, session_id: str) -> tuple[Served, SessionFiles]:
    """Return a session and its files. Raises `RpcError`, `NoSessionFiles`."""
    served = connection.hub.find(connection.owner, session_id)
    files = files_of(served)
    files.require_workspace()
    return served, files


# --- Checkpoints ---------------------------------------------------------------------------------------------


async def list_checkpoints(connection: Connection, params: OneSession) -> dict[str, Any]:
    """List the checkpoints, the oldest first."""
    try:
        _, files = _find(connection, params.sessionId)
    except NoSessionFiles:
        return {"checkpoints": []}
    async with files.checkpoints() as checkpoints:
        return {"checkpoints": [_described(one) for one in await checkpoints.all()]}


def _described(checkpoint: Checkpoint) -> dict[str, Any]:
    return {"number": checkpoint.number, "title": checkpoint.title, "filename": checkpoint.filename}


async def read_checkpoint(connection: Connection, params: fi.ReadCheckpoint) -> dict[str, Any]:
    """Return what a checkpoint holds."""
    try:
        _, files = _find(connection, params.sessionId)
    except NoSessionFiles:
        return {"content": None}
    async with files.checkpoints() as checkpoints:
        return {"content": await checkpoints.read(params.number)}


async def add_summary(connection: Connection, params: fi.AddSummary) -> dict[str, Any]:
    """Keep a summary as a checkpoint."""
    served, files = _find(connection, params.sessionId)
    check_length(params.content)
    async with files.checkpoints() as checkpoints:
        made = await checkpoints.add(params.title, params.content)
    return {"summary": _described(made), "workspace": _workspace(served)["workspace"]}


async def truncate_summaries(connection: Connection, params: fi.TruncateSummaries) -> dict[str, Any]:
    """Remove all checkpoints but the newest."""
    served, files = _find(connection, params.sessionId)
    async with files.checkpoints() as checkpoints:
        await checkpoints.keep_newest(max(0, params.keepCount))
    return _workspace(served)
