"""A host that starts while its database is away, and one that would rather wait for it."""

import logging
import re

import pytest
import trio
from trio.testing import MockClock

from exeunt import HostOptions, InvalidConfiguration, JournalError, StoreUnavailable, open_host
from exeunt.supervisor.journal.durable import DurableJournal
from exeunt.testing import ScriptedModel
from exeunt.testing.faulty_store import MemoryStore


class LateStore(MemoryStore):
    """A store that cannot be opened at first."""

    name = "late"

    def __init__(self, error: Exception, times: int) -> None:
        super().__init__()
        self._error = error
        self._left = times
        self.attempts = 0

    def open(self) -> None:
        """Fail, or not any more."""
        self.attempts += 1
        if self._left:
            self._left -= 1
            raise self._error
        super().open()


def away(times: int) -> LateStore:
    return LateStore(StoreUnavailable("late cannot be opened: connection refused"), times)


async def test_without_a_wait_a_host_says_at_once_that_its_database_is_away(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    store = away(1)
    began = trio.current_time()
    with pytest.raises(StoreUnavailable, match="connection refused"):
        async with open_host(journal=DurableJournal(store)):
            raise AssertionError
    assert (trio.current_time() - began, store.attempts, caplog.records) == (0.0, 1, [])


async def test_a_host_that_waits_opens_once_the_database_is_there(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    store = away(10)
    began = trio.current_time()
    async with open_host(journal=DurableJournal(store), options=HostOptions(journal_wait=60)) as host:
        # 0.1, 0.2, 0.4, 0.8, 1.6 and five times 2 seconds.
        assert trio.current_time() - began == pytest.approx(13.1)
        session = await host.create_session(model=ScriptedModel(["hello"]))
        assert (await session.send_and_wait("hi")).content == "hello"
    assert store.attempts == 11
    waits, there = caplog.records
    assert {waits.levelno, there.levelno} == {logging.WARNING}
    why = "late cannot be opened: connection refused"
    assert waits.getMessage() == f"the journal late is unavailable; it is waited for, 60 s at most: {why}"
    assert there.getMessage() == "the journal late is there after 13.1 s"


async def test_a_wait_has_an_end(autojump_clock: MockClock) -> None:
    store = away(1_000_000)
    began = trio.current_time()
    with pytest.raises(StoreUnavailable, match="connection refused"):
        async with open_host(journal=DurableJournal(store), options=HostOptions(journal_wait=60)):
            raise AssertionError
    assert trio.current_time() - began == pytest.approx(60)


async def test_a_database_that_is_there_and_wrong_is_not_waited_for(autojump_clock: MockClock) -> None:
    store = LateStore(JournalError("late is a database of another program"), 1)
    with pytest.raises(JournalError, match="another program"):
        async with open_host(journal=DurableJournal(store), options=HostOptions(journal_wait=60)):
            raise AssertionError
    assert store.attempts == 1


async def test_a_wait_can_be_cancelled(autojump_clock: MockClock) -> None:
    store = away(1_000_000)
    with trio.move_on_after(5) as waited:
        async with open_host(journal=DurableJournal(store), options=HostOptions(journal_wait=3600)):
            raise AssertionError
    assert waited.cancelled_caught
    assert trio.current_time() == pytest.approx(waited.deadline, abs=0.01)


@pytest.mark.parametrize("wait", [-1, float("nan"), float("inf"), "5", None, True])
def test_a_wait_that_is_no_time_is_refused(wait: object) -> None:
    with pytest.raises(InvalidConfiguration, match=re.escape("journal_wait")):
        HostOptions(journal_wait=wait)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
