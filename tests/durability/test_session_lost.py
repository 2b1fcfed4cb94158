"""A session that another host takes over, or whose log is damaged, while it is at work: who is told what."""

from pathlib import Path
from typing import NamedTuple

import pytest
import trio

from exeunt import Session, SessionClosed, SessionHost, SessionOwnedElsewhere, ToolInvocation, tool
from exeunt.actors.events import Event
from exeunt.actors.events.session import SessionLost
from exeunt.stores.sqlite import SqliteStore
from exeunt.supervisor.journal.durable import DurableJournal
from exeunt.testing import Gate, ScriptedModel, call, say
from exeunt.testing.faulty_store import MemoryStore
from tests.actors.clear_support import plain_tool
from tests.durability.resume_support import SESSION, create, doomed, durable, resume, until


class AtWork(NamedTuple):
    """A session in the middle of a tool call, on a host that does not know yet that another one has it."""

    session: Session
    gate: Gate
    winner: Session
    first: SessionHost


async def taken_over(first: SessionHost, second: SessionHost, **others: object) -> AtWork:
    gate = Gate()
    loser = await create(
        first, ScriptedModel([call("gate")], default=say("more")), plain_tool("gate", gate), **others
    )
    await loser.send("work")
    await gate.entered()
    await durable(loser)
    winner = await resume(second, ScriptedModel([], default=say("mine")), plain_tool("gate", gate))
    await winner.send_and_wait("go on")
    await durable(winner)
    return AtWork(loser, gate, winner, first)


@pytest.mark.parametrize("durability", ["default", "strict", "relaxed"])
async def test_everybody_who_waits_is_told_with_a_typed_error(durability: str) -> None:
    memory = MemoryStore()
    told: list[str] = []

    async def waits(session: Session, prompt: str) -> None:
        with pytest.raises(SessionOwnedElsewhere, match="Resume it") as caught:
            await session.send_and_wait(prompt, timeout=None)
        assert caught.value.session_id == SESSION
        told.append(prompt)

    async with doomed(memory) as first, doomed(memory) as second:
        at_work = await taken_over(first, second, durability=durability)
        written = await at_work.winner.get_events()
        with trio.fail_after(10):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(waits, at_work.session, "one")
                nursery.start_soon(waits, at_work.session, "two")
                await until(lambda: not first.actors())
        assert sorted(told) == ["one", "two"]
        at_work.gate.open()
        assert list(await at_work.winner.get_events()) == list(written)
        with pytest.raises(SessionOwnedElsewhere, match="resume it to have it here again"):
            await at_work.session.send("really?")


@pytest.mark.parametrize("durability", ["default", "strict"])
async def test_subscribers_see_an_event_and_streams_end_with_it(durability: str) -> None:
    memory = MemoryStore()
    seen: list[Event] = []
    streamed: list[Event] = []

    async def watch(session: Session, started: trio.Event) -> None:
        async with session.events() as stream:
            started.set()
            async for event in stream:
                streamed.append(event)

    async with doomed(memory) as first, doomed(memory) as second:
        at_work = await taken_over(first, second, durability=durability)
        at_work.session.on(seen.append)
        started = trio.Event()
        with trio.fail_after(10):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(watch, at_work.session, started)
                await started.wait()
                at_work.gate.open()
        last = streamed[-1]
        assert isinstance(last, SessionLost)
        assert (last.cause, last.ephemeral) == ("taken_over", True)
        assert [event for event in seen if isinstance(event, SessionLost)] == [last]
        assert "session.lost" not in {event.type for event in await at_work.winner.get_events()}
        assert first.metrics.value("exeunt_actor_failures_total", reason="taken_over") == 1


async def test_a_handler_that_runs_is_cancelled_and_may_not_write_any_more() -> None:
    memory = MemoryStore()
    began, cancelled = trio.Event(), trio.Event()

    @tool
    async def slow(invocation: ToolInvocation) -> str:
        """Wait for ever."""
        began.set()
        try:
            await trio.sleep_forever()
        finally:
            cancelled.set()
        raise AssertionError

    async with doomed(memory) as first, doomed(memory) as second:
        loser = await create(first, ScriptedModel([call("slow")]), slow)
        await loser.send("work")
        await began.wait()
        await durable(loser)
        winner = await resume(second, ScriptedModel([], default=say("mine")), slow)
        await durable(winner)
        with pytest.raises(SessionOwnedElsewhere):
            await loser.send("and this")
        with trio.fail_after(10):
            await cancelled.wait()
        assert first.actors() == []


async def test_a_session_that_has_ended_in_order_is_not_lost_afterwards() -> None:
    memory = MemoryStore()
    seen: list[str] = []
    async with doomed(memory) as first, doomed(memory) as second:
        at_work = await taken_over(first, second)
        at_work.session.on(lambda event: seen.append(event.type))
        await at_work.session.disconnect()
        await until(lambda: not first.actors())
        with pytest.raises((SessionClosed, SessionOwnedElsewhere)):
            await at_work.session.send("still there?")
    assert seen.count("session.shutdown") + seen.count("session.lost") == 1


async def test_a_session_that_is_deleted_by_another_process_is_lost(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    async with doomed(SqliteStore(path)) as first:
        session = await create(first, ScriptedModel([], default=say("hi")))
        await session.send_and_wait("hello")
        await durable(session)
        journal = DurableJournal(SqliteStore(path))
        async with trio.open_nursery() as nursery:
            await nursery.start(journal.run)
            await journal.delete(SESSION)
            nursery.cancel_scope.cancel()
        with pytest.raises(SessionOwnedElsewhere, match="or deleted"):
            await session.send("anybody?")
        assert first.actors() == []
