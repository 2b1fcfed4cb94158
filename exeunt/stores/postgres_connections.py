"""Connections to PostgreSQL: one that writes, a few that read, none that waits for ever."""

import contextlib
import os
import socket
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from exeunt.actors.errors import InvalidConfiguration, JournalError
from exeunt.supervisor.journal.store import StoreDamaged, StoreUnavailable

if TYPE_CHECKING:
    import psycopg

    Connection = psycopg.Connection[tuple[Any, ...]]

T = TypeVar("T")

CONNECT_SECONDS = 5
"""How long a connection may take to be made."""

LOCK_SECONDS = 5
"""How long the server waits for another host that holds a row: a commit takes milliseconds."""

STATEMENT_SECONDS = 30
"""How long the server works on one statement: a batch after an outage may be large, and a disk slow."""

SILENCE_SECONDS = 40.0
"""How long is waited for the server's answer: longer than it may work, so that only one that is gone is given up."""

_DAMAGED = ("XX001", "XX002")
"""SQLSTATE of damaged data and of a damaged index."""

_READ_ONLY = "25006"
"""SQLSTATE of a write to a standby: one that is about to become the primary, or the wrong host."""


class Connections:
    """The connections of one store. Methods may be called from several threads."""

    def __init__(self, url: str) -> None:
        """Raises `InvalidConfiguration` for what libpq does not understand."""
        self._parameters = _parameters(url)
        self.name = _name(self._parameters)
        self._open = False
        self._writing = threading.Lock()
        self._writer: Connection | None = None
        self._idle: list[Connection] = []
        """Connections for reading that nobody uses now: as many as there were readers at once."""
        self._watchdog = Watchdog()

    def open(self) -> None:
        """Allow connections. They are made when they are needed."""
        self._open = True

    def close(self) -> None:
        """Close all connections. May be called twice."""
        self._open = False
        writer, self._writer = self._writer, None
        idle, self._idle = self._idle, []
        for connection in (*idle, writer):
            if connection is not None:
                connection.close()
        self._watchdog.stop()

    def write(self, what: str, function: "Callable[[Connection], T]") -> T:
        """Call *function* with the connection that writes.

        When the connection turns out to be lost it is called once more with a new one: it must not mind that its first
        attempt succeeded unheard. Raises `StoreUnavailable`, `StoreDamaged`, `JournalError`.
        """
        if not self._writing.acquire(timeout=2 * SILENCE_SECONDS):
            raise StoreUnavailable(f"{self.name} is being written to for too long")
        try:
            connection, self._writer = self._writer, None
            connection, result = self._call(what, function, connection, repeat=True)
            self._writer = self._kept(connection)
            return result
        finally:
            self._writing.release()

    def read(self, what: str, function: "Callable[[Connection], T]", *, repeat: bool = True) -> T:
        """Call *function* with a connection that nobody else uses; twice, if the first is lost and *repeat* is set.

        Raises `StoreUnavailable`, `StoreDamaged`, `JournalError`.
        """
        try:
            connection = self._idle.pop() if repeat else None
        except IndexError:
            connection = None
        connection, result = self._call(what, function, connection, repeat=repeat)
        kept = self._kept(connection)
        if kept is not None:
            self._idle.append(kept)
        return result

    def _kept(self, connection: "Connection") -> "Connection | None":
        if self._open:
            return connection
        connection.close()
        return None

    def _call(
        self,
        what: str,
        function: "Callable[[Connection], T]",
        connection: "Connection | None",
        *,
        repeat: bool,
    ) -> "tuple[Connection, T]":
        with self._translated(what):
            if connection is not None and repeat:
                try:
                    return connection, self._watched(connection, function)
                except _connection_errors():
                    if not connection.closed:
                        connection.close()
                        raise
            connection = connection or self._connect()
            if connection.closed:
                connection = self._connect()
            try:
                return connection, self._watched(connection, function)
            except BaseException:
                connection.close()
                raise

    def _watched(self, connection: "Connection", function: "Callable[[Connection], T]") -> T:
        with self._watchdog.watching(connection):
            return function(connection)

    def _connect(self) -> "Connection":
        import psycopg

        if not self._open:
            raise StoreUnavailable(f"{self.name} is closed")
        connection = psycopg.connect(**self._parameters, autocommit=True)
        try:
            with self._watchdog.watching(connection):
                connection.execute(_settings().encode())
        except BaseException:
            connection.close()
            raise
        return connection

    @contextmanager
    def _translated(self, what: str) -> Generator[None]:
        import psycopg

        try:
            yield
        except psycopg.Error as error:
            state = error.sqlstate
            # The exception itself may hold the password: it goes no further than here.
            text = f"{self.name} cannot be {what}: {self._without_secrets(str(error))}"
            if state in _DAMAGED:
                raise StoreDamaged(text) from None
            if state == _READ_ONLY or isinstance(error, (psycopg.OperationalError, psycopg.InterfaceError)):
                raise StoreUnavailable(text) from None
            raise JournalError(text) from None

    def _without_secrets(self, text: str) -> str:
        text = " ".join(text.split())
        for secret in ("password", "sslpassword"):
            if self._parameters.get(secret):
                text = text.replace(str(self._parameters[secret]), "***")
        return text


