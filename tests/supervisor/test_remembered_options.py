"""A host remembers the options of sessions that were disconnected, of so many and no more."""

import pytest

from exeunt import HostOptions, InvalidConfiguration, SessionNotConfigured
from exeunt.testing import ScriptedModel, checked_host, say


async def test_those_that_were_disconnected_first_are_forgotten_and_counted() -> None:
    async with checked_host(options=HostOptions(remembered_options=2)) as host:
        for name in ("a", "b", "a", "c", "d"):
            # The second time, `a` is taken up and leaves again: that counts as the last time.
            session = (
                await host.resume_session(name)
                if any(item.session_id == name for item in await host.list_sessions())
                else await host.create_session(session_id=name, model=ScriptedModel([], default=say(name)))
            )
            await session.disconnect()
        assert host.statistics().options_forgotten == 2
        for name in ("a", "b"):
            with pytest.raises(SessionNotConfigured, match="pass them when it is resumed"):
                await host.resume_session(name)
        for name in ("c", "d"):
            assert (await (await host.resume_session(name)).send_and_wait("hello")).content == name


async def test_what_is_taken_up_or_deleted_makes_room() -> None:
    async with checked_host(options=HostOptions(remembered_options=1)) as host:
        first = await host.create_session(session_id="a", model=ScriptedModel(["hi"]))
        await first.disconnect()
        await host.delete_session("a")
        second = await host.create_session(session_id="b", model=ScriptedModel(["hi"]))
        await second.disconnect()
        await host.resume_session("b")
        third = await host.create_session(session_id="c", model=ScriptedModel(["hi"]))
        await third.disconnect()
        assert host.statistics().options_forgotten == 0


async def test_none_at_all_may_be_remembered() -> None:
    async with checked_host(options=HostOptions(remembered_options=0)) as host:
        session = await host.create_session(session_id="a", model=ScriptedModel(["hi"]))
        await session.disconnect()
        with pytest.raises(SessionNotConfigured):
            await host.resume_session("a")


def test_less_than_none_is_refused() -> None:
    with pytest.raises(InvalidConfiguration, match="remembered_options"):
        HostOptions(remembered_options=-1)
