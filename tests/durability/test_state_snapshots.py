"""The live state, the replayed one, and a snapshot with what came behind it are the same, wherever it was taken."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exeunt import JournalError, RetryPolicy
from exeunt.actors.events import Event
from exeunt.actors.events.codec import SliceDecoder, encode_slice
from exeunt.actors.state import SessionState
from exeunt.actors.state.snapshot import dump, load
from exeunt.actors.turn import outbox
from exeunt.supervisor.journal.slices import unseal
from exeunt.testing import ScriptedModel, call, crash_session, fail, say
from exeunt.testing.faulty_store import MemoryStore
from tests.actors.clear_support import settled, tool_of
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
from tests.properties.test_property_session_state import HISTORIES, History, write

Moves = list[tuple[Callable[[History, int], None], int]]


def everything(state: SessionState) -> tuple[Any, ...]:
    """What tells two states apart, what no summary shows included."""
    return (*state.summary(), tuple(state.call_ids or ()), state.last_id)


def stored(log: Sequence[Event]) -> list[Event]:
    """The log as it comes back from a journal."""
    return SliceDecoder().decode(encode_slice(log)) if log else []


@given(HISTORIES, st.lists(st.floats(0.0, 1.0), max_size=4))
def test_a_snapshot_and_the_events_behind_it_are_the_whole_log(moves: Moves, places: list[float]) -> None:
    log = stored(write(moves).log)
    whole = everything(SessionState.replay(log))
    state, done = SessionState(), 0
    for place in sorted(int(place * len(log)) for place in places):
        state = SessionState.replay(log[done:place], state)
        done = place
        if done:
            before = everything(state)
            loaded = load(dump(state, log[done - 1].id))
            assert loaded is not None
            assert everything(loaded) == before
            state = loaded
    assert everything(SessionState.replay(log[done:], state)) == whole


@given(HISTORIES, st.integers(0, 200))
def test_a_snapshot_that_was_cut_short_is_refused(moves: Moves, place: int) -> None:
    log = stored(write(moves).log)
    if not log:
        return
    state = SessionState.replay(log)
    data = dump(state, log[-1].id)
    with pytest.raises(JournalError):
        load(data[: min(place, len(data) - 1)])


async def snapshot_of(store: MemoryStore, seq: int) -> None:
    """Wait until there is a snapshot of event *seq* or later: it is written when what it holds is durable."""
    await until(lambda: (store.read_snapshot(SESSION) or (0, b""))[0] >= seq)


class KeepingStore(MemoryStore):
    """Keeps every snapshot, not the newest only."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: list[tuple[int, bytes]] = []

    def write_snapshot(self, session_id: str, seq: int, data: bytes) -> None:
        self.kept.append((seq, data))
        super().write_snapshot(session_id, seq, data)


async def test_every_snapshot_of_a_session_is_its_log_up_to_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """A session that does a bit of everything, with a snapshot after each handler run."""
    monkeypatch.setattr(outbox, "SNAPSHOT_EVERY", 1)
    store = KeepingStore()

    async def steering(invocation: Any) -> str:
        await invocation.session.send("aside", "immediate")
        await invocation.session.send("for later")
        return "steered"

    def broken(invocation: Any) -> Any:
        raise ValueError("it broke")

    tools = (read, clear_context, tool_of("steering", steering), tool_of("broken", broken))
    model = ScriptedModel(
        [
            [say("let me see"), call("read"), call("steering"), call("broken"), call("unknown")],
            "well",
            "later is now",
            call("clear_context", prompt="anew"),
            call("read"),
            "fresh",
            fail("bad_request"),
        ],
        default=say("well"),
    )
    async with checked(store) as host:
        session = await create(host, model, *tools, retries=RetryPolicy(attempts=0))
        for text in ("begin", "clear", "fail"):
            await session.send(text)
            await settled(session)
        await session.call_tool("read")
        crash_session(session)
        await settled(session)
        await session.send_and_wait("once more")
        log = await session.get_events()
    assert len(store.kept) > 20
    for seq, data in store.kept:
        state = load(unseal(data))
        assert state is not None
        assert everything(state) == everything(SessionState.replay(log[:seq])), f"snapshot at {seq}"
        assert state.seq == seq
    model.verify()


async def test_a_session_is_taken_up_from_its_snapshot_and_knows_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(outbox, "SNAPSHOT_EVERY", 7)
    store = MemoryStore()
    async with doomed(store) as host:
        session = await create(host, ScriptedModel([], default=say("hi")), read)
        for number in range(6):
            await session.send_and_wait(f"message {number}")
        await durable(session)
        await snapshot_of(store, session.statistics().events // 7 * 7)
        left = store.copy()
    without = left.copy()

    def nothing(session_id: str) -> None:
        return None

    monkeypatch.setattr(without, "read_snapshot", nothing)
    states: list[tuple[str, list[str], int]] = []
    for each in (left, without):
        async with checked(each) as host:
            session = await resume(host, ScriptedModel(["well"]), read)
            reply = await session.send_and_wait("and now?")
            states.append(
                (reply.content, [m.content for m in session.history.messages()], session.statistics().events)
            )
    assert states[0] == states[1]


async def test_a_snapshot_that_is_damaged_is_not_used(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = MemoryStore()
    async with doomed(store) as host:
        session = await create(
            host, ScriptedModel([call("clear_context", prompt="anew"), "fresh"]), clear_context
        )
        await session.send("clear")
        await settled(session)
        await durable(session)
        await snapshot_of(store, 1)
        left = store.copy()
    seq, data = left.read_snapshot(SESSION) or (0, b"")
    assert seq > 0
    damaged = data[:-1] + bytes([data[-1] ^ 1])

    def read_damaged(session_id: str) -> tuple[int, bytes]:
        return seq, damaged

    monkeypatch.setattr(left, "read_snapshot", read_damaged)
    async with checked(left) as host:
        session = await resume(host, ScriptedModel(["well"]), clear_context)
        assert [m.content for m in session.history.messages()] == ["You are terse.", "anew", "fresh"]
        assert (await session.send_and_wait("and now?")).content == "well"
    assert "is not used" in caplog.text
