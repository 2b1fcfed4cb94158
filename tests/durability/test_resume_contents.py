"""What a session has when it is taken up again: everything that it had, and nothing that was not its own."""

import sqlite3
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from exeunt import RetryPolicy, SessionNotFound, TurnFailed, open_host
from exeunt.actors.events import SessionResume
from exeunt.stores.sqlite import SqliteStore
from exeunt.testing import Gate, ScriptedModel, call, hang, say
from exeunt.testing.faulty_store import MemoryStore
from tests.actors.clear_support import ends, logged, plain_tool, settled, types
from tests.durability.resume_support import (
    SESSION,
    checked,
    clear_context,
    create,
    doomed,
    durable,
    read,
    resume,
)

SECRET = "sk-a-key-that-is-nobodys-business"


def contents(model: ScriptedModel, request: int = -1) -> tuple[str, ...]:
    return model.requests[request].contents


@pytest.mark.parametrize("in_order", [True, False], ids=["ended", "killed"])
async def test_the_context_comes_back(tmp_path: Path, in_order: bool) -> None:
    first = ScriptedModel(
        [say("hi"), call("clear_context", prompt="Begin with act 2."), "act 2", [call("read")], "read it"]
    )
    store = MemoryStore()
    async with doomed(store) as host:
        session = await create(host, first, clear_context, read)
        for text in ("hello", "start over", "read"):
            await session.send_and_wait(text)
        seen = [(m.role, m.content) for m in session.history.messages()]
        before = session.statistics()
        left = store
        if in_order:
            await session.disconnect()
        else:
            await durable(session)
            left = store.copy()
    second = ScriptedModel(["again"])
    async with checked(left) as host:
        session = await resume(host, second, clear_context, read)
        assert [(m.role, m.content) for m in session.history.messages()] == seen
        after = session.statistics()
        assert (after.generation, after.messages) == (before.generation, before.messages) == (1, 6)
        assert (await session.send_and_wait("more")).content == "again"
        assert contents(second)[:2] == ("You are terse.", "Begin with act 2.")
        assert contents(second)[-2:] == ("read it", "more")
    second.verify()


async def test_the_log_says_that_the_session_was_taken_up() -> None:
    store = MemoryStore()
    async with doomed(store) as host:
        session = await create(host, ScriptedModel(["hi"]))
        await session.send_and_wait("hello")
        events = await session.get_events()
        await session.disconnect()
    async with checked(store) as host:
        session = await resume(host, ScriptedModel([]))
        (resumed,) = await logged(session, "session.resume")
        assert isinstance(resumed, SessionResume)
        assert (resumed.event_count, resumed.continue_pending_work) == (len(events) + 1, False)
        log = await session.get_events()
        assert log[resumed.event_count - 1].type == "session.shutdown"
        assert resumed.parent_id == log[resumed.event_count - 1].id
        assert [event.seq for event in log] == list(range(1, len(log) + 1))


async def test_the_queue_and_what_steers_wait_in_order_until_somebody_goes_on() -> None:
    store = MemoryStore()
    async with doomed(store) as host:
        session = await create(host, ScriptedModel([hang()]))
        await session.send("one")
        ids = [await session.send("two"), await session.send("three")]
        ids.insert(0, await session.send("aside", "immediate"))
        left = store.copy()
    model = ScriptedModel([], default=lambda request: say(f"to {request.messages[-1].content}"))
    async with checked(left, settled=False) as host:
        session = await resume(host, model)
        now = session.statistics()
        # The turn has ended, and with it the steering: its first message begins the next turn.
        assert (now.phase, now.queued, now.steered) == ("idle", 3, 0)
        await trio.testing.wait_all_tasks_blocked()
        assert model.calls == 0
        reply = await session.send_and_wait("go on")
        assert reply.content == "to go on"
        assert [request.contents[-1] for request in model.requests] == ["aside", "two", "three", "go on"]
        taken = [event.message_id for event in await logged(session, "user.message")]
        assert taken[1:4] == ids
        assert await ends(session) == ["interrupted", *["completed"] * 4]
    model.verify()


