"""Passivation over databases: what is not durable stays, and what another host did meanwhile counts."""

from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest
import trio

from exeunt import HostOptions, JournalUnavailable, Session, SessionHost, StoreUnavailable, open_host
from exeunt.actors.state import SessionState
from exeunt.stores.sqlite import SqliteStore
from exeunt.supervisor.journal import Store
from exeunt.supervisor.journal.durable import DurableJournal
from exeunt.testing import Gate, ScriptedModel, call, checked_host, say
from exeunt.testing.faulty_store import FaultyStore, MemoryStore
from tests.actors.session_support import begin, ends, logged, open_session, plain_tool, watch
from tests.durability.resume_support import doomed, durable
from tests.supervisor.passivation_support import numbers, take, talker

SOON = 0.01
"""Seconds, of a real clock: with threads there is no other. Nothing is asserted about them."""


def passivating(store: Store, **keywords: Any) -> AbstractAsyncContextManager[SessionHost]:
    return checked_host(journal=DurableJournal(store), options=HostOptions(passivate_after=SOON), **keywords)


async def away(session: Session) -> None:
    """Wait until the session has left memory."""
    with trio.fail_after(30):
        await trio.lowlevel.checkpoint()
        while session.statistics().status != "passive":  # noqa: ASYNC110 - nothing tells of it but this
            await trio.sleep(SOON)


@pytest.mark.parametrize("durability", ["default", "strict", "relaxed"])
async def test_a_session_comes_and_goes_with_a_database(tmp_path: Path, durability: str) -> None:
    async with passivating(SqliteStore(tmp_path / "journal.db")) as host:
        model = ScriptedModel([], default=say("well"))
        session = await open_session(host, model, durability=durability)
        events = watch(session)
        stream = session.events(from_seq=1)
        for number in range(5):
            await session.send_and_wait(f"message {number}")
            await away(session)
            assert model.requests[-1].contents[::2] == tuple(f"message {n}" for n in range(number + 1))
        total = session.statistics().events
        # With `strict` the first event is shown once it is durable, which is after this has subscribed.
        assert numbers(events) == list(range(1 if durability == "strict" else 2, total + 1))
        assert numbers(await take(stream, total)) == list(range(1, total + 1))
        assert numbers(await session.get_events()) == list(range(1, total + 1))


async def test_eight_messages_at_once_over_a_database_are_all_answered(tmp_path: Path) -> None:
    async with passivating(SqliteStore(tmp_path / "journal.db")) as host, trio.open_nursery() as nursery:
        session = await open_session(host, ScriptedModel([], default=say("well")))
        await away(session)
        replies = [begin(nursery, session.send_and_wait, f"message {number}") for number in range(8)]
        for reply in replies:
            assert (await reply.wait()).value.content == "well"
        assert len(await logged(session, "message.accepted")) == 8
        assert await ends(session) == ["completed"] * 8


async def test_a_session_stays_while_its_events_are_not_durable() -> None:
    store = FaultyStore()
    async with passivating(store) as host:
        session = await open_session(host, talker("one", "two"), durability="relaxed")
        await durable(session)
        await away(session)
        store.hang()
        await session.send_and_wait("A")
        for _ in range(20):
            await trio.sleep(SOON)
            assert session.statistics().status == "live"
        store.resume()
        await away(session)
        assert (await session.send_and_wait("B")).content == "two"


async def test_a_database_that_is_gone_leaves_the_session_passive_until_it_is_back() -> None:
    store = FaultyStore()
    async with passivating(store) as host:
        session = await open_session(host, talker("one"))
        await durable(session)
        await away(session)
        store.lose_connection()
        for _ in range(2):
            with pytest.raises(StoreUnavailable, match="connection lost"):
                await session.send("A")
        assert session.statistics().status == "passive"
        store.heal()
        assert (await session.send_and_wait("B")).content == "one"


async def test_a_message_is_refused_while_the_journal_takes_nothing_new() -> None:
    store = FaultyStore()
    async with passivating(store) as host, trio.open_nursery() as nursery:
        session = await open_session(host, talker("one"))
        other = await open_session(host, talker("one"))
        await durable(session)
        await away(session)
        store.be_full()
        attempts = store.attempts
        sent = begin(nursery, other.send_and_wait, "A")
        await store.wait_attempts(attempts + 2)
        with pytest.raises(JournalUnavailable):
            await session.send("A")
        look = other.statistics()
        assert (look.journal_available, look.unsaved > 0) == (False, True)
        store.heal()
        assert (await sent.wait()).value.content == "one"
        with trio.fail_after(30):
            await trio.lowlevel.checkpoint()
            while not host.journal.statistics().available:  # noqa: ASYNC110 - nothing tells of it but this
                await trio.sleep(SOON)
        assert (await session.send_and_wait("B")).content == "one"
        assert len(await logged(session, "message.accepted")) == 1
        await durable(session)
        look = session.statistics()
        assert (look.journal_available, look.unsaved) == (True, 0)


async def test_work_that_another_host_has_left_open_is_closed_by_a_waking() -> None:
    store, gate = FaultyStore(), Gate()
    # Not a checked one: the checks would miss the events of the other host.
    options = HostOptions(passivate_after=SOON)
    async with open_host(journal=DurableJournal(store), options=options) as host:
        session = await open_session(host, talker("three"), session_id="me")
        await durable(session)
        await away(session)
        # Another host takes the session up, and its process ends in the middle of a turn.
        async with doomed(store.inner) as second:
            model = ScriptedModel([call("gate")])
            tools = [plain_tool("gate", gate)]
            other = await second.resume_session("me", model=model, tools=tools)
            await other.send("A")
            await gate.entered()
            await durable(other)
            assert isinstance(store.inner, MemoryStore)
            left = store.inner.copy()
        store.inner = left
        assert (await session.send_and_wait("B")).content == "three"
        assert await ends(session) == ["interrupted", "completed"]
        (call_end,) = await logged(session, "tool.execution_complete")
        assert str(call_end.outcome) == "interrupted"
        assert len(await logged(session, "session.resume")) == 2
        assert await logged(session, "session.restarted") == []
        SessionState.replay(await session.get_events())
