"""What every journal keeps, as checks that any implementation runs.

    KIT = JournalConformance(open_journal, durable=True)

    @pytest.mark.parametrize("check", JournalConformance.names())
    async def test_my_journal(check):
        await KIT.check(check)

Checks use sessions and a tenant of their own, so they may share a database. None waits for a clock; run them with the
real one, since journals use threads. A broken promise raises `InvariantViolation`.
"""

import inspect

import attrs

from exeunt.testing.journal_conformance.frame import OpenJournal
from exeunt.testing.journal_conformance.hosts import HostChecks
from exeunt.testing.journal_conformance.logs import LogChecks
from exeunt.testing.journal_conformance.sessions import SessionChecks

__all__ = ["JournalConformance", "OpenJournal"]


@attrs.frozen
class JournalConformance(LogChecks, SessionChecks, HostChecks):
    """All checks. *open_journal* opens a journal for the length of its block.

    *durable* says that each block sees what others wrote before, and that two may be open at once, as two hosts.
    """

    @classmethod
    def names(cls) -> list[str]:
        """Return the names of all checks. Those that need a durable journal pass at once on any other."""
        return [
            name for name, _ in inspect.getmembers(cls) if name.startswith(("a_", "an_", "what_", "two_"))
        ]

    async def check(self, name: str) -> None:
        """Run one check. Raises `InvariantViolation`."""
        await getattr(self, name)()
