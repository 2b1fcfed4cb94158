"""`session.history.truncate`: back to an earlier conversation, also behind a clear."""

from pathlib import Path

import pytest
import trio

from exeunt import (
    EventInsideTurn,
    JournalError,
    Session,
    SessionBusy,
    SessionClosed,
    SessionHost,
    ToolInvocation,
    UnknownEvent,
    approve_all,
    open_host,
    tool,
)
from exeunt.actors.errors import ContextError
from exeunt.actors.events import Origin, SessionTruncated, TurnEnd
from exeunt.actors.state import SessionState
from exeunt.actors.state.snapshot import dump, load
from exeunt.testing import ScriptedModel, call, checked_host, say


@tool(is_terminal=True, defer="never")
async def clear_context(prompt: str, invocation: ToolInvocation) -> str:
    """Clear the context."""
    await invocation.session.history.clear_context(prompt)
    return "cleared"


@tool
async def look_up(topic: str) -> str:
    """Look something up."""
    return f"{topic}: three entries"


TOOLS = [clear_context, look_up]


async def play(host: SessionHost, *replies: object) -> tuple[Session, ScriptedModel]:
    model = ScriptedModel(replies)  # type: ignore[arg-type]
    session = await host.create_session(
        model=model, tools=TOOLS, system_message="Be brief.", on_permission_request=approve_all
    )
    return session, model


async def ends(session: Session) -> list[TurnEnd]:
    return [event for event in await session.get_events() if isinstance(event, TurnEnd)]


def texts(session: Session) -> list[str]:
    return [message.content for message in session.history.messages()]


async def check_kinds_of_state(session: Session) -> None:
    """The state in memory, the replayed one, and the one of a snapshot at any place and the tail are equal."""
    events = await session.get_events()
    whole = SessionState.replay(events).summary()
    for place in range(1, len(events)):
        before = SessionState.replay(events[:place])
        loaded = load(dump(before, events[place - 1].id))
        assert loaded is not None
        assert SessionState.replay(events[place:], loaded).summary() == whole


