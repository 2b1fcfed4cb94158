"""What waits until it cannot be lost, and what does not: with a database that hangs."""

from typing import Any

import pytest
import trio
import trio.lowlevel
import trio.testing

from exeunt import SessionOwnedElsewhere, ToolInvocation, tool
from exeunt.actors.events import Event
from exeunt.testing import Gate, ScriptedModel, call, say
from exeunt.testing.faulty_store import FaultyStore
from exeunt.testing.journals import running_journal
from tests.actors.clear_support import plain_tool, settled
from tests.durability.resume_support import (
    SESSION,
    checked,
    clear_context,
    create,
    doomed,
    durable,
    read,
    resume,
    until,
)

TURN = [
    "message.accepted", "user.message", "assistant.turn_start", "assistant.message", "tool.execution_start",
    "tool.execution_complete", "assistant.turn_end", "assistant.turn_start", "assistant.message",
    "assistant.turn_end", "turn.end",
]  # fmt: skip


async def stored_types(store: FaultyStore) -> list[str]:
    """What is durable of the session: asked of the database, not of the host."""
    async with running_journal(store.inner) as journal:
        return [event.type for event in await journal.read(SESSION)]


async def test_send_returns_when_the_message_is_durable() -> None:
    store = FaultyStore()
    async with checked(store) as host:
        session = await create(host, ScriptedModel(["hi"]))
        await durable(session)
        store.hang()
        sent: list[str] = []

        async def send() -> None:
            sent.append(await session.send("hello"))
            assert "message.accepted" in await stored_types(store)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(send)
            await store.wait_attempts(store.attempts + 1)
            await trio.testing.wait_all_tasks_blocked()
            assert not sent
            store.heal()
        assert sent
        await settled(session)


async def test_a_handler_starts_when_its_beginning_is_durable() -> None:
    store = FaultyStore()
    gate = Gate()
    gate.open()

    async def look() -> str:
        assert "tool.execution_start" in await stored_types(store)
        return await gate()

    def answer(request: Any) -> Any:
        store.hang()
        return call("look")

    async with checked(store) as host:
        session = await create(host, ScriptedModel([answer, "done"]), plain_tool("look", look))
        async with trio.open_nursery() as nursery:
            # The request goes out before the message is durable; then the database hangs.
            nursery.start_soon(session.send, "work")
            await until(lambda: session.statistics().in_flight)
            await trio.testing.wait_all_tasks_blocked()
            assert not gate.calls
            store.heal()
        await settled(session)
        assert len(gate.calls) == 1
        assert session.history.messages()[-1].content == "done"


async def test_the_request_after_a_clear_goes_out_when_the_clear_is_durable() -> None:
    store = FaultyStore()

    @tool(is_terminal=True)
    async def clear(invocation: ToolInvocation) -> str:
        """Clear."""
        await invocation.session.history.clear_context("anew")
        store.hang()
        return "cleared"

    async def seeded(request: Any) -> Any:
        assert "session.context_cleared" in await stored_types(store)
        return say("fresh")

    model = ScriptedModel([call("clear"), seeded])
    async with checked(store) as host:
        session = await create(host, model, clear)
        await session.send("clear")
        await until(lambda: session.statistics().generation)
        await trio.testing.wait_all_tasks_blocked()
        assert model.calls == 1
        store.heal()
        await settled(session)
    model.verify()


async def test_replies_and_events_may_be_seen_a_moment_earlier() -> None:
    store = FaultyStore()
    async with checked(store) as host:
        session = await create(host, ScriptedModel(["hi"]))
        await durable(session)
        store.hang()
        seen: list[str] = []
        session.on(lambda event: seen.append(event.type))
        assert (await session.send_and_wait("hello")).content == "hi"
        assert "turn.end" in seen
        assert await stored_types(store) == ["session.start", "system.message"]
        store.heal()


