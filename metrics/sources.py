"""Numbers that are read when somebody asks: from the host's `statistics()`, in the thread of its loop."""

import logging
import queue
import threading
from collections.abc import Callable, Mapping
from typing import Final, Generic, Protocol, TypeVar

import attrs
import trio

_log: Final = logging.getLogger(__name__)

ANSWER_WAIT: Final = 2.0
"""Seconds that a scrape waits for a busy loop. Prometheus gives up after 10 by default; the counters, which
need no loop, must be there before."""


class HostStatisticsLike(Protocol):
    """What the metrics read of a host. A value: nothing in it changes after it was returned."""

    @property
    def sessions(self) -> Mapping[str, int]:
        """Sessions in memory by state: `live`, `restarting`, `stopping`, `failed`."""
        ...

    @property
    def mailbox_depth(self) -> int:
        """Accepted messages that are not yet in a context, over all sessions."""
        ...

    @property
    def mailbox_refused(self) -> int:
        """Messages refused with `MailboxFull` since the host began."""
        ...

    @property
    def tool_calls_in_flight(self) -> int:
        """Tool calls between their start and their recorded outcome."""
        ...

    @property
    def pending_requests(self) -> int:
        """Approvals and questions to users that nobody has answered."""
        ...

    @property
    def subscriber_lag(self) -> int:
        """Times that a subscriber's buffer was full since the host began."""
        ...

    @property
    def admission(self) -> Mapping[str, int]:
        """Decisions since the host began: `granted`, `queued`, `refused`."""
        ...


StatisticsCallable = Callable[[], HostStatisticsLike]

S = TypeVar("S")


@attrs.frozen
class StatisticsSource(Generic[S]):
    """Where statistics come from, readable from any thread."""

    statistics: Callable[[], S]
    token: trio.lowlevel.TrioToken | None
    """The loop in whose thread the callable must run; `None`: any thread will do."""
    thread: int

    @classmethod
    def here(cls, statistics: Callable[[], S]) -> "StatisticsSource[S]":
        """Return a source that belongs to the running loop, if one runs in this thread."""
        token = trio.lowlevel.current_trio_token() if trio.lowlevel.in_trio_run() else None
        return cls(statistics, token, threading.get_ident())

    def read(self) -> S | None:
        """Return the statistics, or `None` if the loop has ended or does not answer in time, or they fail.

        Never raises: a scrape without gauges still has the counters, and no gauge is better than an old one.
        """
        if self.token is None or threading.get_ident() == self.thread:
            return self._call()
        # A dictionary of sessions must not be walked while the loop changes it, so the loop walks it. A stuck
        # loop costs the scrape its gauges, not its end: `trio.from_thread` would wait as long as it takes.
        answers: queue.SimpleQueue[S | None] = queue.SimpleQueue()
        try:
            self.token.run_sync_soon(lambda: answers.put(self._call()))
            return answers.get(timeout=ANSWER_WAIT)
        except trio.RunFinishedError:
            return None
        except queue.Empty:
            _log.warning("a scrape goes without gauges: the loop did not answer within %.0f s", ANSWER_WAIT)
            return None

    def _call(self) -> S | None:
        try:
            return self.statistics()
        except Exception:  # noqa: BLE001 - a scrape must not fail for the host's fault
            _log.exception("a scrape goes without gauges: the statistics raised")
            return None