async def test_the_conversation_is_again_what_it_was_after_the_event(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with checked_host() as host:
        session, model = await play(host, say("one"), say("two"), say("another two"))
        await session.send_and_wait("first")
        before = session.history.messages()
        await session.send_and_wait("second")
        [end, _] = await ends(session)
        event = await session.history.truncate(end.id)
        assert session.history.messages() == before
        assert (event.to_seq, event.generation, event.kept, event.restored) == (end.seq, 1, 2, ())
        assert event.events_removed == event.seq - 1 - end.seq
        await session.send_and_wait("second, again")
        assert [message.content for message in model.requests[-1].messages] == [
            "Be brief.", "first", "one", "second, again",
        ]  # fmt: skip
        await check_kinds_of_state(session)
        model.verify()


async def test_behind_a_clear_the_old_context_returns(autojump_clock: trio.testing.MockClock) -> None:
    async with checked_host() as host:
        session, model = await play(
            host, [call("look_up", topic="plays")], say("one"), call("clear_context", prompt="go on"),
            say("on it"), [call("look_up", topic="halls")], say("two"),
        )  # fmt: skip
        await session.send_and_wait("first")
        before = session.history.messages()
        await session.send_and_wait("start over")
        after = session.history.messages()
        first, cleared, seeded = await ends(session)
        event = await session.history.truncate(first.id)
        assert session.history.messages() == before
        assert (event.kept, event.generation) == (0, 2)
        assert event.restored
        await session.send_and_wait("second")
        assert texts(session) == ["Be brief.", *[m.content for m in before[1:]], "second", "", "halls: three entries",
                                  "two"]  # fmt: skip
        # And forward again: the truncation is an event like any other.
        await session.history.truncate(seeded.id)
        assert session.history.messages() == after
        assert session.statistics().generation == 3
        # The end of the clearing turn itself: everything up to the clear, the call that asked for it included.
        assert cleared.cleared
        await session.history.truncate(cleared.id)
        assert texts(session)[-3:] == ["start over", "", "cleared"]
        await check_kinds_of_state(session)
        model.verify()


async def test_before_the_first_message_the_conversation_is_empty(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with checked_host() as host:
        session, model = await play(host, say("one"), say("two"))
        await session.send_and_wait("first")
        await session.history.truncate((await session.get_events())[0].id)
        assert texts(session) == ["Be brief."]
        await session.send_and_wait("second")
        model.verify()


async def test_an_event_inside_of_a_turn_is_refused_and_nothing_changes(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with checked_host() as host:
        session, _ = await play(
            host,
            [call("look_up", topic="plays")],
            say("one"),
            call("clear_context", prompt="go on"),
            say("on it"),
        )
        await session.send_and_wait("first")
        await session.send_and_wait("start over")
        events = await session.get_events()
        allowed = {"session.start", "system.message", "message.accepted", "turn.end"}
        refused = 0
        for event in events:
            state = SessionState.replay(events[: event.seq])
            if state.at_rest:
                assert event.type in allowed
                continue
            with pytest.raises(EventInsideTurn, match=event.id):
                await session.history.truncate(event.id)
            refused += 1
        assert refused > 10
        assert await session.get_events() == events
        assert "session.context_cleared" in {event.type for event in events}


@pytest.mark.parametrize(
    "unknown",
    ["", "x", "00000000-0000-4000-8000-000000000001", "00000000-0000-4000-8000-00000000ffff", None, 7],
)
async def test_an_unknown_event_is_refused(unknown: str, autojump_clock: trio.testing.MockClock) -> None:
    async with checked_host() as host:
        session, _ = await play(host, say("one"))
        await session.send_and_wait("first")
        events = await session.get_events()
        with pytest.raises(UnknownEvent):
            await session.history.truncate(unknown)
        with pytest.raises(UnknownEvent):
            await session.history.truncate(Origin.fresh().event_id(events[-1].seq))
        assert await session.get_events() == events


async def test_while_a_turn_runs_it_is_refused_also_from_its_own_tool(
    autojump_clock: trio.testing.MockClock,
) -> None:
    refusals: list[SessionBusy] = []

    @tool
    async def go_back(invocation: ToolInvocation) -> str:
        """Try to go back."""
        events = await invocation.session.get_events()
        with pytest.raises(SessionBusy) as refused:
            await invocation.session.history.truncate(events[0].id)
        refusals.append(refused.value)
        return "refused"

    async with checked_host() as host:
        model = ScriptedModel([call("go_back"), say("no")])
        session = await host.create_session(model=model, tools=[go_back], on_permission_request=approve_all)
        await session.send_and_wait("go back")
        assert [refusal.session_id for refusal in refusals] == [session.session_id]
        assert session.statistics().generation == 0


async def test_a_turn_that_begins_while_the_log_is_read_wins(autojump_clock: trio.testing.MockClock) -> None:
    async with checked_host() as host:
        session, _ = await play(host, say("one"), say("two"), say("three"))
        await session.send_and_wait("first")
        [end] = await ends(session)
        async with trio.open_nursery() as nursery:

            async def go_back() -> None:
                with pytest.raises(SessionBusy):
                    await session.history.truncate(end.id)

            nursery.start_soon(go_back)
            nursery.start_soon(session.send, "second")
        await trio.testing.wait_all_tasks_blocked()
        await session.send_and_wait("third")
        assert session.statistics().generation == 0


async def test_a_session_that_is_gone_refuses(autojump_clock: trio.testing.MockClock) -> None:
    async with checked_host() as host:
        session, _ = await play(host, say("one"))
        await session.send_and_wait("first")
        [end] = await ends(session)
        await session.disconnect()
        with pytest.raises(SessionClosed):
            await session.history.truncate(end.id)


async def test_a_truncation_survives_the_process(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/log.sqlite3"
    async with checked_host(journal=url) as host:
        session, model = await play(host, say("one"), call("clear_context", prompt="go on"), say("on it"))
        await session.send_and_wait("first")
        before = texts(session)
        [end] = await ends(session)
        await session.send_and_wait("start over")
        await session.history.truncate(end.id)
        # What has been acknowledged is on the disk before the host ends.
        [stored] = await host.journal.read(session.session_id, session.statistics().events)
        assert isinstance(stored, SessionTruncated)
        model.verify()
    async with open_host(journal=url) as host:
        model = ScriptedModel([say("two")])
        session = await host.resume_session(
            session.session_id, model=model, tools=TOOLS, system_message="Be brief."
        )
        assert texts(session) == before
        await session.send_and_wait("second")
        assert [m.content for m in model.requests[0].messages] == [*before, "second"]


async def test_messages_of_the_preamble_stay_those_of_now(autojump_clock: trio.testing.MockClock) -> None:
    async with checked_host() as host:
        session, model = await play(host, say("one"))
        await session.send_and_wait("first")
        [end] = await ends(session)
        await host.resume_session(session.session_id, model=model, tools=TOOLS, system_message="Be long.")
        await session.history.truncate(end.id)
        assert texts(session) == ["Be long.", "first", "one"]


def test_a_log_that_keeps_more_messages_than_there_are_is_damaged() -> None:
    event = SessionTruncated(Origin.fresh(), 1, 0.0, "x", 1, 0, 1, kept=1)
    with pytest.raises(ContextError):
        SessionState().apply(event)


def test_bytes_that_are_no_messages_are_damage() -> None:
    event = SessionTruncated(Origin.fresh(), 1, 0.0, "x", 1, 0, 1, kept=0, restored=(b"no slice",))
    with pytest.raises(JournalError):
        SessionState().apply(event)
