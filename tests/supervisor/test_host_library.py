"""Finding, making and deleting the sessions of a host."""

from typing import Any

import pytest
import trio
import trio.lowlevel

from exeunt import (
    InvalidConfiguration,
    SessionClosed,
    SessionExists,
    SessionNotFound,
    ToolInvocation,
    TurnAborted,
)
from exeunt.testing import (
    ScriptedModel,
    call,
    checked_host,
    hang,
    say,
)
from tests.actors.session_support import (
    begin,
    only,
    open_session,
    reach,
    settled,
    tool_of,
    watch,
)

# --- Finding and making --------------------------------------------------------------------------------------


async def test_sessions_are_listed_with_the_one_used_last_first(autojump_clock: object) -> None:
    async with checked_host() as host:
        first = await open_session(host, ScriptedModel([say("hi")]), session_id="first", tenant="mine")
        await trio.sleep(1)
        second = await open_session(host, ScriptedModel([]), session_id="second")
        await trio.sleep(1)
        await first.send_and_wait("A")
        await settled(first)
        listed = list(await host.list_sessions())
        assert {item.session_id: item.live for item in listed} == {"first": True, "second": True}
        assert [item.session_id for item in await host.list_sessions(tenant="mine")] == ["first"]
        (mine,) = await host.list_sessions(tenant="mine")
        assert mine.events == first.statistics().events
        await second.disconnect()
        assert {i.session_id: i.live for i in await host.list_sessions()} == {"first": True, "second": False}
        assert host.get_session("first").session_id == "first"


async def test_a_session_id_is_unique_until_it_is_deleted(autojump_clock: object) -> None:
    async with checked_host() as host, trio.open_nursery() as nursery:
        results = [
            begin(nursery, lambda: open_session(host, ScriptedModel([]), session_id="one")) for _ in range(4)
        ]
        for result in results:
            await result.wait()
        assert sum(result.error is None for result in results) == 1
        assert all(isinstance(r.error, SessionExists) for r in results if r.error is not None)
        await host.get_session("one").disconnect()
        with pytest.raises(SessionExists):
            await open_session(host, ScriptedModel([]), session_id="one")
        await host.delete_session("one")
        await open_session(host, ScriptedModel([]), session_id="one")


@pytest.mark.parametrize("session_id", ["", "x" * 129, "a\nb", 7, b"id"])
async def test_what_cannot_be_an_id_is_refused(autojump_clock: object, session_id: Any) -> None:
    async with checked_host() as host:
        with pytest.raises(InvalidConfiguration):
            await open_session(host, ScriptedModel([]), session_id=session_id)
        assert host.actors() == []


async def test_an_id_that_is_taken_is_refused_with_what_to_do(autojump_clock: object) -> None:
    async with checked_host() as host:
        session = await open_session(host, ScriptedModel([]), session_id="one")
        for _ in range(2):
            with pytest.raises(SessionExists, match="exists already: resume it, or delete it first"):
                await open_session(host, ScriptedModel([]), session_id="one")
            await session.disconnect()


async def test_a_handle_says_how_its_session_ended_and_what_is_left_to_do(autojump_clock: object) -> None:
    async with checked_host() as host:
        handles = [await open_session(host, ScriptedModel([]), session_id=name) for name in "abc"]
        await handles[0].disconnect()
        await host.delete_session("b")
    said: list[str] = []
    for handle in handles:
        with pytest.raises(SessionClosed) as refused:
            await handle.send("A")
        said.append(str(refused.value))
    assert said == [
        "session a was disconnected; resume it to go on with it",
        "session b was deleted; create another",
        "session c has ended with its host; resume it at a host that has its journal",
    ]


@pytest.mark.parametrize("limit", [0, -1])
async def test_a_page_without_sessions_is_refused_by_the_name_of_the_option(
    autojump_clock: object, limit: int
) -> None:
    async with checked_host() as host:
        with pytest.raises(
            InvalidConfiguration, match=f"limit must be at least 1 session a page, not {limit}"
        ):
            await host.journal.list(limit=limit)
        with pytest.raises(
            InvalidConfiguration, match=f"limit is {limit}: give a whole number of at least 1"
        ):
            await host.list_sessions(limit=limit)


# --- Deleting ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("live", [False, True])
async def test_a_deleted_session_is_gone(autojump_clock: object, live: bool) -> None:
    async with checked_host() as host:
        session = await open_session(host, ScriptedModel([say("hi")]))
        await session.send_and_wait("A")
        if not live:
            await session.disconnect()
        await host.delete_session(session.session_id)
        assert list(await host.list_sessions()) == []
        assert host.actors() == []
        with pytest.raises(SessionNotFound):
            await host.resume_session(session.session_id)
        with pytest.raises(SessionNotFound):
            await host.delete_session(session.session_id)
        with pytest.raises(SessionClosed):
            await session.send("B")


async def test_the_messages_of_a_session_that_is_deleted_are_dropped(autojump_clock: object) -> None:
    async with checked_host() as host, trio.open_nursery() as nursery:
        session = await open_session(host, ScriptedModel([hang()]))
        events = watch(session)
        await session.send("A")
        await reach(session, "model")
        sent = await session.send("B")
        waiting = begin(nursery, session.send_and_wait, "C")
        await trio.sleep(0.1)
        await host.delete_session(session.session_id)
        gone = [(e.message_id, e.cause) for e in only(events, "message.dropped")]
        assert gone[0] == (sent, "deleted")
        assert len(gone) == 2
        assert isinstance((await waiting.wait()).error, SessionClosed)


async def test_a_tool_can_delete_its_own_session(autojump_clock: object) -> None:
    took: list[float] = []

    async def delete(invocation: ToolInvocation) -> str:
        began = trio.current_time()
        await host.delete_session(invocation.session_id)
        took.append(trio.current_time() - began)
        await trio.lowlevel.checkpoint()
        return "deleted"

    async with checked_host() as host:
        session = await open_session(host, ScriptedModel([call("delete")]), tool_of("delete", delete))
        with trio.fail_after(0.5), pytest.raises(TurnAborted):
            await session.send_and_wait("A")
        await trio.sleep(1)
        assert took == [0.0]
        assert list(await host.list_sessions()) == []
        assert host.actors() == []


@pytest.mark.parametrize("reason", ["deleted", "host", 3, None])
async def test_a_disconnect_cannot_pass_for_what_the_host_does(autojump_clock: object, reason: Any) -> None:
    async with checked_host() as host:
        session = await host.create_session(model=ScriptedModel(["hi"]))
        with pytest.raises(InvalidConfiguration, match="the reason of a disconnect is a text of yours"):
            await session.disconnect(reason=reason)
        assert (await session.send_and_wait("still there?")).content == "hi"
