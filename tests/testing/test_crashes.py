"""Crashes on purpose."""

import pytest
import trio

from exeunt import TurnInterrupted
from exeunt.actors.events import SessionRestarted
from exeunt.testing import InjectedCrash, ScriptedModel, checked_host, crash_session, hang, say


async def test_a_crash_interrupts_the_turn_and_the_session_goes_on(
    autojump_clock: trio.testing.MockClock,
) -> None:
    model = ScriptedModel([hang(), say("back")])
    async with checked_host() as host:
        session = await host.create_session(model=model)
        async with trio.open_nursery() as nursery:

            async def ask() -> None:
                with pytest.raises(TurnInterrupted):
                    await session.send_and_wait("hello")

            nursery.start_soon(ask)
            await trio.testing.wait_all_tasks_blocked()
            crash_session(session)
        assert (await session.send_and_wait("again")).content == "back"
        [restart] = [event for event in await session.get_events() if isinstance(event, SessionRestarted)]
        assert restart.cause == "InjectedCrash: injected by a test"
        assert session.statistics().restarts == 1
    model.verify()


async def test_the_cause_of_a_crash_is_the_error_that_is_given(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with checked_host() as host:
        session = await host.create_session(model=ScriptedModel([say("back")]))
        crash_session(session, OSError("the disk is gone"))
        await session.send_and_wait("hello")
        [restart] = [event for event in await session.get_events() if isinstance(event, SessionRestarted)]
        assert restart.cause == "OSError: the disk is gone"


async def test_a_session_that_is_gone_does_not_crash(autojump_clock: trio.testing.MockClock) -> None:
    async with checked_host() as host:
        session = await host.create_session(model=ScriptedModel([]))
        await session.disconnect()
        crash_session(session)
        assert session.statistics().status == "closed"


def test_an_injected_crash_is_no_error_of_the_project() -> None:
    assert InjectedCrash.__bases__ == (Exception,)
