"""A journal that refuses a write crashes the actor; whichever write it is, nobody is left waiting."""

import contextlib
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import trio

from exeunt import ExeuntError, HostOptions, Session, SessionFailed, SessionHost, ToolInvocation
from exeunt.actors.events import Event
from exeunt.supervisor import Backoff, RestartIntensity
from exeunt.testing import Gate, ScriptedModel, Sleepy, call, checked_host, fail, hang, say
from tests.actors.session_support import (
    Result,
    begin,
    count,
    logged,
    open_session,
    plain_tool,
    settled,
    tool_of,
    watch,
)
from tests.properties.losing_journal import LosingJournal

PATIENT = HostOptions(backoff=Backoff(first=0.1, jitter=0.0), intensity=RestartIntensity(50, 5.0))

Story = Callable[[SessionHost, Session, trio.Nursery], Awaitable[list[Result]]]


async def plain_turns(_: SessionHost, session: Session, nursery: trio.Nursery) -> list[Result]:
    first = begin(nursery, session.send_and_wait, "A")
    await trio.sleep(0.5)
    second = begin(nursery, session.send_and_wait, "B")
    await session.send("C", mode="immediate")
    return [first, second]


async def aborted(_: SessionHost, session: Session, nursery: trio.Nursery) -> list[Result]:
    first = begin(nursery, session.send_and_wait, "wait")
    await trio.sleep(0.5)
    second = begin(nursery, session.send_and_wait, "B")
    calling = begin(nursery, session.call_tool, "quick")
    await trio.sleep(0.5)
    return [first, second, calling, begin(nursery, session.abort)]


async def host_calls(_: SessionHost, session: Session, nursery: trio.Nursery) -> list[Result]:
    first = begin(nursery, session.call_tool, "quick")
    await trio.sleep(0.01)
    second = begin(nursery, session.call_tool, "quick")
    message = begin(nursery, session.send_and_wait, "A")
    third = begin(nursery, session.call_tool, "quick")
    return [first, second, message, third]


async def cleared(_: SessionHost, session: Session, nursery: trio.Nursery) -> list[Result]:
    first = begin(nursery, session.send_and_wait, "clear")
    await trio.sleep(0.01)
    second = begin(nursery, session.send_and_wait, "B")
    return [first, second, begin(nursery, session.call_tool, "clear")]


async def failing(_: SessionHost, session: Session, nursery: trio.Nursery) -> list[Result]:
    first = begin(nursery, session.send_and_wait, "fail")
    await trio.sleep(0.01)
    return [first, begin(nursery, session.send_and_wait, "B")]


STORIES: dict[str, Story] = {
    "turns": plain_turns,
    "abort": aborted,
    "host calls": host_calls,
    "clear": cleared,
    "error": failing,
}


def reply(request: Any) -> Any:
    """Answer by what was asked last."""
    last = request.messages[-1]
    if last.role == "user" and last.content in ("wait", "clear", "quick"):
        return call(last.content)
    if last.content == "A":
        return [call("quick"), call("quick")]
    return fail("bad_request") if last.content == "fail" else say("ok", delay=0.1)


def nothing(*_: object) -> None:
    """A hook that has nothing to say."""


async def clear(invocation: ToolInvocation) -> str:
    await invocation.session.history.clear_context("FRESH")
    return "cleared"


async def play(story: Story, lost: int) -> tuple[list[Result], list[Event], list[Event], bool]:
    """Play *story* while write number *lost* fails. Returns results, what was shown, the log, and if it failed."""
    journal = LosingJournal([lost])
    async with checked_host(journal=journal, options=PATIENT) as host, trio.open_nursery() as nursery:
        session = await open_session(
            host,
            ScriptedModel([], default=reply),
            plain_tool("quick", Sleepy(0.2, "quick")),
            plain_tool("wait", Gate()),
            tool_of("clear", clear, is_terminal=True),
            on_session_end=nothing,
        )
        shown = watch(session)
        results = await story(host, session, nursery)
        with trio.fail_after(60):
            for result in results:
                await result.wait()
            await settled(session)
        await trio.sleep(1)
        missed = session.statistics().restarts == 0
        # It works as ever.
        journal.calm = True
        assert (await session.send_and_wait("hello")).content == "ok"
        await settled(session)
        await session.disconnect()
        assert session.statistics().status == "closed"
        log = list(await session.get_events())
    return results, shown, log, missed


