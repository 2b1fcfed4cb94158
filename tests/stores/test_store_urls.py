"""From a URL to a journal."""

from pathlib import Path

import pytest

from exeunt.actors.errors import InvalidConfiguration
from exeunt.stores import journal_from_url
from exeunt.stores.sqlite import SqliteStore
from exeunt.supervisor.journal import MemoryJournal
from exeunt.supervisor.journal.durable import DurableJournal


@pytest.mark.parametrize("url", ["memory:", "memory://", "MEMORY:"])
def test_memory(url: str) -> None:
    assert isinstance(journal_from_url(url), MemoryJournal)


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("sqlite:///journal.db", "journal.db"),
        ("sqlite:///plays/journal.db", "plays/journal.db"),
        ("sqlite:////var/lib/exeunt/journal.db", "/var/lib/exeunt/journal.db"),
        ("sqlite:///a%20name%23%3F%25.db", "a name#?%.db"),
        ("SQLite:///journal.db?synchronous=normal", "journal.db"),
        ("sqlite:///journal.db?synchronous=FULL", "journal.db"),
    ],
)
def test_sqlite(url: str, path: str) -> None:
    journal = journal_from_url(url)
    assert isinstance(journal, DurableJournal)
    assert journal.statistics().store == SqliteStore(Path(path)).name
    assert not Path(path).exists()


@pytest.mark.parametrize("url", ["postgresql://hall/plays", "postgres://hall/plays"])
def test_postgres(url: str) -> None:
    journal = journal_from_url(url)
    assert isinstance(journal, DurableJournal)
    assert journal.statistics().store == "postgresql:hall/plays"


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("", "begins with"),
        ("journal.db", "begins with"),
        ("/var/lib/journal.db", "begins with"),
        ("mysql://ann:s3cret@hall/plays", "not with 'mysql'"),
        ("memory:plays", "begins with"),
        ("sqlite:", "third slash"),
        ("sqlite://journal.db", "third slash"),
        ("sqlite:///", "third slash"),
        ("sqlite:///a#b.db", "%23"),
        ("sqlite:///a%00b.db", "names no file"),
        ("sqlite:///journal.db?synchronous=off", "'full' or 'normal'"),
        ("sqlite:///journal.db?synchronous=", "'full' or 'normal'"),
        ("sqlite:///journal.db?sync=full", "unknown options"),
        (b"sqlite:///journal.db", "not by bytes"),
        (None, "not by NoneType"),
    ],
)
def test_what_names_no_journal_is_refused(url: object, reason: str) -> None:
    with pytest.raises(InvalidConfiguration, match=reason) as caught:
        journal_from_url(url)  # type: ignore[arg-type]
    assert "s3cret" not in str(caught.value)
