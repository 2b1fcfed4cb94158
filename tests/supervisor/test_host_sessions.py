"""Making, finding, leaving, taking up and deleting sessions."""

from typing import Any

import pytest
import trio
import trio.lowlevel

from exeunt import (
    Session,
    SessionClosed,
    SessionHost,
    SessionNotConfigured,
    SessionNotFound,
    SessionOptions,
    ToolInvocation,
    TurnAborted,
    build_options,
)
from exeunt.supervisor.journal import MemoryJournal
from exeunt.testing import (
    Gate,
    ScriptedModel,
    Shielded,
    SilentApprover,
    call,
    checked_host,
    hang,
    say,
    stream_stall,
)
from tests.actors.session_support import (
    begin,
    count,
    dropped,
    ends,
    logged,
    only,
    open_session,
    outcomes,
    plain_tool,
    reach,
    settled,
    tool_of,
    watch,
)


async def never(*_: object) -> None:
    await trio.sleep_forever()


# --- Leaving -------------------------------------------------------------------------------------------------

PHASES: dict[str, tuple[str, list[Any], dict[str, Any]]] = {
    "idle": ("idle", [], {}),
    "prompt hooks": ("prompt_hooks", [], {"on_user_prompt_submitted": never}),
    "model": ("model", [hang()], {}),
    "stream": ("model", [stream_stall(2)], {"streaming": True}),
    "tools": ("tools", [[call("wait"), call("wait")]], {}),
    "approval": ("tools", [call("asks")], {"on_permission_request": SilentApprover()}),
    "stuck tool": ("tools", [call("stuck")], {}),
    "hook after the turn": ("session_end_hook", [say("hi")], {"on_session_end": never}),
}


@pytest.mark.parametrize("name", PHASES)
async def test_a_disconnect_in_every_phase(autojump_clock: object, name: str) -> None:
    phase, script, options = PHASES[name]
    async with checked_host() as host:
        tools = [
            plain_tool("wait", Gate()),
            plain_tool("asks", Gate(), skip_permission=False),
            plain_tool("stuck", Shielded(5)),
        ]
        session = await open_session(host, ScriptedModel(script), *tools, **options)
        events = watch(session)
        if phase != "idle":
            await session.send("A")
            await reach(session, phase)
        began = trio.current_time()
        await session.disconnect()
        assert trio.current_time() - began <= 1.01
        assert session.statistics().status == "closed"
        assert events[-1].type == "session.shutdown"
        assert host.actors() == []
        with pytest.raises(SessionNotFound):
            host.get_session(session.session_id)
        for refused in (session.send, session.send_and_wait, session.call_tool):
            with pytest.raises(SessionClosed) as caught:
                await refused("A")
            assert caught.value.session_id == session.session_id
        assert {outcome for _, outcome in await outcomes(session)} <= {"cancelled"}
        assert count(events, "turn.end") == (phase != "idle")
        if name == "prompt hooks":
            # The message was not in the context: it waits for the next activation, which drops it here.
            again = await host.resume_session(session.session_id)
            await again.abort()


async def test_a_second_disconnect_is_nothing_new_and_returns_when_the_first_does(
    autojump_clock: object,
) -> None:
    async with checked_host() as host, trio.open_nursery() as nursery:
        session = await open_session(host, ScriptedModel([call("stuck")]), plain_tool("stuck", Shielded(5)))
        events = watch(session)
        await session.send("A")
        await reach(session, "tools")
        first = begin(nursery, session.disconnect)
        await trio.sleep(0.5)
        assert session.statistics().status == "stopping"
        with pytest.raises(SessionClosed):
            await session.send("B")
        await session.disconnect()
        await first.wait()
        await session.disconnect()
        assert count(events, "session.shutdown") == 1
        assert count(events, "turn.end") == 1


async def test_a_disconnect_from_the_own_tool_returns_at_once(autojump_clock: object) -> None:
    after: list[float] = []

    async def leave(invocation: ToolInvocation) -> str:
        began = trio.current_time()
        await invocation.session.disconnect(reason="the tool said so")
        after.append(trio.current_time() - began)
        await trio.lowlevel.checkpoint()
        return "left"

    async with checked_host() as host:
        session = await open_session(host, ScriptedModel([call("leave")]), tool_of("leave", leave))
        with trio.fail_after(0.5), pytest.raises(TurnAborted):
            await session.send_and_wait("A")
        assert after == [0.0]
        assert session.statistics().status == "closed"
        assert [e.reason for e in await logged(session, "session.shutdown")] == ["the tool said so"]
        assert await outcomes(session) == [("leave", "cancelled")]


async def test_a_disconnect_rolls_a_staged_clear_back(autojump_clock: object) -> None:
    async def clears(invocation: ToolInvocation) -> str:
        await invocation.session.history.clear_context("FRESH")
        await trio.sleep_forever()
        return "never"

    async with checked_host() as host:
        session = await open_session(host, ScriptedModel([call("clears")]), tool_of("clears", clears))
        events = watch(session)
        await session.send("A")
        await reach(session, "tools")
        await session.disconnect()
        assert [e.cause for e in only(events, "session.clear_rolled_back")] == ["stopped"]
        assert await logged(session, "session.context_cleared") == []


# --- Taking up -----------------------------------------------------------------------------------------------


async def left_with_a_queue(host: SessionHost, model: ScriptedModel) -> Session:
    """A session that left memory in the middle of a turn, with two messages waiting."""
    session = await open_session(host, model, tenant="mine")
    await session.send("A")
    await reach(session, "model")
    await session.send("B")
    await session.send("C", mode="immediate")
    await session.disconnect()
    return session


