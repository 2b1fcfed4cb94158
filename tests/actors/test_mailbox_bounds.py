"""Accepted or refused, and nothing in between: the bounds of a mailbox and of a host."""

from typing import Any

import pytest
import trio

from exeunt import (
    HostOptions,
    InvalidConfiguration,
    InvalidPrompt,
    MailboxFull,
    Overloaded,
    Session,
    SessionHost,
)
from exeunt.testing import Gate, ScriptedModel, call, checked_host, hang, say
from tests.actors.session_support import (
    begin,
    dropped,
    logged,
    open_session,
    plain_tool,
    reach,
    settled,
    watch,
)


async def busy(host: SessionHost, gate: Gate, **options: Any) -> Session:
    """A session in the middle of a turn, whose tool waits for *gate*."""
    model = ScriptedModel([call("wait")], default=say("ok"))
    session = await open_session(host, model, plain_tool("wait", gate), **options)
    await session.send("A")
    await gate.entered()
    return session


async def test_a_busy_session_takes_256_messages_and_refuses_the_next(autojump_clock: object) -> None:
    gate = Gate()
    async with checked_host() as host:
        session = await busy(host, gate)
        for number in range(256):
            await session.send(str(number), mode="immediate" if number % 2 else "enqueue")
        before = (session.statistics(), await session.get_events())
        with pytest.raises(MailboxFull, match="256") as caught:
            await session.send("one too many")
        assert caught.value.session_id == session.session_id
        with pytest.raises(MailboxFull):
            await session.send("one too many", mode="immediate")
        with pytest.raises(MailboxFull):
            await session.send_and_wait("one too many")
        with pytest.raises(MailboxFull):
            await session.call_tool("wait")
        assert (session.statistics(), await session.get_events()) == before
        assert session.statistics().mailbox_depth == 256
        assert host.statistics().mailbox_refused == 4
        assert host.statistics().mailbox_depth == 256
        gate.open()
        await settled(session)
        assert len(await logged(session, "user.message")) == 257
        await session.send("there is room again")
        await settled(session)


async def test_a_full_mailbox_takes_calls_of_the_host_into_account(autojump_clock: object) -> None:
    gate = Gate()
    async with checked_host() as host, trio.open_nursery() as nursery:
        session = await busy(host, gate, mailbox_size=2)
        waiting = begin(nursery, session.call_tool, "wait")
        await session.send("B")
        await trio.sleep(0.1)
        with pytest.raises(MailboxFull):
            await session.send("C")
        gate.open()
        assert (await waiting.wait()).value.outcome == "success"
        await settled(session)


async def test_an_abort_always_has_room(autojump_clock: object) -> None:
    gate = Gate()
    async with checked_host() as host:
        session = await busy(host, gate, mailbox_size=3)
        sent = [await session.send(str(number)) for number in range(3)]
        receipt = await session.abort()
        assert receipt.queued == 3
        assert await dropped(session) == [(message_id, "aborted") for message_id in sent]
        assert session.statistics().mailbox_depth == 0


async def test_a_clear_and_a_disconnect_always_have_room(autojump_clock: object) -> None:
    gate = Gate()
    async with checked_host(settled=False) as host:
        session = await busy(host, gate, mailbox_size=1)
        await session.send("B")
        await session.history.clear_context("FRESH")
        assert session.statistics().clear_staged
        await session.disconnect()
        assert session.statistics().status == "closed"


async def test_a_mailbox_without_room_works_one_message_at_a_time(autojump_clock: object) -> None:
    gate = Gate()
    async with checked_host() as host:
        session = await busy(host, gate, mailbox_size=1)
        await session.send("B")
        with pytest.raises(MailboxFull):
            await session.send("C")
        gate.open()
        await settled(session)
        assert len(await logged(session, "user.message")) == 2


@pytest.mark.parametrize("prompt", [None, 7, b"text", ["text"], "half a \ud800 pair"])
async def test_what_is_no_text_is_refused_and_changes_nothing(autojump_clock: object, prompt: Any) -> None:
    async with checked_host() as host:
        session = await open_session(host, ScriptedModel([]))
        before = await session.get_events()
        for sending in (session.send, session.send_and_wait):
            with pytest.raises(InvalidPrompt):
                await sending(prompt)
        assert await session.get_events() == before


async def test_an_unknown_mode_is_refused_and_changes_nothing(autojump_clock: object) -> None:
    async with checked_host() as host:
        session = await open_session(host, ScriptedModel([]))
        before = await session.get_events()
        with pytest.raises(InvalidConfiguration, match="sometime"):
            await session.send("A", mode="sometime")  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
        assert await session.get_events() == before


async def test_a_host_without_room_refuses_messages_but_no_turn_that_follows_from_accepted_ones(
    autojump_clock: object,
) -> None:
    options = HostOptions(running_turns=1, waiting_turns=1)
    async with checked_host(options=options) as host:
        model = ScriptedModel([], default=say("ok", delay=10))
        sessions = [await open_session(host, model) for _ in range(3)]
        await sessions[0].send("A")
        await sessions[0].send("B")
        await sessions[1].send("C")
        before = await sessions[2].get_events()
        with pytest.raises(Overloaded) as caught:
            await sessions[2].send("D")
        assert caught.value.session_id == sessions[2].session_id
        assert await sessions[2].get_events() == before
        assert sessions[2].statistics().phase == "idle"
        turns = host.statistics().turns
        assert (turns.running, turns.waiting, turns.refused) == (1, 1, 1)
        assert host.statistics().admission["refused"] == 1
        for session in sessions[:2]:
            await settled(session)
        assert len(await logged(sessions[0], "user.message")) == 2
        await sessions[2].send("E")
        await settled(sessions[2])


async def test_one_tenant_cannot_take_the_share_of_another(autojump_clock: object) -> None:
    options = HostOptions(running_turns=4, waiting_turns=100, tenant_turns=2)
    async with checked_host(options=options) as host:
        model = ScriptedModel([], default=say("ok", delay=10))
        noisy = [await open_session(host, model, tenant="noisy") for _ in range(3)]
        quiet = await open_session(host, model, tenant="quiet")
        await noisy[0].send("A")
        await noisy[1].send("B")
        with pytest.raises(Overloaded, match="noisy"):
            await noisy[2].send("C")
        assert (await quiet.send_and_wait("D")).content == "ok"
        for session in noisy:
            await settled(session)
        assert host.statistics().turns.refused_tenant == 1


async def test_a_waiting_turn_of_a_quiet_tenant_is_not_behind_all_of_a_noisy_one(
    autojump_clock: object,
) -> None:
    async with checked_host(options=HostOptions(running_turns=1)) as host:
        model = ScriptedModel([], default=say("ok", delay=1))
        noisy = [await open_session(host, model, tenant="noisy") for _ in range(20)]
        quiet = await open_session(host, model, tenant="quiet")
        for session in noisy:
            await session.send("A")
        began = trio.current_time()
        await quiet.send_and_wait("B")
        assert trio.current_time() - began <= 3
        for session in noisy:
            await settled(session)


async def test_a_session_shows_where_it_waits(autojump_clock: object) -> None:
    async with checked_host(options=HostOptions(running_turns=1)) as host:
        first = await open_session(host, ScriptedModel([hang()]))
        second = await open_session(host, ScriptedModel([say("hi")]))
        events = watch(second)
        await first.send("A")
        await second.send("B")
        assert second.statistics().phase == "waiting"
        assert second.statistics().queued == 1
        assert [event.type for event in events] == ["message.accepted"]
        await first.abort()
        await reach(second, "idle")
        assert events[-1].type == "session.idle"
