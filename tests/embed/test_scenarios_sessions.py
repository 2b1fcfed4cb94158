"""What hosts do in a program of any kind: events, stored sessions, sessions of other processes."""

from typing import Any

import pytest

from exeunt import (
    Event,
    HostOptions,
    RemoteSessionError,
    SessionMetadata,
    SessionNotConfigured,
    SessionNotFound,
    SessionOptions,
    StreamLagged,
    ToolInvocation,
    build_options,
)
from exeunt.testing import LoopbackTransport, ScriptedModel, call, say
from tests.embed.worlds import World, in_each_world, in_each_world_in_real_time


@in_each_world
async def test_events_come_in_order_and_end_with_the_session(world: World) -> None:
    model = ScriptedModel([say("one two", chunks=["one ", "two"])])
    async with world.host() as host:
        session = await host.create_session(model=model, streaming=True)
        types: list[str] = []
        async with session.events(from_seq=1) as events:
            await session.send("count")
            async for event in events:
                types.append(event.type)
                if event.type == "session.idle":
                    await session.disconnect()
        assert types[0] == "session.start"
        assert types.count("assistant.message_delta") == 2
        assert types[-2:] == ["session.idle", "session.shutdown"]


@in_each_world
async def test_a_stream_goes_on_behind_an_event(world: World) -> None:
    async with world.host() as host:
        session = await host.create_session(model=ScriptedModel(["a", "b"]))
        await session.send_and_wait("1")
        known = (await session.get_events())[-1]
        await session.send_and_wait("2")
        async with session.events(after=known.id) as events:
            first = await anext(events)
        assert first.seq == known.seq + 1


@in_each_world
async def test_a_reader_that_lags_is_told_where_to_go_on(world: World) -> None:
    async with world.host() as host:
        session = await host.create_session(model=ScriptedModel(["a"]))
        async with session.events(buffer=2) as events:
            await session.send_and_wait("1")
            lagged = await anext(events)
        assert isinstance(lagged, StreamLagged)
        assert lagged.missed > 2
        assert host.statistics().subscriber_lag > 0


@in_each_world
async def test_what_is_there_already_can_be_taken_without_waiting(world: World) -> None:
    async with world.host() as host:
        session = await host.create_session(model=ScriptedModel(["a"]))
        async with session.events() as events:
            assert events.ready() is None
            await session.send_and_wait("1")
            first = events.ready()
            assert first is not None
            assert first.type == "message.accepted"
            following = await anext(events)
            assert following.type == "user.message"


@in_each_world
async def test_a_subscriber_is_called_until_it_is_done(world: World) -> None:
    seen: list[Event] = []
    async with world.host() as host:
        session = await host.create_session(model=ScriptedModel(["a", "b"]))
        unsubscribe = session.on(seen.append)
        await session.send_and_wait("1")
        unsubscribe()
        so_far = len(seen)
        await session.send_and_wait("2")
        assert len(seen) == so_far > 3


@in_each_world_in_real_time
async def test_a_session_survives_its_host(world: World) -> None:
    journal = f"sqlite:///{world.folder}/sessions.sqlite3"
    async with world.host(journal=journal) as host:
        session = await host.create_session(model=ScriptedModel(["first"]), session_id="ada", tenant="t")
        await session.send_and_wait("1")
    async with world.host(journal=journal) as host:
        with pytest.raises(SessionNotFound):
            host.get_session("ada")
        (stored,) = await host.list_sessions(tenant="t")
        assert (stored.session_id, stored.live) == ("ada", False)
        with pytest.raises(SessionNotConfigured):
            await host.resume_session("ada")
        model = ScriptedModel(["second"])
        session = await host.resume_session("ada", model=model)
        assert (await session.send_and_wait("2")).content == "second"
        assert model.requests[0].contents == ("1", "first", "2")
        await host.delete_session("ada")
        assert await host.list_sessions() == []


