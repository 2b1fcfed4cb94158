"""Several who take up one session at once: on one host, and on two."""

from collections.abc import Sequence
from pathlib import Path

import pytest
import trio
import trio.testing

from exeunt import Session, SessionClosed, SessionExists, SessionOwnedElsewhere
from exeunt.actors.events import Event
from exeunt.stores.postgres import PostgresStore
from exeunt.stores.sqlite import SqliteStore
from exeunt.supervisor.held import TAKE_UPS
from exeunt.supervisor.journal import Row, Store
from exeunt.testing import Gate, ScriptedModel, call, say
from exeunt.testing.faulty_store import FaultyStore, MemoryStore
from tests.actors.clear_support import logged, plain_tool, settled, types
from tests.durability.resume_support import SESSION, checked, create, doomed, durable, resume, until


async def stored(queued: int = 0) -> MemoryStore:
    """Return a store with the session of the test, which has answered once, and messages that wait."""
    store = MemoryStore()
    gate = Gate()
    async with doomed(store) as host:
        session = await create(host, ScriptedModel(["hi"], default=call("gate")), plain_tool("gate", gate))
        await session.send_and_wait("hello")
        for number in range(queued):
            await session.send(f"message {number}")
        await durable(session)
        return store.copy()


@pytest.mark.parametrize("go_on", [True, False])
async def test_eight_resumes_at_once_make_one_actor(go_on: bool) -> None:
    store = await stored(queued=2)
    model = ScriptedModel([], default=say("well"))
    async with checked(store, settled=go_on) as host:
        sessions: list[Session] = []

        async def take_up() -> None:
            sessions.append(await resume(host, model, go_on=go_on))

        async with trio.open_nursery() as nursery:
            for _ in range(8):
                nursery.start_soon(take_up)
        assert len(sessions) == 8
        (actor,) = host.actors()
        assert {session.statistics() for session in sessions} == {Session(actor).statistics()}
        if go_on:
            await settled(sessions[0])
        assert len(await logged(sessions[0], "session.resume")) == 1
        assert model.calls == (2 if go_on else 0)


async def test_a_resume_that_is_cancelled_hurts_no_other() -> None:
    store = await stored()
    async with checked(store) as host:
        with trio.CancelScope() as scope:
            async with trio.open_nursery() as nursery:
                for _ in range(3):
                    nursery.start_soon(resume, host, ScriptedModel([]))
                scope.cancel()
        model = ScriptedModel(["well"])
        session = await resume(host, model)
        assert (await session.send_and_wait("are you there?")).content == "well"
        assert len(await logged(session, "session.resume")) == 1
    model.verify()


async def test_a_resume_of_a_live_session_attaches_to_it() -> None:
    gate = Gate()
    model = ScriptedModel([call("gate"), "done"])
    async with checked(MemoryStore()) as host:
        session = await create(host, model, plain_tool("gate", gate))
        seen: list[Event] = []
        session.on(seen.append)
        await session.send("work")
        await gate.entered()
        other = await host.resume_session(session.session_id, continue_pending_work=True)
        assert other.statistics().in_flight == session.statistics().in_flight != ()
        gate.open()
        await settled(other)
        assert "session.resume" not in types(seen)
        assert [m.content for m in other.history.messages()][-1] == "done"
        assert len(gate.calls) == 1
    model.verify()


async def test_a_session_that_exists_is_not_made_again() -> None:
    store = await stored()
    async with checked(store) as host:
        with pytest.raises(SessionExists):
            await create(host, ScriptedModel([]))
        assert not host.actors()
        session = await resume(host, ScriptedModel([]))
        with pytest.raises(SessionExists):
            await create(host, ScriptedModel([]))
        assert session.statistics().status == "live"


async def test_a_session_is_taken_up_while_its_last_events_are_on_their_way() -> None:
    store = FaultyStore()
    async with checked(store) as host:
        session = await create(host, ScriptedModel(["hi"]))
        await session.send_and_wait("hello")
        store.hang()
        await session.disconnect()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(resume, host, ScriptedModel([]))
            await trio.testing.wait_all_tasks_blocked()
            assert not host.actors()
            store.heal()
        (actor,) = host.actors()
        events = types(list(await Session(actor).get_events()))
        assert events[-2:] == ["session.shutdown", "session.resume"]


