"""What users of other session hosts have asked for, as they would try it: S15, S16, S17 and T9-4 of the survey."""

import shutil
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from exeunt import Session, SessionNotFound, Tool, ToolInvocation, tool
from exeunt.actors.events import Event
from exeunt.actors.state import SessionState
from exeunt.stores.sqlite import SqliteStore
from exeunt.testing import Gate, ScriptedModel, call, crash_session, say
from exeunt.testing.faulty_store import MemoryStore
from exeunt.testing.journal_events import same
from tests.actors.clear_support import ends, logged, outcomes, plain_tool, settled
from tests.durability.resume_support import (
    SESSION,
    checked,
    clear_context,
    create,
    doomed,
    durable,
    read,
    resume,
    until,
)

# --- S15: a crash between start and result ------------------------------------------------------------------------


def counting(name: str, runs: list[str], gate: Gate, **flags: Any) -> Tool[..., Any]:
    @tool(name, **flags)
    async def counted(invocation: ToolInvocation) -> str:
        """Count."""
        runs.append(invocation.idempotency_key)
        return await gate()

    return counted


@pytest.mark.parametrize("idempotent", [False, True])
@pytest.mark.parametrize("what", ["process", "actor"])
async def test_s15_a_crash_between_start_and_result(idempotent: bool, what: str) -> None:
    """The call is interrupted and not run again, unless it is idempotent; siblings that have ended are left alone."""
    gate, passed = Gate(), Gate()
    passed.open()
    runs: list[str] = []
    siblings: list[str] = []
    tools = (counting("work", runs, gate, idempotent=idempotent), counting("sibling", siblings, passed))
    store = MemoryStore()
    after = ScriptedModel([], default=say("I see"))
    model = ScriptedModel([[call("work"), call("sibling")]], default=say("I see"))
    async with doomed(store) as host:
        session = await create(host, model, *tools)
        await session.send("begin")
        await gate.entered()
        await until(lambda: len(session.statistics().in_flight) == 1)
        await durable(session)
        if what == "process":
            store = store.copy()
        else:
            crash_session(session)
            await settled(session)
            assert await ends(session) == ["interrupted"]
            await session.disconnect()
    gate.open()
    async with checked(store) as host:
        session = await resume(host, after, *tools, go_on=True)
        await settled(session)
        again = idempotent and what == "process"
        assert dict(await outcomes(session)) == {
            "work": "success" if again else "interrupted",
            "sibling": "success",
        }
        assert runs == [runs[0]] * (2 if again else 1)
        assert len(siblings) == 1
        await session.send_and_wait("what happened?")
        results = [m.content for m in after.requests[-1].messages if m.role == "tool"]
        assert ("interrupted" in results[0]) is not again
    after.verify()


# --- S16: resume after a clear ------------------------------------------------------------------------------------


async def test_s16_resume_after_a_clear(tmp_path: Path) -> None:
    """The model sees the seed and what came later; the log goes back to its first event; replays agree."""
    path = tmp_path / "journal.db"
    model = ScriptedModel(["one", [call("read"), call("clear_context", prompt="Go on with act 2.")], "act 2"])
    async with doomed(SqliteStore(path)) as host:
        session = await create(host, model, clear_context, read)
        await session.send_and_wait("hello")
        await session.send_and_wait("clear")
        before = await session.get_events()
    counts: list[tuple[int, int]] = []
    for number in range(3):
        after = ScriptedModel([f"answer {number}"])
        async with checked(SqliteStore(path)) as host:
            session = await resume(host, after, clear_context, read)
            await session.send_and_wait(f"question {number}")
            assert after.requests[0].contents[:3] == ("You are terse.", "Go on with act 2.", "act 2")
            log = await session.get_events()
            assert same(before, log[: len(before)])
            assert log[0].type == "session.start"
            (cleared,) = await logged(session, "session.context_cleared")
            counts.append((cleared.messages_cleared, session.statistics().generation))
            assert SessionState.replay(log).summary() == SessionState.replay(log).summary()
    assert counts == [(4, 1)] * 3


# --- S17: a torn tail ---------------------------------------------------------------------------------------------

TEXTS = (
    "a line\nand another\r\n",
    "separators \u2028 and \u2029",
    "zeros \x00 and \x00\x00",
    "\ufeffend \x1a",
    "🎭",
)

OFFSETS = 60
"""Places at which the write-ahead log is cut off: the last bytes one by one, the rest spread over the whole."""


