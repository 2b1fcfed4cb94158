"""A client that keeps the files of its sessions, in memory, as the clients' own adapters answer."""

import json
from collections.abc import Callable
from typing import Any

from tests.wire.wire_client import Wire, WireClient

ROOT = "/state"

MOMENT = "2026-01-02T03:04:05.000Z"


class ClientFiles:
    """The files of all sessions of one or more clients, by session and whole path."""

    def __init__(self) -> None:
        self.files: dict[tuple[str, str], str] = {}
        self.folders: set[tuple[str, str]] = set()
        self.asked: list[tuple[str, str]] = []
        """Methods and paths, in order."""
        self.fault: Callable[[str, dict[str, Any]], Any] | None = None
        """Answers in the place of the files, unless it returns `None`; may raise `Silence` of `wire_client`."""

    def serve(self, client: WireClient) -> None:
        """Answer what is asked of *client*."""
        for name in (
            "readFile",
            "writeFile",
            "appendFile",
            "exists",
            "stat",
            "mkdir",
            "readdirWithTypes",
            "rm",
            "rename",
        ):
            client.handlers[f"sessionFs.{name}"] = self._handler(name)

    async def register(self, client: WireClient, root: str = ROOT, conventions: str = "posix") -> None:
        """Serve the files, and say so."""
        self.serve(client)
        done = await client.call(
            "sessionFs.setProvider", initialCwd="/work", sessionStatePath=root, conventions=conventions
        )
        assert done == {"success": True}

    async def keeper(self, wire: Wire, **config: Any) -> WireClient:
        """Connect a client that keeps its files here, and has made a session."""
        client = await wire.connect()
        await self.register(client)
        await client.create(**config)
        return client

    def text(self, path: str, session: str = "s", root: str = ROOT) -> str:
        """What a file holds."""
        return self.files[session, f"{root}/{path}"]

    def lines(self, session: str = "s") -> list[dict[str, Any]]:
        """The events of a transcript."""
        text = self.text("events.jsonl", session)
        assert text.endswith("\n")
        return [json.loads(line) for line in text.splitlines()]

    def _handler(self, name: str) -> Callable[[dict[str, Any]], Any]:
        def answer(params: dict[str, Any]) -> Any:
            session, path = params["sessionId"], params.get("path") or params["src"]
            self.asked.append((name, path))
            if self.fault is not None and (instead := self.fault(name, params)) is not None:
                return instead
            return getattr(self, f"_{name}")(session, path, params)

        return answer

    def _missing(self, path: str) -> dict[str, Any]:
        return {"code": "ENOENT", "message": f"no such file: {path}"}

    def _readFile(self, session: str, path: str, params: dict[str, Any]) -> Any:  # noqa: N802
        content = self.files.get((session, path))
        return {"content": ""} | ({"error": self._missing(path)} if content is None else {"content": content})

    def _writeFile(self, session: str, path: str, params: dict[str, Any]) -> Any:  # noqa: N802
        self.files[session, path] = params["content"]

    def _appendFile(self, session: str, path: str, params: dict[str, Any]) -> Any:  # noqa: N802
        self.files[session, path] = self.files.get((session, path), "") + params["content"]

    def _exists(self, session: str, path: str, params: dict[str, Any]) -> Any:
        return {"exists": (session, path) in self.files or self._is_folder(session, path)}

    def _is_folder(self, session: str, path: str) -> bool:
        below = any(s == session and p.startswith(f"{path}/") for s, p in self.files)
        return below or (session, path) in self.folders

    def _stat(self, session: str, path: str, params: dict[str, Any]) -> Any:
        content = self.files.get((session, path))
        folder = self._is_folder(session, path)
        found = {
            "isFile": content is not None,
            "isDirectory": folder,
            "size": len((content or "").encode()),
            "mtime": MOMENT,
            "birthtime": MOMENT,
        }
        return found if content is not None or folder else {**found, "error": self._missing(path)}

    def _mkdir(self, session: str, path: str, params: dict[str, Any]) -> Any:
        self.folders.add((session, path))

    def _readdirWithTypes(self, session: str, path: str, params: dict[str, Any]) -> Any:  # noqa: N802
        if not self._is_folder(session, path):
            return {"entries": [], "error": self._missing(path)}
        names: dict[str, str] = {}
        for one, file in self.files:
            if one == session and file.startswith(f"{path}/"):
                first, *rest = file.removeprefix(f"{path}/").split("/")
                names[first] = "directory" if rest else "file"
        for one, folder in self.folders:
            if one == session and folder.startswith(f"{path}/"):
                names.setdefault(folder.removeprefix(f"{path}/").split("/")[0], "directory")
        return {"entries": [{"name": name, "type": kind} for name, kind in names.items()]}

    def _rm(self, session: str, path: str, params: dict[str, Any]) -> Any:
        found = [key for key in self.files if key[0] == session and f"{key[1]}/".startswith(f"{path}/")]
        if not found and not self._is_folder(session, path) and not params["force"]:
            return self._missing(path)
        for key in found:
            del self.files[key]
        self.folders = {
            key for key in self.folders if key[0] != session or not f"{key[1]}/".startswith(f"{path}/")
        }
        return None

    def _rename(self, session: str, path: str, params: dict[str, Any]) -> Any:
        if (session, path) not in self.files:
            return self._missing(path)
        self.files[session, params["dest"]] = self.files.pop((session, path))
        return None
