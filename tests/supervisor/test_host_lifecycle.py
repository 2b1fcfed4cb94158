"""Opening and ending a host: errors come out as they are, nothing is left, and what is stuck is named."""

import gc
import logging
from typing import Any

import pytest
import trio
from prometheus_client import CollectorRegistry

from exeunt import (
    HostOptions,
    InvalidConfiguration,
    Session,
    SessionClosed,
    ToolInvocation,
    TurnAborted,
    open_host,
)
from exeunt.actors.events import Event
from exeunt.supervisor.journal import MemoryJournal
from exeunt.testing import (
    Gate,
    ScriptedModel,
    Shielded,
    Swallowing,
    call,
    checked_host,
    hang,
    run_virtual,
    say,
)
from tests.actors.session_support import (
    Result,
    begin,
    count,
    ends,
    logged,
    open_session,
    outcomes,
    plain_tool,
    reach,
    tool_of,
    watch,
)


class Mishap(Exception):
    """What the body of a host raises in these tests."""


# --- Errors --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [Mishap("oops"), KeyboardInterrupt(), SystemExit(3)])
async def test_an_error_of_the_body_is_raised_as_it_is(autojump_clock: object, error: BaseException) -> None:
    caught: BaseException | None = None
    sessions: list[Session] = []
    try:
        async with open_host() as host:
            session = await open_session(host, ScriptedModel([call("wait")]), plain_tool("wait", Gate()))
            sessions.append(session)
            await session.send("A")
            await reach(session, "tools")
            raise error
    except BaseException as raised:  # noqa: BLE001, ASYNC103 - also an interrupt
        caught = raised
    assert caught is error
    assert error.__cause__ is None
    assert sessions[0].statistics().status == "closed"
    assert await ends(sessions[0]) == ["aborted"]


async def test_an_error_group_of_the_body_is_raised_as_it_is(autojump_clock: object) -> None:
    group = ExceptionGroup("two", [Mishap("one"), Mishap("two")])
    caught: BaseException | None = None
    try:
        async with open_host():
            raise group
    except ExceptionGroup as raised:
        caught = raised
    assert caught is group


async def test_a_registry_that_has_the_metrics_of_another_host_is_refused_as_it_is(
    autojump_clock: object,
) -> None:
    registry = CollectorRegistry()
    entered = False
    async with open_host(registry=registry):
        with pytest.raises(InvalidConfiguration, match="registry"):
            async with open_host(registry=registry):
                entered = True
    assert not entered


@pytest.mark.parametrize(
    "options", [{"tenant_turns": 0}, {"weights": {"mine": -1}}, {"tenant_tool_slots": 0}]
)
async def test_options_that_cannot_work_are_refused_as_they_are(
    autojump_clock: object, options: dict[str, Any]
) -> None:
    with pytest.raises(InvalidConfiguration):
        async with open_host(options=HostOptions(**options)):
            pytest.fail("the host was opened")


async def test_an_error_while_all_is_cancelled_comes_out(autojump_clock: object) -> None:
    async def fail_while_cancelled() -> None:
        with trio.CancelScope() as scope:
            async with open_host() as host:
                session = await open_session(host, ScriptedModel([hang()]))
                await session.send("A")
                await reach(session, "model")
                scope.cancel()
                raise Mishap

    with pytest.raises(Mishap):
        await fail_while_cancelled()


# --- Cancellation --------------------------------------------------------------------------------------------


async def test_a_host_whose_body_is_cancelled_ends_in_order(autojump_clock: object) -> None:
    gate = Gate()
    seen: list[tuple[Session, list[Event], Result, Result]] = []
    async with trio.open_nursery() as nursery:
        with trio.CancelScope() as scope:
            async with checked_host(settled=False) as host:
                session = await open_session(host, ScriptedModel([call("wait")]), plain_tool("wait", gate))
                outside = begin(nursery, session.send_and_wait, "A")
                await gate.entered()
                queued = begin(nursery, session.send_and_wait, "B")
                await trio.sleep(0.1)
                seen.append((session, watch(session), outside, queued))
                scope.cancel()
                await trio.sleep_forever()
        assert scope.cancelled_caught
        ((session, events, outside, queued),) = seen
        assert session.statistics().status == "closed"
        assert await outcomes(session) == [("wait", "cancelled")]
        assert await ends(session) == ["aborted"]
        assert events[-1].type == "session.shutdown"
        with trio.fail_after(1):
            assert isinstance((await outside.wait()).error, TurnAborted)
            assert isinstance((await queued.wait()).error, SessionClosed)


