"""Ctrl-C in the middle of a handler: the program ends, and what the log says is whole."""

import signal
from collections.abc import Callable
from typing import cast

import pytest
import trio

from exeunt import Session, approve_all, open_host, tool
from exeunt.actors.events import (
    AssistantTurnStart,
    Event,
    MessageAccepted,
    SessionShutdown,
    ToolExecutionStart,
)
from exeunt.actors.state import SessionState
from exeunt.actors.state.session_state import FOLDS
from exeunt.supervisor.journal import MemoryJournal
from exeunt.testing import ScriptedModel, call, say


@tool
async def look_up(word: str) -> str:
    """Look a word up."""
    return f"{word}: a way out"


def run_until_interrupted(journal: MemoryJournal, prepare: Callable[[Session], None]) -> None:
    """Hold one conversation; *prepare* arranges for an interrupt in the middle of it."""

    async def main() -> None:
        model = ScriptedModel([call("look_up", word="exit"), say("found")])
        async with open_host(journal=journal) as host:
            session = await host.create_session(
                model=model, tools=[look_up], on_permission_request=approve_all, session_id="one"
            )
            prepare(session)
            await session.send_and_wait("look it up")

    with pytest.raises(BaseException) as caught:  # noqa: PT011 - alone, or in a group of each nursery
        trio.run(main)
    assert is_interrupt(caught.value)


def is_interrupt(error: BaseException) -> bool:
    if isinstance(error, BaseExceptionGroup):
        group = cast("BaseExceptionGroup[BaseException]", error)
        return all(is_interrupt(part) for part in group.exceptions)
    return isinstance(error, KeyboardInterrupt)


def logged(journal: MemoryJournal) -> list[Event]:
    return [*trio.run(journal.open, "one").events]


@pytest.mark.parametrize("event_type", [AssistantTurnStart, ToolExecutionStart])
def test_an_interrupt_between_two_events_of_a_handler_leaves_the_log_whole(
    event_type: type[Event], monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = MemoryJournal()
    fold = FOLDS[event_type]

    def interrupted(state: SessionState, event: Event) -> None:
        signal.raise_signal(signal.SIGINT)
        fold(state, event)

    def prepare(session: Session) -> None:
        monkeypatch.setitem(FOLDS, event_type, interrupted)

    run_until_interrupted(journal, prepare)
    monkeypatch.undo()
    events = logged(journal)
    assert isinstance(events[-1], SessionShutdown)
    state = SessionState.replay(events)
    assert (state.turn_id, state.step, state.open_calls, state.waiting) == (None, None, None, 0)


def test_an_interrupt_in_a_subscriber_hides_no_event_from_the_others() -> None:
    journal = MemoryJournal()
    seen: list[Event] = []

    def prepare(session: Session) -> None:
        session.on(interrupt_at(ToolExecutionStart))
        session.on(seen.append)

    run_until_interrupted(journal, prepare)
    numbers = [event.seq for event in seen if not event.ephemeral]
    assert numbers == [event.seq for event in logged(journal)][-len(numbers) :]
    assert isinstance(seen[0], MessageAccepted)


def test_an_interrupt_while_the_host_ends_does_not_keep_it_from_ending() -> None:
    journal = MemoryJournal()

    def prepare(session: Session) -> None:
        session.on(interrupt_at(SessionShutdown))

    run_until_interrupted(journal, prepare)
    assert isinstance(logged(journal)[-1], SessionShutdown)


def interrupt_at(event_type: type[Event]) -> Callable[[Event], None]:
    def interrupt(event: Event) -> None:
        if isinstance(event, event_type):
            signal.raise_signal(signal.SIGINT)

    return interrupt
