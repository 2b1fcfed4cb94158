"""`exeunt demo` with more guests than its host has room for: they wait, send again, and are counted."""

import io
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import trio
from rich.console import Console

from exeunt import HostOptions, JournalUnavailable, Overloaded, SessionHost, open_host
from exeunt.demo.performance import Performance
from exeunt.demo.refusals import PATIENCE
from exeunt.demo.screen import print_report
from exeunt.demo.verdict import Promise, judge
from exeunt.supervisor.journal.memory import MemoryJournal, MemoryLog

GUESTS = 12


class FullLog(MemoryLog):
    """A log of a `FullJournal`."""

    __slots__ = ("_journal",)

    def __init__(self, journal: "FullJournal") -> None:
        super().__init__()
        self._journal = journal

    @property
    def has_room(self) -> bool:  # type: ignore[override]  # pyright: ignore[reportIncompatibleVariableOverride]
        return not self._journal.full


class FullJournal(MemoryJournal):
    """Takes nothing new while it is `full`."""

    def __init__(self) -> None:
        super().__init__()
        self.full = False

    async def create(self, session_id: str) -> MemoryLog:
        if self.full:
            raise JournalUnavailable("the journal does not keep up; try again later", session_id=session_id)
        await super().create(session_id)
        log = self._logs[session_id] = FullLog(self)
        return log


async def _at_once(call: object, function: Callable[[], Any]) -> Any:
    await trio.lowlevel.checkpoint()
    return function()


@pytest.fixture(autouse=True)
def no_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Virtual time would jump over a worker thread that a busy machine delays."""
    monkeypatch.setattr("exeunt.actors.activities.handlers._in_thread", _at_once)


async def play(host: SessionHost) -> tuple[Performance, Sequence[Promise]]:
    performance = Performance(host, GUESTS, 1)
    await performance.run()
    return performance, await judge(performance)


def broken(promises: Sequence[Promise]) -> list[str]:
    return [promise.text for promise in promises if not promise.kept]


def report(performance: Performance, promises: Sequence[Promise]) -> str:
    """The report without its line breaks and columns."""
    output = io.StringIO()
    print_report(Console(file=output, width=80), performance, promises)
    return " ".join(output.getvalue().split())


async def test_guests_of_a_host_without_room_send_again_until_all_are_served(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with open_host(options=HostOptions(running_turns=2, waiting_turns=0)) as host:
        performance, promises = await play(host)
        refused = host.statistics().admission["refused"]
    assert performance.complete
    assert broken(promises) == []
    assert performance.refusals.count == refused > 0
    assert f"refused, resent {refused}" in report(performance, promises)


async def test_a_journal_that_is_full_for_a_while_delays_the_guests_and_their_arrival(
    autojump_clock: trio.testing.MockClock,
) -> None:
    journal = FullJournal()

    async def fill_and_empty() -> None:
        for full in (True, False, True, False):
            journal.full = full
            await trio.sleep(5)

    async with open_host(journal=journal) as host, trio.open_nursery() as nursery:
        nursery.start_soon(fill_and_empty)
        await trio.testing.wait_all_tasks_blocked()
        performance, promises = await play(host)
    assert performance.complete
    assert broken(promises) == []
    assert performance.refusals.count > 1


@pytest.mark.parametrize("full_after", [0, 4])
async def test_a_journal_that_stays_full_ends_the_run_with_a_report(
    autojump_clock: trio.testing.MockClock, full_after: float
) -> None:
    journal = FullJournal()

    async def fill() -> None:
        journal.full = not full_after
        await trio.sleep(full_after)
        journal.full = True

    async with open_host(journal=journal) as host, trio.open_nursery() as nursery:
        nursery.start_soon(fill)
        await trio.testing.wait_all_tasks_blocked()
        performance, promises = await play(host)
        journal.full = False
    assert not performance.complete
    assert isinstance(performance.refused, Overloaded)
    assert broken(promises) == [f"no message was refused for {PATIENCE:g} s"]
    assert PATIENCE <= performance.seconds < PATIENCE + 30
    assert str(performance.refused) in report(performance, promises)


async def test_a_crowd_has_the_time_that_it_takes(autojump_clock: trio.testing.MockClock) -> None:
    async with open_host() as host:
        assert Performance(host, 2_000, 1).longest == 300
    async with open_host() as host:
        assert Performance(host, 20_000, 1).longest == 1_200
