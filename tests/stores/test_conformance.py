"""All journals of the project keep what every journal keeps."""

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest

from exeunt.stores.postgres import PostgresStore
from exeunt.stores.sqlite import SqliteStore
from exeunt.supervisor.journal import Journal, MemoryJournal, Store
from exeunt.testing.journal_conformance import JournalConformance
from exeunt.testing.journals import running_journal

CHECKS = JournalConformance.names()


@asynccontextmanager
async def memory() -> AsyncGenerator[Journal]:
    yield MemoryJournal()


def over(store: Callable[[], Store]) -> Callable[[], AbstractAsyncContextManager[Journal]]:
    return lambda: running_journal(store())


def test_there_are_checks() -> None:
    assert len(CHECKS) > 20


@pytest.mark.parametrize("check", CHECKS)
async def test_memory(check: str) -> None:
    await JournalConformance(memory).check(check)


@pytest.mark.parametrize("synchronous", ["full", "normal"])
@pytest.mark.parametrize("check", CHECKS)
async def test_sqlite(check: str, synchronous: str, tmp_path: Path) -> None:
    store = over(lambda: SqliteStore(tmp_path / "journal.db", synchronous=synchronous))
    await JournalConformance(store, durable=True).check(check)


@pytest.mark.parametrize("check", CHECKS)
async def test_postgres(check: str, postgres_url: str) -> None:
    await JournalConformance(over(lambda: PostgresStore(postgres_url)), durable=True).check(check)
