"""A session whose actor lives in another process: what works over a transport, what is refused, what is lost."""

import itertools
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio

import exeunt
from exeunt import (
    InvalidConfiguration,
    InvalidPrompt,
    MailboxFull,
    ModelError,
    ModelErrorKind,
    RemoteSession,
    RemoteSessionError,
    ReplyTimeout,
    SessionError,
    SessionNotFound,
    StreamLagged,
    TransportLost,
    TurnAborted,
    TurnFailed,
    tool,
)
from exeunt.actors.events import ClearRefusedEvent, Event
from exeunt.testing import (
    Gate,
    LoopbackTransport,
    ScriptedModel,
    SlowSubscriber,
    call,
    checked_host,
    fail,
    hang,
    say,
)


@asynccontextmanager
async def remote_session(
    model: ScriptedModel, *, delay: float = 0.0, answer_timeout: float = 30.0, **options: Any
) -> AsyncGenerator[tuple[RemoteSession, LoopbackTransport, exeunt.Session]]:
    """A session of one host, seen from another."""
    async with checked_host() as far, checked_host() as near:
        session = await far.create_session(model=model, session_id="s", **options)
        transport = LoopbackTransport(far, delay)
        yield near.attach_remote("s", transport, answer_timeout=answer_timeout), transport, session
        await session.abort()
    model.verify(all_given=False)


async def test_a_remote_session_answers(autojump_clock: None) -> None:
    async with remote_session(ScriptedModel([say("hi")])) as (remote, _, session):
        reply = await remote.send_and_wait("hello")
        assert remote.session_id == "s"
        assert (reply.content, reply.reason) == ("hi", "completed")
        assert [turn.reason for turn in reply.turns] == ["completed"]
        assert await remote.statistics() == session.statistics()


async def test_a_message_that_was_sent_is_accepted_in_its_mode(autojump_clock: None) -> None:
    gate = Gate()
    model = ScriptedModel([call("gate"), say("done")])
    tools = [tool(name="gate", skip_permission=True)(gate)]
    async with remote_session(model, tools=tools) as (remote, _, session):
        await remote.send("one")
        await gate.entered()
        message_id = await remote.send("two", mode="immediate")
        gate.open()
        await trio.sleep(1)
        taken = [e for e in await session.get_events() if e.type == "user.message"]
        assert [e.payload()["delivery"] for e in taken] == ["idle", "steering"]
        assert taken[1].payload()["message_id"] == message_id


async def test_events_come_in_order_and_as_the_same_values(autojump_clock: None) -> None:
    model = ScriptedModel([call("gate"), say("done", chunks=["do", "ne"])])
    gate = Gate()
    gate.open()
    tools = [tool(name="gate", skip_permission=True)(gate)]
    async with remote_session(model, tools=tools, streaming=True) as (remote, _, session):
        here: list[Event] = []
        session.on(here.append)
        async with remote.events() as stream:
            await remote.send("go")
            there: list[Event] = []
            async for event in stream:
                there.append(event)
                if event.type == "session.idle":
                    break
        assert there == here
        assert [type(event) for event in there] == [type(event) for event in here]
        assert [event.id for event in there] == [event.id for event in here]
        assert stream.next_seq == session.statistics().events + 1


async def test_a_stream_goes_on_where_another_was_lost(autojump_clock: None) -> None:
    async with remote_session(ScriptedModel(["one", "two"])) as (remote, transport, session):
        await remote.send_and_wait("1")
        first = remote.events(from_seq=1)
        seen = [(await anext(first)).seq for _ in range(3)]
        transport.disconnect()
        with pytest.raises(TransportLost):
            await anext(first)
        with pytest.raises(StopAsyncIteration):
            await anext(first)
        transport.reconnect()
        await remote.send_and_wait("2")
        async with remote.events(from_seq=first.next_seq) as second:
            while len(seen) < session.statistics().events:
                event = await anext(second)
                seen += [] if event.ephemeral else [event.seq]
        assert seen == list(range(1, len(seen) + 1))


async def test_the_events_end_when_the_session_leaves_memory(autojump_clock: None) -> None:
    async with remote_session(ScriptedModel([])) as (remote, _, session), remote.events(from_seq=1) as stream:
        await session.disconnect()
        assert [event.type async for event in stream] == ["session.start", "session.shutdown"]