async def test_s17_texts_that_look_like_ends_come_back(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    async with doomed(SqliteStore(path)) as host:
        session = await create(host, ScriptedModel(list(TEXTS)), system_message="\u2028\x00\n")
        for text in TEXTS:
            await session.send_and_wait(text)
    async with checked(SqliteStore(path)) as host:
        session = await resume(host, ScriptedModel(["well"]), system_message="\u2028\x00\n")
        expected = ["\u2028\x00\n", *(text for each in TEXTS for text in (each, each))]
        assert [m.content for m in session.history.messages()] == expected
        await session.send_and_wait("are you there?")


async def test_s17_a_torn_tail(tmp_path: Path) -> None:
    """Wherever the file was cut off, everything before comes back, and the session goes on."""
    folder = tmp_path / "whole"
    gate = Gate()
    slow = plain_tool("slow", gate)
    async with doomed(SqliteStore(folder / "journal.db")) as host:
        model = ScriptedModel([*TEXTS, [call("slow"), call("read")]])
        session = await create(host, model, slow, read)
        for text in TEXTS:
            await session.send_and_wait(text)
            await durable(session)
        await session.send("now it is cut off")
        await gate.entered()
        whole = await session.get_events()
        left = tmp_path / "left"
        shutil.copytree(folder, left)
    log = (left / "journal.db-wal").read_bytes()
    places = {len(log) - back for back in range(OFFSETS // 2)}
    places |= {len(log) * number // (OFFSETS // 2) for number in range(OFFSETS // 2)}
    ends: dict[int, set[int]] = {}
    for place in sorted(places):
        events, torn = await _cut_off(tmp_path, left, log[:place], whole, slow)
        ends.setdefault(place - torn, set()).add(events)
    # What was dropped is what stood behind the last whole commit: it alone decides what comes back.
    assert len(ends) < len(places)
    assert all(len(events) == 1 for events in ends.values())
    # From nothing at all to everything, and steps between.
    found = {number for events in ends.values() for number in events}
    assert min(found) == 0
    assert max(found) == len(whole)
    assert len(found) > len(TEXTS)


async def _cut_off(
    folder: Path, left: Path, log: bytes, whole: Sequence[Event], slow: Tool[..., Any]
) -> tuple[int, int]:
    """Take the session up from a file whose end is missing; return how many events it had, and the torn bytes."""
    torn = folder / "torn"
    shutil.copytree(left, torn)
    (torn / "journal.db-wal").write_bytes(log)
    (torn / "journal.db-shm").unlink(missing_ok=True)
    model = ScriptedModel([], default=say("well"))
    async with checked(SqliteStore(torn / "journal.db")) as host:
        dropped: int = host.journal.statistics().truncated_bytes
        try:
            session = await resume(host, model, slow, read)
        except SessionNotFound:
            before = 0
            session = await create(host, model, slow, read)
        else:
            before = await _came_back(session, whole)
        assert (await session.send_and_wait("are you there?")).content == "well"
    with sqlite3.connect(torn / "journal.db") as database:
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    database.close()
    shutil.rmtree(torn)
    return before, dropped


async def _came_back(session: Session, whole: Sequence[Event]) -> int:
    events = await session.get_events()
    (resumed,) = await logged(session, "session.resume")
    before: int = resumed.event_count
    assert same(whole[:before], events[:before])
    assert SessionState.replay(events).open_calls is None
    started = {event.tool_call_id for event in await logged(session, "tool.execution_start")}
    ended = {event.tool_call_id for event in await logged(session, "tool.execution_complete")}
    assert started == ended
    return before


# --- T9-4: reads make nothing, deletions leave nothing ------------------------------------------------------------


async def test_t9_4_reads_of_an_unknown_session_make_nothing(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    async with checked(SqliteStore(path)) as host:
        session = await create(host, ScriptedModel(["hi"]))
        await session.send_and_wait("hello")
        await durable(session)
        before = (rows_of(path), host.statistics(), host.journal.statistics())
        for _ in range(3):
            with pytest.raises(SessionNotFound):
                await host.resume_session("nobody", model=ScriptedModel([]))
            with pytest.raises(SessionNotFound):
                host.get_session("nobody")
            with pytest.raises(SessionNotFound):
                await host.journal.read("nobody")
            with pytest.raises(SessionNotFound):
                await host.journal.metadata("nobody")
            with pytest.raises(SessionNotFound):
                await host.delete_session("nobody")
        assert (rows_of(path), host.statistics(), host.journal.statistics()) == before
        assert [item.session_id for item in await host.list_sessions()] == [SESSION]
        assert len(host.actors()) == 1


@pytest.mark.parametrize("live", [True, False])
async def test_t9_4_a_deleted_session_leaves_nothing_behind(tmp_path: Path, live: bool) -> None:
    path = tmp_path / "journal.db"
    async with checked(SqliteStore(path)) as host:
        model = ScriptedModel([call("clear_context", prompt="a secret seed"), "hi"])
        session = await create(host, model, clear_context)
        await session.send_and_wait("a secret message")
        await durable(session)
        if not live:
            await session.disconnect()
        await host.delete_session(SESSION)
        with pytest.raises(SessionNotFound):
            await resume(host, ScriptedModel([]))
        assert await host.list_sessions() == []
    assert rows_of(path) == {"sessions": 0, "slices": 0, "snapshots": 0}
    assert b"a secret" not in path.read_bytes()


def rows_of(path: Path) -> dict[str, int]:
    with sqlite3.connect(path) as database:
        tables = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        counts = {name: database.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in tables}
    database.close()
    return counts