async def test_a_session_that_is_taken_up_goes_on_with_its_queue_when_asked(autojump_clock: object) -> None:
    async with checked_host() as host:
        model = ScriptedModel([hang(), say("to C"), say("to B")])
        before = await left_with_a_queue(host, model)
        assert await dropped(before) == []
        session = await host.resume_session(before.session_id, continue_pending_work=True)
        events = watch(session)
        await settled(session)
        assert [e.content for e in await logged(session, "user.message")] == ["A", "C", "B"]
        assert await ends(session) == ["aborted", "completed", "completed"]
        assert count(events, "session.idle") == 1
        (resumed,) = await logged(session, "session.resume")
        assert resumed.continue_pending_work
        assert session.tenant == "mine"
    model.verify()


async def test_a_session_that_is_taken_up_leaves_its_queue_to_the_next_message(
    autojump_clock: object,
) -> None:
    async with checked_host() as host:
        model = ScriptedModel([hang(), say("to C"), say("to B"), say("to D")])
        before = await left_with_a_queue(host, model)
        session = await host.resume_session(before.session_id)
        await trio.sleep(100)
        assert session.statistics().queued == 2
        assert model.calls == 1
        assert (await session.send_and_wait("D")).content == "to D"
        assert [e.content for e in await logged(session, "user.message")] == ["A", "C", "B", "D"]
        with pytest.raises(SessionClosed):
            await before.send("E")
    model.verify()


async def test_eight_take_ups_at_once_make_one_actor(autojump_clock: object) -> None:
    async with checked_host() as host, trio.open_nursery() as nursery:
        session = await open_session(host, ScriptedModel([say("one")]))
        await session.send_and_wait("A")
        await session.disconnect()
        results = [begin(nursery, host.resume_session, session.session_id) for _ in range(8)]
        handles = [(await result.wait()).value for result in results]
        assert len(host.actors()) == 1
        assert len({id(handle._actor) for handle in handles}) == 1
        assert len(await logged(session, "session.resume")) == 1


async def test_a_take_up_of_a_session_in_memory_attaches_to_it(autojump_clock: object) -> None:
    async with checked_host() as host:
        session = await open_session(host, ScriptedModel([say("one", delay=5), say("two")]))
        await session.send("A")
        await reach(session, "model")
        again = await host.resume_session(session.session_id)
        assert len(host.actors()) == 1
        assert (await again.send_and_wait("B")).content == "two"
        assert await logged(session, "session.resume") == []


async def test_a_take_up_while_the_session_leaves_waits_for_it_and_begins_anew(
    autojump_clock: object,
) -> None:
    async with checked_host() as host, trio.open_nursery() as nursery:
        model = ScriptedModel([call("stuck"), say("two")])
        session = await open_session(host, model, plain_tool("stuck", Shielded(5)))
        await session.send("A")
        await reach(session, "tools")
        begin(nursery, session.disconnect)
        await trio.sleep(0.5)
        again = await host.resume_session(session.session_id)
        assert again.statistics().status == "live"
        assert (await again.send_and_wait("B")).content == "two"


async def test_a_take_up_of_an_unknown_session_makes_nothing(autojump_clock: object) -> None:
    async with checked_host() as host:
        with pytest.raises(SessionNotFound) as caught:
            await host.resume_session("nobody")
        assert caught.value.session_id == "nobody"
        assert host.actors() == []
        assert list(await host.list_sessions()) == []


async def test_a_stored_session_without_options_is_refused_and_stays_stored(autojump_clock: object) -> None:
    journal = MemoryJournal()
    async with checked_host(journal=journal) as host:
        session = await open_session(host, ScriptedModel([say("one")]))
        await session.send_and_wait("A")
    async with checked_host(journal=journal) as host:
        with pytest.raises(SessionNotConfigured):
            await host.resume_session(session.session_id)
        assert host.actors() == []
        model = ScriptedModel([say("two")])
        again = await host.resume_session(session.session_id, model=model)
        await again.send_and_wait("B")
        assert model.requests[0].contents == ("A", "one", "B")


async def test_the_resolver_of_a_host_gives_the_options_of_a_stored_session(autojump_clock: object) -> None:
    journal = MemoryJournal()
    asked: list[Any] = []
    model = ScriptedModel([say("two")])

    async def resolve(session_id: str, metadata: Any) -> SessionOptions:
        await trio.lowlevel.checkpoint()
        asked.append((session_id, metadata.tenant))
        return build_options(model=model)

    async with checked_host(journal=journal) as host:
        session = await open_session(host, ScriptedModel([say("one")]), tenant="mine")
        await session.send_and_wait("A")
    async with checked_host(journal=journal, session_options=resolve) as host:
        again = await host.resume_session(session.session_id)
        assert asked == [(session.session_id, "mine")]
        assert (await again.send_and_wait("B")).content == "two"


async def test_a_resolver_that_raises_leaves_no_half_session(autojump_clock: object) -> None:
    journal = MemoryJournal()

    async def broken(_: str, __: Any) -> SessionOptions:
        await trio.lowlevel.checkpoint()
        raise LookupError("no secrets today")

    async with checked_host(journal=journal) as host:
        session = await open_session(host, ScriptedModel([]))
    async with checked_host(journal=journal, session_options=broken) as host:
        for _ in range(2):
            with pytest.raises(LookupError):
                await host.resume_session(session.session_id)
        assert host.actors() == []