@in_each_world
async def test_a_session_that_left_memory_comes_back_with_its_message(world: World) -> None:
    made: list[str] = []

    async def work(invocation: ToolInvocation) -> str:
        """Work."""
        return f"in {invocation.session.session_id}"

    model = ScriptedModel(["first", call("work"), "second"])

    async def options_of(session_id: str, metadata: SessionMetadata) -> SessionOptions:
        made.append(session_id)
        return build_options(model=model, tools=[world.tool(work)])

    async with world.host(session_options=options_of, options=HostOptions(most_live=1)) as host:
        session = await host.create_session(model=model, session_id="ada")
        await session.send_and_wait("1")
        other = await host.create_session(model=ScriptedModel(["x"]))
        await other.send_and_wait("x")
        while host.statistics().sessions["passive"] == 0:
            await world.settled(host)
        assert (await session.send_and_wait("2")).content == "second"
    assert made == ["ada"]
    assert model.requests[2].results == {"call_1": "in ada"}


@in_each_world
async def test_a_session_is_forked_and_truncated(world: World) -> None:
    async with world.host() as host:
        session = await host.create_session(model=ScriptedModel(["a", "b"]), session_id="ada")
        await session.send_and_wait("1")
        (end,) = [event for event in await session.get_events() if event.type == "turn.end"]
        await session.send_and_wait("2")
        copy = await host.fork_session("ada", at=end.id, new_session_id="eve", model=ScriptedModel(["c"]))
        await copy.send_and_wait("3")
        assert [m.content for m in copy.history.messages()] == ["1", "a", "3", "c"]
        truncated = await session.history.truncate(end.id)
        assert truncated.type == "session.truncated"
        assert [m.content for m in session.history.messages()] == ["1", "a"]


@in_each_world
async def test_old_sessions_are_pruned(world: World) -> None:
    async with world.host() as host:
        for name in ("a", "b", "c"):
            session = await host.create_session(model=ScriptedModel(["x"]), session_id=name)
            await session.send_and_wait("x")
            await session.disconnect()
        assert len(await host.prune_sessions(keep=1)) == 2
        assert len(await host.list_sessions(limit=10)) == 1


@in_each_world
async def test_a_session_of_another_process_is_used_from_here(world: World) -> None:
    async with world.host() as far, world.host() as near:
        await far.create_session(model=ScriptedModel(["hello", "again"]), session_id="ada")
        there: Any = getattr(far, "trio_host", far)
        session = near.attach_remote("ada", LoopbackTransport(there))
        async with session.events() as events:
            assert (await session.send_and_wait("hi")).content == "hello"
            assert (await anext(events)).type == "message.accepted"
            assert events.next_seq == 3
        await session.send("more")
        assert (await session.statistics()).session_id == "ada"
        await session.abort()
        with pytest.raises(RemoteSessionError):
            await session.history.clear_context("x")
        assert near.metrics.value("exeunt_context_clears_total", outcome="remote") == 1


@in_each_world
async def test_two_hosts_in_one_program_know_nothing_of_each_other(world: World) -> None:
    async with world.host() as one, world.host() as two:
        await one.create_session(model=ScriptedModel(["from one"]), session_id="ada")
        await two.create_session(model=ScriptedModel(["from two"]), session_id="ada")
        assert (await one.get_session("ada").send_and_wait("x")).content == "from one"
        assert (await two.get_session("ada").send_and_wait("x")).content == "from two"
        assert one.statistics().sessions == two.statistics().sessions == {"live": 1}
    async with world.host() as three:
        await three.create_session(model=ScriptedModel([]), session_id="ada")


@in_each_world
async def test_eight_that_resume_a_session_at_once_get_the_same_one(world: World) -> None:
    async with world.host() as host:
        session = await host.create_session(model=ScriptedModel(["a"]), session_id="ada")
        await session.send_and_wait("x")
        await session.disconnect()
        started = [world.start(host.resume_session, "ada") for _ in range(8)]
        for one in started:
            assert (await one.result()).session_id == "ada"
        assert host.statistics().sessions == {"live": 1}
