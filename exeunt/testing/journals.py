"""Durable journals for tests, without a host."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import trio

from exeunt.supervisor.journal import Store
from exeunt.supervisor.journal.durable import DurableJournal


@asynccontextmanager
async def running_journal(store: Store, *, bound: int = 100_000) -> AsyncGenerator[DurableJournal]:
    """Run a journal over *store* while the block runs; at its end everything is written.

    Raises `JournalError` when the store cannot be opened.
    """
    async with trio.open_nursery() as nursery:
        journal: DurableJournal = await nursery.start(DurableJournal(store, bound=bound).run)
        try:
            yield journal
        finally:
            nursery.cancel_scope.cancel()