async def test_a_subscription_can_begin_behind_an_event(autojump_clock: None) -> None:
    async with remote_session(ScriptedModel(["hi"])) as (remote, _, session):
        await remote.send_and_wait("hello")
        third = (await session.get_events())[2]
        async with remote.events(after=third.id) as stream:
            assert (await anext(stream)).seq == 4


async def test_a_reader_that_lags_is_told_what_it_missed(autojump_clock: None) -> None:
    model = ScriptedModel([say("x" * 3000, chunks=3000, gap=0.001)])
    async with remote_session(model, streaming=True) as (remote, _, _):
        slow = SlowSubscriber[Event](100.0)
        async with remote.events() as stream, trio.open_nursery() as nursery:
            nursery.start_soon(slow.read, stream)
            await remote.send_and_wait("tell me a lot")
            await trio.sleep(1000)
            nursery.cancel_scope.cancel()
        assert any(isinstance(event, StreamLagged) for event in slow.seen)


async def test_a_cancelled_read_loses_no_event(autojump_clock: None) -> None:
    async with remote_session(ScriptedModel(["hi"]), delay=0.5) as (remote, _, session):
        await session.send_and_wait("hello")
        numbers: list[int] = []
        async with remote.events(from_seq=1) as stream:
            for patience in itertools.cycle((0.3, 0.7)):
                with trio.move_on_after(patience):
                    numbers.append((await anext(stream)).seq)
                if len(numbers) == session.statistics().events:
                    break
        assert numbers == list(range(1, len(numbers) + 1))


async def test_an_abort_ends_the_turn_over_there(autojump_clock: None) -> None:
    async with remote_session(ScriptedModel([hang()])) as (remote, _, _):
        async with trio.open_nursery() as nursery:

            @nursery.start_soon
            async def wait() -> None:
                with pytest.raises(TurnAborted):
                    await remote.send_and_wait("hello")

            await trio.sleep(1)
            await remote.send("later")
            receipt = await remote.abort()
        assert (receipt.turn is not None, receipt.tools_cancelled, receipt.queued) == (True, (), 1)


# --- The refusal to clear ------------------------------------------------------------------------------------


@pytest.mark.parametrize("prompt", ["go on", "", "  ", None, 7])
async def test_a_clear_is_refused_before_anything_else_is_looked_at(
    autojump_clock: None, prompt: Any
) -> None:
    async with checked_host() as host:
        transport = LoopbackTransport(host)
        transport.disconnect()
        remote = host.attach_remote("elsewhere", transport)
        with pytest.raises(RemoteSessionError) as refused:
            await remote.history.clear_context(prompt, siblings="nonsense")
        assert refused.value.session_id == "elsewhere"
        assert transport.requests == []
        assert host.metrics.value("exeunt_context_clears_total", outcome="remote") == 1


async def test_a_refused_clear_is_shown_to_the_observers_of_the_host_that_asked(autojump_clock: None) -> None:
    seen: list[tuple[str, Event]] = []
    async with remote_session(ScriptedModel([])) as (_, transport, session), checked_host() as host:
        host.observe(lambda session_id, events: seen.extend((session_id, event) for event in events))
        host.observe(_raises)
        remote = host.attach_remote("s", transport)
        before = session.statistics()
        for _ in range(2):
            with pytest.raises(RemoteSessionError):
                await remote.history.clear_context("go on")
        assert session.statistics() == before
        assert host.statistics().subscriber_errors == 2
    assert [(session_id, type(event), event.payload()) for session_id, event in seen] == [
        ("s", ClearRefusedEvent, {"cause": "remote"})
    ] * 2
    assert seen[0][1].id != seen[1][1].id


def _raises(session_id: str, events: object) -> None:
    raise RuntimeError("an observer that fails")


async def test_a_clear_over_there_reaches_who_waits_here(autojump_clock: None) -> None:
    model = ScriptedModel([call("clear", prompt="step 2"), say("on step 2")])

    @tool(is_terminal=True, skip_permission=True)
    async def clear(prompt: str, invocation: exeunt.ToolInvocation) -> str:
        result = await invocation.session.history.clear_context(prompt)
        return f"cleared {result.messages_cleared}"

    async with remote_session(model, tools=[clear]) as (remote, _, _):
        reply = await remote.send_and_wait("start over")
        assert [turn.reason for turn in reply.turns] == ["terminal_tool", "completed"]
        assert reply.content == "on step 2"


