"""Putting a shorter text in the place of the beginning of a conversation."""

from pathlib import Path

import pytest
import trio.testing

from exeunt import InvalidConfiguration, InvalidPrompt, Session, SessionBusy, SessionClosed, open_host
from exeunt.actors.errors import ContextError, EmptySeedPrompt
from exeunt.actors.events import Origin, SessionCompacted
from exeunt.actors.state import SessionState
from exeunt.testing import ScriptedModel, Sleepy, call, checked_host, say
from tests.actors.session_support import begin, open_session, plain_tool


def texts(session: Session) -> list[str]:
    """What the model would see."""
    return [message.content for message in session.history.messages()]


async def looked() -> str:
    """Look."""
    return "seen"


async def test_the_first_messages_become_one_and_the_rest_stays(
    autojump_clock: trio.testing.MockClock,
) -> None:
    model = ScriptedModel([say("one"), say("two"), say("three")])
    async with checked_host() as host:
        session = await open_session(host, model, system_message="SYS")
        await session.send_and_wait("first")
        await session.send_and_wait("second")
        event = await session.history.compact(
            "SUMMARY", messages=3, generation=0, trigger="mine", note={"tokens": 5}
        )
        assert (event.messages_removed, event.generation, event.trigger, event.note) == (
            3,
            1,
            "mine",
            {"tokens": 5},
        )
        assert texts(session) == ["SYS", "SUMMARY", "two"]
        assert session.statistics().generation == 1
        await session.send_and_wait("third")
        assert model.requests[2].contents == ("SYS", "SUMMARY", "two", "third")
        assert model.requests[2].roles == ("system", "user", "assistant", "user")
    model.verify()


async def test_a_result_is_not_left_without_its_call(autojump_clock: trio.testing.MockClock) -> None:
    model = ScriptedModel([call("look"), say("one"), call("look"), say("two")])
    async with checked_host() as host:
        session = await open_session(host, model, plain_tool("look", looked))
        await session.send_and_wait("first")
        for wrong in (0, -1, 2, 5):
            with pytest.raises(InvalidConfiguration, match="cannot be replaced"):
                await session.history.compact("S", messages=wrong, generation=0)
        await session.history.compact("S", messages=3, generation=0)
        assert texts(session) == ["S", "one"]
        # The ids of calls that have left may be used again.
        await session.send_and_wait("second")
    model.verify()


async def test_another_context_than_the_one_that_was_summed_up_stays_as_it_is(
    autojump_clock: trio.testing.MockClock,
) -> None:
    model = ScriptedModel([say("one"), say("two")])
    async with checked_host() as host:
        session = await open_session(host, model)
        await session.send_and_wait("first")
        await session.history.compact("S", messages=2, generation=0)
        with pytest.raises(InvalidConfiguration, match="no longer number 0"):
            await session.history.compact("T", messages=1, generation=0)
        assert texts(session) == ["S"]
        await session.send_and_wait("second")
    model.verify()


async def test_what_cannot_be_put_there_is_refused(autojump_clock: trio.testing.MockClock) -> None:
    model = ScriptedModel([say("one")])
    async with checked_host() as host:
        session = await open_session(host, model)
        await session.send_and_wait("first")
        compact = session.history.compact
        with pytest.raises(EmptySeedPrompt):
            await compact("  ", messages=1, generation=0)
        with pytest.raises(InvalidPrompt):
            await compact("x\ud800", messages=1, generation=0)
        with pytest.raises(InvalidConfiguration, match="trigger"):
            await compact("x", messages=1, generation=0, trigger="t" * 65)
        with pytest.raises(InvalidConfiguration, match="JSON"):
            await compact("x", messages=1, generation=0, note={"x": object()})
        assert texts(session) == ["first", "one"]
        await session.disconnect()
        with pytest.raises(SessionClosed):
            await compact("x", messages=1, generation=0)


async def test_a_session_at_work_is_busy(autojump_clock: trio.testing.MockClock) -> None:
    model = ScriptedModel([say("zero"), call("slow"), say("one")])
    async with checked_host() as host, trio.open_nursery() as nursery:
        session = await open_session(host, model, plain_tool("slow", Sleepy(3)))
        await session.send_and_wait("before")
        turn = begin(nursery, session.send_and_wait, "first")
        await trio.sleep(1)
        with pytest.raises(SessionBusy):
            await session.history.compact("S", messages=2, generation=0)
        await turn.wait()
        assert texts(session)[:2] == ["before", "zero"]
    model.verify()


async def test_a_compaction_survives_the_process(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/log.sqlite3"
    async with checked_host(journal=url) as host:
        session = await open_session(host, ScriptedModel([say("one"), say("two")]))
        await session.send_and_wait("first")
        await session.send_and_wait("second")
        await session.history.compact("S", messages=2, generation=0)
        [stored] = await host.journal.read(session.session_id, session.statistics().events)
        assert isinstance(stored, SessionCompacted)
    async with open_host(journal=url) as host:
        model = ScriptedModel([say("three")])
        session = await host.resume_session(session.session_id, model=model)
        await session.send_and_wait("third")
        assert model.requests[0].contents == ("S", "second", "two", "third")


async def test_going_back_behind_a_compaction_brings_the_messages_back(
    autojump_clock: trio.testing.MockClock,
) -> None:
    model = ScriptedModel([say("one"), say("two")])
    async with checked_host() as host:
        session = await open_session(host, model)
        await session.send_and_wait("first")
        end = next(event for event in await session.get_events() if event.type == "turn.end")
        await session.send_and_wait("second")
        await session.history.compact("S", messages=4, generation=0)
        await session.history.truncate(end.id)
        assert texts(session) == ["first", "one"]
    model.verify()


def test_a_log_that_replaces_more_messages_than_there_are_is_damaged() -> None:
    event = SessionCompacted(Origin.fresh(), 1, 0.0, "S", 1, 1)
    with pytest.raises(ContextError):
        SessionState().apply(event)