@pytest.mark.parametrize("kind", ["memory", "sqlite", "postgres"])
async def test_of_two_hosts_the_one_that_came_first_loses_and_stops_without_writing(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    memory = MemoryStore()
    url = request.getfixturevalue("postgres_url") if kind == "postgres" else ""

    def store() -> Store:
        if kind == "memory":
            return memory
        return PostgresStore(url) if url else SqliteStore(tmp_path / "journal.db")

    async with doomed(store()) as first, doomed(store()) as second:
        model = ScriptedModel([], default=say("from the first"))
        loser = await create(first, model)
        await loser.send_and_wait("hello")
        await durable(loser)
        winner = await resume(second, ScriptedModel([], default=say("from the second")))
        await winner.send_and_wait("mine now")
        before = await winner.get_events()

        with pytest.raises(SessionOwnedElsewhere):
            await loser.send("still mine?")
        await until(lambda: not first.actors())
        with pytest.raises((SessionClosed, SessionOwnedElsewhere)):
            await loser.send("really?")
        assert await winner.get_events() == before
        assert (await winner.send_and_wait("and on")).content == "from the second"

        # Asked again, it takes the session back, with what the other one has made of it.
        await durable(winner)
        again = await resume(first, model)
        reply = await again.send_and_wait("back here")
        assert reply.content == "from the first"
        assert [m.content for m in again.history.messages()][-6:] == [
            "mine now", "from the second", "and on", "from the second", "back here", "from the first"
        ]  # fmt: skip
        await durable(again)
        with pytest.raises(SessionOwnedElsewhere):
            await winner.send("who am I?")
        await until(lambda: not second.actors())
        second_events = await second.journal.read(SESSION)
        accepted = [event.prompt for event in second_events if event.type == "message.accepted"]  # type: ignore[attr-defined]
        assert accepted == ["hello", "mine now", "and on", "back here"]


class Overtaken(MemoryStore):
    """A store into which another host writes once more, right before each of the next writes."""

    def __init__(self, rows: Sequence[Row], late: Sequence[Row]) -> None:
        super().__init__()
        super().write(rows)
        self.late = list(late)

    def write(self, rows: Sequence[Row]) -> Sequence[str]:
        if self.late:
            assert super().write([self.late.pop(0)]) == []
        return super().write(rows)


async def late_writes() -> tuple[list[Row], list[Row]]:
    """The rows of a stored session, and those that a host which goes on with it adds."""
    store = await stored()
    known: list[Row] = []
    store.change(SESSION, known.extend)
    async with doomed(store) as host:
        session = await resume(host, ScriptedModel([], default=say("here")))
        for _ in range(3):
            await session.send_and_wait("go on")
            await durable(session)
    rows: list[Row] = []
    store.change(SESSION, rows.extend)
    return known, rows[len(known) :]


async def test_a_host_that_writes_once_more_while_its_session_is_taken_up_loses_it() -> None:
    known, late = await late_writes()
    store = Overtaken(known, late[: TAKE_UPS - 1])
    # What an attempt that lost has shown is in no log, so the host is not checked.
    async with doomed(store) as host:
        session = await resume(host, ScriptedModel(["mine"]))
        assert store.late == []
        assert (await session.send_and_wait("and now?")).content == "mine"
        assert len(await logged(session, "session.resume")) == 2


async def test_a_host_that_goes_on_writing_keeps_its_session() -> None:
    known, late = await late_writes()
    assert len(late) >= TAKE_UPS
    async with doomed(Overtaken(known, late[:TAKE_UPS])) as host:
        with pytest.raises(SessionOwnedElsewhere):
            await resume(host, ScriptedModel([]))
        await until(lambda: not host.actors())


async def test_a_loser_in_the_middle_of_a_turn_starts_no_tool_any_more() -> None:
    memory = MemoryStore()
    gate, effects = Gate(), Gate()
    effects.open()
    tools = (plain_tool("gate", gate), plain_tool("write", effects))
    async with doomed(memory) as first, checked(memory) as second:
        loser = await create(first, ScriptedModel([call("gate"), call("write"), "done"]), *tools)
        await loser.send("work")
        await gate.entered()
        await durable(loser)
        winner = await resume(second, ScriptedModel(["I have it"]), *tools)
        await winner.send_and_wait("go on")
        gate.open()
        await until(lambda: not first.actors())
        assert len(effects.calls) == 0
        assert (await winner.get_events())[-1].type == "turn.end"
