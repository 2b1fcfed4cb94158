"""Forks of stored sessions, and how long sessions are kept."""

from pathlib import Path
from typing import Any

import pytest
import trio

from exeunt import (
    InvalidConfiguration,
    Session,
    SessionExists,
    SessionHost,
    SessionNotConfigured,
    SessionNotFound,
    UnknownEvent,
    approve_all,
    open_host,
    tool,
)
from exeunt.actors.events import SessionStart, ToolExecutionComplete, ToolExecutionStart
from exeunt.testing import ScriptedModel, call, checked_host, say


async def make(host: SessionHost, session_id: str, **options: Any) -> Session:
    model = ScriptedModel([say("hi"), say("again")])
    session = await host.create_session(session_id=session_id, model=model, **options)
    await session.send_and_wait("hello")
    return session


def texts(session: Session) -> list[str]:
    return [message.content for message in session.history.messages()]


# --- Forks ---------------------------------------------------------------------------------------------------


async def test_a_fork_is_another_session_with_the_same_past(autojump_clock: trio.testing.MockClock) -> None:
    async with checked_host() as host:
        session = await make(host, "hamlet")
        fork = await host.fork_session("hamlet", new_session_id="horatio")
        assert fork.session_id == "horatio"
        assert texts(fork) == texts(session) == ["hello", "hi"]
        await session.send_and_wait("more")
        assert texts(session) == ["hello", "hi", "more", "again"]
        assert texts(fork) == ["hello", "hi"]
        start = (await fork.get_events())[0]
        assert isinstance(start, SessionStart)
        assert start.session_id == "horatio"
        assert (await fork.get_events())[1:7] == (await session.get_events())[1:7]


@pytest.mark.parametrize("by", ["id", "number"])
async def test_a_fork_may_begin_at_an_earlier_event(by: str, autojump_clock: trio.testing.MockClock) -> None:
    async with checked_host() as host:
        session = await make(host, "hamlet")
        end = (await session.get_events())[-1]
        await session.send_and_wait("more")
        fork = await host.fork_session("hamlet", at=end.id if by == "id" else end.seq)
        assert texts(fork) == ["hello", "hi"]
        assert fork.session_id != "hamlet"


async def test_a_fork_in_the_middle_of_a_turn_is_like_a_resume_there(
    autojump_clock: trio.testing.MockClock,
) -> None:
    @tool
    async def wait() -> str:
        """Wait."""
        await trio.sleep(10)
        return "waited"

    async with checked_host() as host:
        session = await host.create_session(
            session_id="hamlet", model=ScriptedModel([call("wait"), say("done"), say("fork")]), tools=[wait],
            on_permission_request=approve_all,
        )  # fmt: skip
        async with trio.open_nursery() as nursery:
            nursery.start_soon(session.send_and_wait, "hello")
            await trio.sleep(5)
            start = next(e for e in await session.get_events() if isinstance(e, ToolExecutionStart))
            fork = await host.fork_session("hamlet", at=start.id)
            end = next(e for e in await fork.get_events() if isinstance(e, ToolExecutionComplete))
            assert end.outcome == "interrupted"
        assert texts(session)[-1] == "done"
        await fork.send_and_wait("and you?")


async def test_what_cannot_be_forked_is_refused_and_makes_nothing(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with checked_host() as host:
        await make(host, "hamlet")
        other = (await (await make(host, "other")).get_events())[-1]
        with pytest.raises(SessionNotFound):
            await host.fork_session("nobody", model=ScriptedModel([]))
        with pytest.raises(SessionExists):
            await host.fork_session("hamlet", new_session_id="other")
        for wrong in (other.id, "no id", ""):
            with pytest.raises(UnknownEvent):
                await host.fork_session("hamlet", at=wrong)
        for number in (0, 99):
            with pytest.raises(InvalidConfiguration):
                await host.fork_session("hamlet", at=number)
        with pytest.raises(InvalidConfiguration):
            await host.fork_session("hamlet", new_session_id="")
        assert {item.session_id for item in await host.list_sessions()} == {"hamlet", "other"}


async def test_a_fork_of_a_session_of_another_process_needs_options(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/log.sqlite3"
    async with checked_host(journal=url) as host:
        await make(host, "hamlet")
    async with open_host(journal=url) as host:
        with pytest.raises(SessionNotConfigured):
            await host.fork_session("hamlet", new_session_id="horatio")
        assert [item.session_id for item in await host.list_sessions()] == ["hamlet"]
        fork = await host.fork_session("hamlet", new_session_id="horatio", model=ScriptedModel([say("yes")]))
        assert (await fork.send_and_wait("still there?")).content == "yes"
        assert {item.session_id for item in await host.list_sessions()} == {"hamlet", "horatio"}


# --- Retention -----------------------------------------------------------------------------------------------


async def aged(host: SessionHost, *names: str) -> None:
    """Sessions that have left memory, each used an hour after the one before."""
    for name in names:
        await (await make(host, name)).disconnect()
        await trio.sleep(3600)


async def kept(host: SessionHost) -> list[str]:
    return sorted(item.session_id for item in await host.list_sessions())


async def test_sessions_that_were_not_used_for_long_go(autojump_clock: trio.testing.MockClock) -> None:
    async with checked_host() as host:
        await aged(host, "a", "b", "c")
        assert await host.prune_sessions(older_than=2.5 * 3600) == ["a"]
        assert await kept(host) == ["b", "c"]
        assert await host.prune_sessions(older_than=0) == ["b", "c"]
        assert host.statistics().pruned == 3


async def test_the_sessions_used_last_stay_as_many_as_are_kept(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with checked_host() as host:
        await aged(host, "a", "b", "c", "d")
        assert await host.prune_sessions(keep=2) == ["a", "b"]
        assert await host.prune_sessions(keep=2, older_than=1.5 * 3600) == ["c"]
        assert await kept(host) == ["d"]
        with pytest.raises(SessionNotFound):
            await host.resume_session("a")


async def test_sessions_in_memory_stay_however_old_they_are(autojump_clock: trio.testing.MockClock) -> None:
    async with checked_host() as host:
        await make(host, "live")
        await aged(host, "a")
        assert await host.prune_sessions(keep=0, older_than=0) == ["a"]
        assert await kept(host) == ["live"]


async def test_one_tenant_is_pruned_alone(autojump_clock: trio.testing.MockClock) -> None:
    async with checked_host() as host:
        for tenant in ("ada", "bob"):
            await (await make(host, tenant, tenant=tenant)).disconnect()
        assert await host.prune_sessions(keep=0, tenant="ada") == ["ada"]
        assert await kept(host) == ["bob"]


@pytest.mark.parametrize(
    "wrong", [{}, {"keep": -1}, {"keep": 1.5}, {"older_than": -1}, {"older_than": float("nan")}]
)
async def test_wrong_bounds_delete_nothing(
    wrong: dict[str, Any], autojump_clock: trio.testing.MockClock
) -> None:
    async with checked_host() as host:
        await (await make(host, "a")).disconnect()
        with pytest.raises(InvalidConfiguration):
            await host.prune_sessions(**wrong)
        assert await kept(host) == ["a"]


async def test_more_sessions_than_a_page_are_pruned(
    autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("exeunt.supervisor.retention.LIST_AT_ONCE", 2)
    async with checked_host() as host:
        await aged(host, *"abcdefg")
        assert await host.prune_sessions(keep=3) == list("abcd")
