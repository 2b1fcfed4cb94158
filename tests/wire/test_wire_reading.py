"""Logs that clients read in parts, and go back in."""

from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trio.testing import MockClock

from exeunt.actors.events import Event
from exeunt.host import open_host
from exeunt.testing import ScriptedModel, run_virtual
from exeunt.wire.events.mapper import EventMapper, WireEvent
from exeunt.wire.messages.sessions import SessionConfig
from exeunt.wire.options import WireOptions
from exeunt.wire.serving import reading
from exeunt.wire.serving.hub import Hub
from exeunt.wire.serving.models import DefaultProvider
from exeunt.wire.serving.reading import Reading, whole
from exeunt.wire.serving.served import Served
from tests.wire.wire_client import WireClient, open_wire


async def read_all(client: WireClient, session: str = "s", **params: Any) -> list[dict[str, Any]]:
    """Read a log in parts of three."""
    seen, cursor, more = list[dict[str, Any]](), "", True
    while more:
        part = await client.call("session.eventLog.read", sessionId=session, cursor=cursor, max=3, **params)
        assert part["cursorStatus"] == "ok"
        seen, cursor, more = seen + part["events"], part["cursor"], part["hasMore"]
    return seen


async def test_a_log_that_is_read_in_parts_is_translated_once(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock
) -> None:
    translated = 0
    original = EventMapper.map

    def counted(mapper: EventMapper, event: Event) -> Iterable[WireEvent]:
        nonlocal translated
        translated += 1
        return original(mapper, event)

    async with open_wire(ScriptedModel([f"answer {n}" for n in range(6)])) as wire:
        client = await wire.connect()
        await client.create()
        for number in range(1, 6):
            await client.say(f"message {number}")
            await client.event("session.idle", number)
        actor = wire.host.find("s")
        assert actor is not None
        monkeypatch.setattr(EventMapper, "map", counted)
        seen = await read_all(client)
        assert translated == actor.state.seq
        monkeypatch.undo()
        whole_log = (await client.call("session.getMessages", sessionId="s"))["events"]
        assert seen == whole_log
        # What comes later is seen, too.
        await client.say("more")
        await client.event("session.idle", 6)
        news = await client.call("session.eventLog.read", sessionId="s", cursor=seen[-1]["id"])
        assert news["events"][0]["data"]["content"] == "more"


async def test_who_reads_on_after_the_session_went_back_sees_what_is_there(
    autojump_clock: MockClock,
) -> None:
    async with open_wire(ScriptedModel(["one", "two", "three"])) as wire:
        client = await wire.connect()
        await client.create()
        for number in (1, 2):
            await client.say(f"message {number}")
            await client.event("session.idle", number)
        before = await read_all(client)
        (first, second) = client.events("user.message")
        await client.call("session.history.truncate", sessionId="s", eventId=second["id"])
        await client.say("message 3")
        await client.event("session.idle", 3)
        everything = await read_all(client)
        assert [event["type"] for event in everything if event.get("ephemeral")] == [
            "session.snapshot_rewind"
        ]
        kept = [event for event in everything if not event.get("ephemeral")]
        assert kept == (await client.call("session.getMessages", sessionId="s"))["events"]
        contents = [event["data"]["content"] for event in kept if event["type"] == "user.message"]
        assert contents == ["message 1", "message 3"]
        for earlier, later in pairwise(kept):
            assert later["parentId"] == earlier["id"]
        lost = await client.call("session.eventLog.read", sessionId="s", cursor=before[-1]["id"])
        assert lost["cursorStatus"] == "expired"
        assert first["id"] in [event["id"] for event in lost["events"]]


async def test_another_folder_is_in_what_is_read_from_then_on(autojump_clock: MockClock) -> None:
    async with open_wire(ScriptedModel(["hi"])) as wire:
        client = await wire.connect()
        await client.create(workingDirectory="/one")
        assert (await read_all(client))[0]["data"]["context"] == {"cwd": "/one"}
        await client.call("session.metadata.setWorkingDirectory", sessionId="s", workingDirectory="/two")
        assert (await read_all(client))[0]["data"]["context"] == {"cwd": "/two"}


async def test_few_logs_are_kept_and_no_long_one_that_was_read_to_its_end(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock
) -> None:
    monkeypatch.setattr(reading, "SMALL", 3)
    async with open_wire(ScriptedModel(["hi"])) as wire:
        client = await wire.connect()
        kept: dict[Served, Reading] = vars(wire.server.hub.readings)["_kept"]
        for number in range(reading.MOST_LOGS + 2):
            session = f"s{number}"
            await client.create(session)
            await read_all(client, session)
        assert [served.session_id for served in kept] == ["s2", "s3", "s4", "s5"]
        await client.say(session="s5")
        await client.event("session.idle")
        assert len(await read_all(client, "s5")) > 3
        assert [served.session_id for served in kept] == ["s2", "s3", "s4"]
        await client.call("session.destroy", sessionId="s4")
        assert [served.session_id for served in kept] == ["s2", "s3"]


@settings(max_examples=30)
@given(st.lists(st.integers(1, 40), max_size=12), st.integers(1, 3))
def test_a_log_read_in_any_parts_is_the_log_read_at_once(cuts: list[int], back_to: int) -> None:
    async def events_of_a_session() -> tuple[Served, list[Event]]:
        async with open_host() as host:
            session = await host.create_session(model=ScriptedModel(["a", "b", "c", "d"]), session_id="s")
            ends: list[str] = []
            for number in range(3):
                await session.send_and_wait(f"message {number}")
                ends.append((await session.get_events())[-1].id)
            await session.history.truncate(ends[back_to - 1])
            await session.send_and_wait("the last")
            hub = Hub(host, WireOptions(), DefaultProvider())
            return Served(hub, "s", "", SessionConfig()), list(await session.get_events())

    served, events = run_virtual(events_of_a_session)
    in_parts, done = Reading(served), 0
    for cut in [*cuts, len(events)]:
        in_parts.extend(events[max(0, done - 2) : done + cut])
        done += cut
    assert in_parts.events == whole(served, events)
    places = [in_parts.place_of(event.id) for event in in_parts.events]
    assert places == list(range(len(in_parts.events)))
