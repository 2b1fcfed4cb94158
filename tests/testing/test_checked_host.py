"""A checked host finds what is wrong at its end: in the streams of events, in the metrics, label by label."""

from collections.abc import Sequence
from typing import Any

import pytest
from trio.testing import MockClock

from exeunt import InvariantViolation, Session, SessionHost, approve_all
from exeunt.actors import events
from exeunt.actors.events import Event, Origin
from exeunt.actors.outcomes import TurnEndReason
from exeunt.testing import ScriptedModel, call, checked_host
from tests.actors.turn_support import read


def end_of_a_turn_that_never_began(reason: TurnEndReason = TurnEndReason.COMPLETED) -> Event:
    return events.TurnEnd(Origin.fresh(), 1, 0.0, "t1", reason, 0, 1, 0.0, False)


async def a_turn(host: SessionHost) -> Session:
    session = await host.create_session(
        model=ScriptedModel([call("read"), "done"]), tools=[read], on_permission_request=approve_all
    )
    await session.send_and_wait("go")
    return session


async def test_a_host_in_which_all_is_well_ends_well(autojump_clock: MockClock) -> None:
    async with checked_host() as host:
        await a_turn(host)


@pytest.mark.parametrize("settled", [True, False])
async def test_a_stream_of_events_that_cannot_be_is_found_at_the_end(
    autojump_clock: MockClock, settled: bool
) -> None:
    async def play() -> None:
        async with checked_host(settled=settled) as host:
            session = await a_turn(host)
            for observer in host.observers:
                # A log goes on with the next number.
                observer(session.session_id, [events.SystemMessage(Origin.fresh(), 99, 0.0, "late")])

    with pytest.raises(InvariantViolation, match="99"):
        await play()


async def test_work_that_is_left_is_found_unless_that_is_meant(autojump_clock: MockClock) -> None:
    async def play(settled: bool) -> None:
        async with checked_host(settled=settled) as host:
            session = await host.create_session(model=ScriptedModel([], default="later"))
            await session.send("go")

    with pytest.raises(InvariantViolation):
        await play(settled=True)
    await play(settled=False)


async def test_a_count_too_many_is_found(autojump_clock: MockClock) -> None:
    async def play() -> None:
        async with checked_host() as host:
            await a_turn(host)
            host.metrics.observe("somebody", [end_of_a_turn_that_never_began()])

    text = r"exeunt_turn_terminations_total of 'completed' is 2 after 1"
    with pytest.raises(InvariantViolation, match=text):
        await play()


class Mislabelling:
    """Passes events on to the metrics, with the ends of turns under another reason."""

    def __init__(self, host: SessionHost) -> None:
        self._observe = host.metrics.observe

    def __call__(self, session_id: str, seen: Sequence[Event]) -> None:
        self._observe(session_id, [self._changed(event) for event in seen])

    def _changed(self, event: Any) -> Event:
        wrong = end_of_a_turn_that_never_began(TurnEndReason.LIMIT)
        return wrong if isinstance(event, events.TurnEnd) else event


async def test_a_count_under_another_label_is_found(autojump_clock: MockClock) -> None:
    async def play() -> None:
        async with checked_host() as host:
            host.observers[host.observers.index(host.metrics.observe)] = Mislabelling(host)
            await a_turn(host)

    with pytest.raises(InvariantViolation, match="exeunt_turn_terminations_total"):
        await play()
