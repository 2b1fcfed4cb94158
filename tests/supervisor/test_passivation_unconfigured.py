"""Sessions whose options a function of the program gives anew when they come back, and what happens when it cannot."""

# These tests look at what stays in memory, which is nobody else's business.
# pyright: reportPrivateUsage=false

from typing import Any

import pytest
import trio

from exeunt import (
    AbortReceipt,
    InvalidConfiguration,
    JournalError,
    MailboxFull,
    SessionClosed,
    SessionNotConfigured,
    SessionOptions,
    build_options,
)
from exeunt.testing import ScriptedModel, call, say
from tests.actors.session_support import (
    Result,
    begin,
    count,
    logged,
    only,
    open_session,
    plain_tool,
    settled,
    watch,
)
from tests.supervisor.passivation_support import MoodyJournal, idle_away, numbers, passivating, take, talker


class Resolver:
    """A `session_options` function: gives *options*, or raises *error* while there is one."""

    def __init__(self, **keywords: Any) -> None:
        self.keywords = keywords
        self.error: Exception | None = None
        self.result: Any = None
        self.seconds = 0.0
        self.asked: list[tuple[str, str]] = []

    async def __call__(self, session_id: str, metadata: Any) -> SessionOptions:
        self.asked.append((session_id, metadata.tenant))
        await trio.sleep(self.seconds)
        if self.error is not None:
            raise self.error
        return self.result or build_options(**self.keywords)


async def echo() -> str:
    await trio.lowlevel.checkpoint()
    return "echo"


async def test_a_session_that_comes_back_has_the_options_that_are_given_then(autojump_clock: object) -> None:
    model = ScriptedModel([call("echo"), "two"])
    resolver = Resolver(
        model=model, tools=[plain_tool("echo", echo)], system_message="Be brief.", tenant="mine"
    )
    async with passivating(session_options=resolver) as host:
        session = await open_session(host, talker("one"), session_id="me", tenant="mine")
        await session.send_and_wait("A")
        await idle_away(session)
        assert resolver.asked == []
        assert (await session.send_and_wait("B")).content == "two"
        assert resolver.asked == [("me", "mine")]
        assert model.requests[0].contents == ("Be brief.", "A", "one", "B")
        calls = host.metrics.registry.get_sample_value(
            "exeunt_tool_calls_total", {"tool": "echo", "outcome": "success", "terminal": "false"}
        )
        assert calls == 1
        await idle_away(session)
        model.verify()


async def test_a_host_with_such_a_function_keeps_no_options(autojump_clock: object) -> None:
    async with passivating(session_options=Resolver(model=talker())) as host:
        session = await open_session(host, talker())
        await idle_away(session)
        assert host._passive.options(session.session_id) is None
        assert session.statistics().status == "passive"


async def test_a_message_that_nobody_can_answer_is_kept_and_answered_later(autojump_clock: object) -> None:
    resolver = Resolver()
    async with passivating(session_options=resolver) as host:
        session = await open_session(host, talker("one"), session_id="me")
        await session.send_and_wait("A")
        events = watch(session)
        await idle_away(session)
        resolver.error = LookupError("no secrets today")
        with pytest.raises(SessionNotConfigured, match="no secrets today") as caught:
            await session.send("B")
        assert isinstance(caught.value.__cause__, LookupError)
        assert caught.value.session_id == "me"
        with pytest.raises(SessionNotConfigured):
            await session.send_and_wait("C")
        with pytest.raises(SessionNotConfigured):
            await session.call_tool("echo")
        assert [event.prompt for event in only(events, "message.accepted")] == ["B", "C"]
        assert count(events, "user.message") == 0
        now = session.statistics()
        assert (now.status, now.queued, host.actors()) == ("passive", 2, [])
        assert host.statistics().sessions == {"passive": 1}
        model = talker("two", "three")
        again = await host.resume_session("me", model=model, continue_pending_work=True)
        await settled(again)
        assert model.requests[1].contents == ("A", "one", "B", "two", "C")
        assert numbers(events) == list(range(events[0].seq, session.statistics().events + 1))
        await idle_away(session)
        model.verify()


async def test_a_kept_message_is_answered_before_the_next_when_options_are_there_again(
    autojump_clock: object,
) -> None:
    model = talker("two", "three")
    resolver = Resolver(model=model)
    async with passivating(session_options=resolver) as host:
        session = await open_session(host, talker())
        await idle_away(session)
        resolver.error = LookupError("no secrets today")
        with pytest.raises(SessionNotConfigured):
            await session.send("B")
        resolver.error = None
        assert (await session.send_and_wait("C")).content == "three"
        assert model.requests[1].contents == ("B", "two", "C")


async def test_a_kept_message_survives_the_host(autojump_clock: object) -> None:
    journal, resolver = MoodyJournal(), Resolver()
    resolver.error = LookupError("no secrets today")
    async with passivating(journal=journal, session_options=resolver, settled=False) as host:
        session = await open_session(host, talker(), session_id="me")
        await idle_away(session)
        with pytest.raises(SessionNotConfigured):
            await session.send("B")
    async with passivating(journal=journal) as host:
        model = talker("two")
        again = await host.resume_session("me", model=model, continue_pending_work=True)
        await settled(again)
        model.verify()


