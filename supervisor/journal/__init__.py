"""Where the logs of sessions live.

Read `protocol` (what the host needs), `memory` (a journal without a disk), `store` (what a database must do),
`log`, `slices`, `durable` (a journal over a store: bounds and waiting) and `writer` (its thread: group commit), `fork`.
"""

from exeunt.supervisor.journal.fork import fork_log
from exeunt.supervisor.journal.memory import MemoryJournal, MemoryLog
from exeunt.supervisor.journal.protocol import Journal, Page, SessionMetadata
from exeunt.supervisor.journal.store import Row, Store, StoreDamaged, StoredSession, StoreUnavailable

__all__ = [
    "Journal",
    "MemoryJournal",
    "MemoryLog",
    "Page",
    "Row",
    "SessionMetadata",
    "Store",
    "StoreDamaged",
    "StoreUnavailable",
    "StoredSession",
    "fork_log",
]
