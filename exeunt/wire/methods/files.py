"""Files of sessions: who keeps them, and the plan."""

from typing import Any

from exeunt.actors.errors import SessionFileNotFound
from exeunt.wire.connection import Connection
from exeunt.wire.files.opening import files_of
from exeunt.wire.files.paths import is_absolute
from exeunt.wire.files.remote import RemoteStore
from exeunt.wire.files.store import Provider, write_long
from exeunt.wire.files.workspace import PLAN
from exeunt.wire.messages.files import Content, SetProvider
from exeunt.wire.messages.sessions import OneSession
from exeunt.wire.rpc import FAILED, RpcError
from exeunt.wire.serving.served import Served

LONGEST_ROOT = 4096
"""Characters of the place where the files of a session begin: what Linux takes of a path."""

LONGEST_FILE = 8 * 1024 * 1024
"""Characters of a file that a client writes by a method: what can be read again in one."""


def set_provider(connection: Connection, params: SetProvider) -> dict[str, Any]:
    """Let this client keep the files of the sessions that it makes, or takes up, from now on.

    Refused while the tenant has a session in memory whose files are elsewhere: those would be looked for here.
    """
    for name, value in (("initialCwd", params.initialCwd), ("sessionStatePath", params.sessionStatePath)):
        if not is_absolute(value) or not value.isprintable() or len(value) > LONGEST_ROOT:
            raise RpcError(FAILED, f"{name} is an absolute path of at most {LONGEST_ROOT} characters")
    owner = connection.owner
    others = [
        one for one in connection.hub.sessions.values() if one.tenant == owner and not _kept_by_client(one)
    ]
    if others:
        raise RpcError(
            FAILED,
            f"{len(others)} sessions exist already whose files no client keeps: set the provider before the first",
        )
    connection.session_files = Provider(
        initial_cwd=params.initialCwd,
        state_path=params.sessionStatePath,
        conventions=params.conventions,
    )
    return {"success": True}


def _kept_by_client(served: Served) -> bool:
    return served.files is not None and isinstance(served.files.store, RemoteStore)


async def read_plan(connection: Connection, params: OneSession) -> dict[str, Any]:
    """Return the session's plan."""
    served = connection.hub.find(connection.owner, params.sessionId)
    nothing = {"exists": False, "content": None, "path": None}
    if served.files is None or served.files.workspace is None:
        return nothing
    store = served.files.store
    try:
        return {"exists": True, "content": await store.read(PLAN), "path": store.place(PLAN)}
    except SessionFileNotFound:
        return {**nothing, "path": store.place(PLAN)}


async def update_plan(connection: Connection, params: Content) -> None:
    """Put a text in the place of the session's plan."""
    served = connection.hub.find(connection.owner, params.sessionId)
    files = files_of(served)
    files.require_workspace()
    check_length(params.content)
    existed = await files.store.exists(PLAN)
    await write_long(files.store, PLAN, params.content)
    served.notify("session.plan_changed", {"operation": "update" if existed else "create"})


async def delete_plan(connection: Connection, params: OneSession) -> None:
    """Remove the session's plan; one that is not there is as good as removed."""
    served = connection.hub.find(connection.owner, params.sessionId)
    files = files_of(served)
    files.require_workspace()
    try:
        await files.store.rm(PLAN)
    except SessionFileNotFound:
        return
    served.notify("session.plan_changed", {"operation": "delete"})


def check_length(content: str) -> None:
    """Refuse what is too long for a file. Raises `RpcError`."""
    if len(content) > LONGEST_FILE:
        raise RpcError(FAILED, f"a file has at most {LONGEST_FILE} characters, not {len(content)}")