@pytest.mark.parametrize("result", [7, "gpt", {"model": "x"}])
async def test_a_function_that_returns_no_options_is_told_so(autojump_clock: object, result: Any) -> None:
    resolver = Resolver()
    resolver.result = result
    async with passivating(session_options=resolver) as host:
        session = await open_session(host, talker(), session_id="me")
        await idle_away(session)
        with pytest.raises(SessionNotConfigured) as caught:
            await session.send("B")
        assert isinstance(caught.value.__cause__, InvalidConfiguration)
        await session.abort()
        with pytest.raises(InvalidConfiguration):
            await host.resume_session("me")


async def test_an_abort_drops_the_kept_messages(autojump_clock: object) -> None:
    resolver = Resolver()
    resolver.error = LookupError("no secrets today")
    async with passivating(session_options=resolver) as host:
        session = await open_session(host, talker())
        events = watch(session)
        await idle_away(session)
        for text in "BC":
            with pytest.raises(SessionNotConfigured):
                await session.send(text)
        assert await session.abort(queued="keep") == AbortReceipt(None, (), 2)
        assert session.statistics().queued == 2
        assert await session.abort() == AbortReceipt(None, (), 2)
        assert session.statistics().queued == 0
        assert [event.cause for event in only(events, "message.dropped")] == ["aborted", "aborted"]
        assert events[-1].type == "session.idle"
        assert session.statistics().status == "passive"


async def test_a_session_that_nobody_configures_can_be_disconnected_and_deleted(
    autojump_clock: object,
) -> None:
    resolver = Resolver()
    resolver.error = LookupError("no secrets today")
    async with passivating(session_options=resolver) as host:
        one, two = [await open_session(host, talker()) for _ in range(2)]
        await idle_away(one, two)
        await one.disconnect()
        assert [event.type for event in await logged(one, "session.shutdown")] == ["session.shutdown"]
        await host.delete_session(two.session_id)
        for session in (one, two):
            with pytest.raises(SessionClosed):
                await session.send("A")
        assert host.statistics().sessions == {}
        with pytest.raises(LookupError):
            await host.resume_session(one.session_id)


async def test_several_messages_at_once_that_nobody_can_answer_are_kept_in_order(
    autojump_clock: object,
) -> None:
    resolver = Resolver()
    resolver.error, resolver.seconds = LookupError("no secrets today"), 5.0
    async with passivating(session_options=resolver) as host, trio.open_nursery() as nursery:
        session = await open_session(host, talker())
        await idle_away(session)
        results: list[Result] = []
        for number in range(8):
            results.append(begin(nursery, session.send, f"message {number}"))
            await trio.sleep(0.1)
        errors = [(await result.wait()).error for result in results]
        assert [type(error) for error in errors] == [SessionNotConfigured] * 8
        assert len({id(error) for error in errors}) == 8
        assert len(resolver.asked) == 1
        prompts = [event.prompt for event in await logged(session, "message.accepted")]
        assert prompts == [f"message {number}" for number in range(8)]
        model = ScriptedModel([], default=say("well"))
        await settled(await host.resume_session(session.session_id, model=model, continue_pending_work=True))
        assert [request.contents[-1] for request in model.requests] == prompts


async def test_what_a_session_keeps_is_bounded_also_when_nobody_configures_it(autojump_clock: object) -> None:
    resolver = Resolver()
    resolver.error = LookupError("no secrets today")
    async with passivating(session_options=resolver) as host:
        session = await open_session(host, talker())
        await idle_away(session)
        for _ in range(256):
            with pytest.raises(SessionNotConfigured):
                await session.send("B")
        with pytest.raises(MailboxFull):
            await session.send("one too many")
        assert session.statistics().queued == 256
        await session.abort()


async def test_a_stream_goes_on_through_a_time_without_options(autojump_clock: object) -> None:
    resolver = Resolver(model=talker("two", "three"))
    async with passivating(session_options=resolver) as host:
        session = await open_session(host, talker())
        stream = session.events(from_seq=1)
        await idle_away(session)
        resolver.error = LookupError("no secrets today")
        with pytest.raises(SessionNotConfigured):
            await session.send("B")
        resolver.error = None
        await session.send_and_wait("C")
        total = session.statistics().events
        assert numbers(await take(stream, total)) == list(range(1, total + 1))


async def test_a_journal_that_fails_is_not_taken_for_a_function_that_fails(autojump_clock: object) -> None:
    journal, resolver = MoodyJournal(), Resolver(model=talker("one"))
    async with passivating(journal=journal, session_options=resolver) as host:
        session = await open_session(host, talker())
        await idle_away(session)
        journal.error = JournalError("the disk is gone")
        with pytest.raises(JournalError):
            await session.send("A")
        journal.error = None
        assert (await session.send_and_wait("B")).content == "one"
        assert len(await logged(session, "message.accepted")) == 1
