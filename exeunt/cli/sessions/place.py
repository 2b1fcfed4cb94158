"""Which journal the command line means, and how it is opened."""

import os
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import quote, unquote

import trio

from exeunt import InvalidConfiguration
from exeunt.groups import lone
from exeunt.stores import journal_from_url
from exeunt.stores.sqlite_files import check_readable
from exeunt.supervisor.journal.durable import DurableJournal

FILE = "sessions.sqlite3"


def user_data(environment: Mapping[str, str] = os.environ, platform: str = sys.platform) -> Path:
    """Return the folder in which this system keeps the data of a user's programs."""
    home = Path.home()
    if platform == "win32":
        return Path(environment.get("LOCALAPPDATA") or home / "AppData" / "Local") / "exeunt"
    if platform == "darwin":
        return home / "Library" / "Application Support" / "exeunt"
    chosen = Path(environment.get("XDG_DATA_HOME") or "")
    # The specification of these variables says that a relative path is to be ignored.
    return (chosen if chosen.is_absolute() else home / ".local" / "share") / "exeunt"


def default_journal() -> str:
    """Return the URL of the journal of this user."""
    return f"sqlite:///{quote((user_data() / FILE).as_posix(), safe='/:')}"


def sqlite_path(url: str) -> Path | None:
    """Return the file of a SQLite journal, `None` for a journal of another kind."""
    scheme, _, rest = url.partition(":///")
    return Path(unquote(rest.partition("?")[0])) if scheme.lower() == "sqlite" and rest else None


@asynccontextmanager
async def open_stored(url: str | None, *, make: bool = False) -> AsyncGenerator[DurableJournal]:
    """Open the journal that *url* names, or the user's. Raises `InvalidConfiguration`, `JournalError`.

    One that is not there is made only if *make* says so.
    """
    chosen = url or default_journal()
    journal = journal_from_url(chosen)
    if not isinstance(journal, DurableJournal):
        raise InvalidConfiguration(f"{chosen} holds nothing: it lives as long as its process")
    path = sqlite_path(chosen)
    if path is not None and not make:
        check_readable(path)
    try:
        async with trio.open_nursery() as nursery:
            await nursery.start(journal.run)
            yield journal
            nursery.cancel_scope.cancel()
    except BaseExceptionGroup as group:
        raise lone(group) from None
