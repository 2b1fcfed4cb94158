"""Databases for the logs of sessions, one file each. Each implements `exeunt.supervisor.journal.Store`.

`journal_from_url` makes the journal that a URL names: `memory:`, `sqlite:///path` or `postgresql://...`.
"""

from exeunt.stores.urls import journal_from_url

__all__ = ["journal_from_url"]