# --- Errors --------------------------------------------------------------------------------------------------


async def test_an_error_comes_back_as_the_class_that_was_raised(autojump_clock: None) -> None:
    model = ScriptedModel([hang()])
    async with remote_session(model, mailbox_size=1) as (remote, _, _):
        await remote.send("first")
        await trio.sleep(1)
        await remote.send("second")
        with pytest.raises(MailboxFull, match="holds 1 messages") as full:
            await remote.send("third")
        assert full.value.session_id == "s"


async def test_a_reply_that_does_not_come_in_time_says_what_the_session_does(autojump_clock: None) -> None:
    model = ScriptedModel([call("gate")])
    gate = Gate()
    tools = [tool(name="gate", skip_permission=True)(gate)]
    async with remote_session(model, tools=tools) as (remote, _, _):
        with pytest.raises(ReplyTimeout) as late:
            await remote.send_and_wait("hello", timeout=5)
        assert (late.value.phase, late.value.in_flight, late.value.queued) == ("tools", ("gate",), 0)
        assert trio.current_time() == 5


async def test_a_failed_turn_brings_the_error_of_its_model(autojump_clock: None) -> None:
    model = ScriptedModel([fail("authentication", "no such key", status=401)])
    async with remote_session(model) as (remote, _, _):
        with pytest.raises(TurnFailed) as failed:
            await remote.send_and_wait("hello")
        cause = failed.value.__cause__
        assert isinstance(cause, ModelError)
        assert (cause.kind, cause.status, str(cause)) == (ModelErrorKind.AUTHENTICATION, 401, "no such key")


async def test_a_session_that_is_not_there_is_not_found(autojump_clock: None) -> None:
    async with checked_host() as host:
        remote = host.attach_remote("nobody", LoopbackTransport(host))
        with pytest.raises(SessionNotFound):
            await remote.send("hello")
        with pytest.raises(SessionNotFound):
            await anext(remote.events())


@pytest.mark.parametrize("prompt", [None, 7, b"bytes", "half a pair \ud83d"])
async def test_what_is_no_prompt_is_refused_here(autojump_clock: None, prompt: Any) -> None:
    async with remote_session(ScriptedModel([])) as (remote, transport, _):
        with pytest.raises(InvalidPrompt):
            await remote.send(prompt)
        with pytest.raises(InvalidPrompt):
            await remote.send_and_wait(prompt)
        assert transport.requests == []


async def test_wrong_options_are_refused_here(autojump_clock: None) -> None:
    async with remote_session(ScriptedModel([])) as (remote, transport, _), checked_host() as host:
        wrong: Any = "wrong"
        with pytest.raises(InvalidConfiguration, match="mode"):
            await remote.send("hello", mode=wrong)
        with pytest.raises(InvalidConfiguration, match="queued"):
            await remote.abort(wrong)
        with pytest.raises(InvalidConfiguration, match="from_seq"):
            remote.events(from_seq=0)
        with pytest.raises(InvalidConfiguration, match="timeout"):
            await remote.send_and_wait("hello", timeout=-1)
        for seconds in (0, -1, float("nan"), True, wrong):
            with pytest.raises(InvalidConfiguration, match="answer_timeout"):
                host.attach_remote("s", transport, answer_timeout=seconds)
        with pytest.raises(InvalidConfiguration, match="session id"):
            host.attach_remote("", transport)
        assert transport.requests == []


async def test_a_host_that_has_ended_attaches_nothing(autojump_clock: None) -> None:
    async with checked_host() as host:
        transport = LoopbackTransport(host)
    with pytest.raises(exeunt.SessionClosed):
        host.attach_remote("s", transport)


# --- Losses --------------------------------------------------------------------------------------------------


async def test_a_lost_transport_ends_every_wait(autojump_clock: None) -> None:
    async with remote_session(ScriptedModel([hang()])) as (remote, transport, session):
        lost: list[str] = []

        async def expect_loss(name: str, wait: Any) -> None:
            with pytest.raises(TransportLost) as raised:
                await wait()
            assert raised.value.session_id == "s"
            lost.append(name)

        stream = await remote.events().__aenter__()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(expect_loss, "reply", lambda: remote.send_and_wait("hello", timeout=None))
            await trio.sleep(1)
            while (await anext(stream)).type != "assistant.turn_start":
                pass
            nursery.start_soon(expect_loss, "event", lambda: anext(stream))
            await trio.sleep(1)
            transport.disconnect()
        await expect_loss("send", lambda: remote.send("hello"))
        await expect_loss("subscribe", lambda: remote.events().__aenter__())
        assert sorted(lost) == ["event", "reply", "send", "subscribe"]
        assert session.statistics().phase == "model"
        assert session.statistics().subscribers == 0


