"""From a URL to a journal."""

from urllib.parse import parse_qs, unquote

from exeunt.actors.errors import InvalidConfiguration
from exeunt.supervisor.journal import Journal, MemoryJournal, Store
from exeunt.supervisor.journal.durable import DurableJournal


def journal_from_url(url: str) -> Journal:
    """Return the journal that *url* names; nothing is opened yet.

    * `memory:` keeps logs as long as the process lives.
    * `sqlite:///relative/path` or `sqlite:////absolute/path`, with `?synchronous=normal` to give up the last
      commits when the machine (not the process) fails. `?`, `#` and `%` in the path are written as `%3F`, `%23`, `%25`.
    * `postgresql://user:password@host/database`, with all options that libpq knows; needs `exeunt[postgres]`.

    Raises `InvalidConfiguration`; the message does not repeat a password.
    """
    if not isinstance(url, str):
        raise InvalidConfiguration(f"a journal is named by a URL, not by {type(url).__name__}")
    scheme, colon, rest = url.partition(":")
    match scheme.lower() if colon else "":
        case "memory" if rest.strip("/") == "":
            return MemoryJournal()
        case "sqlite":
            return DurableJournal(_sqlite(rest))
        case "postgresql" | "postgres":
            from exeunt.stores.postgres import PostgresStore

            return DurableJournal(PostgresStore(url))
        case _:
            raise InvalidConfiguration(
                f"a journal's URL begins with memory:, sqlite:/// or postgresql://, not with {scheme!r:.40}"
            )


def _sqlite(rest: str) -> Store:
    from exeunt.stores.sqlite import SqliteStore

    place, _, query = rest.partition("?")
    path = unquote(place.removeprefix("///"))
    if not place.startswith("///") or not path or "#" in place or "\0" in path:
        raise InvalidConfiguration(
            f"'sqlite:{place:.200}' names no file: write sqlite:///path, with a third slash, and %23 for #"
        )
    options = parse_qs(query, keep_blank_values=True)
    unknown = sorted(set(options) - {"synchronous"})
    if unknown:
        raise InvalidConfiguration(f"unknown options {unknown} of a sqlite journal; there is synchronous")
    return SqliteStore(path, synchronous=options.get("synchronous", ["full"])[-1])