async def test_a_cancelled_host_leaves_a_stuck_handler_after_the_grace_and_names_it(
    autojump_clock: object, caplog: pytest.LogCaptureFixture
) -> None:
    seen: list[tuple[Session, float]] = []
    with trio.CancelScope() as scope:
        async with open_host() as host:
            session = await open_session(
                host, ScriptedModel([call("stuck")]), plain_tool("stuck", Shielded(20))
            )
            await session.send("A")
            await reach(session, "tools")
            seen.append((session, trio.current_time()))
            scope.cancel()
            await trio.sleep_forever()
    ((session, began),) = seen
    assert trio.current_time() - began == pytest.approx(20, abs=0.1)
    assert await ends(session) == ["aborted"]
    assert await outcomes(session) == [("stuck", "cancelled")]
    (turn_end,) = await logged(session, "turn.end")
    assert turn_end.duration == pytest.approx(1, abs=0.1)
    named = [r for r in caplog.records if "stuck" in r.message and session.session_id in r.message]
    assert len(named) == 3


async def test_a_body_in_a_time_out_is_told_so(autojump_clock: object) -> None:
    async def be_too_slow() -> None:
        with trio.fail_after(5):
            async with open_host() as host:
                session = await open_session(host, ScriptedModel([hang()]))
                await session.send_and_wait("A", timeout=None)

    with pytest.raises(trio.TooSlowError):
        await be_too_slow()
    assert trio.current_time() == pytest.approx(5)


# --- The end -------------------------------------------------------------------------------------------------


async def test_a_host_that_ends_while_tools_run_aborts_their_turns(autojump_clock: object) -> None:
    gate = Gate()
    async with trio.open_nursery() as nursery:
        async with checked_host(settled=False) as host:
            sessions: list[Session] = []
            for _ in range(20):
                model = ScriptedModel([[call("wait"), call("swallow")]])
                tools = [plain_tool("wait", gate), plain_tool("swallow", Swallowing())]
                sessions.append(await open_session(host, model, *tools))
            waiting = [begin(nursery, session.send_and_wait, "A") for session in sessions]
            await gate.entered(20)
        for session, result in zip(sessions, waiting, strict=True):
            assert isinstance((await result.wait()).error, TurnAborted)
            assert session.statistics().status == "closed"
            assert {outcome for _, outcome in await outcomes(session)} == {"cancelled"}
            assert [e.reason for e in await logged(session, "session.shutdown")] == ["host"]
            with pytest.raises(SessionClosed):
                await session.send("B")
    assert gate.running == 0


async def test_a_host_that_waits_for_a_stuck_handler_names_tool_and_session_every_5_s(
    autojump_clock: object, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "exeunt.supervisor")
    async with open_host() as host:
        session = await open_session(host, ScriptedModel([call("stuck")]), plain_tool("stuck", Shielded(18)))
        other = await open_session(host, ScriptedModel([call("fine")]), plain_tool("fine", Gate()))
        await session.send("A")
        await other.send("A")
        await reach(session, "tools")
        await reach(other, "tools")
        began = trio.current_time()
    assert trio.current_time() - began == pytest.approx(18, abs=0.1)
    named = [record.message for record in caplog.records if "stuck" in record.message]
    assert len(named) == 3
    assert all(session.session_id in message for message in named)
    assert not any(other.session_id in message for message in named)


async def test_a_host_that_waits_for_a_task_of_its_embedder_names_the_task(
    autojump_clock: object, caplog: pytest.LogCaptureFixture
) -> None:
    async def reporting() -> None:
        with trio.CancelScope(shield=True):
            await trio.sleep(7)

    async with open_host() as host:
        host.nursery.start_soon(reporting, name="my report")
    assert [record.message for record in caplog.records] == [
        "the host waits for what does not end: my report in host.nursery"
    ]