async def test_relaxed_waits_for_nothing() -> None:
    store = FaultyStore()
    model = ScriptedModel([call("read"), "read it", call("clear_context", prompt="anew"), "fresh"])
    async with checked(store) as host:
        session = await create(host, model, read, clear_context, durability="relaxed")
        await durable(session)
        store.hang()
        assert (await session.send_and_wait("read")).content == "read it"
        await session.send("clear")
        await settled(session)
        assert session.history.messages()[-1].content == "fresh"
        assert await stored_types(store) == ["session.start", "system.message"]
        store.heal()
    assert "session.context_cleared" in await stored_types(store)
    model.verify()


async def test_strict_shows_nothing_that_is_not_durable() -> None:
    store = FaultyStore()
    model = ScriptedModel([call("read"), "read it"])
    async with checked(store) as host:
        session = await create(host, model, read, durability="strict")
        await durable(session)
        (actor,) = host.actors()
        seen: list[Event] = []
        early: list[Event] = []

        def show(event: Event) -> None:
            seen.append(event)
            if event.seq > actor.log.durable_seq:
                early.append(event)

        session.on(show)
        store.hang()
        replies: list[str] = []

        async def ask() -> None:
            replies.append((await session.send_and_wait("read")).content)
            assert (await stored_types(store))[-1] == "turn.end"

        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask)
            await store.wait_attempts(store.attempts + 1)
            await trio.testing.wait_all_tasks_blocked()
            assert not seen
            assert not replies
            store.heal()
        assert replies == ["read it"]
        await settled(session)
        await durable(session)
        assert [event.type for event in seen if not event.ephemeral] == TURN
        assert not early
        assert seen[-1].type == "session.idle"
    model.verify()


async def test_strict_delays_the_outcome_of_a_call_of_the_host() -> None:
    store = FaultyStore()
    async with checked(store) as host:
        session = await create(host, ScriptedModel([]), read, durability="strict")
        outcomes: list[str] = []

        async def run() -> None:
            outcomes.append((await session.call_tool("read")).outcome)
            assert "tool.execution_complete" in await stored_types(store)

        await durable(session)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(run)
            await trio.lowlevel.checkpoint()
        assert outcomes == ["success"]


@pytest.mark.parametrize("durability", ["default", "strict"])
async def test_a_cancelled_send_is_accepted_or_was_never_there(durability: str) -> None:
    store = FaultyStore()
    async with checked(store) as host:
        session = await create(host, ScriptedModel([], default=say("hi")), durability=durability)
        await durable(session)
        store.hang()
        with trio.CancelScope() as scope:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(session.send, "hello")
                await store.wait_attempts(store.attempts + 1)
                scope.cancel()
        store.heal()
        await settled(session)
        await durable(session)
        assert (await stored_types(store)).count("message.accepted") == 1
        assert session.history.messages()[-1].content == "hi"


async def test_who_waits_for_a_reply_that_cannot_become_durable_is_told() -> None:
    """With `strict` the reply is held back; then another host takes the session, and it will never be durable."""
    store = FaultyStore()
    async with checked(store, settled=False) as first, doomed(store.inner) as second:
        session = await create(first, ScriptedModel(["hi"]), durability="strict")
        await durable(session)
        store.hang()
        errors: list[Exception] = []

        async def ask() -> None:
            with pytest.raises(SessionOwnedElsewhere) as caught:
                await session.send_and_wait("hello", timeout=None)
            errors.append(caught.value)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask)
            await store.wait_attempts(store.attempts + 1)
            await until(lambda: session.history.messages()[-1].content == "hi")
            await resume(second, ScriptedModel([]))
            store.heal()
            await until(lambda: errors)
            nursery.cancel_scope.cancel()


async def test_a_list_has_the_sessions_that_were_made_before_it_was_asked_for() -> None:
    store = FaultyStore()
    async with checked(store) as host:
        store.hang()
        await create(host, ScriptedModel([]))
        listed: list[str] = []

        async def look() -> None:
            listed.extend(each.session_id for each in await host.list_sessions())

        async with trio.open_nursery() as nursery:
            nursery.start_soon(look)
            await store.wait_attempts(store.attempts + 1)
            await trio.testing.wait_all_tasks_blocked()
            assert listed == []
            store.heal()
        assert listed == [SESSION]