async def test_with_continue_pending_work_the_queue_goes_on_by_itself() -> None:
    store = MemoryStore()
    async with doomed(store) as host:
        session = await create(host, ScriptedModel([hang()]))
        for text in ("one", "two", "three"):
            await session.send(text)
        await session.send("aside", "immediate")
        left = store.copy()
    model = ScriptedModel([], default=lambda request: say(f"to {request.messages[-1].content}"))
    async with checked(left) as host:
        session = await resume(host, model, go_on=True)
        await settled(session)
        # The cut-off request is made again, with what steers its turn.
        assert [request.contents[-1] for request in model.requests] == ["aside", "two", "three"]
        assert contents(model, 0) == ("You are terse.", "one", "aside")
        assert await ends(session) == ["completed"] * 3
    model.verify()


async def test_configuration_is_given_anew() -> None:
    store = MemoryStore()
    async with doomed(store) as host:
        session = await create(host, ScriptedModel(["hi"]), read, developer_messages="Be kind.")
        await session.send_and_wait("hello")
        await durable(session)
        left = store.copy()
    model = ScriptedModel(["well"])
    async with checked(left) as host:
        session = await resume(host, model, clear_context, system_message="You are verbose.")
        await session.send_and_wait("more")
        assert contents(model) == ("You are verbose.", "hello", "hi", "more")
        assert [tool.name for tool in model.requests[0].tools] == ["clear_context"]
    model.verify()


async def test_the_same_configuration_is_not_logged_again() -> None:
    store = MemoryStore()
    async with doomed(store) as host:
        await (await create(host, ScriptedModel([]))).disconnect()
    async with checked(store) as host:
        session = await resume(host, ScriptedModel([]))
        assert types([*await session.get_events()]).count("system.message") == 1


async def test_no_secret_is_stored(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"

    def files() -> bytes:
        return b"".join(file.read_bytes() for file in tmp_path.iterdir())

    keywords: dict[str, Any] = {
        "model": "gpt",
        "provider": {"type": "openai", "base_url": "http://127.0.0.1:9/v1", "api_key": SECRET},
        "retries": RetryPolicy(attempts=0),
    }
    for make in (True, False):
        async with open_host(journal=f"sqlite:///{path}") as host:
            if make:
                session = await host.create_session(session_id=SESSION, **keywords)
            else:
                session = await host.resume_session(SESSION, **keywords)
            with pytest.raises(TurnFailed):
                await session.send_and_wait("a text that is stored")
            assert SECRET.encode() not in files()
        assert b"a text that is stored" in files()
        assert SECRET.encode() not in files()


async def test_a_session_that_nobody_has_is_not_found_and_nothing_is_made() -> None:
    store = MemoryStore()
    async with checked(store) as host:
        for _ in range(2):
            with pytest.raises(SessionNotFound):
                await resume(host, ScriptedModel([]))
        assert await host.list_sessions() == []
        assert not host.actors()
        assert store.find(SESSION) is None


async def test_a_file_is_taken_up_by_another_host(tmp_path: Path) -> None:
    said: tuple[str, ...] = ()
    for name in ("first", "second", "third"):
        async with checked(SqliteStore(tmp_path / "journal.db")) as host:
            model = ScriptedModel([f"{name} answer"])
            session = await (create(host, model) if name == "first" else resume(host, model))
            assert (await session.send_and_wait(name)).content == f"{name} answer"
            said += (name, f"{name} answer")
            assert contents(model) == ("You are terse.", *said[:-1])
            model.verify()
    with sqlite3.connect(tmp_path / "journal.db") as database:
        (sessions,) = database.execute("SELECT count(*) FROM sessions").fetchone()
    database.close()
    assert sessions == 1


async def test_a_message_to_a_gate_that_was_open_is_not_lost() -> None:
    """The last message may be the only thing that is durable of a turn."""
    store = MemoryStore()
    gate = Gate()
    async with doomed(store) as host:
        session = await create(host, ScriptedModel([call("gate")]), plain_tool("gate", gate))
        message_id = await session.send("only this")
        left = store.copy()
    model = ScriptedModel([], default=lambda request: say("here I am"))
    async with checked(left) as host:
        session = await resume(host, model, plain_tool("gate", gate), go_on=True)
        await settled(session)
        (taken,) = await logged(session, "user.message")
        assert taken.message_id == message_id
        assert session.history.messages()[-1].content == "here I am"
