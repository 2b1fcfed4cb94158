"""Logs that earlier versions wrote say today what they said then."""

from pathlib import Path

import attrs
import pytest

from exeunt import approve_all
from exeunt.actors.events.codec import to_json
from exeunt.actors.state import SessionState
from exeunt.actors.state.snapshot import load
from exeunt.supervisor.journal import Row
from exeunt.supervisor.journal.durable import DurableJournal
from exeunt.supervisor.journal.slices import unseal
from exeunt.testing import ScriptedModel, check_request, checked_host, say
from exeunt.testing.faulty_store import MemoryStore
from tests.actors.clear_support import settled
from tests.replays.records import FOLDER, Record, plain, told

PATHS = sorted(FOLDER.glob("*.jsonl"))

LOGS = [path for path in PATHS if Record.read(path).state is not None]
"""Those that a session wrote."""


def name_of(path: Path) -> str:
    return path.stem


def test_there_are_records() -> None:
    assert len(PATHS) >= 6
    assert len(LOGS) >= 5


@pytest.mark.parametrize("path", PATHS, ids=name_of)
def test_the_same_events_come_out(path: Path) -> None:
    record = Record.read(path)
    assert [plain(to_json(event)) for event in record.decode()] == record.events


@pytest.mark.parametrize("path", LOGS, ids=name_of)
def test_the_same_state_follows(path: Path) -> None:
    record = Record.read(path)
    assert record.state is not None
    now = told(SessionState.replay(record.decode()))
    # A later version may know more of a state; of what was known then nothing may differ.
    assert {name: now[name] for name in record.state} == record.state


@pytest.mark.parametrize("path", LOGS, ids=name_of)
def test_a_snapshot_is_used_or_not_but_never_wrong(path: Path) -> None:
    record = Record.read(path)
    if record.snapshot is None:
        return
    seq, data = record.snapshot
    start = load(unseal(data))
    if start is not None:
        assert start.seq == seq
        events = record.decode()
        assert SessionState.replay(events[seq:], start).summary() == SessionState.replay(events).summary()


@pytest.mark.parametrize("go_on", [True, False])
@pytest.mark.parametrize("path", LOGS, ids=name_of)
async def test_the_session_goes_on(path: Path, go_on: bool) -> None:
    record = Record.read(path)
    session_id = record.events[0]["session_id"]
    model = ScriptedModel([], default=say("well"))
    async with checked_host(journal=DurableJournal(_store(record, session_id))) as host:
        session = await host.resume_session(
            session_id, model=model, on_permission_request=approve_all, continue_pending_work=go_on
        )
        if go_on:
            await settled(session)
        assert (await session.send_and_wait("are you there?")).content == "well"
        check_request(model.requests[-1])
    model.verify()


def _store(record: Record, session_id: str) -> MemoryStore:
    """Return a database with the very bytes of the record."""
    store = MemoryStore()
    for data in record.slices:
        events = attrs.evolve(record, slices=(data,)).decode()
        first, last = events[0], events[-1]
        begin = ("", first.time) if first.seq == 1 else (None, None)
        assert store.write([Row(session_id, first.seq, last.seq, last.time, data, *begin)]) == []
    if record.snapshot is not None:
        store.write_snapshot(session_id, *record.snapshot)
    return store