async def test_a_host_without_sessions_ends_at_once(
    autojump_clock: object, caplog: pytest.LogCaptureFixture
) -> None:
    async with open_host():
        pass
    assert trio.current_time() == 0
    assert caplog.records == []


async def test_a_host_that_ends_takes_no_sessions(autojump_clock: object) -> None:
    refused: list[SessionClosed] = []

    async def late(_: ToolInvocation) -> str:
        try:
            await trio.sleep_forever()
        finally:
            for making in (
                host.create_session(model=ScriptedModel([])),
                host.resume_session("somebody", model=ScriptedModel([])),
            ):
                with trio.CancelScope(shield=True), pytest.raises(SessionClosed) as caught:
                    await making
                refused.append(caught.value)
        return "late"

    async with open_host() as host:
        session = await open_session(host, ScriptedModel([call("late")]), tool_of("late", late))
        await session.send("A")
        await reach(session, "tools")
    assert len(refused) == 2
    with pytest.raises(SessionClosed):
        await host.create_session(model=ScriptedModel([]))


async def test_a_host_closes_its_sessions_also_without_a_grace(autojump_clock: object) -> None:
    async with checked_host(options=HostOptions(shutdown_grace=0), settled=False) as host:
        session = await open_session(host, ScriptedModel([call("wait")]), plain_tool("wait", Gate()))
        await session.send("A")
        await reach(session, "tools")
    assert session.statistics().status == "closed"
    assert await ends(session) == ["aborted"]


async def test_two_hosts_of_a_process_know_nothing_of_each_other(autojump_clock: object) -> None:
    async with checked_host() as first, checked_host() as second:
        one = await open_session(first, ScriptedModel([say("first")]), session_id="same")
        two = await open_session(second, ScriptedModel([say("second")]), session_id="same")
        assert (await one.send_and_wait("A")).content == "first"
        assert (await two.send_and_wait("A")).content == "second"
        await first.delete_session("same")
        assert second.get_session("same").statistics().status == "live"
        assert len(first.actors()) == 0
        assert len(second.actors()) == 1


async def test_a_tool_of_one_host_can_ask_a_session_of_another(autojump_clock: object) -> None:
    async with checked_host() as first, checked_host() as second:
        other = await open_session(second, ScriptedModel([say("from the other host")]))

        async def ask(_: ToolInvocation) -> str:
            return (await other.send_and_wait("B")).content

        model = ScriptedModel([call("ask"), say("done")])
        session = await open_session(first, model, tool_of("ask", ask))
        await session.send_and_wait("A")
        assert model.requests[1].contents[-1] == "from the other host"


def test_a_second_host_may_use_the_journal_of_one_that_has_ended() -> None:
    journal = MemoryJournal()

    async def first() -> None:
        async with checked_host(journal=journal) as host:
            session = await open_session(host, ScriptedModel([say("one")]), session_id="kept")
            await session.send_and_wait("A")

    async def second() -> None:
        model = ScriptedModel([say("two")])
        async with checked_host(journal=journal) as host:
            session = await host.resume_session("kept", model=model)
            events = watch(session)
            await session.send_and_wait("B")
            assert count(events, "assistant.message") == 1
        assert model.requests[0].contents == ("A", "one", "B")

    run_virtual(first)
    run_virtual(second)


async def test_a_host_that_has_ended_leaves_no_task(autojump_clock: object) -> None:
    before = trio.lowlevel.current_statistics().tasks_living
    async with open_host() as host:
        sessions = [await open_session(host, ScriptedModel([say("hi")])) for _ in range(10)]
        for session in sessions:
            await session.send_and_wait("A")
        await sessions[0].send("B")
    gc.collect()
    assert trio.lowlevel.current_statistics().tasks_living == before


async def test_an_idle_session_has_no_task(autojump_clock: object) -> None:
    async with open_host() as host:
        before = trio.lowlevel.current_statistics().tasks_living
        for _ in range(100):
            await open_session(host, ScriptedModel([]))
        assert trio.lowlevel.current_statistics().tasks_living == before


async def test_a_journal_that_is_no_journal_is_refused_as_it_is() -> None:
    with pytest.raises(InvalidConfiguration, match="a journal's URL begins with"):
        async with open_host(journal="nowhere://x"):
            pass  # pragma: no cover