async def test_a_message_whose_answer_was_lost_is_accepted_all_the_same(autojump_clock: None) -> None:
    async with remote_session(ScriptedModel(["hi"])) as (remote, transport, session):
        transport.lose_next_answer()
        with pytest.raises(TransportLost):
            await remote.send("hello")
        await trio.sleep(1)
        assert [m.content for m in session.history.messages()] == ["hello", "hi"]


@pytest.mark.parametrize(
    "error", [OSError("reset"), trio.BrokenResourceError(), ValueError("a fault of the transport")]
)
async def test_whatever_a_transport_raises_is_a_loss(autojump_clock: None, error: Exception) -> None:
    async with remote_session(ScriptedModel([])) as (remote, transport, _):
        transport.fail_next(error)
        with pytest.raises(TransportLost) as lost:
            await remote.send("hello")
        assert lost.value.__cause__ is error


@pytest.mark.parametrize(
    "answer",
    [
        None,
        "text",
        {},
        {"result": 7},
        {"error": None},
        {"error": {"type": 3, "message": "x"}},
        {"error": {"type": "ReplyTimeout", "message": "without its fields"}},
        {"error": {"type": "ModelError", "message": "of no kind", "data": {"kind": "sunspots"}}},
    ],
)
async def test_an_answer_that_is_no_frame_is_a_loss(autojump_clock: None, answer: Any) -> None:
    async with remote_session(ScriptedModel([])) as (remote, transport, _):
        transport.answer_next(answer)
        with pytest.raises(TransportLost):
            await remote.send("hello")


async def test_an_error_of_an_unknown_class_is_an_error_of_the_session(autojump_clock: None) -> None:
    async with remote_session(ScriptedModel([])) as (remote, transport, _):
        transport.answer_next({"error": {"type": "FromTheFuture", "message": "new"}})
        with pytest.raises(SessionError, match="FromTheFuture: new"):
            await remote.send("hello")


async def test_a_transport_that_is_silent_is_lost_after_the_answer_timeout(autojump_clock: None) -> None:
    async with remote_session(ScriptedModel([hang()]), delay=1000.0, answer_timeout=5.0) as (remote, _, _):
        for ask in (
            lambda: remote.send("hello"),
            remote.abort,
            remote.statistics,
            lambda: anext(remote.events()),
        ):
            begun = trio.current_time()
            with pytest.raises(TransportLost, match="within 5 s"):
                await ask()
            assert trio.current_time() == begun + 5
        begun = trio.current_time()
        with pytest.raises(TransportLost):
            await remote.send_and_wait("hello", timeout=60)
        assert trio.current_time() == begun + 65


async def test_a_cancelled_wait_leaves_the_turn_alone(autojump_clock: None) -> None:
    async with remote_session(ScriptedModel([say("hi", delay=10)])) as (remote, _, session):
        with trio.move_on_after(1):
            await remote.send_and_wait("hello")
        await trio.sleep(20)
        assert session.history.messages()[-1].content == "hi"


async def test_a_turn_gives_its_slot_back_while_it_waits_for_a_remote_session(autojump_clock: None) -> None:
    options = exeunt.HostOptions(running_turns=1)
    asks = ScriptedModel([call("ask"), say("they say yes")])
    answers = ScriptedModel([say("yes", delay=5)])
    async with remote_session(answers) as (_, transport, _), checked_host(options=options) as host:
        remote = host.attach_remote("s", transport)

        @tool(skip_permission=True)
        async def ask() -> str:
            return (await remote.send_and_wait("?")).content

        asking = await host.create_session(model=asks, tools=[ask])
        other = await host.create_session(model=ScriptedModel(["at once"]))
        await asking.send("go")
        await trio.sleep(1)
        assert (await other.send_and_wait("hello", timeout=1)).content == "at once"
        await trio.sleep(10)
        assert asking.history.messages()[-1].content == "they say yes"