@pytest.mark.parametrize("name", STORIES)
async def test_whichever_write_is_lost_everybody_is_told_and_the_session_is_idle_again(
    autojump_clock: object, name: str
) -> None:
    lost = 1
    while True:
        lost += 1
        results, shown, log, missed = await play(STORIES[name], lost)
        for result in results:
            assert result.error is None or isinstance(result.error, ExeuntError), lost
        # At least one for the story and one for the hello; an abort and a restart may make more of it.
        assert count(shown, "session.idle") >= 2, lost
        persisted = [event for event in shown if not event.ephemeral]
        assert persisted == log[-len(persisted) :], lost
        if missed:
            break
    assert lost > 5, "the story has more writes than that"


async def test_the_message_of_a_lost_write_is_accepted_again_and_answered(autojump_clock: object) -> None:
    async with checked_host(journal=LosingJournal([2]), options=PATIENT) as host:
        session = await open_session(host, ScriptedModel([say("hi")]))
        events = watch(session)
        assert (await session.send_and_wait("A")).content == "hi"
        await settled(session)
        assert len(await logged(session, "message.accepted")) == 1
        assert session.statistics().restarts == 1
        assert count(events, "session.idle") == 1


async def test_a_write_that_is_lost_shows_nothing_and_runs_nothing(autojump_clock: object) -> None:
    quick = Sleepy(0)
    async with checked_host(journal=LosingJournal([3]), options=PATIENT) as host:
        model = ScriptedModel([call("quick"), say("hi")])
        session = await open_session(host, model, plain_tool("quick", quick))
        events = watch(session)
        with pytest.raises(ExeuntError):
            await session.send_and_wait("A")
        assert count(events, "tool.execution_start") == 0
        assert quick.calls == []
        await session.send_and_wait("B")
        assert model.requests[1].contents == ("A", "B")


async def test_a_call_of_the_host_whose_beginning_was_lost_runs_once(autojump_clock: object) -> None:
    quick = Sleepy(0.1, "quick")
    async with (
        checked_host(journal=LosingJournal([3]), options=PATIENT) as host,
        trio.open_nursery() as nursery,
    ):
        session = await open_session(host, ScriptedModel([]), plain_tool("quick", quick))
        results = [begin(nursery, session.call_tool, "quick") for _ in range(3)]
        for result in results:
            await result.wait()
        assert session.statistics().restarts == 1
        assert len(quick.calls) <= 3
        done = [r.value.outcome for r in results if r.value is not None]
        assert len(done) >= 2
        assert set(done) == {"success"}


async def test_a_commit_that_is_lost_never_leaves_half_a_clear(autojump_clock: object) -> None:
    for lost in range(2, 9):
        journal = LosingJournal([lost])
        async with checked_host(journal=journal, options=PATIENT) as host:
            model = ScriptedModel([], default=reply)
            session = await open_session(host, model, tool_of("clear", clear, is_terminal=True))
            with contextlib.suppress(ExeuntError):
                await session.send_and_wait("clear")
            await settled(session)
            journal.calm = True
            await session.send_and_wait("hello")
            contents = model.requests[-1].contents
            cleared_events = await logged(session, "session.context_cleared")
            assert ("clear" in contents) == (not cleared_events), lost
            assert ("FRESH" in contents) == bool(cleared_events), lost


async def test_a_journal_that_never_writes_again_fails_the_session_and_tells_everybody(
    autojump_clock: object,
) -> None:
    journal = LosingJournal(range(3, 1000))
    async with (
        checked_host(journal=journal, settled=False) as host,
        trio.open_nursery() as nursery,
    ):
        session = await open_session(host, ScriptedModel([hang()]), plain_tool("quick", Sleepy(0)))
        seen: list[str] = []

        async def read() -> None:
            seen.extend([event.type async for event in session.events()])

        nursery.start_soon(read)
        running = begin(nursery, session.send_and_wait, "A")
        await trio.sleep(0.1)
        queued = begin(nursery, session.send_and_wait, "B")
        calling = begin(nursery, session.call_tool, "quick")
        await queued.wait()
        await calling.wait()
        await running.wait()
        assert isinstance(queued.error, SessionFailed)
        assert isinstance(calling.error, SessionFailed)
        assert running.error is not None
        assert session.statistics().status == "failed"
        await trio.sleep(1)
        assert "session.dead_letter" in seen
        assert seen[-1] == "session.warning"
        journal.calm = True