class Watchdog:
    """Cuts connections whose server does not answer. A stopped server keeps its connections and times nothing out."""

    def __init__(self) -> None:
        self._deadlines: dict[Connection, float] = {}
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None

    @contextmanager
    def watching(self, connection: "Connection") -> Generator[None]:
        """Cut *connection* if the block takes longer than it may."""
        with self._changed:
            self._deadlines[connection] = time.monotonic() + SILENCE_SECONDS
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run, name="exeunt postgres watchdog", daemon=True
                )
                self._thread.start()
        try:
            yield
        finally:
            with self._changed:
                self._deadlines.pop(connection, None)

    def stop(self) -> None:
        """End the thread, once nobody is watched. May be called twice."""
        with self._changed:
            thread, self._thread = self._thread, None
            self._changed.notify()
        if thread is not None:
            thread.join()

    def _run(self) -> None:
        with self._changed:
            while self._thread is threading.current_thread():
                now = time.monotonic()
                for connection, deadline in list(self._deadlines.items()):
                    if deadline <= now:
                        del self._deadlines[connection]
                        _cut(connection)
                # New ones end later than this: no need to be woken for them.
                self._changed.wait(min(self._deadlines.values(), default=now + SILENCE_SECONDS) - now)


def _cut(connection: "Connection") -> None:
    """End the wait of the thread that uses *connection*. To close it is that thread's business."""
    # It may have ended by itself.
    with contextlib.suppress(Exception), socket.socket(fileno=os.dup(connection.fileno())) as copy:
        copy.shutdown(socket.SHUT_RDWR)


def _connection_errors() -> tuple[type[Exception], ...]:
    import psycopg

    return (psycopg.OperationalError, psycopg.InterfaceError)


def _settings() -> str:
    return (
        f"SET statement_timeout = '{STATEMENT_SECONDS}s'; SET lock_timeout = '{LOCK_SECONDS}s';"
        f" SET idle_in_transaction_session_timeout = '{STATEMENT_SECONDS}s';"
        # What was acknowledged must survive a crash of the server, whatever it was told for its other guests.
        " SELECT set_config('synchronous_commit', 'on', false)"
        " WHERE current_setting('synchronous_commit') = 'off'"
    )


def _parameters(url: str) -> dict[str, Any]:
    import psycopg
    from psycopg.conninfo import conninfo_to_dict

    try:
        parameters: dict[str, Any] = dict(conninfo_to_dict(url))
    except psycopg.Error:
        # What libpq says may repeat the URL, and with it the password.
        raise InvalidConfiguration(
            "this is no URL of a PostgreSQL database; write postgresql://user:password@host:port/database"
        ) from None
    return {
        "connect_timeout": CONNECT_SECONDS,
        "application_name": "exeunt",
        "keepalives_idle": 10,
        "keepalives_interval": 5,
        "keepalives_count": 3,
        **parameters,
    }


def _name(parameters: dict[str, Any]) -> str:
    host = parameters.get("host") or parameters.get("hostaddr") or "localhost"
    port = f":{parameters['port']}" if parameters.get("port") else ""
    return f"postgresql:{host}{port}/{parameters.get('dbname', '')}"
