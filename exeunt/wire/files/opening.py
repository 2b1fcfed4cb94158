"""Who keeps the files of a session."""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from exeunt.actors.errors import NoSessionFiles
from exeunt.wire.events.clock import iso
from exeunt.wire.events.mapper import WireEvent
from exeunt.wire.files.folder import FolderStore
from exeunt.wire.files.remote import RemoteStore
from exeunt.wire.files.session import SessionFiles, Surroundings
from exeunt.wire.files.store import FileStore
from exeunt.wire.files.workspace import Workspace

if TYPE_CHECKING:
    from exeunt.wire.serving.client import Peer
    from exeunt.wire.serving.hub import Hub
    from exeunt.wire.serving.served import Served


def store_for(hub: "Hub", tenant: str, session_id: str, peer: "Peer") -> FileStore | None:
    """Return where the files of a session are that *peer* makes or takes up: with it, with the server, or nowhere."""
    provider = peer.session_files
    if provider is not None:
        return RemoteStore(session_id, peer, provider, hub.options.files_timeout)
    return None if hub.disk is None else FolderStore(hub.disk, tenant, session_id)


def open_files(hub: "Hub", served: "Served", peer: "Peer", began: float) -> None:
    """Give a session that comes into memory its files. *began* is when it did, in seconds since the epoch."""
    store = store_for(hub, served.tenant, served.session_id, peer)
    if store is None:
        return
    provider = peer.session_files
    if provider is not None and served.config.workingDirectory is None:
        served.mapper.working_directory = provider.initial_cwd
    workspace = None
    if (served.config.infiniteSessions or {}).get("enabled") is not False:
        workspace = Workspace(
            id=served.session_id,
            cwd=served.working_directory,
            created_at=iso(began),
            updated_at=iso(hub.wall()),
            client_name=served.config.clientName or "",
        )
    around = Surroundings(
        whole=partial(_whole, hub, served),
        counts=hub.file_counts,
        spawn=hub.host.spawn,
        wall=hub.wall,
        done=partial(hub.closing.pop, served.session_id, None),
    )
    served.files = SessionFiles(store, workspace, around)


def attached(hub: "Hub", served: "Served", peer: "Peer") -> None:
    """Let a client that has come keep the files, where nobody else who is there does."""
    provider = peer.session_files
    if provider is None:
        return
    files = served.files
    if files is None:
        open_files(hub, served, peer, served.started)
        files = served.files
        if files is not None:
            # What has happened so far is in the log only.
            files.transcript.begins_behind(None)
            files.touch()
    elif isinstance(files.store, RemoteStore) and (
        files.store.peer is peer or files.store.peer not in served.clients
    ):
        files.store.hold(peer, provider)
        files.moved()


def left(served: "Served", peer: "Peer") -> None:
    """Let another client keep the files, if one can, now that *peer* has left; else they wait for one that does."""
    files = served.files
    if files is None or not isinstance(files.store, RemoteStore) or files.store.peer is not peer:
        return
    for other in served.clients:
        if other.session_files is not None:
            files.store.hold(other, other.session_files)
            files.moved()
            return
    if served.clients:
        files.store.peer = None
    # Else the session leaves with its client, who is still asked for what its end brings.


def files_of(served: "Served") -> SessionFiles:
    """Return the files of a session. Raises `NoSessionFiles`."""
    if served.files is None:
        raise NoSessionFiles(
            "the session has no files: let the client serve them (sessionFs), or start the server with --session-files"
        )
    return served.files


async def _whole(hub: "Hub", served: "Served") -> tuple[int, Sequence[WireEvent]]:
    """Read a session's log, as clients see it."""
    async with hub.histories:
        if served.session is not None and hub.host.find(served.session_id) is not None:
            events = await served.handle.get_events()
        else:
            events = await hub.host.journal.read(served.session_id)
        return events[-1].seq if events else 0, served.history(events)
